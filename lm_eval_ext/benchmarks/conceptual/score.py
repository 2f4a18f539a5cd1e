"""Scores of one answer, and of a document's two.

Figures over documents that were asked under both selections.

Every metric's per-document value is a :class:`Pair`: a float for lm-eval, with both scores
behind it, so that ratios of sums and resampling need no other way.

What a task reports: names, per-document values, and how lm-eval aggregates them.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.conceptual.documents import CONCEPT, RANDOM
from lm_eval_ext.benchmarks.conceptual.records import plain
from lm_eval_ext.harness.metrics import metric_entries, once, register_figure, register_spread
from lm_eval_ext.harness.names import HIGH, LOW, STDERR
from lm_eval_ext.results.samples import Sample, SampleStatistic, Totals
from lm_eval_ext.stats import Spread, cluster_bootstrap, clustered_standard_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ROUGE_L, ROUGE_L_F1, ACCURACY = "rouge_l", "rouge_l_f1", "accuracy"
SCORES = (ROUGE_L, ROUGE_L_F1, ACCURACY)

MOST_CHARACTERS = 20_000
"""Of an answer that is compared: far beyond any right one, and the time grows with it."""


def score(answer: str, gold: str) -> dict[str, float]:
    """Compares an answer with the right one.

    Args:
        answer: What the model wrote, whatever it is.
        gold: The right answer in the template's words.

    Returns:
        ``rouge_l``, the recall of ROUGE-L with Porter stemming, which is what the paper's
        figures are: the share of the right answer's words that stand in the answer in their
        order (Lin 2004 takes recall as the default of ROUGE-L, by a large beta; the authors
        call the library that is called here). ``rouge_l_f1``, its F1, which a long answer does
        not raise. ``accuracy``, 1.0 if both are the same words, whatever their case and
        punctuation.
    """
    answer = answer.strip()[:MOST_CHARACTERS]
    rouge = _scorer().score(gold, answer)["rougeL"]
    return {
        ROUGE_L: float(rouge.recall),
        ROUGE_L_F1: float(rouge.fmeasure),
        ACCURACY: float(_same(answer, gold)),
    }


def _same(answer: str, gold: str) -> bool:
    # An answer such as "+" has no words, and neither has an empty one.
    return plain(answer) == plain(gold) if plain(gold) else answer == gold.strip()


@functools.cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, float]]:
    """Scores a document's answers under both selections: by score, then by selection.

    The task (:mod:`lm_eval_ext.benchmarks.conceptual.task`) makes lm-eval's metrics of it.
    """
    random, concept = (score(answer, doc["answer"]) for answer in results)
    return {name: {RANDOM: random[name], CONCEPT: concept[name]} for name in SCORES}


GAIN, ERROR_CHANGE = "gain", "error_change"
VIEWS = (RANDOM, CONCEPT, GAIN, ERROR_CHANGE)
"""What a score is reported as; the last is the relative change of error."""

PAPER_SAMPLES, PAPER_REPEATS = 100, 200
"""The paper's bootstrap (captions of its figures 2 to 4)."""


class Pair(float):
    """A document's score in one view, with what it comes from.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    random: float
    concept: float
    sample: str
    cluster: str

    def __new__(
        cls, value: float, random: float, concept: float, sample: str, cluster: str
    ) -> "Pair":
        """Args: the view's value; the score under each selection; id; cluster of its errors."""
        self = super().__new__(cls, value)
        self.random, self.concept, self.sample, self.cluster = random, concept, sample, cluster
        return self

    def __reduce__(self) -> tuple[type["Pair"], tuple[float, float, float, str, str]]:
        """For pickling: ranks send their scores to each other."""
        return (Pair, (float(self), self.random, self.concept, self.sample, self.cluster))


