"""MAGNIFICo's task class: executes answers on the original database and on its test suite."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from tqdm import tqdm

from lm_eval_ext.benchmarks.magnifico import load, score
from lm_eval_ext.benchmarks.magnifico.extract import query_in_dialect, query_of
from lm_eval_ext.benchmarks.magnifico.own import generated
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness import missing, provenance
from lm_eval_ext.harness.filters import register_text_filter
from lm_eval_ext.harness.task import ExtTask
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import (
    Example,
    Executor,
    Status,
    Verdict,
    find_semantics,
)

_log = get_logger(__name__)

register_text_filter("magnifico_query", lambda answer: query_of(answer) or "")
register_text_filter("magnifico_query_dialect", lambda answer: query_in_dialect(answer) or "")


_Answer = tuple[str, str, str]
"""Database id in lower case, gold query, the answer's query."""


def _answer(doc: Mapping[str, str], query: str) -> _Answer:
    return doc["db_id"].casefold(), doc["query"], query


class MagnificoTask(ExtTask):
    """A task whose answers are SQL queries.

    Once all answers are complete, they are executed in parallel, with a progress bar. lm-eval then
    asks for the metrics of one document after the other, whose verdicts are known by then.
    """

    def prepare(self, config: dict[str, Any]) -> None:
        """Finds the databases."""
        self._scoring = load.prepared(self.options).scoring
        self._databases = score.DATABASES if self._scoring.suites else (score.ORIGINAL,)
        if self._scoring.engine is not None:
            filters = json.dumps(config["filter_list"])
            config["filter_list"] = json.loads(
                filters.replace('"magnifico_query"', '"magnifico_query_dialect"')
            )
        self._semantics = find_semantics(self.options.semantics)
        self._executor = Executor(self._scoring.named())
        self._known: dict[_Answer, list[Verdict]] = {}
        self._not_scorable = provenance.left_out(self.dataset)

    def metrics(self) -> list[str]:
        """Depends on the forms of the words."""
        return score.metric_list(self.dataset["test"]["form"][:], self._databases)

    def sign(self, own: dict[str, str]) -> None:
        """Leaves out the paths of the user's files: ``sha256`` identifies their content."""
        own.pop("databases")
        own["forms"] = ",".join(self.options.forms)
        if made := generated(Path(own.pop("file")).expanduser()):
            own["generated"] = made
        own["semantics"] = self._semantics.signature
        own.pop("populated")
        if score.POPULATED in self._databases:
            own["populated"] = self._scoring.signature
        if self._scoring.engine is not None:
            own["engine"] = self._scoring.engine

    def not_scorable(self) -> dict[str, list[str]]:
        """Includes the examples whose gold query failed during scoring."""
        return self._not_scorable

    def apply_filters(self) -> list[Instance] | None:
        """Filters the answers and executes the queries."""
        filtered: list[Instance] | None = super().apply_filters()
        answers = dict.fromkeys(
            _answer(instance.doc, answer)
            for instance in self._instances
            for answer in instance.filtered_resps.values()
            if missing.find([answer]) is None
        )
        with suppress(DataError):  # a server that went away: said where documents are scored
            self._run(list(answers))
        self._executor.close()
        return filtered

    def _run(self, answers: list[_Answer]) -> None:
        """Executes answers: first all on the originals, then what is right on the next database."""
        left = sorted(answers)  # a worker stays with a database
        step = 0
        while left:
            names = [self._scoring.asked(db_id, gold)[step] for db_id, gold, _ in left]
            rule = self._scoring.rule(self._semantics) if step else self._semantics.name
            verdicts = self._executor.score(
                (
                    Example(name, gold, query)
                    for name, (_, gold, query) in zip(names, left, strict=True)
                ),
                semantics=rule,
            )
            bar = tqdm(
                verdicts, total=len(left), unit="query", disable=None, leave=not step,
                desc=f"executing SQL, database {step + 1}" if step else "executing SQL",
            )  # fmt: skip
            further = []
            for answer, verdict in zip(left, bar, strict=True):
                self._known.setdefault(answer, []).append(verdict)
                more = step + 1 < len(self._scoring.asked(*answer[:2]))
                # A database of a suite whose gold exceeds a limit decides nothing.
                if more and (verdict.correct or (step and not verdict.scorable)):
                    further.append(answer)
            left, step = further, step + 1

    def scoring_arguments(self) -> dict[str, Any]:
        """For :func:`~lm_eval_ext.benchmarks.magnifico.score.by_execution`."""
        return {"execute": self._execute}

    def _execute(self, doc: Mapping[str, str], query: str) -> dict[str, Status] | None:
        """The verdict on each database; None where the gold query does not run."""
        answer = _answer(doc, query)
        try:
            if answer not in self._known:
                self._run([answer])
        except DataError as error:
            # The model's answers are worth more than this run's end.
            if not (left_out := self._not_scorable.setdefault("database_unavailable", [])):
                _log.error(
                    "%s; the answers that it did not score are left out: score this run's samples "
                    "again with --model recorded", error,
                )  # fmt: skip
            left_out.append(doc["id"])
            return None
        original, *_ = found = self._known[answer]
        if original.scorable:
            last = [verdict for verdict in found if verdict.scorable][-1]
            both = {score.POPULATED: last.status, score.ORIGINAL: original.status}
            return {database: both[database] for database in self._databases}
        # Gold queries ran before the model was asked, so this one is close to the time limit.
        _log.warning("%s: not scored, its gold query does not run (%s)", doc["id"], original.detail)
        self._not_scorable.setdefault("gold_error", []).append(doc["id"])
        return None
