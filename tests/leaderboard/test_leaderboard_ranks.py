"""Tied ranks: those of the tests that `compare` makes, in simulation, and in edge cases."""

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lm_eval_ext.compare.systems import Systems
from lm_eval_ext.leaderboard.board import Rank
from lm_eval_ext.leaderboard.ranks import ranks_by_intervals, ranks_by_tests
from lm_eval_ext.results.files import Score
from lm_eval_ext.results.samples import Sample


def systems(scores: dict[str, list[float]], clusters: list[str]) -> Systems:
    samples = {
        label: [Sample((str(n), 0), {}, "", "", {"m": score}) for n, score in enumerate(own)]
        for label, own in scores.items()
    }
    return Systems("m", samples, clusters)


def drawn(skills: dict[str, float], clusters: int, seed: int, each: int = 5) -> Systems:
    """Scores with a difficulty per cluster that all models share."""
    rng = random.Random(seed)
    names = [str(number) for number in range(clusters) for _ in range(each)]
    hard = {name: rng.uniform(-0.3, 0.3) for name in sorted(set(names))}
    scores = {
        label: [float(rng.random() < skill + hard[name]) for name in names]
        for label, skill in skills.items()
    }
    return systems(scores, names)


@pytest.mark.parametrize("seed", range(5))
def test_two_models_are_apart_where_their_difference_is_significant(seed: int) -> None:
    both = drawn({"a": 0.58, "b": 0.5}, clusters=30, seed=seed)
    ranks = ranks_by_tests(both)
    found = both.difference("a", "b", 0.05)
    assert found.p is not None
    apart = found.p < 0.05
    assert ranks["a"].tied is ranks["b"].tied is not apart
    assert sorted(rank.best for rank in ranks.values()) == ([1, 2] if apart else [1, 1])


def test_clear_differences_are_ranks_and_holm_guards_many_pairs() -> None:
    scored = drawn({"best": 0.8, "middle": 0.5, "worst": 0.2}, clusters=200, seed=1)
    assert ranks_by_tests(scored) == {
        "best": Rank(1, tied=False), "middle": Rank(2, tied=False), "worst": Rank(3, tied=False),
    }  # fmt: skip
    assert ranks_by_tests(scored, higher=False)["worst"] == Rank(1, tied=False)


@pytest.mark.slow
def test_equal_models_are_rarely_told_apart() -> None:
    """Eight equal models, 28 pairs: with Holm, any false finding in at most 5 % of draws."""
    rounds = 60
    false = sum(
        any(
            rank.best > 1
            for rank in ranks_by_tests(
                drawn({str(number): 0.5 for number in range(8)}, clusters=14, seed=seed)
            ).values()
        )
        for seed in range(rounds)
    )
    # Above this bound with a probability below 0.001 if the rate is 5 %.
    assert false <= stats.binom.ppf(0.999, rounds, 0.05)


def test_documents_in_another_order_change_nothing() -> None:
    scored = drawn({"a": 0.6, "b": 0.5, "c": 0.4}, clusters=40, seed=3)
    order = list(np.random.default_rng(0).permutation(len(scored.clusters)))
    other = Systems(
        "m",
        {label: [own[place] for place in order] for label, own in scored.samples.items()},
        [scored.clusters[place] for place in order],
    )
    assert ranks_by_tests(other) == ranks_by_tests(scored)


@pytest.mark.parametrize("clusters", [1, 2, 5, 6])
def test_better_in_all_of_a_few_clusters_is_no_proof(clusters: int) -> None:
    names = [str(place % clusters) for place in range(60)]
    ranks = ranks_by_tests(systems({"x": [1.0] * 60, "y": [0.5] * 60}, names))
    assert ranks["x"] == Rank(1, tied=clusters < 6)
    assert ranks["y"] == Rank(1 if clusters < 6 else 2, tied=clusters < 6)


def test_edges() -> None:
    assert ranks_by_tests(systems({}, [])) == {}
    same = systems({"x": [1.0, 0.0, 1.0], "y": [1.0, 0.0, 1.0]}, ["a", "b", "c"])
    assert set(ranks_by_tests(same).values()) == {Rank(1, tied=True)}


intervals = st.tuples(st.floats(0, 1), st.floats(0, 0.5))


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), intervals, max_size=8))
def test_ranks_by_intervals(figures: dict[str, tuple[float, float]]) -> None:
    scores = {
        label: Score(value, None, (value - width, value + width))
        for label, (value, width) in figures.items()
    }
    ranks = ranks_by_intervals(scores)
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
    ranks = ranks_by_intervals(
        {"x": Score(None, None), "y": Score(0.5, None), "z": Score(0.6, 0.001)}
    )
    assert "x" not in ranks
    assert ranks["y"] == ranks["z"] == Rank(1, tied=True)
