"""LIEDER's samples in reports: what the comparisons are about, and how many are right."""

import math
from typing import Any

import pytest

import lm_eval_ext
from lm_eval_ext.benchmarks.lieder import view


def comparison_rows(document: dict[str, Any], logprobs: list[float]) -> list[list[str]]:
    """Return the rows that a report shows for a document's log-probabilities."""
    answers = [f'["{logprob}", "False"]' for logprob in logprobs]  # as lm-eval logs them
    (answer,) = view.answers([document], [answers])
    (detail,) = answer.details
    return [list(row) for row in detail.table[1:]]


def rising_logprobs(document: dict[str, Any]) -> list[float]:
    """Return made-up log-probabilities, all different."""
    return [number - 20.0 for number in range(len(document["condition"]))]


@pytest.mark.parametrize(
    ("task", "noun"),
    [
        pytest.param("lieder_mini", "goat", id="item without a number"),
        pytest.param("lieder_fresh_base", "brownie", id="item with a number"),
    ],
)
def test_comparisons_name_the_noun_without_the_items_number(task: str, noun: str) -> None:
    document = lm_eval_ext.load_documents(task)[0]
    assert noun in document["item"]
    for row in comparison_rows(document, rising_logprobs(document)):
        assert f" {noun}" in row[1]
        assert "_" not in row[1]


def test_a_log_probability_that_is_no_number_makes_its_comparisons_wrong() -> None:
    document = lm_eval_ext.load_documents("lieder_mini")[0]
    logprobs = rising_logprobs(document)
    all_rows = comparison_rows(document, logprobs)
    logprobs[0] = math.nan
    rows = comparison_rows(document, logprobs)
    assert len(rows) == len(all_rows)
    outcomes = {row[0] for row in rows if "nan" in row[2]}
    assert outcomes
    assert all(outcome.startswith("wrong") for outcome in outcomes)
