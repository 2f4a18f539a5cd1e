"""How the values of added rows fit the columns that they stand in."""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.sql.distill.inserting import RefusedError, rowid_name
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.distill.values import ordinary_tables
from lm_eval_ext.sql.schema import Table, schema_of
from lm_eval_ext.sql.values import Row, quoted

USUAL, MALFORMED = "usual", "malformed"

KINDS: Mapping[str, str] = MappingProxyType(
    {
        USUAL: "as the column's own values",
        "first null": "NULL, where the original has none",
        "new word": "a text that is not in the column's vocabulary",
        "other length": "a code of the same kind as the column's, but longer or shorter",
        "other number": "a number with more decimals, or below the column's range",
        MALFORMED: "anything else: no such date, a fraction among whole numbers, another kind",
    }
)
"""The kinds of values, with a description each."""

_REASON = {
    "category": "new word",
    "code": "other length",
    "integer": "other number",
    "number": "other number",
}


def added_rows(original: Path, copy: Path) -> dict[str, list[Row]]:
    """Returns the rows that a copy has beside the original's, by table.

    Each begins with its rowid (NULL in tables without, or without a name for it).
    """
    found: dict[str, list[Row]] = {}
    with closing(_opened(original)) as one, closing(_opened(copy)) as two:
        schema = schema_of(two)
        for name in ordinary_tables(two):
            table = schema[name]
            query = f"SELECT {_rowid(table)}, {', '.join(columns_of(table))} FROM {quoted(name)}"
            before = set(one.execute(query).fetchall())
            rows = [row for row in two.execute(query).fetchall() if row not in before]
            if rows:
                found[table.name] = rows
    return found


def columns_of(table: Table) -> list[str]:
    """Returns the quoted names of the columns that are stored."""
    return [quoted(column.name) for column in table.columns if not column.generated]


def judge(rows: Mapping[str, list[Row]], shapes: Shapes) -> dict[str, int]:
    """Counts the values of :func:`added_rows` by :data:`KINDS`; those that occur."""
    found: Counter[str] = Counter()
    for name, added in rows.items():
        stored = [column for column in shapes.schema[name].columns if not column.generated]
        for row in added:
            for column, value in zip(stored, row[1:], strict=True):
                shape = shapes[name.lower(), column.name.lower()]
                level = shape.level_of(value)
                if level is None:
                    found[MALFORMED] += 1
                elif level == 0:
                    found[USUAL] += 1
                elif value is None:
                    found["first null"] += 1
                else:
                    found[_REASON.get(shape.kind, "new word")] += 1
    return {kind: found[kind] for kind in KINDS if found[kind]}


def _opened(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def _rowid(table: Table) -> str:
    try:
        return "NULL" if table.without_rowid else rowid_name(table)
    except RefusedError:  # its columns have all names of it
        return "NULL"
