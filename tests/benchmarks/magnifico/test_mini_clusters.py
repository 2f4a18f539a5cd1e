"""magnifico_mini has intervals: clusters are its interpretations, not its four databases."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from support.tasks import load_task

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.stats.intervals import interval, mean_estimate

RUNS = 400


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


def coverage(documents: list[dict[str, str]], column: str) -> float:
    """Return how often intervals hold the true difference of two models that are equally good.

    Right and wrong depend on the interpretation (standard deviation .8 on the scale where noise has
    1), which every run draws anew, and on the question (.5).
    """
    generator = np.random.default_rng(0)
    levels = {"interpretation": 0.8, "template": 0.5}
    clusters = [str(number) for number in numbers(documents, column)]
    hits = 0
    for _ in range(RUNS):
        answers = []
        for _ in ("first model", "second model"):
            ability = generator.normal(0, 1, len(documents))
            for level, deviation in levels.items():
                members = numbers(documents, level)
                ability += generator.normal(0, deviation, members.max() + 1)[members]
            answers.append((ability > 0).astype(float))
        difference = interval(mean_estimate(answers[0] - answers[1], clusters))
        assert difference.low is not None
        assert difference.high is not None
        hits += difference.low <= 0 <= difference.high
    return hits / RUNS


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


def test_interpretations_have_equally_many_documents(documents: list[dict[str, str]]) -> None:
    """Otherwise, eight clusters would count as fewer."""
    sizes = Counter(document["interpretation"] for document in documents)
    assert list(sizes.values()) == [24] * 8
