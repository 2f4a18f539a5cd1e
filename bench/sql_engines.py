"""Verdicts on DuckDB and PostgreSQL, beside SQLite's on the same rows and queries.

One table, filled alike on each engine; every second prediction is right, and no two are the same.
Times include starting the workers.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.data import UnavailableError
from bench.rows import DifferError, Row, in_turn
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import DIALECTS, Example, Executor, NamedDatabases, Place

SIZE = 1000
SEMANTICS = "strict"
SALES = 2000
SCRIPT = (
    "CREATE TABLE sale (id INTEGER PRIMARY KEY, kind VARCHAR(9), price INTEGER);"
    "INSERT INTO sale VALUES "
    + ", ".join(f"({n}, 'kind {n * 7 % 23}', {n * 37 % 2003})" for n in range(SALES))
)


def rows(rounds: int, share: float, workers: int) -> Iterator[Row]:
    """Yields a row for each engine.

    Raises:
        UnavailableError: An engine is not here; it says which and why.
    """
    size = max(10, round(SIZE * share))
    with tempfile.TemporaryDirectory() as place:
        sqlite = Place("sqlite", str(Path(place) / "shop.sqlite"))
        with closing(sqlite3.connect(sqlite.address)) as made:
            made.executescript(SCRIPT)
        with _duckdb(Path(place)) as there:
            yield _row(rounds, size, sqlite, there, workers)
        with _server() as there:
            yield _row(rounds, size, sqlite, there, workers)


def examples(size: int) -> Iterator[Example]:
    """Yields pairs of a gold query and a prediction, of which every second one is right."""
    query = "SELECT kind, count(*) FROM sale WHERE price {} GROUP BY kind"
    for number in range(size):
        wrong = number % 2
        gold, predicted = query.format(f"> {number}"), query.format(f">= {number + 1 + wrong}")
        yield Example("shop", gold, predicted)


def _row(rounds: int, size: int, sqlite: Place, there: Place, workers: int) -> Row:
    def verdicts(place: Place) -> list[bool]:
        with Executor(NamedDatabases({"shop": place}), workers=workers) as executor:
            return [one.correct for one in executor.score(examples(size), semantics=SEMANTICS)]

    times, one, another = in_turn(rounds, lambda: verdicts(sqlite), lambda: verdicts(there))
    if one != another:
        raise DifferError(f"verdicts of SQLite and {there.engine} differ")
    work = f"verdicts on {DIALECTS[there.engine].title}, {workers} workers"
    return Row(work, size, "predictions", "SQLite", *times, "verdicts identical")


@contextmanager
def _duckdb(folder: Path) -> Iterator[Place]:
    try:
        DIALECTS["duckdb"].require()
    except DataError as error:
        raise UnavailableError(str(error)) from None
    import duckdb

    path = str(folder / "shop.duckdb")
    with duckdb.connect(path) as made:
        made.execute(SCRIPT)
    yield Place("duckdb", path)


@contextmanager
def _server() -> Iterator[Place]:
    """A PostgreSQL server of our own."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from support import postgres

    def unavailable(reason: str) -> None:
        raise UnavailableError(f"PostgreSQL: {reason}")

    statements = ("CREATE DATABASE shop", "CREATE ROLE reader LOGIN")
    with postgres.served(*statements, missing=unavailable) as own:
        with own.admin("shop") as admin:
            admin.execute(SCRIPT)
            admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        yield Place("postgresql", own.url("shop"))
