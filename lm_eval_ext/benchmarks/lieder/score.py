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
    """``better`` should be more probable than ``worse``, because of ``requirement``."""

    better: str
    worse: str
    requirement: str

    @property
    def name(self) -> str:
        """As in the authors' result files: ``pos_neg_s>pos_pos_s``."""
        return f"{self.better}>{self.worse}"


def _comparisons(by_name: Mapping[str, str]) -> tuple[Comparison, ...]:
    split = ((*name.partition(">")[::2], why) for name, why in by_name.items())
    return tuple(Comparison(*one) for one in split)


FIFTEEN = _comparisons(
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

SEVENTEEN = (
    *FIFTEEN,
    *_comparisons(dict.fromkeys(("neg_pos_s>pos_neg_s", "neg_pos_p>pos_neg_p"), DISTANCE)),
)

_SINGULAR, _TWO = ("two_neg_s", "neg_two_s"), ("two_neg_p", "neg_two_p")
_NUMERAL = (
    *product(("pos_neg_s", "neg_pos_s"), _SINGULAR),
    *product(_TWO, ("pos_neg_p", "neg_pos_p", *_SINGULAR, "pos_pos_s")),
    *product(("pos_pos_p",), _SINGULAR),
)
THIRTY_THREE = (*SEVENTEEN, *(Comparison(*pair, NUMERAL) for pair in _NUMERAL))
"""Experiment ``two`` (appendix D): 16 more, with contexts in which one clause says "two dogs"."""


def comparisons_of(experiment: str) -> tuple[Comparison, ...]:
    """The 33 comparisons of ``two``, or the 17 of every other experiment."""
    return THIRTY_THREE if experiment == "two" else SEVENTEEN


def metrics_of(experiment: str) -> tuple[str, ...]:
    """Both metrics; only the direct one for ``two``, which has no non-referential sentence."""
    return (DIRECT,) if experiment == "two" else (DIRECT, RELATIVE)


def judge(logprobs: Mapping[str, float], comparison: Comparison, metric: str) -> bool:
    """Decides a comparison of one group; equal probabilities and NaN make it incorrect.

    Args:
        logprobs: By condition, the natural log of p(continuation | context).
        comparison: The comparison to decide.
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

    return strength(comparison.better) > strength(comparison.worse)


def score(logprobs: Mapping[str, float], experiment: str) -> list[Row]:
    """Scores one group: a row for each comparison under each metric, and one for the group."""
    verdicts: list[Row] = [
        {
            "metric": metric,
            "comparison": one.name,
            "requirement": one.requirement,
            "correct": float(judge(logprobs, one, metric)),
        }
        for metric in metrics_of(experiment)
        for one in comparisons_of(experiment)
    ]
    return [*verdicts, {"undefined": fmean(not math.isfinite(one) for one in logprobs.values())}]


def process_results(doc: dict[str, Any], results: Sequence[tuple[float, bool]]) -> list[Row]:
    """Scores a document, a group of sentences about one item in one family."""
    logprobs = {
        condition: float(logprob)
        for condition, (logprob, _is_greedy) in zip(doc["condition"], results, strict=True)
    }
    return [{"family": doc["family"], **row} for row in score(logprobs, doc["experiment"])]
