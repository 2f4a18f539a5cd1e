"""A populated copy that grows gold by gold, and refuses those that it cannot tell from near misses.

:func:`.build.populate` takes golds as they are and searches for a long time. Where there are as
many golds as one likes, the few that need it are better left out.
"""

from collections.abc import Collection
from pathlib import Path

from lm_eval_ext.sql.distill.added_values import added_rows, judge
from lm_eval_ext.sql.distill.cases import Case, examine, make_case, report_on
from lm_eval_ext.sql.distill.hints import literals_by_column
from lm_eval_ext.sql.distill.original_rows import OriginalRows
from lm_eval_ext.sql.distill.report import Report
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner, ScratchDb
from lm_eval_ext.sql.distill.search import Search
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.rewrites import Facts
from lm_eval_ext.sql.schema import schema_of

_PASSES = 2
"""How often all are looked at again, since rows for one gold may harm another."""


class Growing:
    """A copy of a database in memory, and the golds that it judges rightly.

    The rows depend on the golds and on the order in which they are offered.

    Args:
        original: The database; opened read-only.

    Raises:
        DataError: It cannot be read.
    """

    def __init__(self, original: Path) -> None:
        self._original = original
        self._before = open_guarded(str(original), Limits())
        self._runner = Runner(self._before)
        self._scratch = ScratchDb(original)
        schema = schema_of(self._scratch.connection)
        self._facts = Facts(schema, self._runner.rows, NoResultError)
        self._shapes = Shapes(self._scratch.connection, schema)
        originals = OriginalRows(self._runner, schema, self._shapes)
        self._search = Search(self._scratch, schema, [], originals, self._shapes)

    def close(self) -> None:
        """Frees the memory."""
        self._scratch.close()
        self._before.close()

    def add(self, gold: str) -> str | None:
        """Adds rows for a gold; returns why it is refused, None if it is not."""
        search, schema = self._search, self._search.schema
        try:
            rows = len(self._runner.rows(gold))
            case = make_case(gold, schema, self._facts)
        except (NoResultError, UnparsedQuery):
            return "fails or takes too long"
        case.before = rows
        self._shapes.promise(need for rewrite in case.rewrites for need in rewrite.needs)
        for (table, column), constants in literals_by_column(case.query).items():
            self._shapes.name(table, column, constants)
        examine(case, self._scratch.runner, schema, search.originals)
        if case.slow:
            return "near misses take too long"
        search.add(case)
        reason = _problem(case, self._scratch.runner)
        if reason:
            search.remove(case)
        return reason

    def recheck(self) -> dict[str, str]:
        """Looks at all golds again; returns why some are lost, since others' rows harmed them."""
        search, runner = self._search, self._scratch.runner
        for _ in range(_PASSES):
            for case in search.cases:
                search.look_again(case)
        return {case.gold: why for case in search.cases if (why := _problem(case, runner))}

    def save(self, target: Path, golds: Collection[str]) -> Report:
        """Writes the copy; returns the report on some of the golds.

        Raises:
            OptionError: It cannot be written.
        """
        self._scratch.save(target)
        cases = [case for case in self._search.cases if case.gold in golds]
        reports = [report_on(case, self._scratch.runner) for case in cases]
        reports.sort(key=lambda one: one.gold)
        values = judge(added_rows(self._original, target), self._shapes)
        added = dict(sorted(self._search.added.items()))
        return Report(self._original.stem, added, tuple(reports), values)


def _problem(case: Case, runner: Runner) -> str | None:
    if case.empty or case.always_empty:
        return "empty on populated rows"
    if case.open:
        return "ties with a near miss"
    if case.slow:
        return "near misses take too long"
    if case.cut_ties:
        return "a tie at the top on populated rows"
    return "a right rewrite has another result" if report_on(case, runner).broken else None
