"""MAGNIFICo's task class: executes answers on two databases."""

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
    NOT_SCORABLE,
    Example,
    Executor,
    NamedDatabases,
    Place,
    Status,
    find_semantics,
)
from lm_eval_ext.sql.distill import POPULATE_VERSION

_log = get_logger(__name__)

register_text_filter("magnifico_query", lambda answer: query_of(answer) or "")
register_text_filter("magnifico_query_dialect", lambda answer: query_in_dialect(answer) or "")


class MagnificoTask(ExtTask):
    """A task whose answers are SQL queries.

    Once all answers are complete, they are executed in parallel, with a progress bar. lm-eval then
    asks for the metrics of one document after the other, and the verdicts are already cached.
    """

    def prepare(self, config: dict[str, Any]) -> None:
        """Finds the databases, and the subsets of documents that have metrics."""
        scoring = load.prepared(self.options).scoring
        files: dict[str, Mapping[str, Path | Place]] = {
            score.POPULATED: scoring.populated,
            score.ORIGINAL: scoring.original,
        }
        self._engine = scoring.engine
        self._databases = score.DATABASES if scoring.populated else (score.ORIGINAL,)
        if scoring.engine is not None:
            config["filter_list"] = [_in_dialect(one) for one in config["filter_list"]]
        self._semantics = find_semantics(self.options["magnifico_semantics"])
        self._executor = Executor(
            NamedDatabases(
                {
                    f"{database}/{db_id}": path
                    for database, paths in files.items()
                    for db_id, path in paths.items()
                }
            )
        )
        own = self.options["magnifico_corpus"] == "own"
        self._scopes = score.Scopes(self.dataset["test"], own=own, databases=self._databases)
        self._not_scorable = provenance.left_out(self.dataset)

    def metrics(self) -> list[dict[str, Any]]:
        """Returns the metric list, which depends on forms and categories."""
        return self._scopes.metric_list()

    def sign(self, own: dict[str, str]) -> None:
        """Leaves out the paths of the user's files: ``sha256`` identifies their content."""
        own.pop("databases")
        if made := generated(Path(own.pop("file")).expanduser()):
            own["generated"] = made
        own["semantics"] = self._semantics.signature
        if score.POPULATED in self._databases:
            own["populated"] = f"v{POPULATE_VERSION}"
        if self._engine is not None:
            own["engine"] = self._engine

    def not_scorable(self) -> dict[str, list[str]]:
        """Includes the examples whose gold query failed during scoring."""
        return self._not_scorable

    def apply_filters(self) -> list[Instance] | None:
        """Filters the answers and executes the queries."""
        filtered: list[Instance] | None = super().apply_filters()
        examples = [
            example
            for instance in self._instances
            for answer in instance.filtered_resps.values()
            if missing.find([answer]) is None
            for example in self._examples(instance.doc, answer)
        ]
        examples.sort(key=lambda one: one.db_id)  # a worker stays with a database
        verdicts = self._executor.score(examples, semantics=self._semantics.name)
        bar = tqdm(verdicts, total=len(examples), desc="executing SQL", unit="query", disable=None)
        with suppress(DataError):  # a server that went away: said where documents are scored
            for _ in bar:
                pass  # The executor caches the verdicts.
        self._executor.close()
        return filtered

    def scoring_arguments(self) -> dict[str, Any]:
        """For :func:`~lm_eval_ext.benchmarks.magnifico.score.by_execution`."""
        return {"scopes": self._scopes, "execute": self._execute}

    def _execute(self, doc: Mapping[str, str], query: str) -> dict[str, Status] | None:
        """The verdict on each database; None where the gold query does not run."""
        try:
            verdicts = {
                database: self._executor.score_one(*example, semantics=self._semantics.name)
                for database, example in zip(
                    self._databases, self._examples(doc, query), strict=True
                )
            }
        except DataError as error:
            # The model's answers are worth more than this run's end.
            if not (left_out := self._not_scorable.setdefault("database_unavailable", [])):
                _log.error(
                    "%s; the answers that it did not score are left out: score this run's samples "
                    "again with --model recorded", error,
                )  # fmt: skip
            left_out.append(doc["id"])
            return None
        statuses = {database: verdict.status for database, verdict in verdicts.items()}
        if NOT_SCORABLE.isdisjoint(statuses.values()):
            return statuses
        # Gold queries ran before the model was asked, so this one is close to the time limit.
        said = next(one.detail for one in verdicts.values() if not one.scorable)
        _log.warning("%s: not scored, its gold query does not run (%s)", doc["id"], said)
        self._not_scorable.setdefault("gold_error", []).append(doc["id"])
        return None

    def _examples(self, doc: Mapping[str, str], query: str) -> list[Example]:
        """The executor's examples, one per database."""
        db_id = doc["db_id"].casefold()
        return [Example(f"{name}/{db_id}", doc["query"], query) for name in self._databases]


def _in_dialect(pipeline: dict[str, Any]) -> dict[str, Any]:
    """A filter of the YAML with the extraction that knows other dialects than SQLite's."""
    steps = [
        {**step, "function": "magnifico_query_dialect"}
        if step["function"] == "magnifico_query"
        else step
        for step in pipeline["filter"]
    ]
    return {**pipeline, "filter": steps}
