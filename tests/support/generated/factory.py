"""A database of a manufacturer with 40 tables: names in capitals, a key for each, 53 links.

Each line of factory.yaml is a table, its number of rows, and its columns. A column's kind says what
it holds: ``>`` a link to another table, ``pick`` one of a few, the first ones more often, ``name``
a word and what it is a name of; ``int``, ``real`` and ``date`` are drawn between two ends,
``after`` is some days after another column.
"""

import datetime
import random
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import yaml

CONTENT = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
WORDS = {key: text.split() for key, text in CONTENT.items() if key != "tables"}
SQL_TYPES = {"int": "INTEGER", "real": "REAL"}
"""The types of columns whose values are no texts."""


@dataclass(frozen=True)
class Table:
    """A line of factory.yaml: a table's name, its number of rows, and its columns' kinds."""

    name: str
    size: int
    columns: Mapping[str, str]


def build(path: Path, seed: int = 1) -> Path:
    """Write the database; the same seed gives the same rows."""
    tables = [_parse_table(line) for line in CONTENT["tables"].splitlines()]
    sizes = {table.name: table.size for table in tables}
    with closing(sqlite3.connect(path)) as connection:
        for table in tables:
            connection.execute(_create_statement(table))
            marks = ", ".join("?" * (1 + len(table.columns)))
            rows = _rows(table, sizes, random.Random(f"{seed} {table.name}"))
            connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)
        connection.commit()
    return path


def _parse_table(line: str) -> Table:
    """Read a line such as ``EMPLOYEE 90: FIRST_NAME=first SALARY=int:1800:9500``."""
    name, size, *columns = line.split()
    return Table(name, int(size[:-1]), dict(column.split("=") for column in columns))


def _create_statement(table: Table) -> str:
    declarations = [f"{table.name}_ID INTEGER PRIMARY KEY"]
    for column, column_kind in table.columns.items():
        declarations.append(f"{column} {_sql_type(column_kind)}")
    return f"CREATE TABLE {table.name} ({', '.join(declarations)})"


def _sql_type(column_kind: str) -> str:
    if column_kind.startswith(">"):
        target = column_kind[1:]
        return f"INTEGER NOT NULL REFERENCES {target}({target}_ID)"
    return SQL_TYPES.get(column_kind.partition(":")[0], "TEXT") + " NOT NULL"


def _rows(
    table: Table, sizes: Mapping[str, int], generator: random.Random
) -> Iterator[list[object]]:
    """Yield a table's rows; ``sizes`` has the number of rows of every table."""
    names: list[str] = []
    for middle in WORDS["middle"]:
        names.extend(f"{front} {middle}" for front in WORDS["front"])
    for number in range(1, table.size + 1):
        row: dict[str, object] = {"": number}
        name = names[number % len(names)]
        for column, column_kind in table.columns.items():
            row[column] = _value(column_kind, row, name, sizes, generator)
        yield list(row.values())


def _value(  # noqa: PLR0911
    column_kind: str,
    row: Mapping[str, object],
    name: str,
    sizes: Mapping[str, int],
    generator: random.Random,
) -> object:
    """Draw a value of a kind; ``row`` has the columns before it."""
    kind_name, *options = column_kind.split(":")
    if kind_name.startswith(">"):
        return generator.randint(1, sizes[kind_name[1:]])
    if kind_name == "int":
        low, high = map(int, options)
        return generator.randint(low, high)
    if kind_name == "real":
        low, high = map(int, options)
        return round(generator.uniform(low, high), 2)
    if kind_name == "date":
        start, end = (datetime.date(int(year), 1, 1).toordinal() for year in options)
        return datetime.date.fromordinal(generator.randint(start, end)).isoformat()
    if kind_name == "after":
        column, least_days, most_days = options
        date = datetime.date.fromisoformat(str(row[column]))
        days = generator.randint(int(least_days), int(most_days))
        return (date + datetime.timedelta(days)).isoformat()
    if kind_name == "pick":
        choices = options[0].split("|")
        weights = range(len(choices) + 1, 1, -1)
        return generator.choices(choices, weights)[0]
    if kind_name == "proper":
        return name.replace(" ", "").capitalize()
    if kind_name == "name":
        return f"{name} {generator.choice(options[0].split('|'))}"
    return generator.choice(WORDS[kind_name])
