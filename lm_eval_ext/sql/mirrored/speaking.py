"""Queries that were made for a mirror, in the dialect of what it mirrors, and run there."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.sql.distill.report import GoldReport, Report
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.mirrored.build import Target, write
from lm_eval_ext.sql.mirrored.dialect import from_sqlite
from lm_eval_ext.sql.mirrored.judging import ORIGINAL, Said, judge, same_rows
from lm_eval_ext.sql.mirrored.reading import Mirror
from lm_eval_ext.sql.parsing import UnparsedQuery
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.values import QueryError


@dataclass(frozen=True)
class Speaking:
    """The real database behind a mirror.

    Attributes:
        executor: Knows the original, and the copy if there is a target.
        mirror: Of the original.
        target: Where the populated copy goes; None: nowhere.
    """

    executor: Executor
    mirror: Mirror
    target: Target | None

    def say(self, gold: str) -> str:
        """A query for the mirror in the engine's dialect."""
        return from_sqlite(gold, self.mirror.place.engine, self.mirror.schema)

    def problem(self, gold: str) -> str | None:
        """Why the engine cannot be asked this; None if it gives the mirror's result."""
        title = DIALECTS[self.mirror.place.engine].title
        with closing(open_guarded(str(self.mirror.path), Limits())) as connection:
            try:
                rows = self.executor.query(ORIGINAL, self.say(gold)).rows
                same = same_rows(rows, Runner(connection).rows(gold))
            except (QueryError, UnparsedQuery, NoResultError):
                return f"fails in {title}"
        return None if same else f"has another result in {title} than in SQLite"

    def lost(
        self, golds: Sequence[str], save: Callable[[Path], Report], target: Target
    ) -> Mapping[str, str]:
        """Writes the populated copy; returns why queries are not told from near misses there.

        Args:
            golds: For the mirror.
            save: Writes the populated mirror, and reports on the golds.
            target: Where the copy goes.
        """
        found = self.mirror.path.with_name("populated.sqlite")
        searched = save(found)
        write(self.mirror, found, target)
        said = [Said(self.say(gold), gold) for gold in golds]
        judged = judge(self.executor, self.mirror, said, searched)
        why = {one.sqlite: _problem(report) for one, report in zip(said, judged, strict=True)}
        return {gold: reason for gold, reason in why.items() if reason}


def _problem(report: GoldReport) -> str | None:
    if report.error or report.undecided:
        return "near misses take too long"
    if report.empty:
        return "empty on populated rows"
    if report.open_ties:
        return "ties with a near miss"
    return "a right rewrite has another result" if report.broken else None
