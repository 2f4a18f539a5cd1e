"""The demonstration's texts: reproducible, right, and without any item that a task asks for."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import re
import sqlite3
from contextlib import closing
from itertools import islice

import pytest

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.conceptual import mini as conceptual_mini
from lm_eval_ext.benchmarks.diner import generated as diner_generated
from lm_eval_ext.benchmarks.diner import mini as diner_mini
from lm_eval_ext.benchmarks.lieder import items as lieder
from lm_eval_ext.benchmarks.magnifico import mini as magnifico_mini
from lm_eval_ext.benchmarks.magnifico.prompt import INSTRUCTION
from lm_eval_ext.demo import training
from lm_eval_ext.training.recipe import read_recipe
from lm_eval_ext.training.starting import new_tokenizer

RECIPE = read_recipe("demo")
MATERIAL = training.prepare(RECIPE.data, 0)
TRAINED = MATERIAL.train
"""All that `make demo` trains on."""

EXAMPLES = magnifico_mini.content()
ASKED = [
    *EXAMPLES.examples,
    *EXAMPLES.combinations,
    *(one for some in EXAMPLES.support.values() for one in some),
]

DISCOURSES = [
    sentence
    for group in [
        *lieder.mini(),
        *(group for one in training.EXPERIMENTS for group in lieder.drawn(200, "seed 0", one)),
    ]
    for sentence in group.sentences
]

TEXTS: dict[str, list[str]] = {
    "lieder": [
        text for one in DISCOURSES for text in (one.context, one.context + one.continuation)
    ],
    "cogs": [
        one.sentence for part in ("dev", "id", "testlex", "gen") for one in cogs_mini.examples(part)
    ],
    "diner": [
        text
        for split, part in (("tmcd", "test"), ("tmcd", "valid"), ("random", "test"))
        for text in diner_mini.split(split)[part]["instructions"]
    ],
    "conceptual": [
        text
        for sample in conceptual_mini.samples()
        for text in (sample.question, *(one.text for one in sample.options))
        if len(text.split()) > 3  # "in the middle" is no item
    ],
    "magnifico": [one.question for one in ASKED],
}
"""What tasks ask, and what chose the settings: ``dev``, ``valid`` and support examples."""

ANSWERS = [
    *(one.form for part in ("dev", "id", "testlex", "gen") for one in cogs_mini.examples(part)),
    *(one.query for one in ASKED),
]
"""What is to be written, where one answer belongs to one question."""

RUN = 13


def words(text: str) -> tuple[str, ...]:
    """Words and Chinese characters: case, signs and spaces do not count."""
    return tuple(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower()))


def runs(text: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {text[start : start + RUN] for start in range(len(text) - RUN + 1)}


def asked(prompt: str) -> str:
    """Of a prompt about a database the description and the question, of others all."""
    return prompt.rpartition(INSTRUCTION)[2].removesuffix("SELECT")


def test_no_item_of_a_task_is_trained_on() -> None:
    """Not as it stands, not with other case, signs and spaces, and no run of 13 of its words."""
    prompts = [asked(prompt) for prompt, _ in TRAINED]
    parts = {
        *(words(part) for prompt in prompts for part in (prompt, prompt.rpartition("-- ")[2])),
        *(words(part) for prompt in prompts for part in re.findall("“(.*)”", prompt)),
    }
    answers = {words(answer) for _, answer in TRAINED} | {
        words(f"SELECT{answer}") for prompt, answer in TRAINED if prompt.endswith("SELECT")
    }
    trained = set[tuple[str, ...]]()
    for prompt, (_, answer) in zip(prompts, TRAINED, strict=True):
        trained |= runs(words(prompt + answer))
    for benchmark, texts in TEXTS.items():
        assert len(texts) > 30, benchmark
        found = [text for text in texts if (of := words(text)) in parts or runs(of) & trained]
        assert found == [], benchmark
    assert [text for text in ANSWERS if words(text) in answers] == []
    # Short ones, anywhere.
    everything = " ".join(word for text in TRAINED[::4] for word in words("".join(text)))
    for text in TEXTS["conceptual"]:
        assert f" {' '.join(words(text))} " not in everything, text


def test_the_check_would_find_what_is_trained_on() -> None:
    trained = {words(asked(prompt)) for prompt, _ in TRAINED}
    assert {words(one.sentence) for one in cogs_mini.examples("train")} <= trained


def test_no_dish_of_the_test_of_new_combinations_is_an_answer() -> None:
    answers = {
        answer.rpartition("：")[2].strip() for prompt, answer in TRAINED if "菜名是什么" in prompt
    }
    parsed = {frozenset(diner_mini.glossary().parse(answer) or ()) for answer in answers}
    assert len(parsed) > 300
    assert not parsed & diner_generated.tested_dishes()


def test_a_seed_gives_its_texts_and_no_others() -> None:
    assert sorted(islice(training.texts("0"), len(TRAINED))) == sorted(TRAINED)
    assert list(islice(training.texts("1"), 500)) != list(islice(training.texts("0"), 500))
    assert set(MATERIAL.dev) - set(TRAINED), "most are new"
    assert RECIPE.training.max_steps * RECIPE.training.batch == len(TRAINED), "each once"
    assert RECIPE.training.batch == RECIPE.data["batch"]


def test_shares_of_the_kinds() -> None:
    form = re.compile(r"LAMBDA|x _ |\A [A-Z][a-z]+\Z")
    found = {
        "form": sum(bool(form.search(answer)) for _, answer in TRAINED),
        "recipe": sum(prompt.startswith("“") for prompt, _ in TRAINED),
        "query": sum(prompt.endswith("SELECT") for prompt, _ in TRAINED),
    }
    for kind, count in found.items():
        assert count / len(TRAINED) == pytest.approx(training.SHARES[kind], abs=0.02), kind


def test_queries_run_on_their_databases() -> None:
    queries = [(prompt, answer) for prompt, answer in TRAINED if prompt.endswith("SELECT")][:400]
    first = {blocks[0]: name for name, blocks in training.blocks().items()}
    found = 0
    for prompt, answer in queries:
        name = next(name for block, name in first.items() if prompt.startswith(block))
        with closing(sqlite3.connect(magnifico_mini.databases()[name].path)) as connection:
            found += bool(connection.execute(f"SELECT{answer}").fetchall())
    assert found > 0.8 * len(queries), "most have rows"


def test_a_word_is_described_where_it_is_asked_about() -> None:
    for prompt, _ in TRAINED:
        if "-- The word '" in prompt or "-- The phrase '" in prompt:
            said, question = asked(prompt).split("\n\n-- ")[-2:]
            assert said.split("'")[1] in question


DEFINITE = re.compile(r"[^.]*\. The (\w+) [^.]*\.")


def test_what_does_not_exist_is_not_referred_to() -> None:
    denied = re.compile(r"likewise unable|equally unlikely|, nor |either\.|I doubt .* I doubt ")
    texts = [prompt + answer for prompt, answer in TRAINED if denied.search(prompt)]
    assert len(texts) > 500
    assert not any(DEFINITE.fullmatch(text) for text in texts)


def test_one_of_them_is_singular_and_two_are_plural() -> None:
    singular = {item.noun for item in training.items()}
    plural = {item.plural for item in training.items()}
    texts = [prompt + answer for prompt, answer in TRAINED]
    one = [text for text in texts if ", whereas " in text or ", but it is " in text]
    two = [
        text for text in texts if re.search("likewise able|equally certain|, and .* also ", text)
    ]
    for members, nouns in ((one, singular), (two, plural)):
        found = {match[1] for text in members if (match := DEFINITE.fullmatch(text))}
        assert found == nouns


def test_the_tokenizer_gives_every_text_back() -> None:
    assert RECIPE.model.tokenizer is not None
    tokenizer = new_tokenizer(
        RECIPE.model.tokenizer, MATERIAL.vocabulary, encoder_decoder=True, whole=MATERIAL.whole
    )
    others = ["Zwölf Boxkämpfer: 漢字 🐐\n\tSELECT * FROM t;"]
    trained = [part for text in TRAINED[:200] for part in text]
    for one in [*others, *ANSWERS[::40], *trained]:
        assert tokenizer.decode(tokenizer.encode(one, add_special_tokens=False)) == one
    longest = max(len(tokenizer.encode(prompt)) for prompt, _ in TRAINED[:500])
    assert longest < RECIPE.training.max_source_length / 2, "tables are one token each"
