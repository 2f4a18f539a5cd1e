"""Tokens of a task's requests and answers."""

from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_ext.runs.usage import counting


def sample(number: int, arguments: list[Any], answers: list[Any], name: str) -> dict[str, Any]:
    return {"doc_id": number, "filter": name, "arguments": arguments, "resps": answers}


SAMPLES = {
    "asks": [
        sample(number, [("two words", {"until": ["\n"]})], [["three words here"]], name)
        for name in ("first", "second")
        for number in range(2)
    ],
    "compares": [
        sample(0, [("a b", " c"), ("a b", " d e")], [[(-1.0, False)], [(-2.0, True)]], "none")
    ],
    "nothing": [],
}


def evaluated(lm: Any, results: Any) -> Any:
    return counting(lambda **_: results)(lm=lm)


def words(text: str) -> list[int]:
    return [0] * len(text.split())


def test_each_document_once_whatever_its_filters() -> None:
    lm = SimpleNamespace(tok_encode=words, tokenizer="any")
    assert evaluated(lm, {"samples": SAMPLES})["tokens"] == {
        "asks": {"input": 4, "output": 6},
        "compares": {"input": 7, "output": 0},
        "nothing": {"input": 0, "output": 0},
    }


@pytest.mark.parametrize(
    "lm",
    [
        SimpleNamespace(),
        SimpleNamespace(tok_encode=words, tokenizer=None),
        SimpleNamespace(tok_encode=lambda text: 1 / 0, tokenizer="any"),
    ],
)
def test_what_cannot_count_keeps_its_results(lm: Any) -> None:
    assert evaluated(lm, {"samples": SAMPLES}) == {"samples": SAMPLES}


def test_another_rank_has_no_results() -> None:
    assert evaluated(SimpleNamespace(tok_encode=words, tokenizer="any"), None) is None


def test_a_request_has_one_bos_and_an_answer_none() -> None:
    lm = SimpleNamespace(tok_encode=lambda text: [1, *words(text)], tokenizer="any")
    assert evaluated(lm, {"samples": SAMPLES})["tokens"] == {
        "asks": {"input": 4 + 2, "output": 6},
        "compares": {"input": 7 + 2, "output": 0},
        "nothing": {"input": 0, "output": 0},
    }
