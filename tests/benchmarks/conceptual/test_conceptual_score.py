"""Metrics over documents, computed by hand."""

import math
import random
from typing import Any

import numpy as np
import pytest
from support.old_names import Old

from lm_eval_ext.benchmarks.conceptual.answers import SCORES
from lm_eval_ext.benchmarks.conceptual.score import process_results
from lm_eval_ext.cards import cards
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Figure, figure
from lm_eval_ext.stats.table import Scored

SELECTIONS = ("random", "concept", "same_labels")


def test_a_document_is_scored_under_all_selections_and_templates() -> None:
    doc = {
        "templates": ["options", "letter"], "answers": ["a b", "B"], "answer_label": "B",
        "options": [{"label": "A", "text": "c"}, {"label": "B", "text": "a b"}],
        "random_demonstrations": ["x"], "concept_demonstrations": ["y"], "concept": "c",
    }  # fmt: skip
    found = process_results(doc, ["b", "a b", "A", "(B) a b"])
    assert [(row["template"], row["demonstrations"]) for row in found] == [
        ("options", "random"), ("options", "concept"), ("letter", "random"), ("letter", "concept"),
    ]  # fmt: skip
    assert [row["rouge_l"] for row in found[:2]] == [0.5, 1.0]
    assert [row["accuracy"] for row in found] == [1.0, 1.0, 0.0, 1.0]
    three = process_results(
        {**doc, "templates": ["choose"], "answers": ["a b"], "same_labels_demonstrations": ["z"]},
        ["b", "a b", ""],
    )
    assert [row["accuracy"] for row in three] == [0.0, 1.0, 0.0]


def documents(*scores: tuple[float, ...], concept: str = "c") -> list[Scored]:
    """Documents with scores under each selection (of all three kinds)."""
    return [
        (
            f"d{n:04}",
            f"d{n:04}",
            (f"{concept}{n % 4}", f"d{n:04}"),
            [
                {
                    "template": "options", "demonstrations": selection,
                    "concept": f"{concept}{n % 4}", **dict.fromkeys(SCORES, value),
                }
                for selection, value in zip(SELECTIONS, one, strict=False)
            ],
        )
        for n, one in enumerate(scores)
    ]  # fmt: skip


def figures(scored: list[Scored]) -> Old:
    return Old("conceptual", scored)


def test_the_figures_are_what_arithmetic_says() -> None:
    found = figures(documents((0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)))
    assert found["random/accuracy"] == 0.5
    assert found["concept/accuracy"] == 0.625
    assert found["gain/accuracy"] == 0.125
    assert found["error_change/accuracy"] == pytest.approx((1 - 0.625) / (1 - 0.5) - 1)


def test_a_concept_has_figures_of_its_own() -> None:
    found = figures(documents(*[(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)] * 10))
    assert found["random/accuracy:c0"] == 0.0
    assert found["concept/accuracy:c0"] == 1.0
    assert found["gain/accuracy:c0_stderr"] == 0.0


def test_without_error_there_is_no_change_of_it() -> None:
    found = figures(documents((1.0, 1.0), (1.0, 0.5), (1.0, 1.0), (1.0, 0.0)))
    for ending in ("", "_stderr", "_100x200", "_100x200_stderr"):
        assert found[f"error_change/rouge_l{ending}"] == "N/A"
    assert found["gain/rouge_l"] == -0.375


@pytest.mark.parametrize(("random", "concept"), [(0.2, 0.6), (0.9, 0.95)])
def test_constant_scores_have_intervals_of_no_width(random: float, concept: float) -> None:
    found = figures(documents(*[(random, concept)] * 4))
    for view, value in (("gain", concept - random), ("error_change", -0.5)):
        assert found[f"{view}/rouge_l"] == pytest.approx(value)
        drawn = found.figure(f"{view}/rouge_l_100x200")
        assert [drawn.value, drawn.low, drawn.high] == pytest.approx([value] * 3)


def test_changes_of_error_are_better_when_lower() -> None:
    card = cards()["conceptual"]
    for name in card.metrics:
        assert card.question_of(name).measure.lower_is_better is ("error_change" in name), name


def test_no_order_of_documents_changes_a_figure() -> None:
    rng = random.Random(1)
    scored = documents(*[(rng.random(), rng.random()) for _ in range(150)])
    names = [
        f"{view}/rouge_l{end}" for view in ("gain", "error_change") for end in ("", "_100x200")
    ]
    straight = [figures(scored).figure(name) for name in names]
    rng.shuffle(scored)
    assert [figures(scored).figure(name) for name in names] == straight


def drawn(scored: list[Scored], draws: str = "paired", name: str = "gain_100x200") -> Figure:
    measure = cards()["conceptual"].question_of(name).measure
    asked = Question(measure.model_copy(update={"draws": draws}))
    return figure(figures(scored).table, asked)


