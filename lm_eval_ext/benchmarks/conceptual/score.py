"""Metrics of answers after random and after concept-sharing demonstrations.

Every metric's value per document is a :class:`Pair`: the number that lm-eval logs, with both
scores behind it, so that ratios of sums and bootstraps can be computed from the same values.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.conceptual.fewshot import CONCEPT, RANDOM
from lm_eval_ext.benchmarks.conceptual.records import plain
from lm_eval_ext.harness.metrics import (
    metric_entries,
    once,
    register_statistic,
    register_uncertainty,
)
from lm_eval_ext.harness.names import HIGH, LOW, STDERR
from lm_eval_ext.results.samples import Sample, SampleStatistic, Totals
from lm_eval_ext.stats import Uncertainty, cluster_bootstrap, clustered_standard_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]

ROUGE_L, ROUGE_L_F1, ACCURACY = "rouge_l", "rouge_l_f1", "accuracy"
SCORES = (ROUGE_L, ROUGE_L_F1, ACCURACY)
BOOTSTRAPPED = (ROUGE_L, ACCURACY)
"""Scores that also have the paper's bootstrap and figures per concept."""

GAIN, ERROR_CHANGE = "gain", "error_change"
VIEWS = (RANDOM, CONCEPT, GAIN, ERROR_CHANGE)
"""How a score is reported: under each selection, the difference, and the relative change of
error (the paper's figure 2)."""

PAPER = "_100x200"
"""Ending of the figures from the paper's bootstrap; the figure itself is the median, as in the
paper's figure 4."""
PAPER_SAMPLES, PAPER_REPEATS = 100, 200
"""The size of the paper's bootstrap (captions of its figures 2 to 4)."""

ENOUGH = 10
"""Samples from which a concept has figures of its own."""

MOST_CHARACTERS = 20_000
"""Longest part of an answer that is compared; the cost of ROUGE-L grows with it."""


def score(answer: str, gold: str) -> dict[str, float]:
    """Compares any text that a model wrote with the right answer.

    Returns:
        ``rouge_l``: recall of ROUGE-L with Porter stemming, as in the paper; that is the share
        of the gold's words that the answer has in the same order (why recall:
        ``docs/fidelity.md``). ``rouge_l_f1``: F1, which a long answer does not raise.
        ``accuracy``: 1.0 if both are the same words, regardless of case and punctuation.
    """
    answer = answer.strip()[:MOST_CHARACTERS]
    rouge = _scorer().score(gold, answer)["rougeL"]
    return {
        ROUGE_L: float(rouge.recall),
        ROUGE_L_F1: float(rouge.fmeasure),
        ACCURACY: float(_same(answer, gold)),
    }


def _same(answer: str, gold: str) -> bool:
    # A gold such as "+" has no words, like an empty answer.
    return plain(answer) == plain(gold) if plain(gold) else answer == gold.strip()


@functools.cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, float]]:
    """Scores a document's answers under both selections: by score, then by selection.

    The task makes lm-eval's metrics of them with :func:`values`.
    """
    random, concept = (score(answer, doc["answer"]) for answer in results)
    return {name: {RANDOM: random[name], CONCEPT: concept[name]} for name in SCORES}


class Pair(float):
    """A document's value in one view, with the score under each selection.

    Attributes:
        random: The score after random demonstrations.
        concept: The score after concept-sharing demonstrations.
        sample: The document's id.
        cluster: For standard errors.
    """

    random: float
    concept: float
    sample: str
    cluster: str

    def __new__(
        cls, value: float, random: float, concept: float, sample: str, cluster: str
    ) -> "Pair":
        """Takes the view's value, then the attributes."""
        self = super().__new__(cls, value)
        self.random, self.concept, self.sample, self.cluster = random, concept, sample, cluster
        return self

    def __reduce__(self) -> tuple[type["Pair"], tuple[float, float, float, str, str]]:
        # lm-eval's processes pickle their values to send them to each other.
        return (Pair, (float(self), self.random, self.concept, self.sample, self.cluster))


