"""From verdicts to metrics.

Two databases judge every answer: the populated copy, whose rows tell queries apart, and the
original. Metrics of each stand under its name: ``populated/relative_performance``.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.benchmarks.magnifico.relative import Outcome, relative_performance, spread
from lm_eval_ext.harness.aggregations import register_figure, register_spread
from lm_eval_ext.harness.metrics import HIGH, LOW, STDERR, metric_entries
from lm_eval_ext.sql import Status

POPULATED, ORIGINAL = "populated", "original"
JUDGES = (POPULATED, ORIGINAL)

RELATIVE = "relative_performance"
ACCURACY = "execution_accuracy"
NOVEL = "novel"
NO_QUERY = "no_query"
"""Metric: the share of answers in which no query was found."""

FAILURES: Mapping[str, Status] = MappingProxyType(
    {
        "error": "prediction_error",
        "timeout": "prediction_timeout",
        "too_large": "prediction_too_large",
    }
)
"""Metrics: the share of queries that did not run, by cause."""

_RELATIVE = "magnifico_relative_performance"


register_figure(_RELATIVE, relative_performance)
register_spread(_RELATIVE, spread)


def by_execution(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Marks, in a task's YAML, that its class executes the answers and scores the verdicts.

    Without any function there lm-eval would take our metrics for some of its library's.

    Raises:
        TypeError: If it is called after all.
    """
    del doc, results
    raise TypeError("this task's class must be MagnificoTask, which executes answers")


class Scopes:
    """The sets of examples that have a figure of their own: forms, categories, interpretations.

    Args:
        documents: The task's, of which the columns ``form``, ``category`` and
            ``interpretation`` count.
    """

    def __init__(self, documents: Mapping[str, Sequence[str]]) -> None:
        columns = {key: documents[key] for key in ("form", "category", "interpretation")}
        seen = {key: list(dict.fromkeys(column)) for key, column in columns.items()}
        self._forms = [form for form in seen["form"] if form != BASE]
        # A division into one part would say the same thing twice.
        parts = [
            *(("form", name) for name in self._forms if len(self._forms) > 1),
            *(("category", name) for name in seen["category"] if len(seen["category"]) > 1),
            *(("interpretation", name) for name in seen["interpretation"]),
        ]
        self._parts: dict[str, Callable[[Mapping[str, str]], bool]] = {RELATIVE: lambda _: True}
        for key, name in parts:
            self._parts[f"{RELATIVE}:{name}"] = _within(key, name)
        self._bounded = [name for name in self._parts if self._is_headline(name)]
        self._accuracies: dict[str, Callable[[Mapping[str, str]], bool]] = {
            f"{ACCURACY}:{BASE}": lambda doc: doc["form"] == BASE,
            f"{ACCURACY}:{NOVEL}": lambda doc: doc["form"] != BASE,
        }
        if len(self._forms) > 1:
            for form in self._forms:
                self._accuracies[f"{ACCURACY}:{form}"] = _exactly(form)

    def _is_headline(self, name: str) -> bool:
        return name == RELATIVE or name.partition(":")[2] in self._forms

    def metric_list(self) -> list[dict[str, Any]]:
        """lm-eval's ``metric_list``: the names that :meth:`metrics` gives, in its order."""
        entries: list[dict[str, Any]] = []
        for judge in JUDGES:
            for name in self._parts:
                endings = ["", STDERR, *((LOW, HIGH) if name in self._bounded else ())]
                entries += [
                    {
                        "metric": f"{judge}/{name}{ending}",
                        "aggregation": _RELATIVE + ending,
                        "higher_is_better": ending != STDERR,
                    }
                    for ending in endings
                ]
            entries += metric_entries(f"{judge}/{name}" for name in self._accuracies)
            entries += metric_entries(
                (f"{judge}/{name}" for name in FAILURES), higher_is_better=False
            )
        return entries + metric_entries([NO_QUERY], higher_is_better=False)

    def metrics(
        self, doc: Mapping[str, str], statuses: Mapping[str, Status], *, query_found: bool
    ) -> dict[str, Outcome | None]:
        """Scores one document; None in the metrics that do not concern it.

        Args:
            doc: With ``form``, ``category``, ``interpretation`` and ``db_id``.
            statuses: The verdict of each judge.
            query_found: Whether the answer held a query at all.
        """

        def outcome(value: bool) -> Outcome:  # noqa: FBT001
            return Outcome(value, doc["interpretation"], doc["form"], doc["db_id"].casefold())

        results: dict[str, Outcome | None] = {}

        def put(name: str, value: Outcome | None, *endings: str) -> None:
            results.update(dict.fromkeys((name, *(name + end for end in endings)), value))

        for judge in JUDGES:
            correct = outcome(statuses[judge] == "correct")
            for name, within in self._parts.items():
                bounds = (LOW, HIGH) if name in self._bounded else ()
                put(f"{judge}/{name}", correct if within(doc) else None, STDERR, *bounds)
            for name, within in self._accuracies.items():
                put(f"{judge}/{name}", correct if within(doc) else None, STDERR)
            for name, status in FAILURES.items():
                put(f"{judge}/{name}", outcome(statuses[judge] == status), STDERR)
        put(NO_QUERY, outcome(not query_found), STDERR)
        return results


def _within(key: str, name: str) -> Callable[[Mapping[str, str]], bool]:
    """In the part of that name; base examples belong to every form."""
    if key == "form":
        return lambda doc: doc["form"] in (BASE, name)
    return lambda doc: doc[key] == name


def _exactly(form: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda doc: doc["form"] == form
