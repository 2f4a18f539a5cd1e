"""Draws the rows of a small database from a seed.

What makes a mistake visible, whatever it is: few rows with few values, so that they agree and
differ by chance; values next to the constants of golds; rows for a gold's joins and groups; joined
rows with several children, one and none.
"""

import math
import random
from collections.abc import Mapping, Sequence
from itertools import chain
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
"""Attempts to draw a row that keeps to the table's rules."""

_MAX_DEPTH = 6
"""Generations of parents that are added for one row."""

Record = dict[str, Value]
"""A row: values by folded column names."""


class Draws:
    """Random choices that are the same on every platform and version of Python."""

    def __init__(self, seed: str) -> None:
        # Of all of random's methods, only random() is promised to stay as it is.
        self._random = random.Random(int(sha256_of_text(seed), 16)).random

    def chance(self, share: float) -> bool:
        """Return True in a share of all calls."""
        return self._random() < share

    def integer_below(self, number: int) -> int:
        """Return an integer from 0 to below a number."""
        return int(self._random() * number)

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.integer_below(len(values))]

    def pick_early(self, values: Sequence[T]) -> T:
        """Return one of the values, the first ones more often."""
        return values[int(self._random() ** 2 * len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in a random order."""
        shuffled = list(values)
        for i in range(len(shuffled) - 1, 0, -1):
            j = self.integer_below(i + 1)
            shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
        return shuffled


class _Drawing:
    """A database in the making."""

    def __init__(self, source: DrawingSource, seed: str, gold_numbers: Sequence[int]) -> None:
        draws = Draws(seed)
        self._source = source
        self._draws = draws
        self._order = source.tables
        self.rows: dict[str, list[Record]] = {table: [] for table in self._order}
        self.columns: dict[str, list[ColumnName]] = {}
        """The stored columns by table."""
        self._linked_columns: dict[str, set[str]] = {}
        """The columns of foreign keys by table."""
        for table in self._order:
            self.columns[table] = []
            for column in source.schema[table].columns:
                if not column.generated:
                    self.columns[table].append(ColumnName(table, fold(column.name)))
            self._linked_columns[table] = set()
            for link in source.links[table]:
                self._linked_columns[table].update(map(fold, link.columns))
        self._rows_by_key: dict[tuple[str, tuple[str, ...]], dict[tuple[Value, ...], Record]] = {}
        """The rows by table, key and the key's values."""
        self._palettes: dict[ColumnName, list[Value]] = {}
        if gold_numbers:
            self._golds = [source.requirements[number] for number in gold_numbers] * 4
        else:
            self._golds = draws.shuffled(source.requirements)
        self._size = draws.pick(TARGETED_SIZES if gold_numbers else RANDOM_SIZES)
        self._palette_size = draws.pick(PALETTE_SIZES)
        self._constant_share = draws.pick(CONSTANT_SHARES)
        self._keeps_unique = draws.chance(0.75)
        self._keeps_numbers_unique = draws.chance(0.5)
        spellings = set[str]()
        for domain in source.domains.values():
            spellings.update(map(str, domain.spellings))
        self._spellings: dict[str, str] = {}
        """The spelling of texts by their case-folded form, where it is not the original's."""
        for text in sorted(spellings):
            if draws.chance(0.4):
                self._spellings[text.casefold()] = text

    def run(self) -> None:
        """Draw all rows."""
        tables_read = set[str]()
        averaged = set[ColumnName]()
        for gold in self._golds:
            tables_read.update(gold.tables)
            averaged.update(gold.averaged)
        max_rows = {}
        for table in self.rows:
            max_rows[table] = self._size
            if table not in tables_read:
                max_rows[table] = min(_UNREAD_ROWS, self._size)
        for table in self.rows:
            first_rows = max(min(2, max_rows[table]), max_rows[table] // 4)
            for _ in range(first_rows):
                self.add_row(table, {})
        for gold in self._golds:
            if all(len(self.rows[table]) < max_rows[table] for table in gold.tables):
                self._plant(gold)
        for table, rows in self.rows.items():
            half = max_rows[table] // 2
            row_count = half + self._draws.integer_below(half + 1)
            for _ in range(row_count - len(rows)):
                self.add_row(table, self._repeated_cells(table))
        for name in sorted(averaged):
            if self._draws.chance(0.4):
                self._set_mean(name)

    def _set_mean(self, name: ColumnName) -> None:
        """Give a column one number and the numbers on both sides of it, so that it is the mean."""
        rows = self.rows[name.table]
        is_bound = name.column in self._key_columns(name.table) | self._linked_columns[name.table]
        if is_bound or not rows or not self._source.domains[name].is_number:
            return
        middle = max(1, _whole_part(rows[0][name.column]))
        for row in rows:
            row[name.column] = middle
        for third in range(len(rows) // 3):
            rows[3 * third + 1][name.column] = middle + 1
            rows[3 * third + 2][name.column] = middle - 1

    def _key_columns(self, table: str) -> set[str]:
        return set(chain.from_iterable(self._source.keys[table]))

    def _repeated_cells(self, table: str) -> Record:
        """Return a part of an earlier row, so that rows agree in more than chance would give."""
        rows = self.rows[table]
        if not rows or not self._draws.chance(0.4):
            return {}
        key_columns = self._key_columns(table)
        cells = {}
        for column, value in self._draws.pick(rows).items():
            if column not in key_columns and self._draws.chance(0.75):
                cells[column] = value
        return cells

    def _plant(self, gold: GoldRequirements) -> None:
        """Add rows of a group for a gold, with values next to its constants."""
        group = {name: self._value(name) for name in gold.grouped}
        if gold.group_sizes:
            row_count = self._draws.pick(gold.group_sizes)
        else:
            row_count = 1 + self._draws.integer_below(3)
        for _ in range(row_count):
            self._plant_row(gold, group)

    def _plant_row(self, gold: GoldRequirements, group: Mapping[ColumnName, Value]) -> None:
        """Add a row of a group for a gold to each of its tables."""
        draws = self._draws
        cells = {**group}
        is_exact = draws.chance(_EXACT_SHARE)
        for name, constants in gold.constants.items():
            values = constants
            if is_exact:
                values = constants[:1]
            elif not constants or not draws.chance(0.8):
                values = self._palette(name)
            if values:
                value = values[0] if draws.chance(0.3) else draws.pick(values)
                cells.update(self._cells_of_constant(name, value))
        if is_exact or draws.chance(0.8):
            self._equate_compared(gold, cells)
        for table in sorted(gold.tables, key=self._order.index):
            table_cells = {name.column: cell for name, cell in cells.items() if name.table == table}
            self.add_row(table, table_cells)

    def _cells_of_constant(self, name: ColumnName, value: Value) -> dict[ColumnName, Value]:
        """Return what a row needs to have a value: the value, or the key of the row that has it.

        If only one row may have a name, that row is used again, so that the rows planted around
        it refer to it. Nothing can refer to it unless its table has a key of one column.
        """
        namesake = self._row_of_name(name, value)
        if namesake is None:
            return {name: value}
        cells = {}
        for key in self._source.keys[name.table]:
            if len(key) == 1 and key[0] != name.column:
                cells[ColumnName(name.table, key[0])] = namesake[key[0]]
        return cells

    def _row_of_name(self, name: ColumnName, value: Value) -> Record | None:
        """Return the row that has a name already, if at most one row may have it."""
        domain = self._source.domains[name]
        if not (domain.unique and domain.kind == "text" and self._keeps_unique):
            return None
        spelled = self._spelled(value)
        for row in self.rows[name.table]:
            if row.get(name.column) == spelled:
                return row
        return None

    def _equate_compared(self, gold: GoldRequirements, cells: dict[ColumnName, Value]) -> None:
        """Give compared columns the same value."""
        for column, partner in gold.compared:
            value = cells.get(column, cells.get(partner))
            same_table = column.table == partner.table
            if value is None or same_table:
                value = self._shared_value(column, partner)
            for name in (column, partner):
                # A row that refers to another one of its table has a key of its own.
                if not same_table or not self._is_key(name):
                    cells[name] = value

    def _shared_value(self, column: ColumnName, partner: ColumnName) -> Value:
        """Return a value for two columns: of a row that has a key, of one that will, or any."""
        same_table = column.table == partner.table
        for name in (column, partner):
            if not self._is_key(name):
                continue
            rows = self.rows[name.table]
            if not same_table and self._draws.chance(0.5):
                return self._fresh_key(name)
            if rows:
                row = rows[-1] if self._draws.chance(0.3) else self._draws.pick(rows)
                return row[name.column]
        return self._value(column)

    def _is_key(self, name: ColumnName) -> bool:
        """Return whether a column is a key by itself."""
        return (name.column,) in self._source.keys[name.table]

    def add_row(self, table: str, cells: Mapping[str, Value], depth: int = 0) -> Record | None:
        """Add a row with these cells, and the parents that it needs.

        Returns:
            The row, the row that has its key already, or None if there is no place for it.
        """
        if depth > _MAX_DEPTH:
            return None
        cells = {column: self._spelled(value) for column, value in cells.items()}
        namesake = self._row_with_key(table, cells)
        if namesake is not None:
            return namesake
        for _ in range(_ROW_TRIES):
            record = {**cells}
            self._fill_keys(table, record)
            self.rows[table].append(record)  # so that it may refer to itself, and its parents to it
            for link in self._source.links[table]:
                self._fill_foreign_key(table, record, link, depth)
            for name in self.columns[table]:
                if name.column not in record:
                    record[name.column] = self._spelled(self._value(name))
            if self._accept(table, record):
                return record
            self.rows[table] = [row for row in self.rows[table] if row is not record]
        return None

    def _row_with_key(self, table: str, cells: Mapping[str, Value]) -> Record | None:
        """Return the row that has the values of a key already; None if no row has."""
        for key in self._source.keys[table]:
            if not cells.keys() >= set(key):
                continue
            values = _values(cells, key)
            row = self._rows_by_key.get((table, key), {}).get(values)
            if row is not None:
                return row
        return None

    def _fill_keys(self, table: str, record: Record) -> None:
        """Give a row new keys, where it has none and they refer to no other row."""
        for name in self.columns[table]:
            if name.column in record or name.column in self._linked_columns[table]:
                continue
            if self._is_key(name):
                record[name.column] = self._spelled(self._fresh_key(name))

    def _spelled(self, value: Value) -> Value:
        """Return a text in the case that this database has for it."""
        if isinstance(value, str):
            return self._spellings.get(value.casefold(), value)
        return value

    def _accept(self, table: str, record: Record) -> bool:
        """Return whether a row keeps to the table's rules, and note its keys if so."""
        declared = self._source.schema[table]
        for column, value in record.items():
            if value is None and declared[column].not_null:
                return False
        new_keys = []
        for key in self._source.keys[table]:
            values = _values(record, key)
            taken = self._rows_by_key.setdefault((table, key), {})
            if values in taken:
                return False
            if None not in values:
                new_keys.append((taken, values))
        for taken, values in new_keys:
            taken[values] = record
        return True

    def _fill_foreign_key(self, table: str, record: Record, link: ForeignKey, depth: int) -> None:
        """Fill a foreign key from a parent, which is added if none has the values asked for."""
        parent = fold(link.parent)
        children = list(map(fold, link.columns))
        targets = list(map(fold, link.parent_columns))
        pairs = list(zip(children, targets, strict=True))
        target_values = {target: record[child] for child, target in pairs if child in record}
        if None in target_values.values():
            return
        if not target_values and self._may_be_null(table, children) and self._draws.chance(0.07):
            record.update(dict.fromkeys(children))
            return
        parents = [row for row in self.rows[parent] if _can_be_parent(row, targets, target_values)]
        if parents:
            row: Record | None = self._draws.pick_early(parents)
        else:
            row = self.add_row(parent, target_values, depth + 1)
        if row is not None:
            record.update({child: row[target] for child, target in pairs})

    def _may_be_null(self, table: str, columns: Sequence[str]) -> bool:
        return all(self._source.domains[ColumnName(table, column)].has_nulls for column in columns)

    def _fresh_key(self, name: ColumnName) -> Value:
        """Return a value for a key, usually one that the original has."""
        domain = self._source.domains[name]
        taken = self._rows_by_key.get((name.table, (name.column,)), {})
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
            used = {row.get(name.column) for row in self.rows[name.table]}
            free = [value for value in domain.vocabulary if value not in used]
            if free:
                return self._draws.pick(free)
        palette = self._palette(name)
        return self._draws.pick_early(palette) if palette else None

    def _palette(self, name: ColumnName) -> list[Value]:
        """Return the values that a column has in this database: a few, in a random order."""
        if name not in self._palettes:
            self._palettes[name] = self._draw_palette(name)
        return self._palettes[name]

    def _draw_palette(self, name: ColumnName) -> list[Value]:
        draws, domain = self._draws, self._source.domains[name]
        values = self._values_to_choose(name)
        chosen = []
        if values:
            chosen = [draws.pick(values) for _ in range(self._palette_size)]
        constants = self._draw_constants(name)
        if domain.is_number and draws.chance(0.3):
            # Numbers at equal distances: a mean may be one of them, and so may a difference.
            number = _whole_part(draws.pick([*constants, *chosen] or [1]))
            chosen = [number, number + 1, max(number - 1, domain.lowest)]
        else:
            chosen += constants
        if name.column in self._key_columns(name.table):
            for value in chosen[:3]:
                chosen += domain.neighbours(value)
        return draws.shuffled(list(dict.fromkeys(chosen)) or domain.constants)

    def _values_to_choose(self, name: ColumnName) -> list[Value]:
        """Return values of a column, often with those of a column that golds compare it with."""
        domain = self._source.domains[name]
        values = domain.values
        for related in self._source.related.get(name, ()):
            if self._source.domains[related].kind == domain.kind and self._draws.chance(0.7):
                # What golds compare must be equal now and then.
                return [*self._palettes.get(related, values), *values[: len(values) // 2]]
        return values

    def _draw_constants(self, name: ColumnName) -> list[Value]:
        """Draw some of the constants that golds compare a column with."""
        constants: dict[Value, None] = {}
        for gold in self._golds:
            constants.update(dict.fromkeys(gold.constants.get(name, ())))
        return [value for value in constants if self._draws.chance(self._constant_share)]


def _values(cells: Mapping[str, Value], columns: Sequence[str]) -> tuple[Value, ...]:
    return tuple(cells[column] for column in columns)


def _can_be_parent(row: Record, targets: Sequence[str], target_values: Mapping[str, Value]) -> bool:
    """Return whether a row has the target values, and some value in the other columns."""
    for target in targets:
        value = row.get(target)
        if value is None or value != target_values.get(target, value):
            return False
    return True


def _whole_part(number: Value) -> int:
    """Return the whole part of a number that can be counted on from; 1 of what is too large."""
    if not isinstance(number, (int, float)) or not math.isfinite(number):
        return 1 if number else 0
    whole_part = int(number)
    return whole_part if is_storable(whole_part - 1) and is_storable(whole_part + 1) else 1


def draw(
    source: DrawingSource, seed: str, gold_numbers: Sequence[int] = ()
) -> dict[str, list[tuple[Value, ...]]]:
    """Draw a database: rows by folded table names, without generated columns.

    Args:
        source: What it is drawn from.
        seed: The same text gives the same rows.
        gold_numbers: Numbers in ``source.requirements`` of golds that it is made for; none: all.
    """
    drawing = _Drawing(source, seed, gold_numbers)
    drawing.run()
    rows = {}
    for table, records in drawing.rows.items():
        columns = [name.column for name in drawing.columns[table]]
        rows[table] = [_values(record, columns) for record in records]
    return rows
