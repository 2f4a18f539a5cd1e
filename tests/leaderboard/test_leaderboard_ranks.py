"""Tied ranks: compared with a plain computation, in simulation, and in edge cases."""

import math
import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lm_eval_ext.leaderboard.board import Rank
from lm_eval_ext.leaderboard.ranks import Scored, interval_ranks, paired_ranks
from lm_eval_ext.results.files import Score
from lm_eval_ext.stats import ClusteredValue, clustered_standard_error


def drawn(skills: dict[str, float], clusters: int, seed: int, each: int = 5) -> dict[str, Scored]:
    """Scores with a difficulty per cluster that all models share."""
    rng = random.Random(seed)
    names = [str(number) for number in range(clusters) for _ in range(each)]
    hard = {name: rng.uniform(-0.3, 0.3) for name in sorted(set(names))}
    return {
        label: Scored([float(rng.random() < skill + hard[name]) for name in names], names)
        for label, skill in skills.items()
    }


def told_apart(one: Scored, two: Scored, level: float) -> bool:
    """By the definition: a t test of the mean difference with a clustered standard error."""
    pairs = zip(one.values, two.values, one.clusters, strict=True)
    differences = [ClusteredValue(a - b, name) for a, b, name in pairs]
    error = clustered_standard_error(differences)
    mean = math.fsum(differences) / len(differences)
    assert error is not None
    return bool(2 * stats.t.sf(abs(mean) / error, len(set(one.clusters)) - 1) < level)


@pytest.mark.parametrize("seed", range(5))
def test_two_models_as_the_plain_computation_says(seed: int) -> None:
    scored = drawn({"a": 0.55, "b": 0.5}, clusters=30, seed=seed)
    ranks = paired_ranks(scored)
    apart = told_apart(scored["a"], scored["b"], 0.05)
    assert ranks["a"].tied is ranks["b"].tied is not apart
    assert sorted(rank.best for rank in ranks.values()) == ([1, 2] if apart else [1, 1])


def test_clear_differences_are_ranks_and_holm_guards_many_pairs() -> None:
    scored = drawn({"best": 0.8, "middle": 0.5, "worst": 0.2}, clusters=200, seed=1)
    assert paired_ranks(scored) == {
        "best": Rank(1, tied=False), "middle": Rank(2, tied=False), "worst": Rank(3, tied=False),
    }  # fmt: skip
    assert paired_ranks(scored, higher=False)["worst"] == Rank(1, tied=False)


def test_equal_models_are_rarely_told_apart() -> None:
    """Eight equal models, 28 pairs: with Holm, any false finding in at most 5 % of draws."""
    rounds = 200
    false = sum(
        any(
            rank.best > 1
            for rank in paired_ranks(
                drawn({str(number): 0.5 for number in range(8)}, clusters=40, seed=seed)
            ).values()
        )
        for seed in range(rounds)
    )
    # Above this bound with a probability below 0.001 if the rate is 5 %.
    assert false <= stats.binom.ppf(0.999, rounds, 0.05)


def test_documents_in_another_order_change_nothing() -> None:
    scored = drawn({"a": 0.6, "b": 0.5, "c": 0.4}, clusters=40, seed=3)
    order = np.random.default_rng(0).permutation(len(scored["a"].values))
    other = {
        label: Scored([one.values[i] for i in order], [one.clusters[i] for i in order])
        for label, one in scored.items()
    }
    assert paired_ranks(other) == paired_ranks(scored)


def test_edges() -> None:
    assert paired_ranks({}) == {}
    same = Scored([1.0, 0.0, 1.0], ["a", "b", "c"])
    assert set(paired_ranks({"x": same, "y": same}).values()) == {Rank(1, tied=True)}
    # One better on every document by as much: no chance in it.
    always = paired_ranks(
        {"x": Scored([1.0] * 3, ["a", "b", "c"]), "y": Scored([0.0] * 3, ["a", "b", "c"])}
    )
    assert always == {"x": Rank(1, tied=False), "y": Rank(2, tied=False)}
    one_cluster = paired_ranks(
        {"x": Scored([1.0] * 3, ["a"] * 3), "y": Scored([0.0] * 3, ["a"] * 3)}
    )
    assert set(one_cluster.values()) == {Rank(1, tied=True)}


intervals = st.tuples(st.floats(0, 1), st.floats(0, 0.5))


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), intervals, max_size=8))
def test_ranks_by_intervals(figures: dict[str, tuple[float, float]]) -> None:
    scores = {
        label: Score(value, None, (value - width, value + width))
        for label, (value, width) in figures.items()
    }
    ranks = interval_ranks(scores)
    for label, (value, width) in figures.items():
        better = sum(other - spread > value + width for other, spread in figures.values())
        assert ranks[label].best == better + 1
    for one, two in combinations(figures, 2):
        overlap = not (
            figures[one][0] - figures[one][1] > figures[two][0] + figures[two][1]
            or figures[two][0] - figures[two][1] > figures[one][0] + figures[one][1]
        )
        assert not overlap or (ranks[one].tied and ranks[two].tied)


def test_scores_without_a_value_or_an_interval() -> None:
    ranks = interval_ranks({"x": Score(None, None), "y": Score(0.5, None), "z": Score(0.6, 0.001)})
    assert "x" not in ranks
    assert ranks["y"] == ranks["z"] == Rank(1, tied=True)
