"""MAGNIFICo's metrics: execution accuracy, its average, and relative performance on novel words.

Relative performance is min(EX_novel / EX_base, 1) x 100 for each interpretation, averaged over the
interpretations whose EX_base is at least 5 % (paper, section 4 and footnote 8). Average execution
accuracy is EX of each interpretation, averaged over all of them (paper, figures 6 and 12).

Every answer is executed on two databases: the original one, and its populated copy, whose added
rows distinguish more wrong queries from right ones. Names of metrics begin with the database:
``populated/relative_performance``.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.harness.metrics import (
    STDERR,
    entry,
    metric_entries,
    register_estimate,
    register_statistic,
)
from lm_eval_ext.results.samples import Sample, SampleStatistic, Totals
from lm_eval_ext.sql import Status
from lm_eval_ext.stats.intervals import UNIT, Estimate, Limits, jackknife

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POPULATED, ORIGINAL = "populated", "original"
DATABASES = (POPULATED, ORIGINAL)

RELATIVE = "relative_performance"
ACCURACY = "execution_accuracy"
AVERAGE = "average_execution_accuracy"
NOVEL = "novel"
NO_QUERY = "no_query"
"""The share of answers without a query."""

FAILURES: Mapping[str, Status] = MappingProxyType(
    {
        "error": "prediction_error",
        "timeout": "prediction_timeout",
        "too_large": "prediction_too_large",
    }
)
"""Shares of queries that failed, by cause."""

_RELATIVE = "magnifico_relative_performance"
_AVERAGE = "magnifico_average_accuracy"
_Row = Sequence[int]

PERCENT: Limits = (0.0, 100.0)
"""Legal values of relative performance."""

LEAST_BASE_ACCURACY = 0.05
"""Interpretations with a lower EX_base are left out."""


class Outcome(float):
    """1.0 for a correct answer, else 0.0, with the groups that the example belongs to.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    interpretation: str
    form: str
    cluster: str
    finer: tuple[str, ...]

    def __new__(
        cls,
        correct: bool,  # noqa: FBT001
        interpretation: str,
        form: str,
        cluster: str,
        finer: tuple[str, ...] = (),
    ) -> "Outcome":
        """Takes the result, the interpretation, the form, and as cluster the database.

        ``finer`` are the clusters within a user's only database.
        """
        self = super().__new__(cls, correct)
        self.interpretation, self.form, self.cluster = interpretation, form, cluster
        self.finer = finer
        return self

    def within(self, cluster: str) -> "Outcome":
        """The same in a finer cluster."""
        return Outcome(bool(self), self.interpretation, self.form, cluster)

    def __reduce__(self) -> tuple[type["Outcome"], tuple[bool, str, str, str, tuple[str, ...]]]:
        """For pickling: ranks send their outcomes to each other."""
        return (Outcome, (bool(self), self.interpretation, self.form, self.cluster, self.finer))


def by_execution(
    doc: Mapping[str, str],
    results: Sequence[str],
    *,
    scopes: "Scopes",
    execute: Callable[[Mapping[str, str], str], Mapping[str, Status] | None],
) -> dict[str, "Outcome | None"]:
    """Scores a document: ``process_results`` in the YAML.

    Args:
        doc: With what :meth:`Scopes.metrics` asks for.
        results: The query; "" where there is none.
        scopes: From the task's class, as ``execute``.
        execute: Returns the verdict on each database; None where the document cannot be scored.
    """
    (query,) = results
    statuses = execute(doc, query)
    return {} if statuses is None else scopes.metrics(doc, statuses, query_found=bool(query))


