"""The demonstration's texts: reproducible, right, and without any item that a task asks for."""

import re
import sqlite3
from contextlib import closing
from functools import cache
from itertools import chain, islice
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
FORMS = list(chain.from_iterable(map(cogs_mini.examples, ("dev", "id", "testlex", "gen"))))
GROUPS = [*lieder.mini_groups()]
for experiment in get_args(Experiment):
    GROUPS += lieder.draw_groups(200, "seed 0", experiment)


def discourses() -> list[str]:
    """Return the contexts of LIEDER's tasks, alone and with each continuation."""
    texts = []
    for group in GROUPS:
        for sentence in group.sentences:
            texts += [sentence.context, sentence.context + sentence.continuation]
    return texts


def recipes() -> list[str]:
    """Return the recipes of DiNeR's tasks."""
    texts: list[str] = []
    for split, section in (("tmcd", "test"), ("tmcd", "valid"), ("random", "test")):
        texts += diner_mini.split(split)[section]["instructions"]
    return texts


TASK_TEXTS: dict[str, list[str]] = {
    "lieder": discourses(),
    "cogs": [form.sentence for form in FORMS],
    "diner": recipes(),
    "magnifico": [question.question for question in QUESTIONS],
}
"""The texts of tasks, and those that chose settings: ``dev``, ``valid`` and support examples."""

ANSWERS = [*(form.form for form in FORMS), *(question.query for question in QUESTIONS)]
"""The right answers of tasks in which an answer belongs to one question."""

RUN = 13
"""Words in a row that no text of a task may share with a text that is trained on."""

Words = tuple[str, ...]


@cache
def material() -> Material:
    """Return all that the recipe `demo` trains on: seconds, which collecting does not need."""
    return prepare(RECIPE.source, RECIPE.data, 0)


def queries() -> list[tuple[str, str]]:
    """Return the training texts about databases."""
    return [pair for pair in material().train if pair[0].endswith("SELECT")]


def words(text: str) -> Words:
    """Return words and Chinese characters: case, signs and spaces do not count."""
    return tuple(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower()))


def runs(text: Words) -> set[Words]:
    """Return all runs of so many words in a text."""
    return {text[start : start + RUN] for start in range(len(text) - RUN + 1)}


def question_in(prompt: str) -> str:
    """Return description and question of a prompt about a database; all of another prompt."""
    return prompt.rpartition(training.INSTRUCTION)[2].removesuffix("SELECT")


def sections(prompt: str) -> list[str]:
    """Return a prompt, its question alone, and the recipes that it quotes."""
    return [prompt, prompt.rpartition("-- ")[2], *re.findall("“(.*)”", prompt)]


@cache
def trained_words() -> tuple[set[Words], set[Words]]:
    """Return the words of each section that is trained on, and all runs of words."""
    trained_sections: set[Words] = set()
    trained_runs: set[Words] = set()
    for prompt, answer in material().train:
        question = question_in(prompt)
        trained_sections.update(words(section) for section in sections(question))
        trained_runs |= runs(words(question + answer))
    return trained_sections, trained_runs


def test_prompts_and_vocabulary_have_no_tables() -> None:
    for prompt, _ in material().train:
        assert "CREATE TABLE" not in question_in(prompt), prompt
    for text in material().vocabulary:
        assert "CREATE TABLE" not in text, text


def test_sentences_that_are_trained_on_would_be_found() -> None:
    trained_sections, _ = trained_words()
    assert {words(example.sentence) for example in cogs_mini.examples("train")} <= trained_sections


@pytest.mark.parametrize("benchmark", TASK_TEXTS)
def test_no_text_of_a_task_is_trained_on(benchmark: str) -> None:
    """Not as it stands, not with other case, signs and spaces, and no run of 13 of its words."""
    trained_sections, trained_runs = trained_words()
    assert len(TASK_TEXTS[benchmark]) > 30
    for text in TASK_TEXTS[benchmark]:
        assert words(text) not in trained_sections, text
        assert not runs(words(text)) & trained_runs, text


def test_no_answer_of_a_task_is_trained_on() -> None:
    answers = {words(answer) for _, answer in material().train}
    answers |= {words(f"SELECT{answer}") for _, answer in queries()}
    assert [text for text in ANSWERS if words(text) in answers] == []


def test_no_dish_of_the_test_of_new_combinations_is_an_answer() -> None:
    dishes = set()
    for prompt, answer in material().train:
        if "菜名是什么" in prompt:
            dishes.add(frozenset(diner_mini.glossary().parse(answer.strip()) or ()))
    assert len(dishes) > 300
    assert not dishes & diner_generated.tested_dishes()


def test_a_seed_gives_its_texts_and_no_others() -> None:
    train = material().train
    assert [*islice(training.texts(0), 2000)] == train[:2000]
    assert [*islice(training.texts(1), 500)] != train[:500]
    assert len(train) == RECIPE.training.batch * (RECIPE.training.max_steps or 0), "each once"


def test_queries_run_on_their_databases_and_words_are_described_where_they_are_asked() -> None:
    databases = {blocks[0]: name for name, blocks in training.blocks().items()}
    with_rows = 0
    for prompt, answer in queries()[:400]:
        name = next(name for block, name in databases.items() if prompt.startswith(block))
        with closing(sqlite3.connect(magnifico_mini.databases()[name].path)) as connection:
            if connection.execute(f"SELECT{answer}").fetchall():
                with_rows += 1
        *_, description, question = prompt.split("\n\n-- ")
        if description.startswith("The "):
            assert description.split("'")[1] in question
    assert with_rows > 320, "most have rows"


EITHER = r"either\.|failed .* failed|I doubt .* I doubt|, nor |equally unlikely|unable .* unable"
"""Contexts of two sentences after which nothing exists."""

ONE = ", whereas|, but it is"
"""Contexts of two sentences after which one thing exists."""


@pytest.mark.parametrize(
    ("pattern", "wrong_words"),
    [
        pytest.param(EITHER, {"The"}, id="what does not exist is not referred to"),
        pytest.param(ONE, {item.plural for item in lieder.mini_items()}, id="one is singular"),
    ],
)
def test_continuations_refer_to_what_exists(pattern: str, wrong_words: set[str]) -> None:
    answers = [answer for context, answer in material().train if re.search(pattern, context)]
    assert len(answers) > 300
    for answer in answers:
        assert wrong_words.isdisjoint(answer.split()[:2]), answer
