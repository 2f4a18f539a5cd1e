"""Ranks with ties, from tests or from intervals."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from lm_eval_ext.compare.systems import Systems, adjusted
from lm_eval_ext.leaderboard.board import Rank
from lm_eval_ext.results.files import Score


def ranks_by_tests(
    systems: Systems, *, higher: bool = True, alpha: float = 0.05
) -> dict[str, Rank]:
    """Ranks models by the tests that ``lm-eval-ext compare`` makes of the same models.

    Every pair is tested, and Holm's method adjusts for all pairs. A model's rank is one more
    than the number of models that are significantly better. Models without a value get no rank.
    """
    values = {name: systems.value(name) for name in systems.samples}
    p_values = dict(zip(systems.pairs(), adjusted(systems.tests()), strict=True))
    labels = [name for name, value in values.items() if value is not None]
    places = {name: place for place, name in enumerate(labels)}
    different = {
        (places[one], places[two]): p is not None and p < alpha
        for (one, two), p in p_values.items()
        if one in places and two in places
    }
    return _ranks(labels, [values[name] or 0.0 for name in labels], different, higher=higher)


def ranks_by_intervals(scores: Mapping[str, Score], *, higher: bool = True) -> dict[str, Rank]:
    """Ranks models by their intervals: one is better if the two do not overlap.

    For runs without samples. It finds fewer differences than a paired test of two models would, and
    allows for no number of pairs. Models without a finite value get no rank.
    """
    known = {
        label: score
        for label, score in scores.items()
        if score.value is not None and math.isfinite(score.value)
    }
    labels = list(known)
    bounds = [known[label].interval for label in labels]
    different = {}
    for one, two in combinations(range(len(labels)), 2):
        first, second = bounds[one], bounds[two]
        apart = first and second and (first[0] > second[1] or second[0] > first[1])
        different[one, two] = bool(apart)
    return _ranks(labels, [known[label].value or 0.0 for label in labels], different, higher=higher)


def _ranks(
    labels: Sequence[str],
    means: Sequence[float],
    different: Mapping[tuple[int, int], bool],
    *,
    higher: bool,
) -> dict[str, Rank]:
    sign = 1 if higher else -1
    better = dict.fromkeys(range(len(labels)), 0)
    beaten = dict.fromkeys(range(len(labels)), 0)
    tied = dict.fromkeys(range(len(labels)), False)
    for (one, two), differs in different.items():
        if differs:
            first, last = (one, two) if sign * means[one] > sign * means[two] else (two, one)
            better[last] += 1
            beaten[first] += 1
        else:
            tied[one] = tied[two] = True
    return {
        label: Rank(better[place] + 1, tied[place], beaten[place])
        for place, label in enumerate(labels)
    }
