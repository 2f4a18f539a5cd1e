"""What the text of a comparison says of its tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.compare.command import run
from lm_eval_ext.compare.comparison import Report, Table, _few_clusters_note
from lm_eval_ext.compare.formats import rendered
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.stats.marks import ColumnTests, standings
from lm_eval_ext.stats.statistics import Estimate, Pair


def words_of(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("task", "test"),
    [
        ("lieder_mini", "p-values: paired sign-flip test of the differences by item"),
        (
            "magnifico_mini",
            "p-values: paired randomization test, in which the systems change places by "
            "interpretation",
        ),
    ],
)
@pytest.mark.parametrize("format_", ["text", "markdown", "latex"])
def test_a_comparison_names_its_test(runs: Path, task: str, test: str, format_: str) -> None:
    text, _ = run([runs / "good", runs / "poor"], ScoreQuery(), tasks=task, format_=format_)
    shown = words_of(text).replace("{-}", "-")
    assert test[1:] in shown, "a sentence of LaTeX starts with P"


def test_scores_of_0_and_1_without_clusters_have_the_test_of_mcnemar() -> None:
    pair = Pair(-0.25, p=0.5, p_holm=0.5, test="mcnemar", first="a", second="b")
    text = rendered(Report(["a", "b"], [table([pair])]), "text")
    assert "p-values: McNemar's exact test, paired by document" in text


def table(pairs: list[Pair]) -> Table:
    """Return a table of two systems with these differences."""
    return Table(
        task="task", model="", title="Accuracy", part="", words="", metric="accuracy",
        unit="share", lower_is_better=False, documents=4, total=None, clusters=4,
        cluster="document", figures={"a": Estimate(0.5), "b": Estimate(0.75)}, pairs=pairs,
        published={}, note="", pooled=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "heading"),
    [
        pytest.param({}, "task · Accuracy · 4 documents", id="one table"),
        pytest.param({"part": "south"}, "task · Accuracy · 4 documents in each part", id="parts"),
        pytest.param({"task": "other"}, "Accuracy · 4 documents in each task", id="tasks"),
        pytest.param({"title": "Recall"}, "task · 4 documents", id="metrics of one task"),
    ],
)
def test_the_heading_says_what_its_number_of_documents_is_of(
    changes: dict[str, Any], heading: str
) -> None:
    """Two categories with 10 documents each are no comparison of 10 documents."""
    tables = [table([])]
    if changes:
        tables.append(replace(tables[0], **changes))
    text = rendered(Report(["a", "b"], tables), "text")
    assert text.splitlines()[0] == heading


@pytest.mark.parametrize(
    ("label", "row"),
    [
        pytest.param("GPT-3", "GPT-3 (published)", id="no brackets"),
        pytest.param("copy last (no model)", "copy last (no model)", id="brackets"),
    ],
)
def test_a_published_row_has_one_pair_of_brackets(label: str, row: str) -> None:
    report = Report(["a", "b"], [replace(table([]), published={label: 0.125})])
    lines = rendered(report, "text").splitlines()
    (shown,) = [line for line in lines if label in line]
    assert row in shown
    assert shown.count("(") == 1


def test_one_pair_needs_no_adjustment(runs: Path) -> None:
    two, _ = run([runs / "good", runs / "poor"], ScoreQuery(), tasks="lieder_mini")
    assert "(Holm)" not in two
    three, _ = run([runs], ScoreQuery(), tasks="lieder_mini")
    assert "p (Holm)" in three
    assert "p-values (Holm): adjusted for all pairs" in three


def test_two_tasks_of_several_models_are_adjusted_for_the_models(runs: Path) -> None:
    text, _ = run([runs], ScoreQuery(), between="cogs_mini_gen,cogs_mini_overestimation")
    assert "p-values (Holm): adjusted for all models" in text


def test_a_table_without_p_values_names_no_test(runs: Path) -> None:
    text, _ = run([runs], ScoreQuery(), tasks="lieder_mini,cogs_mini_gen")
    assert "p-values" not in text


@pytest.mark.parametrize("format_", ["text", "markdown", "latex"])
def test_a_value_below_an_untested_one_says_why_it_is_not_called_best(format_: str) -> None:
    tests = ColumnTests({"a": 0.75, "b": 0.5}, {"b": 0.001}, frozenset(), frozenset("ab"))
    two_systems = replace(
        table([]),
        figures={"a": Estimate(0.75), "b": Estimate(0.5)},
        tests=tests,
        standings=standings({"": tests})[""],
    )
    text = words_of(rendered(Report(["a", "b"], [two_systems]), format_))
    assert "not called best, since the better value of a could not be tested" in text
    assert "significantly better than chance" not in text


def test_a_missing_interval_is_said_of_the_model_that_lacks_it() -> None:
    estimates = {
        "a": Estimate(0.5, clusters=3),
        "b": Estimate(0.6, clusters=9, low=0.4, high=0.8),
        "c": Estimate(0.7, clusters=4),
    }
    assert _few_clusters_note(estimates, "item") == (
        "a: no interval from 3 items, fewer than 6; c: no interval from 4 items, fewer than 6"
    )
    assert _few_clusters_note({"a": estimates["a"]}, "item") == (
        "no interval from 3 items, fewer than 6"
    )
