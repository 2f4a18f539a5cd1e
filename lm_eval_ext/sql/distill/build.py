"""Making a populated copy of one database, and examining any."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.distill.cases import Case, examine, make_case, report_on
from lm_eval_ext.sql.distill.original_rows import Kept
from lm_eval_ext.sql.distill.report import GoldReport, Report
from lm_eval_ext.sql.distill.runner import NoResultError, Runner
from lm_eval_ext.sql.distill.scratch_db import Workbench
from lm_eval_ext.sql.distill.search import ROUNDS, Search
from lm_eval_ext.sql.mutants import UnparsedQuery
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.schema import Schema, read_schema, schema_of

Progress = Callable[[int, int], None]
"""Called with how much is done, and of how much."""


def populate(
    original: Path, golds: Iterable[str], target: Path, *, progress: Progress | None = None
) -> Report:
    """Makes a copy of a database with rows that tell golds from their near misses.

    The same rows whatever the order of the golds, the machine's speed and the time.

    Args:
        original: The database; opened read-only and immutable.
        golds: Queries on it. Those that do not run, or are no reading queries, are reported.
        target: The copy; appears when it is whole, and replaces what was there.
        progress: Told how far the search is.

    Returns:
        What was added, and what is left.

    Raises:
        DataError: The original cannot be read.
        OptionError: The copy cannot be written, or would take the original's place.
    """
    if original.exists() and target.exists() and target.samefile(original):
        raise OptionError(f"{target}: this is the original; name another place for the copy")
    bench = Workbench(original)
    try:
        schema = schema_of(bench.connection)
        cases, failed = _cases(original, golds, schema)
        with closing(_guarded(original)) as connection:
            kept = Kept(Runner(connection), schema)
            for case in cases:
                examine(case, bench.runner, schema, kept)
                case.before = len(case.rows)
            search = Search(bench, schema, cases, kept)
            done = 0

            def step(count: int) -> None:
                nonlocal done
                done += count
                if progress is not None:
                    progress(done, len(ROUNDS) * len(cases))

            search.run(step)
        bench.save(target)
        added = dict(sorted(search.added.items()))
        return Report(original.stem, added, _sorted([*failed, *map(report_on, cases)]))
    finally:
        bench.close()


def check(database: Path, original: Path | None, golds: Iterable[str]) -> Report:
    """Examines a database without adding rows: which near misses does it not tell from golds?

    Args:
        database: Any, populated or not; opened read-only.
        original: What it was made from, for the number of rows before, and for proofs that rely
            on its rows; None if it is not at hand.
        golds: Queries on it.

    Raises:
        DataError: A database cannot be read.
    """
    with closing(_guarded(original or database)) as first, closing(_guarded(database)) as second:
        schema = read_schema(original or database)
        cases, failed = _cases(database, golds, schema)
        before, runner = Runner(first), Runner(second)
        kept = None if original is None else Kept(before, schema)
        for case in cases:
            examine(case, runner, schema, kept)
            if original is not None:
                with suppress(NoResultError):
                    case.before = len(before.rows(case.gold))
    return Report(database.stem, {}, _sorted([*failed, *map(report_on, cases)]))


def _sorted(reports: list[GoldReport]) -> tuple[GoldReport, ...]:
    return tuple(sorted(reports, key=lambda report: report.gold))


def _cases(
    database: Path, golds: Iterable[str], schema: Schema
) -> tuple[list[Case], list[GoldReport]]:
    """Sorts golds, and those out that the policy for models' queries would not let run."""
    cases: list[Case] = []
    failed: list[GoldReport] = []
    with closing(_guarded(database)) as connection:
        runner = Runner(connection)
        for gold in sorted(set(golds)):
            try:
                runner.rows(gold)
                cases.append(make_case(gold, schema))
            except (NoResultError, UnparsedQuery) as error:
                failed.append(GoldReport(gold, -1, -1, 0, 0, (), None, str(error)))
    return cases, failed


def _guarded(database: Path) -> sqlite3.Connection:
    try:
        return open_guarded(str(database), Limits())
    except sqlite3.Error as error:
        raise DataError(f"cannot read the database {database}: {error}") from None
