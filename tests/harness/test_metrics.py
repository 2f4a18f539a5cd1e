"""From rows to lm-eval's metrics: at most twelve, the headline first, in any order of documents."""

import random
from typing import Any

import pytest
from lm_eval.evaluator import simple_evaluate
from support.made_answers import MadeAnswers

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.harness.metrics import Document, Metrics
from lm_eval_ext.harness.names import STDERR
from lm_eval_ext.runs.tasks import our_task_manager


def needed_columns(card: Card) -> set[str]:
    """Return the values, groups and facets that the card's metrics and measures read."""
    columns: set[str] = set()
    for name in (*card.metrics, *card.measures):
        question = card.question_of(name)
        measure = question.measure
        columns.update(measure.value, measure.groups, question.filter)
        if measure.facet:
            columns.add(measure.facet)
    return columns


@pytest.mark.parametrize("card", cards().values(), ids=cards())
def test_scoring_gives_every_column_that_a_card_reads(card: Card) -> None:
    needed = needed_columns(card)
    scored = {"f1_authors"}
    for task, facts in card.tasks.items():
        if facts.sources or facts.is_user_data or "fresh" in task or needed <= scored:
            continue
        results = simple_evaluate(
            model=MadeAnswers(), tasks=[task], limit=4, task_manager=our_task_manager()
        )
        for sample in results["samples"][task]:
            scored.update(*sample["rows"])
    assert needed <= scored


def documents() -> list[Document]:
    """Return 40 documents with three comparisons each, of which the first is about existence."""
    rng = random.Random(0)
    drawn = []
    for number in range(40):
        rows = []
        for requirement in ("existence", "plurality", "plurality"):
            correct = float(rng.random() < 0.6)
            rows.append({"metric": "direct", "requirement": requirement, "correct": correct})
        drawn.append(Document(f"id-{number}", (f"item-{number % 8}",), rows))
    return drawn


def aggregated(scored: list[Document]) -> dict[str, Any]:
    """Return values and standard errors by metric, and intervals by metric and filter."""
    card = cards()["lieder"]
    metrics = Metrics({name: card.question_of(name) for name in ("direct", "direct/existence")})
    values = {name: function(scored) for name, function in metrics.aggregation().items()}
    return {**values, **metrics.intervals(["none"])}


def test_values_are_means_over_the_metrics_rows() -> None:
    scored = documents()
    values = aggregated(scored)
    correct: list[Any] = [row["correct"] for document in scored for row in document.rows]
    existence: list[Any] = [document.rows[0]["correct"] for document in scored]
    assert values["direct"] == pytest.approx(sum(correct) / 120)
    assert values["direct/existence"] == sum(existence) / 40
    assert values["direct/existence"] != values["direct"]
    assert values["direct" + STDERR] > 0
    assert values["direct,none"]["clusters"] == 8


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_ranks_changes_no_digit(seed: int) -> None:
    shuffled = documents()
    random.Random(seed).shuffle(shuffled)
    assert aggregated(shuffled) == aggregated(documents())


def test_without_a_document_there_is_no_value() -> None:
    values = aggregated([Document("a", ("x",), [{"undefined": 0.0}])])
    assert values["direct"] == values["direct" + STDERR] == "N/A"
    assert values["direct,none"] == {"documents": 0, "clusters": 0}


@pytest.mark.parametrize(
    ("clusters", "has_error"), [(3, False), (5, False), (6, True), (8, True)], ids=str
)
def test_a_standard_error_stands_only_where_an_interval_does(
    clusters: int, has_error: bool
) -> None:
    """Plain lm_eval's table has N/A where ``show`` refuses an interval, and the value stays."""
    scored = [
        document._replace(clusters=(f"item-{number % clusters}",))
        for number, document in enumerate(documents())
    ]
    values = aggregated(scored)
    assert isinstance(values["direct"], float)
    assert (values["direct" + STDERR] != "N/A") is has_error
    assert ("low" in values["direct,none"]) is has_error
