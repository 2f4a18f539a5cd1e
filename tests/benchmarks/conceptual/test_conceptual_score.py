"""Metrics over documents, computed by hand; the paper's figures in the card."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from support.asking import ask

from lm_eval_ext.benchmarks.conceptual.answers import SCORES
from lm_eval_ext.benchmarks.conceptual.score import copied, process_results, stand_ins
from lm_eval_ext.cards import cards
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Figure, figure
from lm_eval_ext.stats.table import Scored, frame

SELECTIONS = ("random", "concept", "same_labels")
CARD = cards()["conceptual"]


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
    control = {
        **doc,
        "templates": ["letter"],
        "same_labels_demonstrations": ["z"],
        "answers": ["B"],
    }
    assert [row["accuracy"] for row in process_results(control, ["A", "B", ""])] == [0.0, 1.0, 0.0]


def documents(concepts: int = 4, **templates: Sequence[Sequence[float]]) -> list[Scored]:
    """Documents with scores (of all kinds) under each selection, by template."""
    return [
        (
            f"d{n:04}",
            f"d{n:04}",
            (f"c{n % concepts}", f"d{n:04}"),
            [
                {"template": template, "demonstrations": selection, "concept": f"c{n % concepts}"}
                | dict.fromkeys(SCORES, value)
                for template, values in zip(templates, of_document, strict=True)
                for selection, value in zip(SELECTIONS, values, strict=False)
            ],
        )
        for n, of_document in enumerate(zip(*templates.values(), strict=True))
    ]


def value(scored: list[Scored], metric: str, of: str = "rouge_l", **where: str) -> float | None:
    return ask("conceptual", scored, metric, value=of, **where).value


def test_the_figures_are_what_arithmetic_says() -> None:
    scored = documents(options=[(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)] * 10)
    for of in SCORES:
        assert value(scored, "score/random", of) == 0.5
        assert value(scored, "score/concept", of) == 0.625
        assert value(scored, "gain", of) == 0.125
        change = (1 - 0.625) / (1 - 0.5) - 1
        assert value(scored, "relative_error_change", of) == pytest.approx(change)
    assert value(scored, "score/random", concept="c0") == 0.0
    assert value(scored, "gain", concept="c0") == 1.0


def test_without_error_there_is_no_change_of_it() -> None:
    scored = documents(options=[(1.0, 1.0), (1.0, 0.5), (1.0, 1.0), (1.0, 0.0)])
    for metric in ("relative_error_change", "relative_error_change_100x200"):
        found = ask("conceptual", scored, metric)
        assert (found.value, found.stderr) == (None, None)
    assert value(scored, "gain") == -0.375


def test_a_gain_is_the_sum_of_its_parts_over_the_samples_that_have_a_control() -> None:
    rng = random.Random(4)
    rows = [(rng.random(), rng.random(), rng.random()) for _ in range(40)]
    scored = documents(options=rows)
    labels, concept = (value(scored, f"gain_from_{part}") or 0 for part in ("labels", "concept"))
    assert labels + concept == pytest.approx(value(scored, "gain"))
    assert value(scored, "score/same_labels") == pytest.approx(
        (value(scored, "score/random") or 0) + labels
    )
    scored = documents(options=[(0.0, 1.0, 0.5), (0.0, 0.0)])
    metrics = ("gain", "score/same_labels", "gain_from_concept")
    assert [value(scored, one) for one in metrics] == [0.5, 0.5, 0.5]


def drawn(scored: list[Scored], draws: str = "paired", name: str = "gain_100x200") -> Figure:
    measure = CARD.question_of(name).measure
    return figure(frame(scored), Question(measure.model_copy(update={"draws": draws})))


def test_the_papers_bootstrap_draws_100_of_the_samples_200_times() -> None:
    """Its spread is that of means of 100, however many samples there are; the draw is pinned,
    since another one would make published figures incomparable."""
    rng = random.Random(2)
    scores = [(float(rng.random() < 0.3), float(rng.random() < 0.6)) for _ in range(1000)]
    gains = np.array([concept - before for before, concept in scores])
    found = drawn(documents(options=scores))
    values = gains[np.random.default_rng(0).integers(1000, size=(200, 100))].mean(axis=1)
    assert found.value == pytest.approx(np.median(values))
    assert found.stderr == pytest.approx(np.std(values, ddof=1))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))))
    assert found.stderr == pytest.approx(gains.std() / math.sqrt(100), rel=0.2)
    assert drawn(documents(options=scores[:1])).value is None, "it needs two samples"


def test_independent_draws_differ_by_selection_and_their_spread_adds_up() -> None:
    """Samples are easy or hard under both selections, as in practice: pairing takes that away."""
    rng = random.Random(5)
    scores = [(ease, ease + rng.random() / 4) for ease in (rng.random() * 0.7 for _ in range(400))]
    columns, scored = np.array(scores).T, documents(options=scores)
    paired, independent = (drawn(scored, draws) for draws in ("paired", "independent"))
    expected = [np.var(columns[1] - columns[0]), np.var(columns, axis=1).sum()]
    assert [paired.stderr, independent.stderr] == pytest.approx(
        [math.sqrt(one / 100) for one in expected], rel=0.15
    )
    assert independent.value == pytest.approx(paired.value, abs=0.02)
    before = "score_100x200_random"
    assert drawn(scored, name=before) == drawn(scored, "independent", name=before)


def test_the_best_template_is_the_one_with_the_highest_concept_score() -> None:
    """Not the one with the highest gain or random score; the same for every value."""
    scored = documents(
        gains=[(0.0, 0.7)] * 12, best=[(0.6, 1.0), (0.8, 0.6)] * 6, random=[(1.0, 0.5)] * 12
    )
    for row in (row for *_, rows in scored for row in rows if row["demonstrations"] == "concept"):
        row["accuracy"] = 0.25  # type: ignore[index]
    for metric in ("gain", "score/random", "relative_error_change", "gain_100x200"):
        for of in ("rouge_l", "accuracy"):
            best = ask("conceptual", scored, metric, value=of, template="best")
            assert ask("conceptual", scored, metric, value=of) == best
    assert value(scored, "gain") == pytest.approx(0.1)
    # Of equal templates the first, in any order of documents.
    scored = documents(one=[(0, 1), (0, 0)], two=[(0.5, 0), (0.5, 1)])
    assert value(scored, "score/random") == value(scored[::-1], "score/random") == 0.0


@pytest.mark.parametrize(
    ("shown", "last", "majority"),
    [("a", "a", "a"), ("aab", "b", "a"), ("aba", "a", "a"), ("abc", "c", "c"), ("abba", "a", "a")],
)
def test_copiers_answer_what_is_shown_and_are_right_if_it_is(
    shown: str, last: str, majority: str
) -> None:
    assert stand_ins(shown) == {"copy_last": last, "copy_majority": majority}
    for gold in "abc":
        expected = {"answer_share": shown.count(gold) / len(shown), "answer_shown": gold in shown}
        for name in ("rouge_l", "accuracy"):
            expected |= {
                f"{name}_copy_last": gold == last,
                f"{name}_copy_majority": gold == majority,
            }
        assert copied(gold, list(shown)) == expected


MEDIAN = "score_100x200"
CHANGE = "relative_error_change_100x200"


def test_the_papers_figures_fit_each_other() -> None:
    """Figure 2 follows from the medians of figure 4; figure 3 is the mean over four datasets."""
    medians = [one for one in CARD.references if f"{MEDIAN}_random" in one.figures]
    assert len(medians) == 30
    changes: dict[str, list[float]] = {}
    for one in medians:
        before, after = (one.figures[f"{MEDIAN}_{name}"] for name in ("random", "concept"))
        assert one.figures[CHANGE] == pytest.approx((1 - after) / (1 - before) - 1, abs=5.1e-4)
        changes.setdefault(one.label, []).append(one.figures[CHANGE])
    means = {name: math.fsum(some) / 4 for name, some in changes.items() if len(some) == 4}
    of_figure_3 = [one for one in CARD.references if one.tasks == ("conceptual",)]
    assert {one.label: one.figures[CHANGE] for one in of_figure_3} == pytest.approx(means, abs=1e-3)
    assert means.keys() == {"Tk-instruct-11B", "T0-11B"}
    for name in CARD.metrics:
        assert CARD.question_of(name).measure.lower_is_better is ("error_change" in name), name