def test_the_papers_bootstrap_draws_100_of_the_samples_200_times() -> None:
    """Its spread is that of means of 100, however many samples there are; the draw is pinned,
    since another one would make published figures incomparable."""
    rng = random.Random(2)
    scores = [(float(rng.random() < 0.3), float(rng.random() < 0.6)) for _ in range(1000)]
    gains = np.array([concept - before for before, concept in scores])
    found = drawn(documents(*scores))
    places = np.random.default_rng(0).integers(1000, size=(200, 100))
    values = gains[places].mean(axis=1)
    assert found.value == pytest.approx(np.median(values))
    assert found.stderr == pytest.approx(np.std(values, ddof=1))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))))
    assert found.stderr == pytest.approx(gains.std() / math.sqrt(100), rel=0.2)


def test_the_papers_bootstrap_needs_two_samples() -> None:
    assert drawn(documents((0.5, 0.5))).value is None
    assert drawn(documents((0.5, 0.5), (0.5, 0.5))).value == 0.0


def test_a_gain_is_the_sum_of_its_parts() -> None:
    rng = random.Random(4)
    found = figures(documents(*[(rng.random(), rng.random(), rng.random()) for _ in range(40)]))
    for score in ("rouge_l", "accuracy", "rouge_l_f1"):
        labels, concept = (found[f"gain_from_{part}/{score}"] for part in ("labels", "concept"))
        assert labels + concept == pytest.approx(found[f"gain/{score}"])
        assert found[f"same_labels/{score}"] == pytest.approx(found[f"random/{score}"] + labels)


def test_a_sample_without_control_is_in_the_other_metrics_only() -> None:
    found = figures(documents((0.0, 1.0, 0.5), (0.0, 0.0)))
    assert found["gain/rouge_l"] == 0.5
    assert (found["same_labels/rouge_l"], found["gain_from_concept/rouge_l"]) == (0.5, 0.5)


def test_independent_draws_differ_by_selection_and_their_spread_adds_up() -> None:
    """Samples are easy or hard under both selections, as in practice: pairing takes that away."""
    rng = random.Random(5)
    scores = []
    for _ in range(400):
        ease, noise = rng.random(), rng.random() / 4
        scores.append((ease * 0.7, ease * 0.7 + noise))
    columns = np.array(scores).T
    paired, independent = (drawn(documents(*scores), draws) for draws in ("paired", "independent"))
    expected = [np.var(columns[1] - columns[0]), np.var(columns, axis=1).sum()]
    assert [paired.stderr, independent.stderr] == pytest.approx(
        [math.sqrt(one / 100) for one in expected], rel=0.15
    )
    assert independent.value == pytest.approx(paired.value, abs=0.02)
    before = "score_100x200_random"
    assert drawn(documents(*scores), name=before) == drawn(
        documents(*scores), "independent", name=before
    )


def of_templates(**scores: list[tuple[float, float]]) -> list[Scored]:
    """Documents with (random, concept) pairs, by template."""
    return [
        (
            f"d{n}",
            f"d{n}",
            ("c", f"d{n}"),
            [
                {
                    "template": template, "demonstrations": selection, "concept": "c",
                    "rouge_l": value, "accuracy": 0.25 if selection == "concept" else value,
                }
                for template, pair in zip(scores, one, strict=True)
                for selection, value in zip(SELECTIONS, pair, strict=False)
            ],
        )
        for n, one in enumerate(zip(*scores.values(), strict=True))
    ]  # fmt: skip


def test_the_best_template_is_the_one_with_the_highest_concept_score() -> None:
    """Not the one with the highest gain, nor with the highest random score."""
    found = figures(
        of_templates(
            gains=[(0.0, 0.7)] * 12,
            best=[(0.6, 1.0), (0.8, 0.6)] * 6,
            random=[(1.0, 0.5)] * 12,
        )
    )
    for name in ("gain/rouge_l", "random/accuracy", "error_change/rouge_l", "gain/rouge_l_100x200"):
        assert found.figure(name) == found.figure(f"{name}@best"), name
    assert found["gain/rouge_l"] == pytest.approx(0.1)
    assert found["gain/rouge_l@gains"] == pytest.approx(0.7)
    assert found["random/accuracy"] == pytest.approx(0.7), "the same template for every score"


def test_of_equal_templates_the_first_is_the_best_in_any_order_of_documents() -> None:
    scored = of_templates(one=[(0, 1), (0, 0), (0, 0.5)], two=[(0.5, 0), (0.5, 1), (0.5, 0.5)])
    assert figures(scored)["random/rouge_l"] == figures(scored[::-1])["random/rouge_l"] == 0.0


def test_names_of_concepts_may_have_any_character() -> None:
    (document,) = documents((0.0, 1.0), concept="is in Rome, Italy/Lazio ")
    found: Any = figures([document])
    assert found["gain/rouge_l:is in Rome; Italy&Lazio 0"] == 1.0
