"""Accuracy of probability comparisons, under the direct and the relative metric.

A comparison ``a>b`` is correct if the felicitous continuation a is more probable than the
infelicitous b, each given its own context (paper, section 4 and table 3; metrics: section 5
and appendix E).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.benchmarks.lieder import mini
from lm_eval_ext.benchmarks.lieder.records import FAMILIES, NONREFERENTIAL, Experiment
from lm_eval_ext.harness.metrics import document_results, metric_entries

DIRECT, RELATIVE = "direct", "relative"
MEAN = "mean"
UNDEFINED = "undefined"
"""Metric: the share of a group's log-probabilities that are not finite; 0 in a sound run."""

EXISTENCE = "existence"
UNIQUENESS_NOVELTY = "uniqueness+novelty"
PLURALITY = "plurality"
EXISTENCE_PLURALITY = "existence+plurality"
REQUIREMENTS = (EXISTENCE, UNIQUENESS_NOVELTY, PLURALITY, EXISTENCE_PLURALITY)
"""The felicity requirements behind the paper's 15 comparisons, which the mean is over."""

DISTANCE = "distance"
"""Not a felicity requirement: which of two felicitous antecedents is nearer."""
NUMERAL = "numeral"
"""Our name for the comparisons that experiment ``two`` adds; the paper names no requirement."""


@dataclass(frozen=True)
class Comparison:
    """``better`` should be more probable than ``worse``, because of ``requirement``."""

    better: str
    worse: str
    requirement: str

    @property
    def name(self) -> str:
        """As in the authors' result files: ``pos_neg_s>pos_pos_s``."""
        return f"{self.better}>{self.worse}"


def _comparisons(requirement: str, *names: str) -> tuple[Comparison, ...]:
    pairs = (name.split(">") for name in names)
    return tuple(Comparison(better, worse, requirement) for better, worse in pairs)


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
"""The informative comparisons, in the order of the paper's table 3."""

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
"""Experiment ``two`` (appendix D): 16 more, with contexts in which one clause says "two dogs"."""


def comparisons_of(experiment: Experiment) -> tuple[Comparison, ...]:
    """The 33 comparisons of ``two``, or the 17 of every other experiment."""
    return THIRTY_THREE if experiment == "two" else SEVENTEEN


def metrics_of(experiment: Experiment) -> tuple[str, ...]:
    """Both metrics; only the direct one for ``two``, which has no non-referential sentence."""
    return (DIRECT,) if experiment == "two" else (DIRECT, RELATIVE)


def judge(
    logprobs: Mapping[str, float], comparisons: Sequence[Comparison], metric: str
) -> dict[str, bool]:
    """Decides every comparison of one group, by the comparison's name.

    Equal probabilities and NaN make a comparison incorrect.

    Args:
        logprobs: By condition, the natural log of p(continuation | context).
        comparisons: The comparisons to decide.
        metric: ``direct`` compares p(a) with p(b). ``relative`` replaces p(a) by
            p(a) / (p(a) + p(nonref in a's context)). That is the logistic function of
            ``log p(a) - log p(nonref)``, so the differences are compared: the order is the
            same, and long sentences do not underflow.
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


def summarise(correct: Mapping[str, bool], comparisons: Sequence[Comparison]) -> dict[str, float]:
    """Scores of one group: the mean over the paper's 15, a mean per requirement, each comparison.

    Args:
        correct: The result of :func:`judge`.
        comparisons: Those that were decided; the 15 must be among them.
    """
    by_requirement: dict[str, list[bool]] = {}
    for comparison in comparisons:
        by_requirement.setdefault(comparison.requirement, []).append(correct[comparison.name])
    fifteen = [one for requirement in REQUIREMENTS for one in by_requirement[requirement]]
    return {
        MEAN: sum(fifteen) / len(fifteen),
        **{name: sum(members) / len(members) for name, members in by_requirement.items()},
        **{name: float(one) for name, one in correct.items()},
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


def families_of(experiment: Experiment) -> tuple[str, ...]:
    """The sentence families of an experiment."""
    return tuple(mini.FAMILIES) if experiment == "mini" else FAMILIES


def of_family(name: str, family: str) -> str:
    """The metric that is another one over a single family: ``direct/mean:know_doubt``."""
    return f"{name}:{family}"


def process_results(doc: dict[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """lm-eval's hook: scores a document, overall and in its family.

    Metrics of other families are None. Standard errors are clustered by item.
    """
    logprobs = {
        condition: float(logprob)
        for condition, (logprob, _is_greedy) in zip(doc["condition"], results, strict=True)
    }
    scores: dict[str, float | None] = {**score(logprobs, doc["experiment"])}
    by_family = {
        of_family(name, family): value if family == doc["family"] else None
        for family in families_of(doc["experiment"])
        for name, value in scores.items()
        if name != UNDEFINED
    }
    return document_results({**scores, **by_family}, cluster=doc["item"])


def metric_list(lieder_experiment: Experiment = "base", **_: Any) -> list[dict[str, Any]]:
    """lm-eval's hook: the metrics of an experiment, named as :func:`process_results` names them."""
    comparisons = comparisons_of(lieder_experiment)
    none_correct = dict.fromkeys((comparison.name for comparison in comparisons), False)
    names = [
        f"{metric}/{name}"
        for metric in metrics_of(lieder_experiment)
        for name in summarise(none_correct, comparisons)
    ]
    return [
        *metric_entries(names),
        *metric_entries([UNDEFINED], higher_is_better=False),
        *metric_entries(
            of_family(name, family) for family in families_of(lieder_experiment) for name in names
        ),
    ]
