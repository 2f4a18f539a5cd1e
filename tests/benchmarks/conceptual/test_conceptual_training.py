"""Material for training: generated questions, files in the format of SQuAD."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual import mini, training
from lm_eval_ext.benchmarks.conceptual.training import read
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.recipe import prepare as prepare_source

GENERATED: dict[str, Any] = {"generated": 120}

prepare = partial(prepare_source, training.__name__)


def test_prompts_have_two_to_five_other_questions_and_end_where_the_answer_begins() -> None:
    """A prompt shows different questions, never its own; the answer's words are in its text."""
    material = prepare(GENERATED | {"format": "input"}, 0)
    assert len(material.train) == 120
    assert len(material.dev) == 200
    counts = set()
    for prompt, answer in (*material.train, *material.dev):
        *shown, question = prompt.split("\n")
        counts.add(len(shown))
        assert question.endswith(" Prediction:")
        for demonstration in shown:
            assert re.fullmatch(r"Input: .+ Prediction: \S.*", demonstration)
            assert not demonstration.startswith(question)
        assert len(set(shown)) == len(shown)
        assert set(answer.removeprefix("on ").split()) <= set(re.findall(r"\w+", question))
    assert counts == {2, 3, 4, 5}


def test_training_has_nothing_of_the_development_set() -> None:
    """No text of it is in a prompt of training, which another seed changes; the gates stay."""
    material = prepare(GENERATED | {"format": "input"}, 0)
    of_another_seed = prepare(GENERATED | {"format": "input"}, 1)
    assert of_another_seed.gates == material.gates
    assert set(of_another_seed.train).isdisjoint(material.train)
    for prompt, _ in material.dev:
        question = prompt.split("\n")[-1]
        text = question.partition("?")[2]
        assert not any(text in train_prompt for train_prompt, _ in material.train)


def test_nothing_of_the_task_is_trained_on() -> None:
    """Each question of the task has a word that training has not."""
    material = prepare({"generated": 500}, 0)
    trained_words = set()
    for prompt, answer in material.train:
        trained_words.update(re.findall(r"\w+", f"{prompt}\n{answer}"))
    for sample in mini.samples():
        assert set(re.findall(r"\w+", sample.question)) - trained_words, sample.question


def test_the_format_is_the_published_one() -> None:
    """By default, prompts have questions, contexts and answers."""
    material = prepare({"generated": 500}, 0)
    pattern = r"(?:Question: [^?]*\? Context: .*? Answer:(?: [^?]*? (?=Question)|$))+"
    for prompt, _ in material.train[:40]:
        assert re.fullmatch(pattern, prompt), prompt


def test_prompts_that_are_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no prompt is short enough, nothing is left to train on, and the facts say so."""
    monkeypatch.setattr(training, "LONGEST_SHOWN", 10)
    material = prepare(GENERATED, 0)
    assert len(material.train) == 0
    assert material.facts["left_out"] == 120


def squad(*contexts: str, answers: tuple[str, ...] = ("Ann", "she")) -> str:
    """Return a file with the same question about each context, in SQuAD's format."""
    question = {"question": "Who  came?", "answers": [{"text": answer} for answer in answers]}
    paragraphs = [{"context": context, "qas": [question]} for context in contexts]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_questions_are_read_from_a_file(tmp_path: Path) -> None:
    """The first answer counts, and repeated spaces are one."""
    file = tmp_path / "questions"
    file.write_text(squad("Ann  came."))
    assert read(file) == [("Who came?", "Ann came.", "Ann")]


def test_files_with_questions_are_trained_on(tmp_path: Path) -> None:
    """Long texts are left out; the facts have each file's checksum, of equal names too."""
    file = tmp_path / "questions"
    long_text = "Ann came. " * 300
    file.write_text(squad(long_text, *(f"Ann came {number}." for number in range(9))))
    material = prepare({"train": str(file), "dev": str(file)}, 0)
    assert len(material.train) == 9
    assert len(material.dev) == 9
    checksum = sha256_of(file)
    assert material.facts["train"] == checksum
    assert material.facts["dev"] == checksum
    assert material.score("Ann.", "Ann") == 1.0
    assert material.score("Ben", "Ann") == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid JSON"),
        ("[1]", "top level"),
        (squad("a", answers=()), "answers: List should have at least 1 item"),
    ],
    ids=["empty", "a list", "no answer"],
)
def test_a_broken_file_with_questions_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error says what the file lacks."""
    file = tmp_path / "questions"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read(file)


def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    """The error says that it cannot be read."""
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "give train and dev"),
        (GENERATED | {"train": "a"}, "give train and dev"),
        (GENERATED | {"demos": 1}, "unknown key"),
    ],
    ids=["nothing", "generated and a file", "unknown key"],
)
def test_options_that_do_not_fit_are_refused(data: dict[str, Any], message: str) -> None:
    """The error says which keys a recipe's data must have."""
    with pytest.raises(OptionError, match=message):
        prepare(data, 0)
