"""Accuracy of probability comparisons, under the direct and the relative metric.

A comparison ``a>b`` is correct if the felicitous continuation a is more probable than the
infelicitous b, each given its own context (paper, section 4 and table 3; metrics: section 5
and appendix E).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

from lm_eval_ext.benchmarks.lieder.records import NONREFERENTIAL
from lm_eval_ext.stats.table import Row

DIRECT, RELATIVE = "direct", "relative"

DISTANCE = "distance"
"""Not a felicity requirement: which of two felicitous antecedents is nearer."""

NUMERAL = "numeral"
"""Our name for the comparisons that experiment ``two`` adds; the paper names no requirement."""


@dataclass(frozen=True)
class Comparison:
    """Two conditions: ``better`` should be more probable, because of ``requirement``."""

    better: str
    worse: str
    requirement: str

    @property
    def name(self) -> str:
        """The name in the authors' result files: ``pos_neg_s>pos_pos_s``."""
        return f"{self.better}>{self.worse}"


def _comparisons(requirements: Mapping[str, str]) -> tuple[Comparison, ...]:
    """Return comparisons, given the requirement of each by its name."""
    comparisons = []
    for name, requirement in requirements.items():
        better, worse = name.split(">")
        comparisons.append(Comparison(better, worse, requirement))
    return tuple(comparisons)


INFORMATIVE = _comparisons(
    {
        "pos_neg_s>pos_pos_s": "uniqueness+novelty",
        "neg_pos_s>pos_pos_s": "uniqueness+novelty",
        "pos_neg_s>neg_neg_s": "existence",
        "neg_pos_s>neg_neg_s": "existence",
        "pos_pos_p>pos_neg_p": "plurality",
        "pos_pos_p>neg_pos_p": "plurality",
        "pos_pos_p>neg_neg_p": "existence+plurality",
        "pos_neg_s>pos_neg_p": "plurality",
        "pos_neg_s>neg_pos_p": "plurality",
        "pos_neg_s>neg_neg_p": "existence+plurality",
        "neg_pos_s>pos_neg_p": "plurality",
        "neg_pos_s>neg_pos_p": "plurality",
        "neg_pos_s>neg_neg_p": "existence+plurality",
        "pos_pos_p>pos_pos_s": "uniqueness+novelty",
        "pos_pos_p>neg_neg_s": "existence",
    }
)
"""The informative comparisons and their felicity requirements, in the order of table 3."""

WITH_DISTANCE = (
    *INFORMATIVE,
    Comparison("neg_pos_s", "pos_neg_s", DISTANCE),
    Comparison("neg_pos_p", "pos_neg_p", DISTANCE),
)
"""The informative comparisons, and those of distance."""


def _numeral_comparisons(
    felicitous: Sequence[str], infelicitous: Sequence[str]
) -> list[Comparison]:
    """Return a comparison of each felicitous condition with each infelicitous one."""
    pairs = product(felicitous, infelicitous)
    return [Comparison(better, worse, NUMERAL) for better, worse in pairs]


_SINGULAR_AFTER_TWO = ("two_neg_s", "neg_two_s")
_PLURAL_AFTER_TWO = ("two_neg_p", "neg_two_p")
_ONE_ENTITY = ("pos_neg_p", "neg_pos_p")

WITH_NUMERALS = (
    *WITH_DISTANCE,
    *_numeral_comparisons(("pos_neg_s", "neg_pos_s"), _SINGULAR_AFTER_TWO),
    *_numeral_comparisons(_PLURAL_AFTER_TWO, (*_ONE_ENTITY, *_SINGULAR_AFTER_TWO, "pos_pos_s")),
    *_numeral_comparisons(("pos_pos_p",), _SINGULAR_AFTER_TWO),
)
"""Experiment ``two`` (appendix D): 16 more, with contexts in which one clause says "two dogs"."""


def comparisons_of(experiment: str) -> tuple[Comparison, ...]:
    """Return the 33 comparisons of ``two``, or the 17 of every other experiment."""
    return WITH_NUMERALS if experiment == "two" else WITH_DISTANCE


def metrics_of(experiment: str) -> tuple[str, ...]:
    """Return both metrics; for ``two``, which has no non-referential sentence, the direct one."""
    return (DIRECT,) if experiment == "two" else (DIRECT, RELATIVE)


def is_right(logprobs: Mapping[str, float], comparison: Comparison, metric: str) -> bool:
    """Return whether a comparison of one group is right; equal probabilities and NaN are not.

    Args:
        logprobs: By condition, the natural log of p(continuation | context).
        comparison: The comparison.
        metric: ``direct`` compares p(a) with p(b). ``relative`` replaces p(a) by
            p(a) / (p(a) + p(nonref in a's context)). That is the logistic function of
            ``log p(a) - log p(nonref)``, so the differences are compared: the order is the
            same, and long sentences do not underflow.
    """
    better = strength(logprobs, comparison.better, metric)
    return better > strength(logprobs, comparison.worse, metric)


def strength(logprobs: Mapping[str, float], condition: str, metric: str) -> float:
    """Return what :func:`is_right` compares: a log-probability, direct or relative.

    Raises:
        KeyError: A log-probability is missing.
    """
    if metric == DIRECT:
        return logprobs[condition]
    context = condition.rpartition("_")[0]
    return logprobs[condition] - logprobs[f"{context}_{NONREFERENTIAL}"]


def score(logprobs: Mapping[str, float], experiment: str) -> list[Row]:
    """Score one group: a row for each comparison under each metric, and one for the group."""
    rows: list[Row] = []
    for metric in metrics_of(experiment):
        for comparison in comparisons_of(experiment):
            is_correct = is_right(logprobs, comparison, metric)
            rows.append(
                {
                    "metric": metric,
                    "comparison": comparison.name,
                    "requirement": comparison.requirement,
                    "correct": float(is_correct),
                }
            )
    undefined = fmean(not math.isfinite(logprob) for logprob in logprobs.values())
    rows.append({"undefined": undefined})
    return rows


def process_results(doc: dict[str, Any], results: Sequence[tuple[float, bool]]) -> list[Row]:
    """Score a document, a group of sentences about one item in one family."""
    logprobs = {}
    for condition, (logprob, _is_greedy) in zip(doc["condition"], results, strict=True):
        logprobs[condition] = float(logprob)
    return [{"family": doc["family"], **row} for row in score(logprobs, doc["experiment"])]