def change(pairs: Iterable[Pair]) -> float | None:
    """The relative change of error: (1 - concept) / (1 - random) - 1, of the mean scores.

    Negative where demonstrations that share a concept help. None where there is no error to
    change.
    """
    pairs = list(pairs)
    before = math.fsum(1 - pair.random for pair in pairs)
    return math.fsum(1 - pair.concept for pair in pairs) / before - 1 if before else None


def mean_spread(pairs: Iterable[Pair]) -> Spread | None:
    """Error and interval of the mean of a view on all samples; concepts are resampled."""
    return _clustered(pairs, lambda pair: (float(pair), 1.0), _ratio)


def change_spread(pairs: Iterable[Pair]) -> Spread | None:
    """Error and interval of :func:`change` on all samples; concepts are resampled."""
    return _clustered(pairs, lambda pair: (1 - pair.concept, 1 - pair.random), _ratio_change)


def _ratio(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        values: Any = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
    return values  # type: ignore[no-any-return]


def _ratio_change(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    return _ratio(sums) - 1


def _clustered(
    pairs: Iterable[Pair],
    parts: Callable[[Pair], tuple[float, float]],
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
) -> Spread | None:
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
    """The paper's bootstrap: 200 times, the figure of 100 samples drawn with replacement.

    The same samples are drawn for every view, so a gain is that of one and the same draw.

    Returns:
        200 values, or fewer where some are undefined; None for fewer than two samples.
    """
    import numpy as np

    # The order in which ranks deliver must not decide which are drawn.
    ordered: Sequence[Pair] = sorted(pairs, key=lambda pair: pair.sample)
    if len(ordered) < 2:  # noqa: PLR2004
        return None
    drawn = np.random.default_rng(0).integers(len(ordered), size=(PAPER_REPEATS, PAPER_SAMPLES))
    if of_change:
        after = np.array([1 - pair.concept for pair in ordered])[drawn].sum(axis=1)
        before = np.array([1 - pair.random for pair in ordered])[drawn].sum(axis=1)
        values = _ratio(np.stack([after, before], axis=1)) - 1
    else:
        values = np.array([float(pair) for pair in ordered])[drawn].mean(axis=1)
    defined: Any = values[~np.isnan(values)]
    return defined if len(defined) > 1 else None


PAPER = "_100x200"
"""Ending of the figures by the paper's bootstrap: their median, as in its figure 4."""

BOOTSTRAPPED = (ROUGE_L, ACCURACY)
"""Scores that have such figures, and figures by concept."""

ENOUGH = 10
"""Samples from which a concept has figures of its own; with fewer it has none."""


BY_CONCEPT = "lm_eval_ext_mean_of_enough"
"""Name in lm-eval's registry."""


def _quantile(values: Any, share: float) -> float:
    import numpy as np

    return float(np.quantile(values, share))


_OF_BOOTSTRAP: dict[str, Callable[[Any], float]] = {
    "": lambda values: _quantile(values, 0.5),
    STDERR: lambda values: float(values.std(ddof=1)),
    LOW: lambda values: _quantile(values, 0.025),
    HIGH: lambda values: _quantile(values, 0.975),
}


def _register() -> None:
    """Gives every aggregation a name in lm-eval's registry."""
    for kind, spread in (("mean", mean_spread), ("change", change_spread)):
        register_spread(_all(kind, ""), spread)
        bootstrap = once(partial(paper_bootstrap, of_change=kind == "change"))
        for ending, part in _OF_BOOTSTRAP.items():
            register_figure(_paper(kind, ending), _part_of(bootstrap, part))
    register_figure(_all("change", ""), change)
    register_figure(BY_CONCEPT, _mean_of_enough)
    register_figure(BY_CONCEPT + STDERR, _error_of_enough)


def _mean_of_enough(pairs: list[Pair]) -> float | None:
    return math.fsum(pairs) / len(pairs) if len(pairs) >= ENOUGH else None


def _error_of_enough(pairs: list[Pair]) -> float | None:
    return clustered_standard_error(pairs) if len(pairs) >= ENOUGH else None


def _all(kind: str, ending: str) -> str:
    return f"lm_eval_ext_paired_{kind}{ending}"


def _paper(kind: str, ending: str) -> str:
    return f"lm_eval_ext_100x200_{kind}{ending}"


def _part_of(
    bootstrap: Callable[[list[Pair]], Any], part: Callable[[Any], float]
) -> Callable[[list[Pair]], float | None]:
    def figure(pairs: list[Pair]) -> float | None:
        values = bootstrap(pairs)
        return None if values is None else part(values)

    return figure


_register()


def concepts_with_enough(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The concepts that have figures of their own, in alphabetical order."""
    counts = Counter(row["concept"] for row in rows)
    return tuple(sorted(name for name, count in counts.items() if name and count >= ENOUGH))


def label(concept: str) -> str:
    """A concept in a metric's name, where a slash and a comma have meanings of their own."""
    return concept.replace("/", "&").replace(",", ";")


def metric_list(concepts: Sequence[str]) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list``: the names that :func:`values` gives, in its order."""
    entries: list[dict[str, Any]] = []
    for score in SCORES:
        for view in VIEWS:
            entries += _on_all(f"{view}/{score}", view)
            if score in BOOTSTRAPPED:
                kind = "change" if view == ERROR_CHANGE else "mean"
                name = f"{view}/{score}{PAPER}"
                entries += [
                    _entry(name + ending, _paper(kind, ending), view) for ending in _OF_BOOTSTRAP
                ]
        if score in BOOTSTRAPPED:
            entries += [
                _entry(f"{view}/{score}:{label(concept)}{ending}", BY_CONCEPT + ending, view)
                for concept in concepts
                for view in (RANDOM, CONCEPT, GAIN)
                for ending in ("", STDERR)
            ]
    return entries


def _on_all(name: str, view: str) -> list[dict[str, Any]]:
    if view == ERROR_CHANGE:
        return [_entry(name + end, _all("change", end), view) for end in ("", STDERR, LOW, HIGH)]
    bounds = [_entry(name + end, _all("mean", end), view) for end in (LOW, HIGH)]
    return [*metric_entries([name]), *bounds]


def _entry(name: str, aggregation: str, view: str) -> dict[str, Any]:
    better = view != ERROR_CHANGE and not name.endswith(STDERR)
    return {"metric": name, "aggregation": aggregation, "higher_is_better": better}


def values(
    doc: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, float]],
    concepts: Sequence[str],
) -> dict[str, Pair | None]:
    """What ``process_results`` hands to lm-eval for one document.

    Args:
        doc: Its ``id`` and ``concept``, the cluster of its errors.
        scores: By score, then by selection.
        concepts: Those with figures of their own; None stands for those of other documents.
    """
    found: dict[str, Pair | None] = {}
    for score in SCORES:
        random, concept = scores[score][RANDOM], scores[score][CONCEPT]
        seen = {RANDOM: random, CONCEPT: concept, GAIN: concept - random}
        # The change of error is no mean over documents; its aggregation looks behind the value.
        seen[ERROR_CHANGE] = random - concept
        for view, value in seen.items():
            pair = Pair(value, random, concept, doc["id"], doc["concept"])
            ends = (STDERR, LOW, HIGH)
            found |= dict.fromkeys((f"{view}/{score}{end}" for end in ("", *ends)), pair)
            if score in BOOTSTRAPPED:
                found |= dict.fromkeys((f"{view}/{score}{PAPER}{end}" for end in ("", *ends)), pair)
        if score in BOOTSTRAPPED:
            for name in concepts:
                for view in (RANDOM, CONCEPT, GAIN):
                    # Within one concept documents are their own clusters.
                    own = Pair(seen[view], random, concept, doc["id"], doc["id"])
                    mine = own if name == doc["concept"] else None
                    metric = f"{view}/{score}:{label(name)}"
                    found |= {metric: mine, metric + STDERR: mine}
    return found
