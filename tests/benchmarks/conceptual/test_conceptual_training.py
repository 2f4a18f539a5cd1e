"""Material of in-context training: questions from files, demonstrations, prompts."""

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support import families

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual import mini, reading
from lm_eval_ext.benchmarks.conceptual.difficulty import Judge, kept
from lm_eval_ext.benchmarks.conceptual.training import Options, choose, prepare
from lm_eval_ext.errors import DataError, OptionError

GENERATED: dict[str, Any] = {"generated": 120, "dev_examples": 30}


def blocks(prompt: str) -> list[str]:
    """The demonstrations and the question of a prompt in the tasks' format."""
    return prompt.split("\n")


def test_prompts_have_two_to_five_other_questions_and_end_where_the_answer_begins() -> None:
    made = prepare(GENERATED | {"format": "input"}, 0)
    assert [len(made.train), len(made.dev)] == [120, 30]
    counts = set()
    for prompt, answer in (*made.train, *made.dev):
        *shown, asked = blocks(prompt)
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
    texts = {blocks(prompt)[-1].partition("?")[2] for prompt, _ in made.dev}
    assert not any(text in prompt for prompt, _ in made.train for text in texts)


def test_nothing_of_the_task_is_trained_on() -> None:
    made = prepare({"generated": 500}, 0)
    words = {word for text in made.train for part in text for word in re.findall(r"\w+", part)}
    asked = [sample.question for sample in mini.samples()]
    assert not [one for one in asked if set(re.findall(r"\w+", one)) <= words]


def test_the_published_format_and_categories() -> None:
    made = prepare(GENERATED | {"demonstrations": "category"}, 0)
    pattern = r"(?:Question: (\S+)[^?]*\? Context: .*? Answer:(?: [^?]*? (?=Question)|$))"
    for prompt, _ in made.train[:40]:
        assert re.fullmatch(f"(?:{pattern})+", prompt)
        assert len(set(re.findall(r"Question: (\S+)", prompt))) == 1
    mixed = prepare(GENERATED, 0).train[:40]
    assert any(len(set(re.findall(r"Question: (\S+)", prompt))) > 1 for prompt, _ in mixed)
    assert reading.category_of("To whom did it belong?") == "To whom"


def test_draws_and_limits() -> None:
    twice = prepare(GENERATED | {"draws": 2}, 0)
    assert len(twice.train) == 240
    assert len(set(twice.train)) > 230
    none = prepare(GENERATED | {"longest_shown": 10}, 0)
    assert (len(none.train), none.facts["left_out"]) == (0, 120)
    some = prepare(GENERATED | {"longest_shown": 300}, 0)
    assert 0 < len(some.train) < 120


def test_a_judge_picks_the_demonstration_after_which_the_answer_is_least_probable(
    tmp_path: Path,
) -> None:
    families.make("unigram", tmp_path / "model")
    judge = Judge(tmp_path / "model")
    prompts = [f"{word} is a word" for word in ("one", "two", "three", "four")] * 9
    alone = [judge._log_probabilities([one], "an answer")[0] for one in prompts]
    assert judge._log_probabilities(prompts, "an answer") == pytest.approx(alone, abs=1e-3)
    assert alone[judge.hardest(prompts, "an answer")] == pytest.approx(min(alone), abs=1e-3)

    class Longest:
        """Finds the longest prompt hardest."""

        def hardest(self, prompts: list[str], answer: str) -> int:
            seen.append(len(prompts))
            return max(range(len(prompts)), key=lambda place: len(prompts[place]))

    seen: list[int] = []
    questions = list(islice(reading.generated(3, 2), 80))
    options = Options.model_validate(
        {"generated": 80, "demonstrations": "hardest", "judge": "x", "candidates": 8}
    )
    easy = options.model_copy(update={"demonstrations": "category"})
    hard: Any = Longest()
    longer = [choose(questions, *some) for some in ((options, 0, hard), (easy, 0))]
    sizes = [sum(len(str(questions[n])) for _, some in one for n in some) for one in longer]
    assert sizes[0] > sizes[1]
    assert max(seen) == 8
    for place, shown in longer[0]:
        assert place not in shown
        assert {questions[n].category for n in shown} == {questions[place].category}
    with pytest.raises(OptionError, match="only decodes"):
        families.make("byte_bpe", tmp_path / "gpt2")
        Judge(tmp_path / "gpt2")
    assert kept(tmp_path, ["key"], lambda: [1]) == kept(tmp_path, ["key"], lambda: [2]) == [1]


ROW = {"question": "Who  came?", "context": "Ann came.", "answer": "Ann"}
SQUAD = {
    "data": [
        {"paragraphs": [{"context": "Ann came.", "qas": [
            {"question": "Who came?", "answers": [{"text": "Ann"}, {"text": "she"}]},
        ]}]}
    ]
}  # fmt: skip


def test_files_with_questions(tmp_path: Path) -> None:
    file = tmp_path / "questions"
    asked = {"question": ROW["question"], "context": ROW["context"]}
    several: tuple[Any, ...] = ({"text": ["Ann", "she"]}, ["Ann"], [{"text": "Ann"}])
    lines: list[dict[str, Any]] = [ROW, *({**asked, "answers": one} for one in several)]
    for text in ("\n".join(map(json.dumps, lines)), json.dumps(SQUAD)):
        file.write_text(text)
        assert set(reading.read(file)) == {("Who came?", "Ann came.", "Ann", "Who")}
    file.write_text(json.dumps({**ROW, "category": "c"}))
    assert reading.read(file)[0].category == "c"
    long = {**ROW, "context": "Ann came. " * 300}
    others = [{**ROW, "question": f"Who came {n}?"} for n in range(9)]
    file.write_text("\n".join(map(json.dumps, [long, *others])))
    made = prepare({"train": str(file), "dev": str(file)}, 0)
    assert len(made.train) == len(made.dev) == 9
    assert {made.facts[one] for one in ("train", "dev")} == {sha256_of(file)}, "of the same name"
    assert made.score("Ann.", "Ann") == 1.0
    assert made.score("Ben", "Ann") == 0.0
    for text, said in (
        ("", "no questions"),
        ("{", "line 1: not JSON"),
        (json.dumps([1]), "question 1 is not"),
        (json.dumps({**ROW, "answer": ""}), "question 1 is not"),
        (json.dumps({"data": [{"paragraphs": [3]}]}), "question 1 is not"),
        (json.dumps({"data": [3]}), "question 1 is not"),
        (json.dumps({"data": [{"paragraphs": None}]}), "question 1 is not"),
        (json.dumps({"data": [{"paragraphs": [{"qas": 3}]}]}), "question 1 is not"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            reading.read(file)
    with pytest.raises(DataError, match="cannot be read"):
        reading.read(tmp_path)


def test_options_that_do_not_fit_are_refused() -> None:
    for data, said in (
        ({}, "give train and dev"),
        ({"train": "a"}, "give train and dev"),
        (GENERATED | {"train": "a"}, "give train and dev"),
        (GENERATED | {"demonstrations": "hardest"}, "judge is for"),
        (GENERATED | {"least": 6}, "least is 6"),
        (GENERATED | {"demos": 1}, "unknown key"),
    ):
        with pytest.raises(OptionError, match=said):
            prepare(data, 0)
