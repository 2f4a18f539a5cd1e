"""Comparisons of probabilities, under the direct and the relative metric.

A comparison ``a>b`` is right where the felicitous continuation a is more probable than the
infelicitous b, each given its own context (fact sheet, "Scoring").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.benchmarks.lieder.records import NONREFERENTIAL, Experiment
from lm_eval_ext.harness.metrics import document_results, metric_entries

DIRECT, RELATIVE = "direct", "relative"
EXISTENCE = "existence"
UNIQUENESS_NOVELTY = "uniqueness+novelty"
PLURALITY = "plurality"
EXISTENCE_PLURALITY = "existence+plurality"
DISTANCE = "distance"
"""No felicity requirement decides: which of two felicitous antecedents is nearer."""
NUMERAL = "numeral"
"""Our name for what experiment ``two`` adds; its paper gives those no property."""

MEAN = "mean"
REQUIREMENTS = (EXISTENCE, UNIQUENESS_NOVELTY, PLURALITY, EXISTENCE_PLURALITY)
"""The semantic properties behind the paper's 15 comparisons, over which the mean is taken."""

UNDEFINED = "undefined"
"""Metric: the share of a group's log-probabilities that are no finite numbers (0 when sound)."""


@dataclass(frozen=True)
class Comparison:
    """``better`` should be more probable than ``worse``, because of a felicity requirement."""

    better: str
    worse: str
    requirement: str

    @property
    def name(self) -> str:
        """As the authors' result files write it: ``pos_neg_s>pos_pos_s``."""
        return f"{self.better}>{self.worse}"


def _comparisons(requirement: str, *pairs: str) -> tuple[Comparison, ...]:
    split = (pair.partition(">") for pair in pairs)
    return tuple(Comparison(better, worse, requirement) for better, _, worse in split)


FIFTEEN = (
    *_comparisons(UNIQUENESS_NOVELTY, "pos_neg_s>pos_pos_s", "neg_pos_s>pos_pos_s"),
    *_comparisons(EXISTENCE, "pos_neg_s>neg_neg_s", "neg_pos_s>neg_neg_s"),
    *_comparisons(PLURALITY, "pos_pos_p>pos_neg_p", "pos_pos_p>neg_pos_p"),
    *_comparisons(EXISTENCE_PLURALITY, "pos_pos_p>neg_neg_p"),
    *_comparisons(PLURALITY, "pos_neg_s>pos_neg_p", "pos_neg_s>neg_pos_p"),
    *_comparisons(EXISTENCE_PLURALITY, "pos_neg_s>neg_neg_p"),
    *_comparisons(PLURALITY, "neg_pos_s>pos_neg_p", "neg_pos_s>neg_pos_p"),
    *_comparisons(EXISTENCE_PLURALITY, "neg_pos_s>neg_neg_p"),
    *_comparisons(UNIQUENESS_NOVELTY, "pos_pos_p>pos_pos_s"),
    *_comparisons(EXISTENCE, "pos_pos_p>neg_neg_s"),
)
"""The informative comparisons, as the paper's table lists them."""

SEVENTEEN = (*FIFTEEN, *_comparisons(DISTANCE, "neg_pos_s>pos_neg_s", "neg_pos_p>pos_neg_p"))

THIRTY_THREE = (
    *SEVENTEEN,
    *_comparisons(
        NUMERAL,
        *(
            f"{one}>{two}"
            for one in ("pos_neg_s", "neg_pos_s")
            for two in ("two_neg_s", "neg_two_s")
        ),
        *(
            f"{two}>{worse}"
            for two in ("two_neg_p", "neg_two_p")
            for worse in ("pos_neg_p", "neg_pos_p", "two_neg_s", "neg_two_s", "pos_pos_s")
        ),
        *(f"pos_pos_p>{two}" for two in ("two_neg_s", "neg_two_s")),
    ),
)
"""Experiment ``two``: 16 more, with contexts in which one clause says "two dogs"."""


def comparisons_of(experiment: Experiment) -> tuple[Comparison, ...]:
    """The comparisons of an experiment: 33 in ``two``, otherwise 17."""
    return THIRTY_THREE if experiment == "two" else SEVENTEEN


def metrics_of(experiment: Experiment) -> tuple[str, ...]:
    """The metrics of an experiment; ``two`` has no non-referential continuation to relate to."""
    return (DIRECT,) if experiment == "two" else (DIRECT, RELATIVE)


def judge(
    logprobs: Mapping[str, float], comparisons: Sequence[Comparison], metric: str
) -> dict[str, bool]:
    """Decides every comparison of one group.

    Args:
        logprobs: By condition, the natural log of p(continuation | context).
        comparisons: Which to decide.
        metric: ``direct`` compares p(a) with p(b). ``relative`` puts
            p(a) / (p(a) + p(nonref in a's context)) in the place of p(a). That is the
            logistic function of ``log p(a) - log p(nonref)``, which grows with it, so the
            differences are compared: the same order, and no underflow for long sentences.

    Returns:
        By the comparison's name. Equal probabilities, and any that is not a number, decide
        nothing, so the comparison is not right.
    """

    def strength(condition: str) -> float:
        if metric == DIRECT:
            return logprobs[condition]
        context = condition.rpartition("_")[0]
        return logprobs[condition] - logprobs[f"{context}_{NONREFERENTIAL}"]

    return {
        comparison.name: strength(comparison.better) > strength(comparison.worse)
        for comparison in comparisons
    }


def summarise(verdicts: Mapping[str, bool], comparisons: Sequence[Comparison]) -> dict[str, float]:
    """Turns the verdicts on one group into scores: means first, then each comparison.

    Returns:
        ``mean`` (over the paper's 15), one mean per requirement, and 1.0 or 0.0 by comparison.
    """
    by_requirement: dict[str, list[bool]] = {}
    for comparison in comparisons:
        by_requirement.setdefault(comparison.requirement, []).append(verdicts[comparison.name])
    fifteen = [verdict for name in REQUIREMENTS for verdict in by_requirement[name]]
    return {
        MEAN: sum(fifteen) / len(fifteen),
        **{name: sum(right) / len(right) for name, right in by_requirement.items()},
        **{name: float(verdict) for name, verdict in verdicts.items()},
    }


def score(logprobs: Mapping[str, float], experiment: Experiment) -> dict[str, float]:
    """Scores one group: every metric that the task reports, by name."""
    comparisons = comparisons_of(experiment)
    scores = {
        f"{metric}/{name}": value
        for metric in metrics_of(experiment)
        for name, value in summarise(judge(logprobs, comparisons, metric), comparisons).items()
    }
    undefined = sum(not math.isfinite(logprob) for logprob in logprobs.values())
    return {**scores, UNDEFINED: undefined / len(logprobs)}


def process_results(doc: dict[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """lm-eval's hook: scores a document; standard errors are clustered by item."""
    logprobs = {
        condition: float(logprob)
        for condition, (logprob, _is_greedy) in zip(doc["condition"], results, strict=True)
    }
    return document_results(score(logprobs, doc["experiment"]), cluster=doc["item"])


def metric_list(lieder_experiment: Experiment = "base", **_: Any) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` for an experiment: the names that :func:`score` gives."""
    comparisons = comparisons_of(lieder_experiment)
    verdicts = dict.fromkeys((comparison.name for comparison in comparisons), False)
    names = [
        f"{metric}/{name}"
        for metric in metrics_of(lieder_experiment)
        for name in summarise(verdicts, comparisons)
    ]
    return [*metric_entries(names), *metric_entries([UNDEFINED], higher_is_better=False)]
