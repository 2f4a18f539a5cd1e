"""Discourse entities' samples in reports: each comparison with its nats, the wrong ones first."""

import math

import lm_eval_ext
from lm_eval_ext.benchmarks.discourse_entities import view
from lm_eval_ext.benchmarks.discourse_entities.score import process_results


def logged(logprobs: list[float]) -> list[str]:
    """Return answers as lm-eval logs them."""
    return [f'["{logprob}", "False"]' for logprob in logprobs]


def test_two_nouns_are_compared_in_each_order() -> None:
    document = lm_eval_ext.load_documents("discourse_entities_mini")[0]
    logprobs = [-1.0, -2.0, -5.0, -3.0, -1.0, -1.5, -1.0, math.nan]
    (answer,) = view.answers([document], [logged(logprobs)])
    assert answer.answer == "2 of 4 comparisons right"
    (detail,) = answer.details
    assert [row[-1] for row in detail.table[1:]] == ["+nan", "-2.00", "+0.50", "+1.00"]
    assert detail.marked == (0, 1)
    rows = process_results(document, [(logprob, False) for logprob in logprobs])
    assert sum(row.get("correct") == 1 for row in rows) == 2
    (shown,) = view.documents([document], [[]])
    assert document["context"][0] in shown.title


def test_one_noun_is_compared_between_contexts() -> None:
    """What counts is by how much more the pronoun gains."""
    document = {
        "item": "1_dog", "pair": "know_doubt", "context": ["a", "a", "b", "b"],
        "continuation": [" it.", " that.", " it.", " that."],
    }  # fmt: skip
    right, wrong, broken = view.answers(
        [document] * 3, [logged([-1, -2, -1, -1]), logged([-1, -2, -1, -3]), ["x"] * 4]
    )
    assert right.answer == "1 of 1 comparison right"
    assert wrong.details[0].table[1] == ("wrong", "a", "b", "-1.00")
    assert broken.answer == "(no log-probabilities)"
    (shown,) = view.documents([document], [[]])
    assert shown.title == "1_dog, know / doubt: a"
