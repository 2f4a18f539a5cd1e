"""Cards: what is checked when they are read, and what reading them does not need."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from lm_eval_ext.cards import Card, cards, headline_of
from lm_eval_ext.errors import first_problem

CARD: dict[str, Any] = {
    "name": "some",
    "title": "Some",
    "paper": {"title": "t", "authors": "a", "venue": "v", "url": "u"},
    "cluster": {"unit": "item", "column": "item"},
    "headlines": ("direct/mean",),
    "summary": ("mean", "existence"),
    "tasks": {"some_task": {"description": "d", "documents": 1, "requests": 1}},
}


def test_reading_cards_imports_neither_lm_eval_nor_a_benchmark() -> None:
    code = (
        "import sys; from lm_eval_ext.cards import cards; "
        "from lm_eval_ext.cli.task_list import task_rows; cards(); task_rows(); "
        "print([m for m in sys.modules if m == 'lm_eval' or m.startswith('lm_eval_ext.bench')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['lm_eval_ext.benchmarks']", "the folder that the cards lie in"


def test_a_good_card() -> None:
    card = Card.model_validate(CARD)
    assert card.item == ()
    assert not card.cluster.any_case


@pytest.mark.parametrize(
    "change",
    [
        {"cluster": "item"},
        {"cluster": {"unit": "item"}},
        {"cluster": {"unit": "item", "column": "item", "anycase": True}},
        {"item": "id"},
        {"statistics": {"relative": "a.module.without_an_object"}},
        {"figures": ({"title": "f", "columns": {"c": "task"}},)},
        {"recipes": {}},
    ],
)
def test_a_malformed_card_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Card.model_validate({**CARD, **change})


def test_one_metric_stands_for_a_task() -> None:
    card = Card.model_validate(CARD)
    there = ["direct/existence", "relative/mean", "direct/mean", "direct/mean:part", "other"]
    assert card.headline_of(there) == "direct/mean"
    assert card.headline_of(["relative/existence", "relative/mean"]) == "relative/mean"
    assert card.headline_of(["other"]) == card.headline_of([]) == ""
    assert card.first_of(there) == ["direct/mean", "relative/mean", "direct/existence"]
    assert headline_of("some_other_task", ["acc,none", "f1,none"]) == "acc,none"
    assert headline_of("lieder_two", ["direct/mean", "direct/numeral"]) == "direct/numeral"


def test_every_benchmark_says_what_its_clusters_are() -> None:
    assert {card.name: card.cluster.unit for card in cards().values()} == {
        "cogs": "generalization type",
        "conceptual": "concept",
        "diner": "dish",
        "lieder": "item",
        "magnifico": "database",
    }


def test_what_is_wrong_in_a_card_is_one_line_with_its_key() -> None:
    with pytest.raises(ValidationError) as raised:
        Card.model_validate({**CARD, "hedalines": ("mean",)})
    assert first_problem(raised.value) == "hedalines: unknown key"
