"""LIEDER's samples in reports: what the comparisons are about, and how many are right."""

import math
from pathlib import Path
from typing import Any

import pytest
from support import logged
from support.made_runs import Guesser

import lm_eval_ext
from lm_eval_ext.benchmarks.lieder import view
from lm_eval_ext.benchmarks.lieder.records import NONREFERENTIAL
from lm_eval_ext.benchmarks.lieder.score import comparisons_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.sample_report import samples_report
from lm_eval_ext.results.shown_samples import SampleQuery
from lm_eval_ext.text import typeable


def comparison_rows(document: dict[str, Any], logprobs: list[float]) -> list[list[str]]:
    """Return the rows of all tables that a report shows for a document's log-probabilities."""
    answers = [f'["{logprob}", "False"]' for logprob in logprobs]  # as lm-eval logs them
    (answer,) = view.answers([document], [answers])
    rows = []
    for detail in answer.details:
        rows += [list(row) for row in detail.table[1:]]
    return rows


def rising_logprobs(document: dict[str, Any]) -> list[float]:
    """Return made-up log-probabilities, all different."""
    return [number - 20.0 for number in range(len(document["condition"]))]


@pytest.mark.parametrize("task", ["lieder_mini", "lieder_fresh_two"])
def test_every_comparison_has_both_continuations_and_their_difference(task: str) -> None:
    document = lm_eval_ext.load_documents(task)[0]
    logprobs = rising_logprobs(document)
    rows = comparison_rows(document, logprobs)
    assert len(rows) == 3 * len(comparisons_of(document["experiment"]))
    comparisons = comparisons_of(document["experiment"])
    names = {(comparison.requirement, typeable(comparison.name)) for comparison in comparisons}
    continuations = {continuation.strip() for continuation in document["continuation"]}
    for better, worse, difference in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert [better[0], worse[0]] == ["more likely", "less likely"]
        assert {better[2], worse[2]} <= continuations
        gap = float(better[3]) - float(worse[3])
        verdict = "right" if gap > 0 else "wrong"
        assert [difference[0], difference[3]] == [verdict, f"{gap:+.2f} nats"]
        requirement, _, name = difference[2].partition(": ")
        assert (requirement, name) in names


def test_a_log_probability_that_is_no_number_makes_its_comparisons_wrong() -> None:
    document = lm_eval_ext.load_documents("lieder_mini")[0]
    logprobs = rising_logprobs(document)
    all_rows = comparison_rows(document, logprobs)
    logprobs[0] = math.nan
    rows = comparison_rows(document, logprobs)
    assert len(rows) == len(all_rows)
    verdicts = [row[0] for row in rows[2::3] if "nan" in row[3]]
    assert verdicts
    assert set(verdicts) == {"wrong"}


@pytest.mark.parametrize(("is_whole", "has_table"), [(False, False), (True, True)])
def test_a_terminal_shows_right_comparisons_only_with_whole(
    tmp_path: Path, *, is_whole: bool, has_table: bool
) -> None:
    logged.evaluate(tmp_path, Guesser(1, 0.5), ["lieder_mini"], limit=1)
    query = SampleQuery(is_whole=is_whole)
    shown = samples_report(read_models([tmp_path]), "lieder_mini", query)
    assert ("right comparisons: --whole shows them" in shown) != has_table
    assert ("right               existence: " in shown) == has_table
    assert "Context A: " in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.fixture(scope="module")
def guesses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with the samples of a model that guesses."""
    folder = tmp_path_factory.mktemp("guesses")
    logged.evaluate(folder, Guesser(1, 0.5), ["lieder_mini"], limit=2)
    return folder


def shown_of(folder: Path, *where: str, by: str = "") -> str:
    """Return the whole samples under some conditions."""
    query = SampleQuery(query=ScoreQuery(where=where, by=by), is_whole=True)
    return samples_report(read_models([folder]), "lieder_mini", query)


@pytest.mark.parametrize(
    "typed", ["comparison=pos_neg_s-neg_neg_s", "comparison=pos_neg_s>neg_neg_s"]
)
def test_a_comparison_can_be_typed_without_quotes(guesses: Path, typed: str) -> None:
    shown = shown_of(guesses, typed)
    assert " of 1 comparison right" in shown
    assert "the dog: a dog, no dog > no dog, no dog" in " ".join(shown.split())


@pytest.mark.parametrize(("requirement", "count"), [("existence", 3), ("uniqueness-novelty", 3)])
def test_only_the_comparisons_of_a_requirement_count(
    guesses: Path, requirement: str, count: int
) -> None:
    assert f" of {count} comparisons right" in shown_of(guesses, f"requirement={requirement}")
    assert f" of {count} comparisons right" in shown_of(guesses, by="requirement")


def test_an_unknown_comparison_is_answered_with_names_that_can_be_typed(guesses: Path) -> None:
    with pytest.raises(OptionError, match="available: neg_pos_p-pos_neg_p, ") as caught:
        shown_of(guesses, "comparison=nothing")
    assert ">" not in str(caught.value)


def test_the_relative_metric_shows_relative_log_probabilities() -> None:
    document = lm_eval_ext.load_documents("lieder_mini")[0]
    logprobs = dict(zip(document["condition"], rising_logprobs(document), strict=True))
    answers = [f'["{logprob}", "False"]' for logprob in logprobs.values()]
    (answer,) = view.answers_about([document], [answers], {"metric": ("relative",)})
    assert answer.answer.endswith("right under the relative metric")
    rows = [row for detail in answer.details for row in detail.table]
    assert rows[0][3] == "relative log-probability"
    shown = {row[3] for row in rows if row[0] in ("more likely", "less likely")}
    for condition, logprob in logprobs.items():
        context, _, kind = condition.rpartition("_")
        if kind != NONREFERENTIAL:
            assert f"{logprob - logprobs[f'{context}_{NONREFERENTIAL}']:.2f}" in shown


def test_samples_show_the_metric_that_is_asked_for(guesses: Path) -> None:
    assert "relative log-probability" in shown_of(guesses, "metric=relative")
    assert "relative log-probability" not in shown_of(guesses)