def values(
    doc: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, float]],
    concepts: Sequence[str],
) -> dict[str, Pair | None]:
    """One document's value of every metric of :func:`metric_list`.

    Args:
        doc: With ``id``, and ``concept``, the cluster of its errors.
        scores: The result of :func:`process_results`.
        concepts: Those with metrics of their own; the value is None for all but the document's
            concept.
    """
    found: dict[str, Pair | None] = {}
    for score in SCORES:
        random, concept = scores[score][RANDOM], scores[score][CONCEPT]
        seen = {RANDOM: random, CONCEPT: concept, GAIN: concept - random}
        # Not a mean over documents: the aggregation uses the scores behind the value.
        seen[ERROR_CHANGE] = random - concept
        bases = ("", PAPER) if score in BOOTSTRAPPED else ("",)
        for view, value in seen.items():
            pair = Pair(value, random, concept, doc["id"], doc["concept"])
            for base in bases:
                for end in ("", STDERR, LOW, HIGH):
                    found[f"{view}/{score}{base}{end}"] = pair
        for name in concepts if score in BOOTSTRAPPED else ():
            for view in (RANDOM, CONCEPT, GAIN):
                # Within one concept every document is its own cluster.
                own = Pair(seen[view], random, concept, doc["id"], doc["id"])
                mine = own if name == doc["concept"] else None
                metric = f"{view}/{score}:{label(name)}"
                found |= {metric: mine, metric + STDERR: mine}
    return found


