"""Draws the rows of a small database from a seed.

What makes a mistake visible, whatever it is: few rows with few values, so that they agree and
differ by chance; values beside the constants of golds; rows for a gold's joins and groups; joined
rows with several children, one and none.
"""

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.sql.schema import ForeignKey
from lm_eval_ext.sql.suite.reading import Name, Source, Wish
from lm_eval_ext.sql.values import Value

T = TypeVar("T")

SIZES = (8, 14, 20, 30, 40)
"""Most rows of the tables that golds read, of which a database has one."""

FEW = (1, 2, 3, 4, 6, 8, 12, 20)
"""The same of a database that is made for some golds."""

_OTHERS = 6
"""Rows of other tables."""

_TRIES = 6
_DEPTH = 6


class Draws:
    """Random choices that are the same on every platform and version of Python."""

    def __init__(self, seed: str) -> None:
        # Of all of random's methods, only random() is promised to stay as it is.
        self._random = random.Random(int(sha256_of_text(seed), 16)).random

    def chance(self, share: float) -> bool:
        """True in a share of all calls."""
        return self._random() < share

    def below(self, number: int) -> int:
        """An integer from 0 to below a number."""
        return int(self._random() * number)

    def pick(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]

    def early(self, values: Sequence[T]) -> T:
        """One of the values, the first ones more often."""
        return values[int(self._random() ** 2 * len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in a random order."""
        found = list(values)
        for i in range(len(found) - 1, 0, -1):
            j = self.below(i + 1)
            found[i], found[j] = found[j], found[i]
        return found


Record = dict[str, Value]


class _Drawing:
    """A database in the making."""

    def __init__(self, source: Source, seed: str, first: Sequence[int]) -> None:
        self._source = source
        self._draws = draws = Draws(seed)
        self._order = source.tables
        self.rows: dict[str, list[Record]] = {table: [] for table in self._order}
        self.columns = {
            table: [c.name.casefold() for c in source.schema[table].columns if not c.generated]
            for table in self._order
        }
        """Those that are stored, by table."""
        self._taken: dict[tuple[str, tuple[str, ...]], dict[tuple[Value, ...], Record]] = {}
        self._palettes: dict[Name, list[Value]] = {}
        self._wishes = [source.wishes[i] for i in first] * 4 or draws.shuffled(source.wishes)
        self._size = draws.pick(FEW if first else SIZES)
        self._few = draws.pick((2, 3, 5, 8, 15, 25))
        self._share = draws.pick((0, 0.2, 0.7))
        self._apart = draws.chance(0.75)
        texts = sorted({str(t) for domain in source.domains.values() for t in domain.spellings})
        self._spellings = {t.casefold(): t for t in texts if draws.chance(0.4)}

    def run(self) -> None:
        """Draws all rows."""
        draws = self._draws
        asked = {table for wish in self._wishes for table in wish.tables}
        most = {t: self._size if t in asked else min(_OTHERS, self._size) for t in self.rows}
        for table in self.rows:
            for _ in range(max(min(2, most[table]), most[table] // 4)):
                self.row(table, {})
        for wish in self._wishes:
            if all(len(self.rows[table]) < most[table] for table in wish.tables):
                self._plant(wish)
        for table, rows in self.rows.items():
            for _ in range(most[table] // 2 + draws.below(most[table] // 2 + 1) - len(rows)):
                self.row(table, self._like_another(table))
        for name in sorted({name for wish in self._wishes for name in wish.means}):
            if draws.chance(0.4):
                self._balance(name)

    def _balance(self, name: Name) -> None:
        """Gives a column a number, and numbers on both sides of which it is the mean."""
        table, column = name
        source, rows = self._source, self.rows[table]
        used = {c for key in source.keys[table] for c in key}
        used |= {c.casefold() for link in source.links[table] for c in link.columns}
        if source.domains[name].kind in ("integer", "decimal") and column not in used and rows:
            middle = max(1, int(rows[0][column] or 0))
            for i, row in enumerate(rows):
                row[column] = middle + ((0, 1, -1)[i % 3] if i < len(rows) // 3 * 3 else 0)

    def _like_another(self, table: str) -> Record:
        """A part of an earlier row, so that rows agree in more than chance would give."""
        rows = self.rows[table]
        if not rows or not self._draws.chance(0.4):
            return {}
        keys = {column for key in self._source.keys[table] for column in key}
        return {
            column: value
            for column, value in self._draws.pick(rows).items()
            if column not in keys and self._draws.chance(0.75)
        }

    def _plant(self, wish: Wish) -> None:
        """Adds rows of a group for a gold, with values beside its constants."""
        draws = self._draws
        group = {name: self._value(name) for name in wish.grouped}
        for _ in range(draws.pick(wish.sizes) if wish.sizes else 1 + draws.below(3)):
            cells = {**group}
            for name, near in wish.near.items():
                some = near if near and draws.chance(0.8) else self._palette(name)
                if some:
                    cells[name] = some[0] if draws.chance(0.3) else draws.pick(some)
            for one, two in wish.equal if draws.chance(0.8) else ():
                value = cells.get(one, cells.get(two))
                if value is None or one[0] == two[0]:
                    value = self._shared(one, two)
                # A row that refers to another one of its table has a key of its own.
                cells |= {n: value for n in (one, two) if one[0] != two[0] or not self._is_key(n)}
            for table in sorted(wish.tables, key=self._order.index):
                self.row(table, {c: value for (t, c), value in cells.items() if t == table})

    def _shared(self, one: Name, two: Name) -> Value:
        """A value for two columns: of a row that has a key, of one that will have it, or any."""
        for name in (one, two):
            rows = self.rows[name[0]]
            if self._is_key(name):
                if one[0] != two[0] and self._draws.chance(0.5):
                    return self._fresh(name)
                if rows:
                    return (rows[-1] if self._draws.chance(0.3) else self._draws.pick(rows))[
                        name[1]
                    ]
        return self._value(one)

    def _is_key(self, name: Name) -> bool:
        return (name[1],) in self._source.keys[name[0]]

    def row(self, table: str, wanted: Mapping[str, Value], depth: int = 0) -> Record | None:
        """Adds a row with wanted values, and the parents that it needs.

        Returns it, the row that has its key already, or None if there is no place for it.
        """
        if depth > _DEPTH:
            return None
        wanted = {column: self._spelled(value) for column, value in wanted.items()}
        for key in self._source.keys[table]:
            if all(column in wanted for column in key):
                there = self._taken.get((table, key), {}).get(tuple(wanted[c] for c in key))
                if there is not None:
                    return there
        linked = {c.casefold() for link in self._source.links[table] for c in link.columns}
        for _ in range(_TRIES):
            record = {**wanted}
            for column in self.columns[table]:
                if self._is_key((table, column)) and column not in {*record, *linked}:
                    record[column] = self._spelled(self._fresh((table, column)))
            self.rows[table].append(record)  # so that it may refer to itself, and its parents to it
            for link in self._source.links[table]:
                self._link(table, record, link, depth)
            for column in self.columns[table]:
                if column not in record:
                    record[column] = self._spelled(self._value((table, column)))
            if self._is_new(table, record):
                return record
            self.rows[table] = [row for row in self.rows[table] if row is not record]
        return None

    def _spelled(self, value: Value) -> Value:
        """A text in the case that this database has for it."""
        return self._spellings.get(value.casefold(), value) if isinstance(value, str) else value

    def _is_new(self, table: str, record: Record) -> bool:
        schema = self._source.schema[table]
        if any(record[c] is None and schema[c].not_null for c in record):
            return False
        places = []
        for key in self._source.keys[table]:
            values = tuple(record[column] for column in key)
            taken = self._taken.setdefault((table, key), {})
            if values in taken:
                return False
            if None not in values:
                places.append((taken, values))
        for taken, values in places:
            taken[values] = record
        return True

    def _link(self, table: str, record: Record, link: ForeignKey, depth: int) -> None:
        """Fills a foreign key from a parent, which is added if none has the wanted values."""
        columns = [c.casefold() for c in link.columns]
        targets = [c.casefold() for c in link.parent_columns]
        parent, draws = link.parent.casefold(), self._draws
        wanted = {t: record[c] for c, t in zip(columns, targets, strict=True) if c in record}
        if None in wanted.values():
            return
        nulls = all(self._source.domains[table, c].nulls for c in columns)
        if not wanted and nulls and draws.chance(0.07):
            record.update(dict.fromkeys(columns))
            return
        fits = [
            row
            for row in self.rows[parent]
            if all(row.get(t) == wanted.get(t, row.get(t)) is not None for t in targets)
        ]
        found = draws.early(fits) if fits else self.row(parent, wanted, depth + 1)
        if found is not None:
            record.update({c: found[t] for c, t in zip(columns, targets, strict=True)})

    def _fresh(self, name: Name) -> Value:
        """A value for a key, usually one that the original has."""
        domain = self._source.domains[name]
        taken = self._taken.get((name[0], (name[1],)), {})
        left = [v for v in domain.vocabulary if (v,) not in taken]
        if domain.kind == "integer" and (not left or self._draws.chance(0.1)):
            return max((v for (v,) in taken if isinstance(v, int)), default=0) + 1
        return self._draws.pick(left) if left else self._value(name)

    def _value(self, name: Name) -> Value:
        """A value for any other column, the first ones of its palette more often."""
        domain = self._source.domains[name]
        if domain.nulls and self._draws.chance(0.12):
            return None
        if domain.unique and domain.kind == "text" and self._apart:
            # Names differ in most databases, as they do in the original.
            used = {row.get(name[1]) for row in self.rows[name[0]]}
            left = [v for v in domain.vocabulary if v not in used]
            if left:
                return self._draws.pick(left)
        palette = self._palette(name)
        return self._draws.early(palette) if palette else None

    def _palette(self, name: Name) -> list[Value]:
        """The values that a column has in this database: a few, in a random order."""
        if name in self._palettes:
            return self._palettes[name]
        draws, domain = self._draws, self._source.domains[name]
        own = list(domain.own)
        for other in self._source.related.get(name, ()):
            if self._source.domains[other].kind == domain.kind and draws.chance(0.7):
                # What golds compare must be equal now and then.
                own = [*self._palettes.get(other, own), *own[: len(own) // 2]]
                break
        chosen = [draws.pick(own) for _ in range(self._few)] if own else []
        constants = [v for wish in self._wishes for v in wish.near.get(name, ())]
        constants = [v for v in dict.fromkeys(constants) if draws.chance(self._share)]
        if domain.kind in ("integer", "decimal") and draws.chance(0.3):
            # Numbers at equal distances: a mean may be one of them, and so may a difference.
            number = int(draws.pick([*constants, *chosen] or [1]))  # type: ignore[arg-type]
            chosen = [number, number + 1, max(number - 1, domain.lowest)]
        else:
            chosen += constants
        if any(name[1] in key for key in self._source.keys[name[0]]):
            chosen += [v for near in chosen[:3] for v in domain.beside(near)]
        found = draws.shuffled(list(dict.fromkeys(chosen)) or domain.constants)
        self._palettes[name] = found
        return found


def draw(
    source: Source, seed: str, first: Sequence[int] = ()
) -> dict[str, list[tuple[Value, ...]]]:
    """Draws a database: rows by table in lower case, without generated columns.

    Args:
        source: What it is drawn from.
        seed: The same text gives the same rows.
        first: Numbers in ``source.wishes`` of the golds that it is made for; none: all.
    """
    drawing = _Drawing(source, seed, first)
    drawing.run()
    return {
        table: [tuple(record[c] for c in drawing.columns[table]) for record in rows]
        for table, rows in drawing.rows.items()
    }