class Scopes:
    """The subsets of a task's examples that have metrics of their own.

    They are the forms, the categories and the interpretations.
    """

    def __init__(
        self,
        documents: Mapping[str, Sequence[str]],
        *,
        own: bool = False,
        databases: Sequence[str] = DATABASES,
    ) -> None:
        """Takes the documents' columns ``form``, ``category`` and ``interpretation``.

        A user's ``own`` documents may all be about one database. ``databases`` are those that
        answers are executed on.
        """
        self._own, self._databases = own, databases
        columns = {key: documents[key][:] for key in ("form", "category", "interpretation")}
        seen = {key: list(dict.fromkeys(column)) for key, column in columns.items()}
        self._forms = [form for form in seen["form"] if form != BASE]
        # The only form or category would repeat the overall metric.
        parts = [
            *(("form", name) for name in self._forms if len(self._forms) > 1),
            *(("category", name) for name in seen["category"] if len(seen["category"]) > 1),
            *(("interpretation", name) for name in seen["interpretation"]),
        ]
        self._parts: dict[str, Callable[[Mapping[str, str]], bool]] = {RELATIVE: lambda _: True}
        for key, name in parts:
            self._parts[f"{RELATIVE}:{name}"] = _within(key, name)
        self._shares: dict[str, Callable[[Mapping[str, str]], bool]] = {
            BASE: lambda doc: doc["form"] == BASE,
            NOVEL: lambda doc: doc["form"] != BASE,
        }
        if len(self._forms) > 1:
            for form in self._forms:
                self._shares[form] = _exactly(form)

    def metric_list(self) -> list[dict[str, Any]]:
        """lm-eval's ``metric_list``, in the order of :meth:`metrics`."""
        entries: list[dict[str, Any]] = []
        for database in self._databases:
            for name in self._parts:
                entries += _with_stderr(f"{database}/{name}", _RELATIVE, PERCENT)
            entries += metric_entries(f"{database}/{ACCURACY}:{name}" for name in self._shares)
            for name in self._shares:
                entries += _with_stderr(f"{database}/{AVERAGE}:{name}", _AVERAGE, UNIT)
            entries += metric_entries(
                (f"{database}/{name}" for name in FAILURES), higher_is_better=False
            )
        return entries + metric_entries([NO_QUERY], higher_is_better=False)

    def metrics(
        self, doc: Mapping[str, str], statuses: Mapping[str, Status], *, query_found: bool
    ) -> dict[str, Outcome | None]:
        """Scores one document by its status on each database.

        Metrics of subsets that it is not in are None.
        """
        finer = (doc["interpretation"], doc["template"]) if self._own else ()

        def outcome(value: bool) -> Outcome:  # noqa: FBT001
            return Outcome(
                value, doc["interpretation"], doc["form"], doc["db_id"].casefold(), finer
            )

        results: dict[str, Outcome | None] = {}

        def put(name: str, value: Outcome | None) -> None:
            results.update({name: value, name + STDERR: value})

        for database in self._databases:
            correct = outcome(statuses[database] == "correct")
            for name, within in self._parts.items():
                put(f"{database}/{name}", correct if within(doc) else None)
            for metric in (ACCURACY, AVERAGE):
                for name, within in self._shares.items():
                    put(f"{database}/{metric}:{name}", correct if within(doc) else None)
            for name, status in FAILURES.items():
                put(f"{database}/{name}", outcome(statuses[database] == status))
        put(NO_QUERY, outcome(not query_found))
        return results


def _with_stderr(name: str, aggregation: str, limits: Limits) -> list[dict[str, Any]]:
    return [
        entry(name, aggregation, higher_is_better=True, limits=limits),
        entry(name + STDERR, aggregation + STDERR, higher_is_better=False),
    ]


