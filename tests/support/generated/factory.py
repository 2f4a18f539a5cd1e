"""A database of a manufacturer with 40 tables: names in capitals, a key for each, 53 links.

Each line of factory.yaml is a table, its number of rows, and its columns. A column's kind says what
it holds: ``>`` a link to another table, ``pick`` one of a few, the first ones more often, ``name``
a word and what it is a name of; ``int``, ``real`` and ``date`` are drawn between two ends,
``after`` is some days after another column.
"""

import datetime
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import yaml

CONTENT = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
WORDS = {key: text.split() for key, text in CONTENT.items() if key != "tables"}


def build(path: Path, seed: int = 1) -> Path:
    """Write the database; the same seed gives the same rows."""
    lines = [line.split() for line in CONTENT["tables"].splitlines()]
    sizes = {name: int(size[:-1]) for name, size, *_ in lines}
    with closing(sqlite3.connect(path)) as connection:
        for name, size, *columns in lines:
            kinds = dict(column.split("=") for column in columns)
            declared = ", ".join(f"{column} {_type(kind)}" for column, kind in kinds.items())
            connection.execute(f"CREATE TABLE {name} ({name}_ID INTEGER PRIMARY KEY, {declared})")
            rng = random.Random(f"{seed} {name}")
            marks = ", ".join("?" * (len(kinds) + 1))
            rows = _rows(int(size[:-1]), kinds, sizes, rng)
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.commit()
    return path


def _type(kind: str) -> str:
    if kind.startswith(">"):
        return f"INTEGER NOT NULL REFERENCES {kind[1:]}({kind[1:]}_ID)"
    return {"int": "INTEGER", "real": "REAL"}.get(kind.partition(":")[0], "TEXT") + " NOT NULL"


def _rows(
    size: int, kinds: dict[str, str], sizes: dict[str, int], rng: random.Random
) -> Iterator[list[object]]:
    names: list[str] = []
    for middle in WORDS["middle"]:
        names.extend(f"{front} {middle}" for front in WORDS["front"])
    for number in range(1, size + 1):
        row: dict[str, object] = {"": number}
        for column, kind in kinds.items():
            row[column] = _value(kind, row, names[number % len(names)], sizes, rng)
        yield list(row.values())


def _value(  # noqa: PLR0911
    kind: str, row: dict[str, object], name: str, sizes: dict[str, int], rng: random.Random
) -> object:
    kind_name, *options = kind.split(":")
    if kind_name.startswith(">"):
        return rng.randint(1, sizes[kind_name[1:]])
    if kind_name in {"int", "real"}:
        low, high = map(int, options)
        return rng.randint(low, high) if kind_name == "int" else round(rng.uniform(low, high), 2)
    if kind_name == "date":
        first, last = (datetime.date(int(year), 1, 1).toordinal() for year in options)
        return datetime.date.fromordinal(rng.randint(first, last)).isoformat()
    if kind_name == "after":
        start = datetime.date.fromisoformat(str(row[options[0]]))
        return (
            start + datetime.timedelta(rng.randint(int(options[1]), int(options[2])))
        ).isoformat()
    if kind_name == "pick":
        choices = options[0].split("|")
        weights = range(len(choices) + 1, 1, -1)
        return rng.choices(choices, weights)[0]
    if kind_name == "proper":
        return name.replace(" ", "").capitalize()
    if kind_name == "name":
        return f"{name} {rng.choice(options[0].split('|'))}"
    return rng.choice(WORDS[kind_name])
