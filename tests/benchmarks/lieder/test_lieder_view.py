"""LIEDER's samples in reports: what the comparisons are about, and how many are right."""

import math
from pathlib import Path
from typing import Any

import pytest
from support import logged
from support.made_runs import Guesser

import lm_eval_ext
from lm_eval_ext.benchmarks.lieder import view
from lm_eval_ext.benchmarks.lieder.score import comparisons_of
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.sample_report import samples_report
from lm_eval_ext.results.shown_samples import SampleQuery


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
    continuations = {continuation.strip() for continuation in document["continuation"]}
    for better, worse, difference in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert [better[0], worse[0]] == ["more likely", "less likely"]
        assert {better[2], worse[2]} <= continuations
        gap = float(better[3]) - float(worse[3])
        verdict = "right" if gap > 0 else "wrong"
        assert difference == [verdict, "", "difference in nats", f"{gap:+.2f}"]


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
    assert ("right               difference" in shown) == has_table
    assert "Context A: " in shown
    assert max(map(len, shown.splitlines())) <= 80
