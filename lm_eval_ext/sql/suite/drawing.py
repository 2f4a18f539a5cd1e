"""Draws the rows of a small database from a seed.

What makes a mistake visible, whatever it is: few rows with few values, so that they agree and
differ by chance; values next to the constants of golds; rows for a gold's joins and groups; joined
rows with several children, one and none.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.sql.schema import ForeignKey, fold
from lm_eval_ext.sql.suite.columns import LARGEST_INTEGER, is_storable
from lm_eval_ext.sql.suite.reading import ColumnName, DrawingSource, GoldRequirements
from lm_eval_ext.sql.values import Value

T = TypeVar("T")

RANDOM_SIZES = (8, 14, 20, 30, 40)
"""Most rows of the tables that golds read; a random database has one of these sizes."""

TARGETED_SIZES = (1, 2, 3, 4, 6, 8, 12, 20)
"""The same for a database that is made for some golds."""

PALETTE_SIZES = (2, 3, 5, 8, 15, 25)
"""Values of a column that a database has."""

CONSTANT_SHARES = (0, 0.2, 0.7)
"""Shares of the golds' constants that a database has."""

_EXACT_SHARE = 0.3
"""Share of a gold's planted rows that have all of its constants, none next to one."""

_UNREAD_ROWS = 6
"""Most rows of tables that no gold reads."""

_ROW_TRIES = 6
_MAX_DEPTH = 6


