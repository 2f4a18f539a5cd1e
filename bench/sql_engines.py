"""Verdicts on DuckDB and PostgreSQL, beside SQLite's on the same rows.

Databases are converted, gold queries and recorded predictions translated; those are taken whose
verdict is the same on both. Times include starting the workers.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.data import UnavailableError
from bench.rows import DifferError, Row, in_turn
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import DIALECTS, Databases, Example, Executor, Limits, NamedDatabases
from lm_eval_ext.sql.convert.golds import Checker
from lm_eval_ext.sql.convert.store import ORIGINAL, DuckDBFolder, Server, Source, Target, convert
from lm_eval_ext.sql.convert.translate import translate
from lm_eval_ext.sql.parsing import UnparsedQuery

SIZE = 1000
SEMANTICS = "strict"


def rows(
    rounds: int, share: float, folder: Path, examples: Sequence[Example], workers: int
) -> Iterator[Row]:
    """Yields a row for each engine.

    Raises:
        UnavailableError: An engine is not here; it says which and why.
    """
    known = Databases(folder)
    ids = sorted({one.db_id.casefold() for one in examples})
    paths = {db_id: path for db_id in ids if (path := known.find_sqlite(db_id))}
    sources = [Source(db_id, {ORIGINAL: path}) for db_id, path in paths.items()]
    asked = [one._replace(db_id=one.db_id.casefold()) for one in examples]
    with tempfile.TemporaryDirectory() as place:
        try:
            duckdb = DuckDBFolder(Path(place))
        except DataError as error:
            raise UnavailableError(str(error)) from None
        for _ in convert(sources, duckdb):
            pass
        yield _row(rounds, share, sources, duckdb, asked, workers=workers)
    with _server() as (owner, reader):
        for _ in convert(sources, owner):
            pass
        yield _row(rounds, share, sources, reader, asked, workers=workers)


def _row(
    rounds: int,
    share: float,
    sources: Sequence[Source],
    target: Target,
    examples: Sequence[Example],
    *,
    workers: int,
) -> Row:
    limits = Limits()
    here = NamedDatabases({one.db_id: one.parts[ORIGINAL] for one in sources})
    there = NamedDatabases({one.db_id: target.place(one.db_id, ORIGINAL) for one in sources})
    pairs = list(_translated(sources, target, examples))
    with Executor(here) as sqlite, Executor(there) as other:
        first = sqlite.score([one for one, _ in pairs], semantics=SEMANTICS)
        second = other.score([one for _, one in pairs], semantics=SEMANTICS)
        same = [
            pair
            for pair, a, b in zip(pairs, first, second, strict=True)
            if a.status == b.status and a.status in ("correct", "wrong")
        ]
    size = max(10, round(SIZE * share))
    chosen = same[:: max(1, len(same) // size)][:size]

    def verdicts(databases: NamedDatabases, side: int) -> list[bool]:
        with Executor(databases, workers=workers, limits=limits) as executor:
            asked = (pair[side] for pair in chosen)
            return [one.correct for one in executor.score(asked, semantics=SEMANTICS)]

    times, one, another = in_turn(rounds, lambda: verdicts(here, 0), lambda: verdicts(there, 1))
    if one != another:
        raise DifferError(f"verdicts of SQLite and {target.engine} differ")
    title = DIALECTS[target.engine].title
    work = f"verdicts on {title}, {workers} workers"
    note = f"{title}: recorded predictions, translated, that SQLite judges the same"
    return Row(work, len(chosen), "predictions", "SQLite", *times, "verdicts identical", note=note)


def _translated(
    sources: Sequence[Source], target: Target, examples: Sequence[Example]
) -> Iterator[tuple[Example, Example]]:
    """Examples on SQLite and on the engine, sorted by database, whose golds are kept."""
    with Executor(workers=1) as sqlite, Executor(workers=1) as other:
        checker = Checker(target.engine, sqlite, other)
        for source in sources:
            own = [one for one in examples if one.db_id == source.db_id]
            there = {ORIGINAL: target.place(source.db_id, ORIGINAL)}
            golds = sorted({one.gold for one in own})
            checked = checker.check(golds, source.parts, there)
            kept = {one.gold: one.sql for one in checked if not one.reason}
            names = checker.names(source.parts, there[ORIGINAL])
            for one in own:
                try:
                    predicted = translate(one.predicted, names)
                except UnparsedQuery:
                    continue
                if one.gold in kept:
                    yield one, Example(one.db_id, kept[one.gold], predicted)


@contextmanager
def _server() -> Iterator[tuple[Server, Server]]:
    """A PostgreSQL server of our own, for who writes and for who reads."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from support import postgres

    def unavailable(reason: str) -> None:
        raise UnavailableError(f"PostgreSQL: {reason}")

    with postgres.served(*postgres.CONVERTING, missing=unavailable) as own:
        owner = Server(own.url("converted", "converter"), readers=["reader"])
        yield owner, Server(own.url("converted"))
