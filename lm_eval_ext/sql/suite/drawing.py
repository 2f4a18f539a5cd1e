"""Draws the rows of a small database from a seed.

What makes a mistake visible, whatever it is: rows that satisfy a gold's conditions beside rows that
miss one of them by little; joined rows with several children, one and none; groups of different
sizes; repeated values where no key forbids them; columns drawn independently of each other.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from lm_eval_ext.sql.schema import ForeignKey
from lm_eval_ext.sql.suite.reading import Cell, Name, Place, Wish
from lm_eval_ext.sql.suite.source import Source
from lm_eval_ext.sql.values import Value

T = TypeVar("T")

SIZES = (8, 14, 20, 30, 40)
"""Rows of the tables that golds read, of which a database has one at most."""

_OTHERS = 6
"""Rows of other tables."""

_TRIES = 6
_DEPTH = 6


class Draws:
    """Random choices that are the same on every platform and version of Python."""

    def __init__(self, seed: str) -> None:
        # Of all of random's methods, only random() is promised to stay as it is.
        self._random = random.Random(int(hashlib.sha256(seed.encode()).hexdigest(), 16)).random

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

    def __init__(self, source: Source, seed: str) -> None:
        self._source = source
        self._draws = Draws(seed)
        self.rows: dict[str, list[Record]] = {table: [] for table in source.tables}
        self._taken: dict[tuple[str, tuple[str, ...]], dict[tuple[Value, ...], Record]] = {}
        self._palettes: dict[Name, list[Value]] = {}
        self._apart: dict[Name, bool] = {}
        self.size = self._draws.pick(SIZES)
        self._dense = self._draws.chance(0.5)
        self._plain = self._draws.chance(0.2)
        """Whether no constant of a gold is sought: none is the greatest value everywhere."""

    def run(self, first: Sequence[int]) -> None:
        """Draws all rows; rows for the golds of these numbers are planted first."""
        draws, source = self._draws, self._source
        most = {t: self.size if t in source.asked else _OTHERS for t in source.tables}
        for table in source.tables:
            for _ in range(max(3, most[table] // 4)):
                self.row(table, {})
        chosen = [source.wishes[i] for i in first]
        asked = [] if self._plain and not first else draws.shuffled(source.wishes)
        for wish in [*draws.shuffled(chosen * 2), *asked]:
            if all(len(self.rows[table]) < most[table] for table in wish.tables.values()):
                self._plant(wish)
        for table in source.tables:
            wanted = most[table] // 2 + draws.below(most[table] // 2 + 1)
            for _ in range(wanted - len(self.rows[table])):
                self.row(table, self._like_another(table))
        done: set[Name] = set()
        for wish in [*draws.shuffled(chosen), *draws.shuffled(source.wishes)]:
            for compared_, averaged in wish.means:
                name = wish.name_of(averaged)
                if name not in done and draws.chance(0.6):
                    done.add(name)
                    self._balance(wish, compared_, averaged)

    def _balance(self, wish: Wish, compared_: Cell, averaged: Cell) -> None:
        """Makes an average a value that the column may hold, and adds a row that has it."""
        table, column = wish.name_of(averaged)
        domain = self._source.domains[table, column]
        if domain.kind not in ("integer", "decimal"):
            return
        conditions = [
            (cell[1], set(allowed))
            for (cell, _, _), allowed in zip(wish.conditions, wish.allowed, strict=True)
            if cell[0] == averaged[0]
        ]
        unit = 10**domain.decimals
        values = [
            round(value * unit)
            for row in self.rows[table]
            if isinstance(value := row[column], (int, float))
            and all(row[name] in allowed for name, allowed in conditions)
        ]
        if not values:
            return
        mean = round(sum(values) / len(values))
        # With this number the mean is whole, or is only so when rounded.
        shift = self._draws.pick((0, 0, -1, 1)) * int(0.4 * (len(values) + 1))
        number = mean * (len(values) + 1) - sum(values) + shift
        if number < 0 <= domain.lowest:
            return
        whole = domain.kind == "integer"
        cells = {**self._cells(wish), averaged: number if whole else number / unit}
        self._add(wish, cells, {place for place in wish.tables if place != averaged[0]})
        cells = {**self._cells(wish), compared_: mean if whole else mean / unit}
        self._add(wish, cells, {averaged[0]})

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
        """Adds rows that satisfy a gold's conditions, and some that miss one of them by little."""
        draws = self._draws
        base = self._cells(wish)
        size = draws.pick(wish.sizes) if wish.sizes else 1 + draws.below(2)
        group = {cell: base[cell] for cell in wish.grouped if cell in base}
        self._add(wish, base)
        for _ in range(size - 1):
            share = draws.pick((0.3, 1.0))
            same = {c: base[c] for c in wish.outputs if c in base and draws.chance(share)}
            self._add(wish, {**self._cells(wish), **same, **group})
        # Now and then those that miss a condition are the largest group.
        times = size + 1 if group and draws.chance(0.3) else 1
        for missed in draws.shuffled(range(len(wish.conditions) + len(wish.equal)))[:2]:
            other = self._cells(wish, missed)
            group = {cell: other[cell] for cell in wish.grouped}
            for _ in range(times):
                self._add(wish, {**self._cells(wish, missed), **group})

    def _cells(self, wish: Wish, missed: int = -1) -> dict[Cell, Value]:
        """Values for the cells that a gold names, such that all conditions but one hold.

        ``missed`` is its number, among conditions and then equal cells.
        """
        draws = self._draws
        chosen: dict[Cell, Value] = {}
        for cell in dict.fromkeys(cell for cell, _, _ in wish.conditions):
            left = self._source.domains[wish.name_of(cell)].vocabulary
            beside: list[Value] = []
            for i, (other, _, near) in enumerate(wish.conditions):
                if other == cell:
                    allowed = set(wish.allowed[i])
                    left = [v for v in left if (v in allowed) == (i != missed)]
                    beside = [*near, *beside] if i == missed else [*beside, *near]
            beside = [v for v in beside if v in left]
            if left:
                # The constant itself, one of its neighbours, or any other value.
                some = beside if beside and draws.chance(0.7) else left
                chosen[cell] = beside[0] if beside and draws.chance(0.4) else draws.pick(some)
        for cell in [*wish.grouped, *wish.outputs]:
            if cell not in chosen:
                chosen[cell] = self._value(wish.name_of(cell))
        fixed = {cell for cell, _, _ in wish.conditions}
        for i, (one, two) in enumerate(wish.equal, len(wish.conditions)):
            if i == missed:
                continue
            value = chosen.get(one) if one in fixed else chosen.get(two) if two in fixed else None
            if value is None:
                value = self._shared(wish.name_of(one), wish.name_of(two))
            chosen[one] = chosen[two] = value
        return chosen

    def _shared(self, one: Name, two: Name) -> Value:
        """A value for two columns: of a row that has a key, or any."""
        for table, column in (one, two):
            if (column,) in self._source.keys[table] and self.rows[table]:
                return self._draws.early(self.rows[table])[column]
        return self._value(one)

    def _add(self, wish: Wish, cells: Mapping[Cell, Value], but: Iterable[Place] = ()) -> None:
        for place, table in wish.tables.items():
            if place not in but:
                self.row(table, {cell[1]: v for cell, v in cells.items() if cell[0] == place})

    def row(self, table: str, wanted: Mapping[str, Value], depth: int = 0) -> Record | None:
        """Adds a row with wanted values, and the parents that it needs.

        Returns it, the row that has its key already, or None if there is no place for it.
        """
        if depth > _DEPTH:
            return None
        for key in self._source.keys[table]:
            if all(column in wanted for column in key):
                there = self._taken.get((table, key), {}).get(tuple(wanted[c] for c in key))
                if there is not None:
                    return there
        for _ in range(_TRIES):
            record = dict(wanted)
            for link in self._source.links[table]:
                self._link(table, record, link, depth)
            for column in self.columns(table):
                if column not in record:
                    unique = (column,) in self._source.keys[table]
                    name = (table, column)
                    record[column] = self._fresh(name) if unique else self._value(name)
            if self._keep(table, record):
                return record
        return None

    def columns(self, table: str) -> Iterator[str]:
        """The columns that are stored."""
        for column in self._source.schema[table].columns:
            if not column.generated:
                yield column.name.casefold()

    def _keep(self, table: str, record: Record) -> bool:
        schema = self._source.schema[table]
        if any(record[c] is None and schema[c].not_null for c in record):
            return False
        places = []
        for key in self._source.keys[table]:
            values = tuple(record[column] for column in key)
            taken = self._taken.setdefault((table, key), {})
            if None not in values:
                if values in taken:
                    return False
                places.append((taken, values))
        for taken, values in places:
            taken[values] = record
        self.rows[table].append(record)
        return True

    def _link(self, table: str, record: Record, link: ForeignKey, depth: int) -> None:
        """Fills a foreign key from a parent, which is added if none has the wanted values."""
        columns = [c.casefold() for c in link.columns]
        targets = [c.casefold() for c in link.parent_columns]
        parent = link.parent.casefold()
        wanted = {t: record[c] for c, t in zip(columns, targets, strict=True) if c in record}
        if None in wanted.values():
            return
        # A parent of its own now and then: others keep several children or none.
        draws = self._draws
        nulls = all(self._source.domains[table, c].nulls for c in columns)
        if not wanted and nulls and draws.chance(0.07):
            record.update(dict.fromkeys(columns))
            return
        rows = self.rows[parent]
        if parent == table and not rows and not wanted:  # the first row refers to itself
            own = {t: self._fresh((table, t)) for t in targets}
            record.update(
                dict.fromkeys(columns)
                if nulls
                else {**own, **dict(zip(columns, own.values(), strict=True))}
            )
            return
        fits = [r for r in rows if all(r[t] == value for t, value in wanted.items())]
        found = draws.early(fits) if fits else self.row(parent, wanted, depth + 1)
        if found is not None:
            record.update({c: found[t] for c, t in zip(columns, targets, strict=True)})

    def _fresh(self, name: Name) -> Value:
        """A value for a key, usually one that the original has."""
        domain = self._source.domains[name]
        taken = self._taken.get((name[0], (name[1],)), {})
        for _ in range(_TRIES):
            value = self._draws.pick(domain.vocabulary) if domain.own else None
            if value is not None and (value,) not in taken:
                return value
        numbers = [v for (v,) in taken if isinstance(v, int)]
        if domain.kind == "integer":
            return max(numbers, default=0) + 1 + self._draws.below(3)
        left = [v for v in domain.vocabulary if (v,) not in taken]
        return self._draws.pick(left) if left else self._value(name)

    def _value(self, name: Name) -> Value:
        """A value for any other column, the first ones of its palette more often."""
        domain = self._source.domains[name]
        if domain.nulls and self._draws.chance(0.12):
            return None
        if domain.unique and domain.kind == "text":
            # Names differ in most databases, as they do in the original.
            if name not in self._apart:
                self._apart[name] = self._draws.chance(0.75)
            if self._apart[name]:
                used = {row[name[1]] for row in self.rows[name[0]]}
                left = [v for v in domain.vocabulary if v not in used]
                if left:
                    return self._draws.pick(left)
        palette = self._palettes.get(name) or self._palette(name)
        return self._draws.early(palette) if palette else None

    def _palette(self, name: Name) -> list[Value]:
        """The values that a column has in this database: a few, in a random order."""
        draws, domains = self._draws, self._source.domains
        domain = domains[name]
        own = list(domain.own)
        for other in self._source.related.get(name, ()):
            if domains[other].kind == domain.kind and draws.chance(0.7):
                # What golds compare must be equal now and then.
                own = [*self._palettes.get(other, domains[other].own), *own[: len(own) // 2]]
                break
        count = draws.pick((2, 4, 7, 12, 25) if self._dense else (5, 9, 16, 30))
        chosen = [draws.pick(own) for _ in range(count)] if own else []
        share = 0 if self._plain else draws.pick((0.2, 0.7))
        chosen += [v for v in domain.constants if draws.chance(share)]
        in_key = any(name[1] in key for key in self._source.keys[name[0]])
        if in_key or (domain.kind in ("integer", "decimal") and self._dense and draws.chance(0.4)):
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
        first: Numbers in ``source.wishes`` of the golds that rows are made for before others.
    """
    drawing = _Drawing(source, seed)
    drawing.run(first)
    return {
        table: [tuple(record[c] for c in drawing.columns(table)) for record in rows]
        for table, rows in drawing.rows.items()
    }
