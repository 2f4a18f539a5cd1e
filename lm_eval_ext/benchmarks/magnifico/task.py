"""MAGNIFICo's task class: has answers judged on the original database and on its test suite."""

from collections.abc import Sequence
from pathlib import Path

from lm_eval.api.instance import Instance

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.magnifico import score
from lm_eval_ext.benchmarks.magnifico.answers import QueryReader
from lm_eval_ext.benchmarks.magnifico.databases import ScoringDatabases
from lm_eval_ext.benchmarks.magnifico.documents import Setting
from lm_eval_ext.benchmarks.magnifico.own import generated
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.filters import register_text_filter
from lm_eval_ext.harness.judged import JudgedText
from lm_eval_ext.harness.lm_eval_types import Answer, Doc, TaskConfig
from lm_eval_ext.harness.task import ExtTask
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Prediction, find_semantics
from lm_eval_ext.stats.table import Row

_log = get_logger(__name__)

# Task files of older versions name it; the task's reader does its work now.
register_text_filter("magnifico_query", str)

UNAVAILABLE = "database_unavailable"
"""The cause of documents whose database went away before their answer was judged."""

GOLD_ERROR = "gold_error"
"""The cause of documents whose gold query fails."""


class MagnificoTask(ExtTask):
    """A task whose answers are SQL queries.

    Once all answers are complete, they are executed in parallel, with a progress bar
    (:meth:`judge_answers`). Each answer then carries its verdict, and scoring is a pure function of
    the document and its verdict (:func:`~lm_eval_ext.benchmarks.magnifico.score.rows`).
    """

    options: Setting
    resources: ScoringDatabases

    def prepare(self, config: TaskConfig) -> None:
        """Make the judge, and the reader for the dialect of the databases."""
        self.judge = self.resources.judge(self.options.semantics)
        self.reader = QueryReader(is_sqlite=self.resources.engine is None)

    @property
    def _databases(self) -> tuple[str, ...]:
        """The databases that rows are about."""
        return score.DATABASES if self.resources.suites else (score.ORIGINAL,)

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader:
        """Return the reader of queries, the same with a chat template and without."""
        return self.reader

    def metrics(self) -> list[str]:
        """Return the metrics for the forms of the words."""
        return score.metric_list(self.dataset["test"]["form"][:], self._databases)

    def sign(self, parts: dict[str, str]) -> None:
        """Leave out the paths of the user's files: ``sha256`` identifies their content."""
        parts.pop("databases")
        parts["forms"] = ",".join(self.options.forms)
        generator = generated(Path(parts.pop("file")).expanduser())
        if generator:
            parts["generated"] = generator
        parts["semantics"] = find_semantics(self.options.semantics).signature
        parts.pop("populated")
        if self.resources.suites:
            parts["populated"] = self.resources.signature
        if self.resources.engine is not None:
            parts["engine"] = self.resources.engine

    def scoring_arguments(self) -> dict[str, object]:
        """Return keywords of :func:`~lm_eval_ext.benchmarks.magnifico.score.by_execution`."""
        return {"has_suite": bool(self.resources.suites)}

    def apply_filters(self) -> list[Instance] | None:
        """Filter the answers and have them judged; the judge's processes end after it."""
        try:
            return super().apply_filters()
        finally:
            self.judge.close()

    def judge_answers(self, answers: Sequence[tuple[Doc, Answer]]) -> Sequence[Answer]:
        """Execute the queries that were not executed before, and return them with their verdicts.

        If a server goes away, the answers stay without a verdict: :meth:`score` says so.
        """
        waiting = []
        for doc, query in answers:
            if not isinstance(query, JudgedText):
                waiting.append(Prediction(doc["db_id"].casefold(), doc["query"], query))
        if not waiting:
            return [answer for _, answer in answers]
        progress = "executing SQL" if len(waiting) > 1 else None
        try:
            verdicts = self.judge.judge_all(waiting, progress=progress)
        except DataError as error:
            self._unavailable = error
            return [answer for _, answer in answers]
        remaining = iter(verdicts)
        judged = []
        for _, answer in answers:
            if isinstance(answer, JudgedText):
                judged.append(answer)
            else:
                judged.append(JudgedText(answer, next(remaining)))
        return judged

    def score(self, doc: Doc, answers: Sequence[Answer]) -> Sequence[Row] | None:
        """Return the rows of a document; None if its gold fails, or nothing could be executed."""
        (query,) = answers
        if not isinstance(query, JudgedText):
            # The model's answers are worth more than this run's end.
            if UNAVAILABLE not in self._excluded:
                _log.error(
                    "%s; the answers that it did not score are left out: score this run's samples "
                    "again with --model recorded",
                    self._unavailable,
                )
            self._excluded.setdefault(UNAVAILABLE, []).append(doc["id"])
            return None
        verdict = query.verdict
        if not verdict.scorable:
            # Gold queries ran before the model was asked, so this one is close to the time limit.
            _log.warning(
                "%s: not scored, its gold query does not run (%s)", doc["id"], verdict.reason
            )
            self._excluded.setdefault(GOLD_ERROR, []).append(doc["id"])
            return None
        return super().score(doc, answers)
