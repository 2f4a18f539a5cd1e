"""The demonstration's texts: reproducible, right, and without any item that a task asks for."""

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from itertools import islice
from typing import get_args

import pytest

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.diner import generated as diner_generated
from lm_eval_ext.benchmarks.diner import mini as diner_mini
from lm_eval_ext.benchmarks.lieder import items as lieder
from lm_eval_ext.benchmarks.lieder.records import Experiment
from lm_eval_ext.benchmarks.magnifico import mini as magnifico_mini
from lm_eval_ext.demo import training
from lm_eval_ext.training.recipe import Material, prepare, read_recipe

pytestmark = pytest.mark.xdist_group("demonstration texts")

RECIPE = read_recipe("demo")
EXAMPLES = magnifico_mini.content()
QUESTIONS = [*EXAMPLES.examples, *EXAMPLES.combinations, *EXAMPLES.solved]
FORMS = [one for part in ("dev", "id", "testlex", "gen") for one in cogs_mini.examples(part)]
GROUPS = [*lieder.mini()]
for experiment in get_args(Experiment):
    GROUPS += lieder.drawn(200, "seed 0", experiment)
DISCOURSES = [sentence for group in GROUPS for sentence in group.sentences]

ASKED: dict[str, Iterable[str]] = {
    "lieder": [
        text for one in DISCOURSES for text in (one.context, one.context + one.continuation)
    ],
    "cogs": [one.sentence for one in FORMS],
    "diner": [
        text
        for split, part in (("tmcd", "test"), ("tmcd", "valid"), ("random", "test"))
        for text in diner_mini.split(split)[part]["instructions"]
    ],
    "magnifico": [one.question for one in QUESTIONS],
}
"""What tasks ask, and what chose the settings: ``dev``, ``valid`` and support examples."""

ANSWERS = [*(one.form for one in FORMS), *(one.query for one in QUESTIONS)]
"""What is to be written, where one answer belongs to one question."""

RUN = 13


@cache
def material() -> Material:
    """All that the recipe `demo` trains on: seconds, which collecting the tests does not need."""
    return prepare(RECIPE.source, RECIPE.data, 0)


def queries() -> list[tuple[str, str]]:
    return [pair for pair in material().train if pair[0].endswith("SELECT")]


def words(text: str) -> tuple[str, ...]:
    """Words and Chinese characters: case, signs and spaces do not count."""
    return tuple(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower()))


def runs(text: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {text[start : start + RUN] for start in range(len(text) - RUN + 1)}


def asked(prompt: str) -> str:
    """Of a prompt about a database the description and the question, of others all."""
    return prompt.rpartition(training.INSTRUCTION)[2].removesuffix("SELECT")


def test_no_item_of_a_task_is_trained_on() -> None:
    """Not as it stands, not with other case, signs and spaces, and no run of 13 of its words."""
    prompts = [asked(prompt) for prompt, _ in material().train]
    assert not any("CREATE TABLE" in text for text in (*prompts, *material().vocabulary))
    parts = {
        words(part)
        for prompt in prompts
        for part in (prompt, prompt.rpartition("-- ")[2], *re.findall("“(.*)”", prompt))
    }
    own = {words(one.sentence) for one in cogs_mini.examples("train")}
    assert own <= parts, "what is trained on would be found"
    trained = set[tuple[str, ...]]()
    for prompt, (_, answer) in zip(prompts, material().train, strict=True):
        trained |= runs(words(prompt + answer))
    for benchmark, texts in ASKED.items():
        assert len([*texts]) > 30, benchmark
        found = [text for text in texts if (of := words(text)) in parts or runs(of) & trained]
        assert found == [], benchmark
    answers = {words(answer) for _, answer in material().train}
    answers |= {words(f"SELECT{answer}") for _, answer in queries()}
    assert [text for text in ANSWERS if words(text) in answers] == []


def test_no_dish_of_the_test_of_new_combinations_is_an_answer() -> None:
    answers = {answer.strip() for prompt, answer in material().train if "菜名是什么" in prompt}
    parsed = {frozenset(diner_mini.glossary().parse(answer) or ()) for answer in answers}
    assert len(parsed) > 300
    assert not parsed & diner_generated.tested_dishes()


def test_a_seed_gives_its_texts_and_no_others() -> None:
    made = material().train
    assert [*islice(training.texts(0), 2000)] == made[:2000]
    assert [*islice(training.texts(1), 500)] != [*islice(training.texts(0), 500)]
    assert len(made) == RECIPE.training.batch * (RECIPE.training.max_steps or 0), "each once"


def test_queries_run_on_their_databases_and_words_are_described_where_they_are_asked() -> None:
    first = {blocks[0]: name for name, blocks in training.blocks().items()}
    found = 0
    for prompt, answer in queries()[:400]:
        name = next(name for block, name in first.items() if prompt.startswith(block))
        with closing(sqlite3.connect(magnifico_mini.databases()[name].path)) as connection:
            found += bool(connection.execute(f"SELECT{answer}").fetchall())
        *_, said, question = prompt.split("\n\n-- ")
        if said.startswith("The "):
            assert said.split("'")[1] in question
    assert found > 320, "most have rows"


def test_what_does_not_exist_is_not_referred_to_and_one_is_singular() -> None:
    both = r"either\.|failed .* failed|I doubt .* I doubt|, nor |equally unlikely|unable .* unable"
    plural = {item.plural for item in lieder.mini_items()}
    for pattern, wrong in ((both, {"The"}), (", whereas|, but it is", plural)):
        said = [answer for context, answer in material().train if re.search(pattern, context)]
        assert len(said) > 300
        assert wrong.isdisjoint(word for answer in said for word in answer.split()[:2])
