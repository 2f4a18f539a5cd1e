"""magnifico_mini has intervals: clusters are its interpretations, not its four databases."""

from collections import Counter
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from support.tasks import load_task

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.stats.intervals import interval, mean_estimate
from lm_eval_ext.stats.paired import paired_difference

RUNS = 400
"""Simulated comparisons of which intervals are counted that hold the truth."""

POWER_RUNS = 200
"""Simulated comparisons that are tested, which takes longer."""

LEVEL = 0.05
"""The level of significance."""


@pytest.fixture(scope="module")
def documents() -> list[dict[str, str]]:
    """Return the documents of the task."""
    return list(load_task("magnifico_mini").eval_docs)


def test_only_the_mini_task_has_other_clusters() -> None:
    """The published tasks, and the benchmark's card, keep databases as clusters."""
    card = cards()["magnifico"]
    for task, facts in card.tasks.items():
        assert (facts.cluster is not None) == (task == "magnifico_mini"), task
    for task in ("magnifico_desc", "magnifico_own_desc"):
        task_card = card_of(task)
        assert task_card is not None
        assert task_card.cluster.column == "db_id", task
    mini_card = card_of("magnifico_mini")
    assert mini_card is not None
    assert mini_card.cluster.unit == "interpretation"


def numbers(documents: list[dict[str, str]], column: str) -> NDArray[np.int64]:
    """Return the number of each document's interpretation or question, by the column's name."""
    names = [document[column] for document in documents]
    return np.unique(names, return_inverse=True)[1]


def answers(
    documents: list[dict[str, str]],
    generator: np.random.Generator,
    deviations: dict[str, float],
    share: float = 0.5,
) -> NDArray[np.float64]:
    """Draw which documents a model answers right (1), and which wrong (0).

    Args:
        documents: The documents.
        generator: The source of chance.
        deviations: How much right and wrong depend on the interpretation and on the question, on
            the scale where noise has 1. Both are drawn anew for each model.
        share: The share of right answers over all models that could be drawn.
    """
    variance = 1 + sum(deviation**2 for deviation in deviations.values())
    mean = NormalDist(0, variance**0.5).inv_cdf(share)
    ability = generator.normal(mean, 1, len(documents))
    for level, deviation in deviations.items():
        members = numbers(documents, level)
        ability += generator.normal(0, deviation, members.max() + 1)[members]
    return (ability > 0).astype(float)


def coverage(documents: list[dict[str, str]], column: str) -> float:
    """Return how often intervals hold the true difference of two models that are equally good."""
    generator = np.random.default_rng(0)
    deviations = {"interpretation": 0.8, "template": 0.5}
    clusters = [str(number) for number in numbers(documents, column)]
    hits = 0
    for _ in range(RUNS):
        first = answers(documents, generator, deviations)
        second = answers(documents, generator, deviations)
        difference = interval(mean_estimate(first - second, clusters))
        assert difference.low is not None
        assert difference.high is not None
        hits += difference.low <= 0 <= difference.high
    return hits / RUNS


def power(documents: list[dict[str, str]], shares: tuple[float, float]) -> float:
    """Return how often ``compare`` finds the difference of two models in novel words.

    Right and wrong vary as in the recorded answers of two models of 0.5 and 1.5 billion weights: by
    maximum likelihood, 1.2 and 1.1 between interpretations, 1.0 and 1.3 between questions.
    """
    novel = [document for document in documents if document["form"] != "base"]
    generator = np.random.default_rng(0)
    deviations = {"interpretation": 1.1, "template": 1.2}
    clusters = [document["interpretation"] for document in novel]
    hits = 0
    for _ in range(POWER_RUNS):
        first = answers(novel, generator, deviations, shares[0])
        second = answers(novel, generator, deviations, shares[1])
        p = paired_difference(first.tolist(), second.tolist(), clusters).p
        hits += p is not None and p < LEVEL
    return hits / POWER_RUNS


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [("interpretation", 0.92, 0.98), ("template", 0.6, 0.85)],
    ids=["interpretation", "question"],
)
def test_intervals_by_interpretation_cover_and_those_by_question_do_not(
    documents: list[dict[str, str]], column: str, low: float, high: float
) -> None:
    """Documents of an interpretation are alike, so that questions are no honest clusters."""
    assert low <= coverage(documents, column) <= high


@pytest.mark.slow
def test_sixteen_interpretations_show_what_half_of_them_would_not(
    documents: list[dict[str, str]],
) -> None:
    """A model that has 29 % of the novel forms right is better than one that has 11 %."""
    names = list(dict.fromkeys(document["interpretation"] for document in documents))
    half = [document for document in documents if document["interpretation"] in names[:8]]
    assert power(half, (0.29, 0.11)) < 0.4
    assert power(documents, (0.29, 0.11)) > 0.55


@pytest.mark.slow
def test_models_that_are_equally_good_seldom_differ(documents: list[dict[str, str]]) -> None:
    assert power(documents, (0.2, 0.2)) <= 2 * LEVEL


def test_interpretations_have_equally_many_documents(documents: list[dict[str, str]]) -> None:
    """Otherwise, sixteen clusters would count as fewer."""
    sizes = Counter(document["interpretation"] for document in documents)
    assert list(sizes.values()) == [24] * 16
