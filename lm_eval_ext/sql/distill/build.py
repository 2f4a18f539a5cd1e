"""Populating a copy of one database, and examining any database."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.distill.added_values import added_rows, judge
from lm_eval_ext.sql.distill.cases import Case, examine, make_case, report_on
from lm_eval_ext.sql.distill.cuts import tied
from lm_eval_ext.sql.distill.hints import literals_by_column
from lm_eval_ext.sql.distill.inserting import Added, Inserter
from lm_eval_ext.sql.distill.original_rows import OriginalRows
from lm_eval_ext.sql.distill.report import GoldReport, Report
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner, ScratchDb
from lm_eval_ext.sql.distill.search import ROUNDS, Search
from lm_eval_ext.sql.distill.shape import LEVELS
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.distill.shipped import insert
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.rewrites import Facts
from lm_eval_ext.sql.schema import Schema, read_schema, schema_of

_SEARCHES = 1
_MOST_SPENT = 2_500
_WORK_PER_PROPOSAL = 6
"""Searches with other random numbers while golds tie or are empty, and the cost after which there
is no further one, in proposals and in units of :attr:`Runner.work`. The best one counts. Rewrites
that are still judged wrong are no reason for another search: none has ever saved one."""

Progress = Callable[[int, int], None]
"""Called with the work done and the total."""


def populate(
    original: Path, golds: Iterable[str], target: Path, *, progress: Progress | None = None,
    earlier: Mapping[str, list[Any]] = MappingProxyType({}),
) -> Report:  # fmt: skip
    """Copies a database and adds rows that distinguish golds from their near misses.

    The rows do not depend on the order of the golds, the machine's speed or the time.

    Args:
        original: The database; opened read-only and immutable.
        golds: Queries on it. Those that do not run, or do more than read, are reported.
        target: The copy; appears when it is complete, and replaces an existing file.
        progress: Called during the search.
        earlier: Rows of an earlier search by table, as a pack has them; those whose values still
            fit their columns are kept.

    Returns:
        What was added, and which near misses are still tied.

    Raises:
        DataError: The original cannot be read.
        OptionError: The copy cannot be written, or would replace the original.
    """
    if original.exists() and target.exists() and target.samefile(original):
        raise OptionError(f"{target}: this is the original; name another place for the copy")
    done = spent = 0
    best: Report | None = None

    def step(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, max(done, len(ROUNDS) * len(asked)))

    asked = sorted(set(golds))
    known: dict[str, Case] = {}
    for seed in range(_SEARCHES):
        if spent > _MOST_SPENT:
            break
        report, cost = _searched(original, asked, target, seed, step, best, known, earlier)
        spent += cost
        if best is None or _left(report) < _left(best):
            best = report
        if not _left(best)[0]:
            break
    assert best is not None
    return best


def _searched(  # noqa: PLR0917
    original: Path, golds: list[str], target: Path, seed: int, step: Callable[[int], None],
    best: Report | None, known: dict[str, Case], earlier: Mapping[str, list[Any]],
) -> tuple[Report, int]:  # fmt: skip
    """Runs one search, and saves its copy if it is better than the best one.

    Returns its report and its cost; ``known`` gets the cases.
    """
    scratch_db = ScratchDb(original)
    try:
        schema = schema_of(scratch_db.connection)
        with closing(_guarded(original)) as connection:
            before = Runner(connection)
            facts = Facts(schema, before.rows, NoResultError)
            cases, failed = _cases(before, golds, schema, facts, known)
            known.update((case.gold, case) for case in cases)
            shapes = _shapes(scratch_db.connection, schema, cases)
            originals = OriginalRows(before, schema, shapes)
            for case in cases:
                examine(case, scratch_db.runner, schema, originals)
                case.before, case.cut_before = len(case.rows), case.cut_ties
            if earlier:
                _keep(scratch_db, shapes, earlier)
                for case in cases:
                    examine(case, scratch_db.runner, schema, originals)
            search = Search(scratch_db, schema, cases, originals, shapes, seed)
            search.run(step)
        reports = [report_on(case, scratch_db.runner) for case in cases]
        added = dict(sorted(search.added.items()))
        report = Report(original.stem, added, _sorted([*failed, *reports]))
        if best is None or _left(report) < _left(best):
            scratch_db.save(target)
            report = replace(report, values=judge(added_rows(original, target), shapes))
        return report, search.proposed + scratch_db.runner.work // _WORK_PER_PROPOSAL
    finally:
        scratch_db.close()


def _keep(scratch_db: ScratchDb, shapes: Shapes, earlier: Mapping[str, list[Any]]) -> None:
    """Inserts the rows whose values fit, and whose parents are there."""
    shapes.relax(LEVELS - 1)
    inserter = Inserter(scratch_db.connection, shapes.schema, {}, shapes)
    kept: list[Added] = []
    for name, rows in earlier.items():
        table = shapes.schema[name]
        names = [column.name for column in table.columns if not column.generated]
        for row in rows:
            values = dict(zip((n.lower() for n in names), row[1:], strict=True))
            if all(shapes.fits(name, column, value) for column, value in values.items()):
                insert(scratch_db.connection, table, [row])
                kept.append(inserter.added_as(table, values, row[0]))
    while orphans := [added for added in kept if not inserter.holds(added)]:
        for added in orphans:
            inserter.remove(added)
        kept = [added for added in kept if added not in orphans]
    shapes.relax(0)


def _left(report: Report) -> tuple[int, int]:
    """How many golds still tie or are empty, and how many rewrites are judged wrong."""
    tied = sum(bool(gold.open_ties) or gold.empty == "not filled" for gold in report.golds)
    return tied, sum(len(gold.broken) for gold in report.golds)


def check(database: Path, original: Path | None, golds: Iterable[str]) -> Report:
    """Finds the near misses that a database does not distinguish from golds; adds no rows.

    Args:
        database: Any, populated or not; opened read-only.
        original: The database that it was made from, for the number of rows before and for
            proofs by its rows; None if it is not available.
        golds: Queries on it.

    Raises:
        DataError: A database cannot be read.
    """
    with closing(_guarded(original or database)) as first, closing(_guarded(database)) as second:
        schema = read_schema(original or database)
        before, runner = Runner(first), Runner(second)
        cases, failed = _cases(runner, golds, schema, Facts(schema, before.rows, NoResultError))
        shapes = None if original is None else _shapes(first, schema, cases)
        originals = None if shapes is None else OriginalRows(before, schema, shapes)
        for case in cases:
            examine(case, runner, schema, originals)
            case.cut_before = tied(case.cuts, before)
            if original is not None:
                with suppress(NoResultError):
                    case.before = len(before.rows(case.gold))
        reports = [report_on(case, runner) for case in cases]
        rows = {} if original is None else added_rows(original, database)
        values = judge(rows, shapes) if shapes is not None else {}
    return Report(database.stem, {}, _sorted([*failed, *reports]), values)


def _shapes(connection: sqlite3.Connection, schema: Schema, cases: Iterable[Case]) -> Shapes:
    """Returns what columns hold, golds' constants and what rewrites rely on included."""
    shapes = Shapes(connection, schema)
    for case in cases:
        shapes.promise(need for rewrite in case.rewrites for need in rewrite.needs)
        for (table, column), constants in literals_by_column(case.query).items():
            shapes.name(table, column, constants)
    return shapes


def _sorted(reports: list[GoldReport]) -> tuple[GoldReport, ...]:
    return tuple(sorted(reports, key=lambda report: report.gold))


def _cases(
    runner: Runner,
    golds: Iterable[str],
    schema: Schema,
    facts: Facts,
    known: Mapping[str, Case] = MappingProxyType({}),
) -> tuple[list[Case], list[GoldReport]]:
    """Returns the golds in order; apart, those that the policy for models' queries rejects.

    What does not change is taken from ``known`` cases of an earlier search.
    """
    cases: list[Case] = []
    failed: list[GoldReport] = []
    for gold in sorted(set(golds)):
        try:
            runner.rows(gold)
            cases.append(known[gold].anew() if gold in known else make_case(gold, schema, facts))
        except (NoResultError, UnparsedQuery) as error:
            failed.append(GoldReport(gold, -1, -1, 0, 0, (), None, str(error)))
    return cases, failed


def _guarded(database: Path) -> sqlite3.Connection:
    try:
        return open_guarded(str(database), Limits())
    except sqlite3.Error as error:
        raise DataError(f"cannot read the database {database}: {error}") from None