def concepts_with_enough(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The concepts that have metrics of their own, in alphabetical order."""
    counts = Counter(row["concept"] for row in rows)
    return tuple(sorted(name for name, count in counts.items() if name and count >= ENOUGH))


def label(concept: str) -> str:
    """A concept as part of a metric's name, where slash and comma are separators."""
    return concept.replace("/", "&").replace(",", ";")


def metric_list(concepts: Sequence[str]) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list``, with metrics for each of these concepts."""
    entries: list[dict[str, Any]] = []
    for score in SCORES:
        for view in VIEWS:
            kind = "change" if view == ERROR_CHANGE else "mean"
            name = f"{view}/{score}"
            if view == ERROR_CHANGE:
                ends: tuple[str, ...] = ("", STDERR, LOW, HIGH)
            else:
                entries += metric_entries([name])
                ends = (LOW, HIGH)
            entries += [_entry(name + end, f"{_ON_ALL}{kind}{end}", view) for end in ends]
            if score in BOOTSTRAPPED:
                entries += [
                    _entry(f"{name}{PAPER}{end}", f"{_BOOTSTRAP}{kind}{end}", view)
                    for end in _OF_BOOTSTRAP
                ]
        if score in BOOTSTRAPPED:
            entries += [
                _entry(f"{view}/{score}:{label(concept)}{end}", _BY_CONCEPT + end, view)
                for concept in concepts
                for view in (RANDOM, CONCEPT, GAIN)
                for end in ("", STDERR)
            ]
    return entries


def _entry(name: str, aggregation: str, view: str) -> dict[str, Any]:
    better = view != ERROR_CHANGE and not name.endswith(STDERR)
    return {"metric": name, "aggregation": aggregation, "higher_is_better": better}


def change(pairs: Iterable[Pair]) -> float | None:
    """The relative change of error: (1 - concept) / (1 - random) - 1, of the mean scores.

    Negative if concept-sharing demonstrations help; None if there is no error to change.
    """
    pairs = list(pairs)
    before = math.fsum(1 - pair.random for pair in pairs)
    return math.fsum(1 - pair.concept for pair in pairs) / before - 1 if before else None


def mean_uncertainty(pairs: Iterable[Pair]) -> Uncertainty | None:
    """Standard error and interval of the mean of a view, by resampling concepts."""
    return _clustered(pairs, lambda pair: (float(pair), 1.0), _ratio)


def change_uncertainty(pairs: Iterable[Pair]) -> Uncertainty | None:
    """Standard error and interval of :func:`change`, by resampling concepts."""
    return _clustered(pairs, lambda pair: (1 - pair.concept, 1 - pair.random), _ratio_change)


def _ratio(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """First column by second; NaN where the second is 0."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: NDArray[np.float64] = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    return ratios


def _ratio_change(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    return _ratio(sums) - 1


def _clustered(
    pairs: Iterable[Pair], parts: Callable[[Pair], tuple[float, float]], statistic: "Statistic"
) -> Uncertainty | None:
    return cluster_bootstrap(_totals((pair.cluster, parts(pair)) for pair in pairs), statistic)


def _totals(rows: Iterable[tuple[str, tuple[float, float]]]) -> Totals:
    import numpy as np

    members: dict[str, list[tuple[float, float]]] = {}
    for cluster, parts in rows:
        members.setdefault(cluster, []).append(parts)
    return {
        cluster: np.array([math.fsum(column) for column in zip(*own, strict=True)])
        for cluster, own in members.items()
    }


def _logged_totals(samples: Sequence[Sample], metric: str, clusters: Sequence[str]) -> Totals:
    """Errors under both selections: ``error_change/rouge_l`` from ``concept/`` and ``random/``."""
    score = metric.partition("/")[2]
    rows = []
    for sample, cluster in zip(samples, clusters, strict=True):
        concept, random = (sample.scores[f"{view}/{score}"] for view in (CONCEPT, RANDOM))
        if concept is not None and random is not None:
            rows.append((cluster, (1 - concept, 1 - random)))
    return _totals(rows)


LOGGED_CHANGE = SampleStatistic(_logged_totals, _ratio_change)
"""The change of error from logged samples; the card names it for ``lm-eval-ext compare``."""


def paper_bootstrap(pairs: Iterable[Pair], *, of_change: bool) -> "NDArray[np.float64] | None":
    """The paper's bootstrap: 200 times, the metric of 100 samples drawn with replacement.

    The same samples are drawn for every view, so each gain compares the same samples.

    Returns:
        200 values, or fewer if some are undefined; None if fewer than two are left.
    """
    import numpy as np

    # Sorted, so that the draw does not depend on the order of lm-eval's processes.
    ordered: Sequence[Pair] = sorted(pairs, key=lambda pair: pair.sample)
    if len(ordered) < 2:  # noqa: PLR2004
        return None
    drawn = np.random.default_rng(0).integers(len(ordered), size=(PAPER_REPEATS, PAPER_SAMPLES))
    if of_change:
        after = np.array([1 - pair.concept for pair in ordered])[drawn].sum(axis=1)
        before = np.array([1 - pair.random for pair in ordered])[drawn].sum(axis=1)
        figures = _ratio(np.stack([after, before], axis=1)) - 1
    else:
        figures = np.array([float(pair) for pair in ordered])[drawn].mean(axis=1)
    defined: NDArray[np.float64] = figures[~np.isnan(figures)]
    return defined if len(defined) > 1 else None


def _quantile(figures: Any, share: float) -> float:
    import numpy as np

    return float(np.quantile(figures, share))


_OF_BOOTSTRAP: dict[str, Callable[[Any], float]] = {
    "": lambda figures: _quantile(figures, 0.5),
    STDERR: lambda figures: float(figures.std(ddof=1)),
    LOW: lambda figures: _quantile(figures, 0.025),
    HIGH: lambda figures: _quantile(figures, 0.975),
}

# Aggregations go into lm-eval's registry by name, since results files show a function's source.
_ON_ALL, _BOOTSTRAP = "lm_eval_ext_paired_", "lm_eval_ext_100x200_"
_BY_CONCEPT = "lm_eval_ext_mean_of_enough"


def _register_bootstrap(kind: str) -> None:
    bootstrap = once(functools.partial(paper_bootstrap, of_change=kind == "change"))

    def register(end: str, part: Callable[[Any], float]) -> None:
        def figure(pairs: list[Pair]) -> float | None:
            figures = bootstrap(pairs)
            return None if figures is None else part(figures)

        register_statistic(f"{_BOOTSTRAP}{kind}{end}", figure)

    for end, part in _OF_BOOTSTRAP.items():
        register(end, part)


def _mean_of_enough(pairs: list[Pair]) -> float | None:
    return math.fsum(pairs) / len(pairs) if len(pairs) >= ENOUGH else None


def _error_of_enough(pairs: list[Pair]) -> float | None:
    return clustered_standard_error(pairs) if len(pairs) >= ENOUGH else None


register_uncertainty(f"{_ON_ALL}mean", mean_uncertainty)
register_uncertainty(f"{_ON_ALL}change", change_uncertainty)
register_statistic(f"{_ON_ALL}change", change)
_register_bootstrap("mean")
_register_bootstrap("change")
register_statistic(_BY_CONCEPT, _mean_of_enough)
register_statistic(_BY_CONCEPT + STDERR, _error_of_enough)
