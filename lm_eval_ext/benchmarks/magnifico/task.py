"""The class behind MAGNIFICo's tasks: answers are executed, on two databases."""

from collections.abc import Iterable, Sequence
from typing import Any

from lm_eval.api.filter import Filter
from lm_eval.api.instance import Instance
from lm_eval.api.registry import register_filter

from lm_eval_ext.benchmarks.magnifico import load, score
from lm_eval_ext.benchmarks.magnifico.extract import query_of
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.missing import LeftOut
from lm_eval_ext.harness.names import NOT_SCORABLE as NOT_SCORABLE_NAME
from lm_eval_ext.harness.task import ExtTask
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import NOT_SCORABLE, Example, Executor, NamedDatabases, find_semantics
from lm_eval_ext.sql.distill import POPULATE_VERSION

_log = get_logger(__name__)

CHAT_STOPS: list[str] = []
"""After a chat template nothing but the turn's end stops an answer: the paper's stop strings
would cut prose, blank line or code fence before the query."""


@register_filter("magnifico_query")
class QueryFilter(Filter):
    """Takes the query out of each answer; "" where there is none."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Any) -> list[list[str]]:
        """Returns a query for every answer."""
        return [[query_of(answer) or "" for answer in answers] for answers in resps]


class MagnificoTask(ExtTask):
    """A task whose answers are SQL queries.

    All answers are executed when the last one is there, in parallel and with a progress bar;
    lm-eval, which asks for one document's metrics after the other, then finds the verdicts.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        metadata = config.get("metadata") or {}
        options = config["custom_dataset"].options(metadata)
        prepared = load.prepared(options)
        paths = {
            f"{judge}/{db_id}": path
            for judge, files in (
                (score.POPULATED, prepared.judges.populated),
                (score.ORIGINAL, prepared.judges.original),
            )
            for db_id, path in files.items()
        }
        self._semantics = find_semantics(options["magnifico_semantics"])
        self._executor = Executor(NamedDatabases(paths))
        self._scopes = score.Scopes(load.dataset(**metadata)["test"])
        super().__init__({**config, "metric_list": self._scopes.metric_list()})
        self._not_scorable = provenance.left_out(self.dataset)
        for place in ("databases", "file"):
            # Where the user's files lie says nothing; what is in them does (``sha256``).
            self._signature.pop(place)
        self._signature["semantics"] = self._semantics.signature
        self._signature["populated"] = f"v{POPULATE_VERSION}"

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        """Builds the request, without stop strings where a chat template is applied."""
        chat = kwargs.get("apply_chat_template", False)
        requests = super().construct_requests(doc, ctx, **kwargs)
        if chat:
            for request in requests:
                text, generation = request.arguments
                request.arguments = (text, {**generation, "until": list(CHAT_STOPS)})
        return requests

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file; examples not scored are named there."""
        dumped: dict[str, Any] = super().dump_config()
        dumped["metadata"][NOT_SCORABLE_NAME] = self._not_scorable
        return dumped

    def apply_filters(self) -> list[Instance] | None:
        """Filters the answers and executes the queries."""
        filtered: list[Instance] | None = super().apply_filters()
        answers = [
            (instance.doc, answer)
            for instance in self._instances
            for answer in instance.filtered_resps.values()
            if not isinstance(answer, LeftOut)
        ]
        self._execute_ahead(answers)
        return filtered

    def process_results(self, doc: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores a document; one with a missing answer, or without a verdict, counts nowhere."""
        (query,) = results
        if isinstance(query, LeftOut) or self.config.process_results is not score.by_execution:
            return super().process_results(doc, results)
        verdicts = {
            judge: self._executor.score_one(*example, semantics=self._semantics.name)
            for judge, example in zip(score.JUDGES, _examples(doc, query), strict=True)
        }
        statuses = {judge: verdict.status for judge, verdict in verdicts.items()}
        if any(status in NOT_SCORABLE for status in statuses.values()):
            # Golds were run before anything was asked, so this one is at the limit of time.
            _log.warning("%s: not scored, its gold query does not run", doc["id"])
            self._not_scorable.setdefault("gold_error", []).append(doc["id"])
            return {}
        return self._scopes.metrics(doc, statuses, query_found=bool(query))

    def _execute_ahead(self, answers: list[tuple[dict[str, Any], str]]) -> None:
        from tqdm import tqdm

        examples = [example for doc, query in answers for example in _examples(doc, query)]
        verdicts = self._executor.score(examples, semantics=self._semantics.name)
        bar = tqdm(verdicts, total=len(examples), desc="executing SQL", unit="query", disable=None)
        for _ in bar:
            pass  # The executor remembers them.
        self._executor.close()


def _examples(doc: dict[str, Any], query: str) -> list[Example]:
    """What the executor is asked, in the order of the judges."""
    db_id = doc["db_id"].casefold()
    return [Example(f"{judge}/{db_id}", doc["query"], query) for judge in score.JUDGES]
