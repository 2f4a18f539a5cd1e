"""From rows to lm-eval's metrics: at most twelve, the headline first, in any order of documents."""

import random
from typing import Any

import pytest
from lm_eval.evaluator import simple_evaluate
from support.made_answers import MadeAnswers

from lm_eval_ext.cards import cards
from lm_eval_ext.harness.metrics import Document, Metrics
from lm_eval_ext.harness.names import STDERR
from lm_eval_ext.runs.tasks import our_task_manager


def test_every_measure_and_metric_of_every_card_is_answered_by_rows() -> None:
    """Values that a measure names are values that scoring gives; facets, too."""
    for card in cards().values():
        needed, seen = set(), {"f1_authors"}
        for question in map(card.question_of, (*card.metrics, *card.measures)):
            own = question.measure
            needed |= {*own.value, *own.groups, *filter(None, [own.facet]), *question.filter}
        for task, facts in card.tasks.items():
            if facts.sources or facts.is_user_data or "fresh" in task or needed <= seen:
                continue
            found = simple_evaluate(
                model=MadeAnswers(), tasks=[task], limit=4, task_manager=our_task_manager()
            )
            for sample in found["samples"][task]:
                seen.update(*sample["rows"])
        assert needed <= seen, card.name


def documents() -> list[Document]:
    """Each with three comparisons, of which the first is about existence."""
    rng = random.Random(0)
    kinds = ("existence", "plurality", "plurality")
    return [
        Document(
            f"id-{place}",
            (f"item-{place % 8}",),
            [
                {"metric": "direct", "requirement": kind, "correct": float(rng.random() < 0.6)}
                for kind in kinds
            ],
        )
        for place in range(40)
    ]


def aggregated(given: list[Document]) -> dict[str, Any]:
    card = cards()["lieder"]
    metrics = Metrics({name: card.question_of(name) for name in ("direct", "direct/existence")})
    values = {name: function(given) for name, function in metrics.aggregation().items()}
    return {**values, **metrics.intervals(["none"])}


def test_the_order_of_ranks_changes_no_digit() -> None:
    given = documents()
    first = aggregated(given)
    scores = [[row["correct"] for row in document.rows] for document in given]
    assert first["direct"] == pytest.approx(sum(map(sum, scores)) / 120)
    assert first["direct/existence"] == sum(score[0] for score in scores) / 40 != first["direct"]
    assert first["direct" + STDERR] > 0
    assert first["direct,none"]["clusters"] == 8
    for seed in range(5):
        shuffled = given[:]
        random.Random(seed).shuffle(shuffled)
        assert aggregated(shuffled) == first


def test_without_a_document_there_is_no_value() -> None:
    found = aggregated([Document("a", ("x",), [{"undefined": 0.0}])])
    assert found["direct"] == found["direct" + STDERR] == "N/A"
    assert found["direct,none"] == {"documents": 0, "clusters": 0}


@pytest.mark.parametrize(
    ("clusters", "has_error"), [(3, False), (5, False), (6, True), (8, True)], ids=str
)
def test_a_standard_error_stands_only_where_an_interval_does(
    clusters: int, has_error: bool
) -> None:
    """Plain lm_eval's table has N/A where ``show`` refuses an interval, and the value stays."""
    number_of = {document.id: number for number, document in enumerate(documents())}
    given = [
        document._replace(clusters=(f"item-{number_of[document.id] % clusters}",))
        for document in documents()
    ]
    values = aggregated(given)
    assert isinstance(values["direct"], float)
    assert (values["direct" + STDERR] != "N/A") is has_error
    assert ("low" in values["direct,none"]) is has_error