class Draws:
    """Random choices that are the same on every platform and version of Python."""

    def __init__(self, seed: str) -> None:
        # Of all of random's methods, only random() is promised to stay as it is.
        self._random = random.Random(int(sha256_of_text(seed), 16)).random

    def chance(self, share: float) -> bool:
        """Return True in a share of all calls."""
        return self._random() < share

    def below(self, number: int) -> int:
        """Return an integer from 0 to below a number."""
        return int(self._random() * number)

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def early(self, values: Sequence[T]) -> T:
        """Return one of the values, the first ones more often."""
        return values[int(self._random() ** 2 * len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in a random order."""
        shuffled = list(values)
        for i in range(len(shuffled) - 1, 0, -1):
            j = self.below(i + 1)
            shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
        return shuffled


Record = dict[str, Value]
"""A row: values by folded column names."""


class _Drawing:
    """A database in the making."""

    def __init__(self, source: DrawingSource, seed: str, first: Sequence[int]) -> None:
        self._source = source
        self._draws = draws = Draws(seed)
        self._order = source.tables
        self.rows: dict[str, list[Record]] = {table: [] for table in self._order}
        self.columns: dict[str, list[str]] = {}
        """The stored columns by table."""
        for table in self._order:
            columns = source.schema[table].columns
            self.columns[table] = [fold(column.name) for column in columns if not column.generated]
        self._taken: dict[tuple[str, tuple[str, ...]], dict[tuple[Value, ...], Record]] = {}
        """The rows by table, key and the key's values."""
        self._palettes: dict[ColumnName, list[Value]] = {}
        if first:
            self._golds = [source.requirements[number] for number in first] * 4
        else:
            self._golds = draws.shuffled(source.requirements)
        self._size = draws.pick(TARGETED_SIZES if first else RANDOM_SIZES)
        self._palette_size = draws.pick(PALETTE_SIZES)
        self._constant_share = draws.pick(CONSTANT_SHARES)
        self._keeps_unique = draws.chance(0.75)
        self._keeps_numbers_unique = draws.chance(0.5)
        spellings = {str(text) for domain in source.domains.values() for text in domain.spellings}
        self._spellings = {text.casefold(): text for text in sorted(spellings) if draws.chance(0.4)}

    def run(self) -> None:
        """Draw all rows."""
        draws = self._draws
        tables_read = {table for gold in self._golds for table in gold.tables}
        max_rows = {}
        for table in self.rows:
            is_read = table in tables_read
            max_rows[table] = self._size if is_read else min(_UNREAD_ROWS, self._size)
        for table in self.rows:
            for _ in range(max(min(2, max_rows[table]), max_rows[table] // 4)):
                self.add_row(table, {})
        for gold in self._golds:
            if all(len(self.rows[table]) < max_rows[table] for table in gold.tables):
                self._plant(gold)
        for table, rows in self.rows.items():
            half = max_rows[table] // 2
            for _ in range(half + draws.below(half + 1) - len(rows)):
                self.add_row(table, self._part_of_a_row(table))
        for name in sorted({name for gold in self._golds for name in gold.averaged}):
            if draws.chance(0.4):
                self._balance(name)

    def _balance(self, name: ColumnName) -> None:
        """Give a column one number and the numbers on both sides of it, so that it is the mean."""
        table, column = name
        source, rows = self._source, self.rows[table]
        bound = {key_column for key in source.keys[table] for key_column in key}
        bound |= {fold(child) for link in source.links[table] for child in link.columns}
        if not source.domains[name].is_number or column in bound or not rows:
            return
        middle = max(1, _whole(rows[0][column]))
        balanced = len(rows) // 3 * 3
        for i, row in enumerate(rows):
            row[column] = middle + ((0, 1, -1)[i % 3] if i < balanced else 0)

    def _part_of_a_row(self, table: str) -> Record:
        """Return a part of an earlier row, so that rows agree in more than chance would give."""
        rows = self.rows[table]
        if not rows or not self._draws.chance(0.4):
            return {}
        keys = {column for key in self._source.keys[table] for column in key}
        return {
            column: value
            for column, value in self._draws.pick(rows).items()
            if column not in keys and self._draws.chance(0.75)
        }

    def _plant(self, gold: GoldRequirements) -> None:
        """Add rows of a group for a gold, with values next to its constants."""
        draws = self._draws
        group = {name: self._value(name) for name in gold.grouped}
        count = draws.pick(gold.group_sizes) if gold.group_sizes else 1 + draws.below(3)
        for _ in range(count):
            cells = {**group}
            is_exact = draws.chance(_EXACT_SHARE)
            for name, constants in gold.constants.items():
                pool = constants
                if is_exact:
                    pool = constants[:1]
                elif not constants or not draws.chance(0.8):
                    pool = self._palette(name)
                if pool:
                    value = pool[0] if draws.chance(0.3) else draws.pick(pool)
                    cells.update(self._cells_of_constant(name, value))
            if is_exact or draws.chance(0.8):
                self._equate(gold, cells)
            for table in sorted(gold.tables, key=self._order.index):
                self.add_row(
                    table, {column: value for (t, column), value in cells.items() if t == table}
                )

    def _cells_of_constant(self, name: ColumnName, value: Value) -> dict[ColumnName, Value]:
        """Return what a row needs to have a value: the value, or the key of the row that has it.

        If only one row may have a name, that row is used again, so that the rows planted around
        it refer to it. Nothing can refer to it unless its table has a key of one column.
        """
        table, column = name
        namesake = self._row_of_name(name, value)
        if namesake is None:
            return {name: value}
        keys = [key[0] for key in self._source.keys[table] if len(key) == 1]
        return {(table, key): namesake[key] for key in keys if key != column}

    def _row_of_name(self, name: ColumnName, value: Value) -> Record | None:
        """Return the row that has a name already, if at most one row may have it."""
        table, column = name
        domain = self._source.domains[name]
        if not (domain.unique and domain.kind == "text" and self._keeps_unique):
            return None
        spelled = self._spelled(value)
        for row in self.rows[table]:
            if row.get(column) == spelled:
                return row
        return None

    def _equate(self, gold: GoldRequirements, cells: dict[ColumnName, Value]) -> None:
        """Give compared columns the same value."""
        for first, second in gold.compared:
            value = cells.get(first, cells.get(second))
            same_table = first[0] == second[0]
            if value is None or same_table:
                value = self._shared_value(first, second)
            for name in (first, second):
                # A row that refers to another one of its table has a key of its own.
                if not same_table or not self._is_key(name):
                    cells[name] = value

    def _shared_value(self, first: ColumnName, second: ColumnName) -> Value:
        """Return a value for two columns: of a row that has a key, of one that will, or any."""
        for name in (first, second):
            rows = self.rows[name[0]]
            if not self._is_key(name):
                continue
            if first[0] != second[0] and self._draws.chance(0.5):
                return self._fresh_key(name)
            if rows:
                row = rows[-1] if self._draws.chance(0.3) else self._draws.pick(rows)
                return row[name[1]]
        return self._value(first)

    def _is_key(self, name: ColumnName) -> bool:
        return (name[1],) in self._source.keys[name[0]]

    def add_row(self, table: str, wanted: Mapping[str, Value], depth: int = 0) -> Record | None:
        """Add a row with wanted values, and the parents that it needs.

        Returns:
            The row, the row that has its key already, or None if there is no place for it.
        """
        if depth > _MAX_DEPTH:
            return None
        wanted = {column: self._spelled(value) for column, value in wanted.items()}
        for key in self._source.keys[table]:
            if all(column in wanted for column in key):
                values = tuple(wanted[column] for column in key)
                known = self._taken.get((table, key), {}).get(values)
                if known is not None:
                    return known
        linked = {fold(child) for link in self._source.links[table] for child in link.columns}
        for _ in range(_ROW_TRIES):
            record = {**wanted}
            for column in self.columns[table]:
                if self._is_key((table, column)) and column not in {*record, *linked}:
                    record[column] = self._spelled(self._fresh_key((table, column)))
            self.rows[table].append(record)  # so that it may refer to itself, and its parents to it
            for link in self._source.links[table]:
                self._link(table, record, link, depth)
            for column in self.columns[table]:
                if column not in record:
                    record[column] = self._spelled(self._value((table, column)))
            if self._accept(table, record):
                return record
            self.rows[table] = [row for row in self.rows[table] if row is not record]
        return None

    def _spelled(self, value: Value) -> Value:
        """Return a text in the case that this database has for it."""
        return self._spellings.get(value.casefold(), value) if isinstance(value, str) else value

    def _accept(self, table: str, record: Record) -> bool:
        """Return whether a row keeps to the table's rules, and note its keys if so."""
        schema = self._source.schema[table]
        if any(record[column] is None and schema[column].not_null for column in record):
            return False
        new_keys = []
        for key in self._source.keys[table]:
            values = tuple(record[column] for column in key)
            taken = self._taken.setdefault((table, key), {})
            if values in taken:
                return False
            if None not in values:
                new_keys.append((taken, values))
        for taken, values in new_keys:
            taken[values] = record
        return True

    def _link(self, table: str, record: Record, link: ForeignKey, depth: int) -> None:
        """Fill a foreign key from a parent, which is added if none has the wanted values."""
        children = [fold(column) for column in link.columns]
        targets = [fold(column) for column in link.parent_columns]
        parent, draws = fold(link.parent), self._draws
        pairs = list(zip(children, targets, strict=True))
        wanted = {target: record[child] for child, target in pairs if child in record}
        if None in wanted.values():
            return
        may_be_null = all(self._source.domains[table, child].has_nulls for child in children)
        if not wanted and may_be_null and draws.chance(0.07):
            record.update(dict.fromkeys(children))
            return
        parents = [
            row
            for row in self.rows[parent]
            if all(row.get(t) == wanted.get(t, row.get(t)) is not None for t in targets)
        ]
        row = draws.early(parents) if parents else self.add_row(parent, wanted, depth + 1)
        if row is not None:
            record.update({child: row[target] for child, target in pairs})

    def _fresh_key(self, name: ColumnName) -> Value:
        """Return a value for a key, usually one that the original has."""
        domain = self._source.domains[name]
        taken = self._taken.get((name[0], (name[1],)), {})
        free = [value for value in domain.vocabulary if (value,) not in taken]
        if domain.kind == "integer" and (not free or self._draws.chance(0.1)):
            highest = max((value for (value,) in taken if isinstance(value, int)), default=0)
            if highest < LARGEST_INTEGER:
                return highest + 1
        return self._draws.pick(free) if free else self._value(name)

    def _value(self, name: ColumnName) -> Value:
        """Return a value for any other column, the first ones of its palette more often."""
        domain = self._source.domains[name]
        if domain.has_nulls and self._draws.chance(0.12):
            return None
        keeps_unique = self._keeps_unique if domain.kind == "text" else self._keeps_numbers_unique
        if domain.unique and keeps_unique:
            # Values differ in most databases, as they do in the original.
            used = {row.get(name[1]) for row in self.rows[name[0]]}
            free = [value for value in domain.vocabulary if value not in used]
            if free:
                return self._draws.pick(free)
        palette = self._palette(name)
        return self._draws.early(palette) if palette else None

    def _palette(self, name: ColumnName) -> list[Value]:
        """Return the values that a column has in this database: a few, in a random order."""
        if name in self._palettes:
            return self._palettes[name]
        draws, domain = self._draws, self._source.domains[name]
        values = list(domain.values)
        for related in self._source.related.get(name, ()):
            if self._source.domains[related].kind == domain.kind and draws.chance(0.7):
                # What golds compare must be equal now and then.
                values = [*self._palettes.get(related, values), *values[: len(values) // 2]]
                break
        chosen = [draws.pick(values) for _ in range(self._palette_size)] if values else []
        constants = [value for gold in self._golds for value in gold.constants.get(name, ())]
        constants = [
            value for value in dict.fromkeys(constants) if draws.chance(self._constant_share)
        ]
        if domain.is_number and draws.chance(0.3):
            # Numbers at equal distances: a mean may be one of them, and so may a difference.
            number = _whole(draws.pick([*constants, *chosen] or [1]))
            chosen = [number, number + 1, max(number - 1, domain.lowest)]
        else:
            chosen += constants
        if any(name[1] in key for key in self._source.keys[name[0]]):
            chosen += [value for near in chosen[:3] for value in domain.neighbours(near)]
        palette = draws.shuffled(list(dict.fromkeys(chosen)) or domain.constants)
        self._palettes[name] = palette
        return palette


def _whole(number: Value) -> int:
    """Return the whole part of a number that can be counted on from; 1 of what is too large."""
    if not isinstance(number, (int, float)) or not math.isfinite(number):
        return 1 if number else 0
    whole = int(number)
    return whole if is_storable(whole - 1) and is_storable(whole + 1) else 1


def draw(
    source: DrawingSource, seed: str, first: Sequence[int] = ()
) -> dict[str, list[tuple[Value, ...]]]:
    """Draw a database: rows by folded table names, without generated columns.

    Args:
        source: What it is drawn from.
        seed: The same text gives the same rows.
        first: Numbers in ``source.requirements`` of the golds that it is made for; none: all.
    """
    drawing = _Drawing(source, seed, first)
    drawing.run()
    rows = {}
    for table, records in drawing.rows.items():
        columns = drawing.columns[table]
        rows[table] = [tuple(record[column] for column in columns) for record in records]
    return rows
