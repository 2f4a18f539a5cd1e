"""The paper's figures in the card: those that are read off it, and those that follow from them."""

import math

import pytest

from lm_eval_ext.cards import cards

MEDIAN = "score_100x200"
CHANGE = "relative_error_change_100x200"
CARD = cards()["conceptual"]
FIGURE_4 = [one for one in CARD.references if f"{MEDIAN}_random" in one.figures]


def test_changes_of_error_follow_from_the_medians_of_figure_4() -> None:
    assert len(FIGURE_4) == 30
    for reference in FIGURE_4:
        before, after = (reference.figures[f"{MEDIAN}_{name}"] for name in ("random", "concept"))
        change = (1 - after) / (1 - before) - 1
        assert reference.figures[CHANGE] == pytest.approx(change, abs=5.1e-4)


def test_figure_3_is_the_mean_over_the_four_datasets() -> None:
    changes: dict[str, list[float]] = {}
    for reference in FIGURE_4:
        value = reference.figures[CHANGE]
        changes.setdefault(reference.label, []).append(value)
    expected = {
        name: math.fsum(values) / 4
        for name, values in changes.items()
        if len(values) == len(CARD.groups["conceptual"])
    }
    found = {
        one.label: one.figures[CHANGE] for one in CARD.references if one.tasks == ("conceptual",)
    }
    assert found == pytest.approx(expected, abs=1e-3)
    assert found.keys() == {"Tk-instruct-11B", "T0-11B"}