def _within(key: str, name: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether a document is in a subset; base examples belong to every form."""
    if key == "form":
        return lambda doc: doc["form"] in (BASE, name)
    return lambda doc: doc[key] == name


def _exactly(form: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda doc: doc["form"] == form


def relative_performance(outcomes: Iterable[Outcome]) -> float | None:
    """The mean over all pairs of an interpretation and a novel form, in percent.

    With one form, this is the paper's score. All forms have the same interpretations, so with
    several forms it is the mean of their scores. None if EX_base is too low everywhere.
    """
    table, _ = tabulate(outcomes)
    ratios = [
        min(novel_right / novel / (base_right / base), 1.0)
        for base_right, base, novel_right, novel in table
        if base and novel and base_right / base >= LEAST_BASE_ACCURACY
    ]
    return 100 * math.fsum(ratios) / len(ratios) if ratios else None


def average_accuracy(outcomes: Iterable[Outcome]) -> float | None:
    """The mean of the execution accuracies of all pairs of an interpretation and a form, 0 to 1.

    Each pair counts the same, however many examples it has. None without outcomes.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for outcome in outcomes:
        count = groups.setdefault((outcome.interpretation, outcome.form), [0, 0])
        count[0] += int(outcome)
        count[1] += 1
    shares = [right / size for right, size in groups.values()]
    return math.fsum(shares) / len(shares) if shares else None


def estimate(outcomes: Iterable[Outcome]) -> Estimate | None:
    """:func:`relative_performance` and its error, by leaving out each database in turn."""
    scored = list(outcomes)
    return jackknife(_totals(scored), relative_of, sizes_of(scored))


def average_estimate(outcomes: Iterable[Outcome]) -> Estimate | None:
    """As :func:`estimate`, of :func:`average_accuracy`."""
    scored = list(outcomes)
    return jackknife(_group_totals(scored), average_of, sizes_of(scored))


def sizes_of(outcomes: Iterable[Outcome]) -> Mapping[str, int]:
    """The number of answers by cluster."""
    return Counter(one.cluster for one in outcomes)


def _totals(outcomes: Iterable[Outcome]) -> Totals:
    import numpy as np

    _, by_cluster = tabulate(outcomes)
    # Base examples alone make no pair.
    return {
        name: np.array(table, dtype=np.float64).reshape(-1, 4) for name, table in by_cluster.items()
    }


def _group_totals(outcomes: Iterable[Outcome]) -> Totals:
    """By cluster, correct and all answers to each pair of an interpretation and a form."""
    import numpy as np

    scored = list(outcomes)
    groups = sorted({(one.interpretation, one.form) for one in scored})
    places = {group: place for place, group in enumerate(groups)}
    totals: Totals = {one.cluster: np.zeros((len(groups), 2)) for one in scored}
    for one in scored:
        totals[one.cluster][places[one.interpretation, one.form]] += (int(one), 1)
    return totals


def logged_outcomes(
    samples: Iterable[Sample], metric: str, clusters: Iterable[str]
) -> list[Outcome]:
    """The outcomes of logged samples, each in its cluster."""
    return [
        Outcome(bool(one.scores[metric]), one.doc["interpretation"], one.doc["form"], cluster)
        for one, cluster in zip(samples, clusters, strict=True)
    ]


def _logged_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    return _totals(logged_outcomes(samples, metric, clusters))


def _logged_group_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    return _group_totals(logged_outcomes(samples, metric, clusters))


def relative_of(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Relative performance from sums of shape (resample, pair, 4); NaN if no pair counts."""
    import numpy as np

    base_right, base, novel_right, novel = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        base_accuracy = base_right / base
        ratios = np.minimum(novel_right / novel / base_accuracy, 1.0)
        counted = (base > 0) & (novel > 0) & (base_accuracy >= LEAST_BASE_ACCURACY)
        total = np.where(counted, ratios, 0.0).sum(axis=-1)
        values: Any = 100 * total / counted.sum(axis=-1)
    return values  # type: ignore[no-any-return]


def average_of(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Average accuracy from sums of shape (resample, group, 2); NaN if no group has an answer."""
    import numpy as np

    right, size = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(size > 0, right / size, 0.0).sum(axis=-1)
        values: Any = total / (size > 0).sum(axis=-1)
    return values  # type: ignore[no-any-return]


def tabulate(outcomes: Iterable[Outcome]) -> tuple[list[_Row], dict[str, list[_Row]]]:
    """Counts correct and all answers to base and novel examples.

    Returns:
        For each pair of an interpretation and a novel form, sorted: base correct, base, novel
        correct, novel; and the same table for each cluster.
    """
    scored = list(outcomes)
    pairs = sorted({(o.interpretation, o.form) for o in scored if o.form != BASE})
    places: dict[str, list[tuple[int, int]]] = {}
    for place, (interpretation, form) in enumerate(pairs):
        places.setdefault(f"{interpretation}\n{form}", []).append((place, 2))
        places.setdefault(f"{interpretation}\n{BASE}", []).append((place, 0))
    total = [[0, 0, 0, 0] for _ in pairs]
    by_cluster: dict[str, list[list[int]]] = {}
    for outcome in scored:
        own = by_cluster.setdefault(outcome.cluster, [[0, 0, 0, 0] for _ in pairs])
        for place, column in places.get(f"{outcome.interpretation}\n{outcome.form}", ()):
            for table in (total, own):
                table[place][column] += int(outcome)
                table[place][column + 1] += 1
    return list(total), {name: list(table) for name, table in by_cluster.items()}


register_statistic(_RELATIVE, relative_performance)
register_estimate(_RELATIVE, estimate)
register_statistic(_AVERAGE, average_accuracy)
register_estimate(_AVERAGE, average_estimate)

LOGGED_RELATIVE_PERFORMANCE = SampleStatistic(_logged_totals, relative_of)
LOGGED_AVERAGE_ACCURACY = SampleStatistic(_logged_group_totals, average_of)
"""Both from logged samples; the card names them for ``lm-eval-ext compare``."""
