"""A SQLite file's tables, to be written for another engine."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lm_eval_ext.sql.engines.writing import ColumnDraft, TableDraft
from lm_eval_ext.sql.schema import read_schema


def drafts(sqlite: Path) -> list[TableDraft]:
    names = {"INTEGER": "INTEGER", "REAL": "DOUBLE PRECISION"}
    with closing(sqlite3.connect(sqlite)) as made:
        return [
            TableDraft(
                table.name,
                [
                    ColumnDraft(one.name, names.get(one.affinity, "VARCHAR"))
                    for one in table.columns
                ],
                made.execute(f'SELECT * FROM "{table.name}"').fetchall(),
                [one.name for one in table.columns if one.primary_key],
                table.foreign_keys,
            )
            for table in read_schema(sqlite).values()
        ]
