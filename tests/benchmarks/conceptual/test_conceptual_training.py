"""Material of in-context training: questions from files, demonstrations, prompts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual import mini
from lm_eval_ext.benchmarks.conceptual.training import prepare, read
from lm_eval_ext.errors import DataError, OptionError

GENERATED: dict[str, Any] = {"generated": 120, "dev_examples": 30}


def test_prompts_have_two_to_five_other_questions_and_end_where_the_answer_begins() -> None:
    made = prepare(GENERATED | {"format": "input"}, 0)
    assert [len(made.train), len(made.dev)] == [120, 30]
    counts = set()
    for prompt, answer in (*made.train, *made.dev):
        *shown, asked = prompt.split("\n")
        counts.add(len(shown))
        assert asked.endswith(" Prediction:")
        assert all(re.fullmatch(r"Input: .+ Prediction: \S.*", one) for one in shown)
        assert not any(one.startswith(asked) for one in shown), "never itself"
        assert len(set(shown)) == len(shown)
        assert set(answer.removeprefix("on ").split()) <= set(re.findall(r"\w+", asked))
    assert counts == {2, 3, 4, 5}
    other = prepare(GENERATED | {"format": "input"}, 1)
    assert other.gates == made.gates
    assert not set(other.train) & set(made.train)
    texts = {prompt.split("\n")[-1].partition("?")[2] for prompt, _ in made.dev}
    assert not any(text in prompt for prompt, _ in made.train for text in texts)


def test_nothing_of_the_task_is_trained_on_and_the_format_is_the_published_one() -> None:
    made = prepare({"generated": 500}, 0)
    words = {word for text in made.train for part in text for word in re.findall(r"\w+", part)}
    asked = [sample.question for sample in mini.samples()]
    assert not [one for one in asked if set(re.findall(r"\w+", one)) <= words]
    pattern = r"(?:Question: [^?]*\? Context: .*? Answer:(?: [^?]*? (?=Question)|$))+"
    assert all(re.fullmatch(pattern, prompt) for prompt, _ in made.train[:40])


def test_draws_and_limits() -> None:
    assert len(set(prepare(GENERATED | {"draws": 2}, 0).train)) > 230
    none = prepare(GENERATED | {"longest_shown": 10}, 0)
    assert (len(none.train), none.facts["left_out"]) == (0, 120)


def squad(*contexts: str, **other: Any) -> str:
    answers = [{"text": "Ann"}, {"text": "she"}]
    paragraphs = [
        {"context": one, "qas": [{"question": f"Who  came {n}?", "answers": answers, **other}]}
        for n, one in enumerate(contexts)
    ]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_files_with_questions(tmp_path: Path) -> None:
    file = tmp_path / "questions"
    file.write_text(squad("Ann  came."))
    assert read(file) == [("Who came 0?", "Ann came.", "Ann")]
    file.write_text(squad("Ann came. " * 300, *["Ann came."] * 9))
    made = prepare({"train": str(file), "dev": str(file)}, 0)
    assert len(made.train) == len(made.dev) == 9, "one text is too long"
    assert {made.facts[one] for one in ("train", "dev")} == {sha256_of(file)}, "of the same name"
    assert [made.score(one, "Ann") for one in ("Ann.", "Ben")] == [1.0, 0.0]
    for text, said in (
        ("", "Invalid JSON"),
        ("[1]", "top level"),
        (squad("a", answers=[]), "answers: List should have at least 1 item"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            read(file)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)


def test_options_that_do_not_fit_are_refused() -> None:
    for data, said in (
        ({}, "give train and dev"),
        (GENERATED | {"train": "a"}, "give train and dev"),
        (GENERATED | {"least": 6}, "least is 6"),
        (GENERATED | {"demos": 1}, "unknown key"),
    ):
        with pytest.raises(OptionError, match=said):
            prepare(data, 0)
