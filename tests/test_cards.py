"""Cards: what is checked when they are read, and what reading them does not need."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from lm_eval_ext.cards import Card
from lm_eval_ext.stats.measures import Question

DIRECT = {"title": "Direct", "value": ("correct",), "where": {"part": ("a",)}}
CARD: dict[str, Any] = {
    "name": "some",
    "title": "Some",
    "paper": {"title": "t", "authors": "a", "venue": "v", "url": "u"},
    "cluster": {"unit": "item", "column": "item"},
    "facets": {"part": "of documents"},
    "measures": {
        "direct": DIRECT,
        "relative": {"title": "Relative", "value": ("correct",)},
    },
    "metrics": {"direct": {}, "direct/b": {"where": {"part": ("b",)}}, "relative": {}},
    "representative": ("some_task",),
    "tasks": {"some_task": {"description": "d", "documents": 1, "requests": 1}},
}


def test_reading_cards_imports_neither_lm_eval_nor_a_benchmark() -> None:
    code = (
        "import sys; from lm_eval_ext.cards import cards; "
        "from lm_eval_ext.cli.task_list import task_rows; cards(); task_rows(); "
        "print([m for m in sys.modules if m == 'lm_eval' or m.startswith('lm_eval_ext.bench')])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"cluster": "item"}, id="a text for an object"),
        pytest.param(
            {"cluster": {"unit": "item", "column": "item", "anycase": True}}, id="a misspelt key"
        ),
        pytest.param({"metrics": {"other": {}}}, id="a metric without a measure"),
        pytest.param(
            {"measures": {**CARD["measures"], "unused": {"title": "None", "value": ()}}},
            id="a measure without values",
        ),
        pytest.param(
            {"measures": {**CARD["measures"], "unused": {**DIRECT, "unit": "per mille"}}},
            id="an unknown unit",
        ),
        pytest.param({"recipes": {}}, id="an unknown key"),
    ],
)
def test_a_malformed_card_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Card.model_validate({**CARD, **change})


OLD_SPELLINGS = {
    "asks_own": (
        {"tasks": {"some_task": {"asks_own": True}}},
        {"tasks": {"some_task": {"is_user_data": True}}},
    ),
    "across": ({"trial": {"across": ("item",)}}, {"trial": {"stratify_by": ("item",)}}),
    "together": (
        {"trial": {"across": ("item",), "together": "part"}},
        {"trial": {"stratify_by": ("item",), "keep_together": "part"}},
    ),
    "own_within": (
        {"cluster": {**CARD["cluster"], "own_within": ({"unit": "part", "column": "part"},)}},
        {
            "cluster": {
                **CARD["cluster"],
                "user_cluster_levels": ({"unit": "part", "column": "part"},),
            }
        },
    ),
}


@pytest.mark.parametrize(("old", "new"), OLD_SPELLINGS.values(), ids=OLD_SPELLINGS)
def test_cards_in_old_results_are_still_read(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Results files of users' benchmarks hold a copy of the card, with the keys of its time."""
    assert Card.model_validate({**CARD, **old}) == Card.model_validate({**CARD, **new})


def test_a_card_says_nothing_of_items_and_case_by_default() -> None:
    card = Card.model_validate(CARD)
    assert card.item == ()
    assert not card.cluster.any_case


@pytest.mark.parametrize(
    ("metrics", "headline"),
    [
        pytest.param(["relative", "direct/b", "direct"], "direct", id="the first of the card"),
        pytest.param(["other", "relative"], "relative", id="the only one of the card"),
        pytest.param(["other"], "", id="none of the card"),
        pytest.param([], "", id="none"),
    ],
)
def test_one_metric_stands_for_a_task(metrics: list[str], headline: str) -> None:
    assert Card.model_validate(CARD).headline_of(metrics) == headline


def test_a_card_may_name_the_metric_that_stands_for_a_task() -> None:
    card = Card.model_validate({**CARD, "headlines": ("relative",)})
    assert card.headline_of(["direct", "relative"]) == "relative"


def test_metrics_may_be_named_in_any_order_and_the_first_is_the_headline() -> None:
    """lm-eval prints metrics alphabetically, so the card keeps them like that."""
    metrics = dict(reversed(CARD["metrics"].items()))
    card = Card.model_validate({**CARD, "metrics": metrics})
    assert list(card.metrics) == sorted(metrics)
    first, *later = metrics
    assert card.headline_of([*later, first]) == first
    assert card.headline_of(later) == later[0]


def test_a_metric_is_a_question() -> None:
    card = Card.model_validate(CARD)
    assert card.question_of("direct").filter == {"part": ("a",)}
    assert card.question_of("direct/b").filter == {"part": ("b",)}, "it replaces the measure's"
    with pytest.raises(KeyError):
        card.question_of("direct/c")


def test_published_values_belong_to_questions() -> None:
    references = (
        {"label": "x", "tasks": ("some_task",), "figures": {"direct/b": 0.5}},
        {
            "label": "y", "tasks": ("some_task",), "metric": "relative", "by": "part",
            "figures": {"a": 0.25},
        },
    )  # fmt: skip
    card = Card.model_validate({**CARD, "references": references})
    assert card.published("some_task", card.question_of("direct/b")) == {"x": 0.5}
    assert card.published("some_task", card.question_of("direct")) == {}
    assert card.published("other", card.question_of("direct/b")) == {}
    relative = card.question_of("relative")
    assert card.published("some_task", relative) == {}
    of_part = Question(relative.measure, {"part": ("a",)})
    assert card.published("some_task", of_part) == {"y": 0.25}
