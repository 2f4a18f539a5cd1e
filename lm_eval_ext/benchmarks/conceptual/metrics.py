"""What a task reports: names, per-document values, and how lm-eval aggregates them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lm_eval_ext.benchmarks.conceptual import paired
from lm_eval_ext.benchmarks.conceptual.documents import CONCEPT, RANDOM
from lm_eval_ext.benchmarks.conceptual.paired import ERROR_CHANGE, GAIN, VIEWS, Pair
from lm_eval_ext.benchmarks.conceptual.score import ACCURACY, ROUGE_L, SCORES
from lm_eval_ext.harness.aggregations import once, register_figure, register_spread
from lm_eval_ext.harness.metrics import metric_entries
from lm_eval_ext.harness.names import HIGH, LOW, STDERR
from lm_eval_ext.stats import clustered_standard_error

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
    for kind, spread in (("mean", paired.mean_spread), ("change", paired.change_spread)):
        register_spread(_all(kind, ""), spread)
        bootstrap = once(partial(paired.paper_bootstrap, of_change=kind == "change"))
        for ending, part in _OF_BOOTSTRAP.items():
            register_figure(_paper(kind, ending), _part_of(bootstrap, part))
    register_figure(_all("change", ""), paired.change)
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
