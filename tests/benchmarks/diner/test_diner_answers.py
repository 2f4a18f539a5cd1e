"""Prompts; names, components and earlier answers in what models write; material for training."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import csv
import itertools
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import diner_own
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner import component_answers, generated, load, mini, prompt, training
from lm_eval_ext.benchmarks.diner.answers import MAX_CHARS, name_of
from lm_eval_ext.benchmarks.diner.component_answers import (
    UNKNOWN,
    components_in,
    listed_words,
    name_after_components,
)
from lm_eval_ext.benchmarks.diner.glossary import Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import PLACEHOLDER
from lm_eval_ext.training.recipe import prepare as prepare_source

GLOSSARY = Glossary(diner_own.GLOSSARY)
CASES = yaml.safe_load(Path(__file__).with_name("diner_cases.yaml").read_text("utf-8"))

COMPONENTS: dict[str, list[str]] = {"action": ["炒"], "flavour": [], "food": ["鸡蛋", "番茄"]}


def test_prompts_are_the_authors() -> None:
    """Prompts have their questions and order (dataset.py of their repository)."""
    assert prompt.name_prompt("做熟。") == "“做熟。” 这个菜谱的菜名是什么？"
    assert prompt.component_prompts("做熟。", prompt.AUTHORS) == [
        "“做熟。” 这个菜谱的主要操作是什么？",
        "“做熟。” 这个菜谱的主要风味是什么？",
        "“做熟。” 这个菜谱的主要食材是什么？",
    ]


@pytest.mark.parametrize(
    ("wording", "statement"),
    [
        (prompt.OURS, "烹饪方法：炒；主料或形式：鸡蛋、番茄。"),
        (prompt.AUTHORS, "这个菜谱的主要操作是炒,这个菜谱的主要食材是鸡蛋,番茄,"),
    ],
)
def test_prompts_state_known_components(wording: Any, statement: str) -> None:
    """Kinds without components are left out; without any, the question stands alone."""
    stated = prompt.given_components_prompt("做熟。", COMPONENTS, wording)
    assert stated == f"“做熟。” {statement}这个菜谱的菜名是什么？"
    nothing = dict.fromkeys(COMPONENTS, ())
    unstated = prompt.given_components_prompt("做熟。", nothing, wording)
    assert unstated == prompt.name_prompt("做熟。")


def test_one_prompt_asks_for_all_and_begins_the_first_line() -> None:
    """Components come in lines before the name."""
    assert prompt.one_prompt("做熟。") == (
        "“做熟。”\n先用三行写出“烹饪方法：”、“味道：”、“主料或形式：”（没有就写“无”），"
        "再用第四行“菜名：”回答：这个菜谱的菜名是什么？\n烹饪方法："
    )


@pytest.mark.parametrize("answer", CASES["parts"])
def test_an_answer_is_divided_into_parts(answer: str) -> None:
    """An answer is divided at commas and the like, and words for nothing are no part."""
    assert list(listed_words(answer)) == CASES["parts"][answer]


@pytest.mark.parametrize("answer", CASES["words"])
def test_components_are_read_out_of_an_answer(answer: str) -> None:
    """Synonyms and words of several components are read by the glossary."""
    components = sorted(components_in(answer, GLOSSARY))
    listed = ", ".join(f"{component.kind} {component.name}" for component in components)
    assert listed == CASES["words"][answer]


@pytest.mark.parametrize("kind", CASES["components"])
def test_a_component_with_the_word_for_its_kind_is_that_component(
    kind: str, published: Glossary
) -> None:
    """All words of both glossaries, in all forms."""
    for glossary in (mini.glossary(), published):
        for form, word in itertools.product(CASES["components"][kind], glossary.as_dict()[kind]):
            expected = set(glossary.parse(word) or ())
            assert components_in(form.format(word), glossary) == expected, form.format(word)


@pytest.mark.parametrize("answer", CASES["no_components"])
def test_such_words_make_no_component_of_what_is_none(answer: str) -> None:
    """The word for a kind after something else is one unknown component."""
    assert {component.kind for component in components_in(answer, GLOSSARY)} == {UNKNOWN}


@pytest.mark.parametrize("answer", CASES["lines"])
def test_the_name_is_read_after_components(answer: str) -> None:
    """The line with the name is found among those with components."""
    assert name_of(name_after_components(answer)) == CASES["lines"][answer]


def recipes_to_ask() -> list[Recipe]:
    """Return the test recipes of our own corpus, as the loader numbers them."""
    recipes = []
    for number, (name, instruction) in enumerate(diner_own.TEST):
        recipes.append(Recipe(f"test-{number}", instruction, name))
    return recipes


RECIPES = recipes_to_ask()
INSTRUCTIONS = {recipe.id: recipe.instruction for recipe in RECIPES}


def write_log(folder: Path, responses: dict[str, list[str]]) -> Path:
    """Write a log of diner_components as lm-eval does."""
    file = folder / "samples_diner_components_2026.jsonl"
    with file.open("w", encoding="utf-8") as log:
        for name, answers in responses.items():
            doc = {"id": name, "instruction": INSTRUCTIONS[name]}
            row = {"doc": doc, "filtered_resps": answers}
            log.write(json.dumps(row, ensure_ascii=False) + "\n")
    return file


@pytest.mark.parametrize(
    ("wording", "statement"),
    [
        ("ours", "烹饪方法：红烧；主料或形式：洋芋、糖。"),
        ("authors", "这个菜谱的主要操作是红烧,这个菜谱的主要食材是洋芋,糖,"),
    ],
)
def test_earlier_answers_stand_in_the_prompts(tmp_path: Path, wording: str, statement: str) -> None:
    """Recipes without an answer to each question are not asked, and are named."""
    answers = {
        "test-0": ["红烧", "无", "洋芋，糖。"],
        "test-1": ["红烧", PLACEHOLDER, "土豆"],
        "test-2": ["", "", ""],
    }
    task = load.dataset.load(
        {
            "diner_dir": str(diner_own.write(tmp_path / "data")),
            "diner_ask": "cp",
            "diner_components_file": str(write_log(tmp_path, answers)),
            "diner_wording": wording,
        }
    )
    assert {row["id"]: row["input"] for row in task.dataset["test"]} == {
        "test-0": f"“{INSTRUCTIONS['test-0']}” {statement}这个菜谱的菜名是什么？",
        "test-2": f"“{INSTRUCTIONS['test-2']}” 这个菜谱的菜名是什么？",
    }
    assert sorted(task.excluded[load.UNANSWERED]) == ["test-1", "test-3", "test-4"]


def test_an_absent_log_is_refused(tmp_path: Path) -> None:
    """The error says how the file is to be named."""
    with pytest.raises(OptionError, match=r"none\.jsonl: No such file.*; name the file samples"):
        component_answers.read_answers(tmp_path / "none.jsonl", RECIPES)


@pytest.mark.parametrize(
    ("recipes", "message"),
    [
        (RECIPES[:1], "has no answers about these recipes"),
        (
            [Recipe("test-1", "另一种做法。", "炒牛肉")],
            "line 1: test-1 is a different recipe in this log",
        ),
    ],
    ids=["no answer", "another recipe"],
)
def test_a_log_about_other_recipes_is_refused(
    tmp_path: Path, recipes: list[Recipe], message: str
) -> None:
    """The error says that the log does not fit, and names the recipe."""
    file = write_log(tmp_path, {"test-1": ["", "", ""]})
    with pytest.raises((OptionError, DataError), match=message):
        component_answers.read_answers(file, recipes)


ONE_ANSWER = json.dumps(
    {
        "doc": {"id": "test-1", "instruction": INSTRUCTIONS["test-1"]},
        "filtered_resps": ["a"],
    }
)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"\xff\xfe{}",
        b"{}",
        ONE_ANSWER.encode(),
    ],
    ids=["cut off", "no UTF-8", "no keys", "one answer"],
)
def test_a_line_that_is_no_logged_answer_is_refused(tmp_path: Path, line: bytes) -> None:
    """The error names the line."""
    file = tmp_path / "samples_diner_components_2026.jsonl"
    file.write_bytes(line)
    with pytest.raises(DataError, match="line 1: not a logged answer to 3 component questions"):
        component_answers.read_answers(file, RECIPES)


FILE = Path(__file__).parents[3] / "docs" / "benchmarks" / "diner_extraction.csv"
MARKED = FILE.read_text(encoding="utf-8").translate({ord("␀"): "\0", ord("·"): "\u200b"})
_, *DOCUMENTED = csv.reader(MARKED.splitlines())


@pytest.mark.parametrize(("answer", "name"), [*DOCUMENTED, *CASES["stays"].items()])
def test_an_answer_names_a_dish(answer: str, name: str) -> None:
    """Answers are read as documented; a text that only looks like an announcement is none."""
    assert name_of(answer.replace("⏎", "\n")) == name


def test_real_names_and_words_come_back_as_they_are(
    real_titles: list[str], published: Glossary
) -> None:
    """A name alone is read as itself, in a sentence too; so is each word of the glossary."""
    names = []
    for title in real_titles:
        name = clean_name(title)
        if name and published.parse(name):
            names.append(name)
    assert len(names) > 500
    for name in names:
        assert name_of(name) == name
        assert name_of(f"这个菜谱的菜名是“{name}”。") == name
    for words in published.as_dict().values():
        for word in words:
            assert name_of(word) == word


CHAT = yaml.safe_load(Path(__file__).with_name("diner_chat_cases.yaml").read_text("utf-8"))
READ_FORMS = list(itertools.chain(*CHAT["right"].values()))
NEAR_FORMS = list(itertools.chain(*CHAT["wrong"].values()))


@pytest.mark.parametrize("form", READ_FORMS)
def test_forms_of_chat_models_are_read(form: str) -> None:
    """Markup, announcements and reasoning around a name, in the forms of chat models."""
    for name in ("红烧土豆", "可乐鸡翅"):
        assert name_of(form.replace("@", name)) == name


@pytest.mark.parametrize("form", NEAR_FORMS)
def test_near_forms_are_not_read(form: str) -> None:
    """Denied names, several names, examples, and names in the reasoning alone are no answer."""
    for name in ("红烧土豆", "可乐鸡翅"):
        assert name_of(form.replace("@", name)) != name


def names_to_read(titles: Iterable[str]) -> set[str]:
    """Return the names of mini, a tenth of real names, and two with words of announcements."""
    names = {"叫花鸡", "可乐鸡翅"}
    for recipes in mini.split("tmcd").values():
        names.update(recipes["names"])
    for title in titles:
        name = clean_name(title)
        if name_of(name) == name:
            names.add(name)
    return names - {""}


@pytest.mark.parametrize("family", CASES["found"])
def test_every_form_of_a_family_gives_every_name(family: str, real_titles: list[str]) -> None:
    """Announcements are read around any name."""
    names = names_to_read(real_titles[::10])
    assert len(names) > 100
    for form, name in itertools.product(CASES["found"][family], names):
        assert name_of(form.format(name)) == name, form


@pytest.mark.parametrize(
    "piece", [*'番“( \n\0\ufdfaa"', "菜名是", "这道菜是", "是一道", "*`", "“番"]
)
def test_hostile_length_is_cut(piece: str) -> None:
    """No name is longer than what is read, and reading ends."""
    assert len(name_of(piece * 200_000)) <= MAX_CHARS


def test_the_first_characters_after_thoughts_are_read() -> None:
    """Thoughts do not count for the length that is read; empty lines do."""
    assert name_of("\n" * (MAX_CHARS - 3) + "红烧鱼") == "红烧鱼"
    assert name_of("\n" * MAX_CHARS + "红烧鱼") == ""
    assert name_of("<think>" + "鱼" * 10 * MAX_CHARS + "</think>\n\n红烧鱼") == "红烧鱼"


@given(
    st.text(
        alphabet="番茄炒蛋是叫菜名这道一的做法“”「」()【】:，。\n<think></ 好1-或*`", max_size=60
    )
)
def test_any_mixture_of_what_the_rule_knows_gives_a_name(answer: str) -> None:
    """A name has no marks, and is empty where there is no Chinese, but for words of thoughts."""
    name = name_of(answer)
    if set(name) & set("番茄炒蛋是叫菜名这道一的做法好或"):
        assert not set(name) & set("\n“”「」()【】:，。<></1-*` ")
    else:
        assert not name or set(name) & set("think1")


MINI = {"corpus": "mini", "generated": 60}
prepare = partial(prepare_source, training.__name__)
QUESTIONS = ("主要操作", "主要风味", "主要食材")


def test_material_has_written_and_generated_recipes() -> None:
    """Gates are no training material, and no dish of the task is trained on."""
    material = prepare(MINI, 0)
    assert len(material.train) == 34 + 60
    sizes = {name: len(pairs) for name, pairs in material.gates.items()}
    assert sizes == {"dev": 200, "written": 8}
    assert dict(material.train).keys().isdisjoint(dict(material.dev))
    trained = {generated.components(name) for _, name in (*material.train, *material.dev)}
    assert generated.tested_dishes().isdisjoint(trained)


def test_a_seed_changes_generated_recipes_only() -> None:
    """The 34 written recipes and the gates stay."""
    material = prepare(MINI, 0)
    of_another_seed = prepare(MINI, 1)
    assert material.train[:34] == of_another_seed.train[:34]
    assert material.train != of_another_seed.train
    assert material.gates == of_another_seed.gates


def test_component_questions_are_about_the_same_recipes() -> None:
    """Three questions replace each one for a name, and their answers make up the name."""
    about_names = prepare(MINI, 0).train
    about_components = prepare(MINI | {"ask": "components"}, 0).train
    assert len(about_components) == 3 * len(about_names)
    remaining = iter(about_components)
    for name_question, name in about_names:
        words: list[str] = []
        for topic in QUESTIONS:
            question, answer = next(remaining)
            assert question == name_question.replace("菜名", topic)
            words.extend(filter(None, answer.split(",")))
        assert sorted(words) == sorted(mini.glossary().words_in(name) or ())


def test_a_smaller_share_is_a_part_of_a_larger_one() -> None:
    """The model file says which share was trained on."""
    fifth = prepare({"corpus": "mini", "share": 0.2}, 0)
    three_fifths = prepare({"corpus": "mini", "share": 0.6}, 0)
    all_recipes = prepare({"corpus": "mini", "share": 1}, 0)
    assert len(fifth.train) == 7
    assert len(three_fifths.train) == 20
    assert len(all_recipes.train) == 34
    assert set(fifth.train) < set(three_fifths.train) < set(all_recipes.train)
    assert fifth.model_file == {"training_share": 0.2}


def test_a_model_file_names_the_folder_of_recipes(tmp_path: Path) -> None:
    """Tasks ask about the same folder, in the wording that was trained."""
    folder = str(diner_own.write(tmp_path))
    material = prepare({"dir": folder, "ask": "components"}, 0)
    assert material.model_file["metadata"] == {"diner_dir": folder, "diner_wording": "authors"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("红烧牛肉", 1.0),
        ("菜名是“红烧牛肉”。", 1.0),
        ("红烧肥牛", 1.0),
        ("红烧茄子", 0.5),
        ("清蒸鱼", 0.0),
        ("", 0.0),
    ],
)
def test_a_gate_scores_names_by_f1(answer: str, expected: float) -> None:
    """Synonyms are right, and one of two components is half right."""
    assert prepare(MINI, 0).score(answer, "红烧牛肉") == expected


@pytest.mark.parametrize(
    ("answer", "target", "expected"),
    [
        ("", "", 1.0),
        ("番茄,土豆", "土豆,西红柿", 1.0),
        ("无", "", 1.0),
        ("", "炒", 0.0),
        ("炒", "", 0.0),
        ("烤", "炒", 0.0),
    ],
)
def test_a_gate_scores_components_as_sets(answer: str, target: str, expected: float) -> None:
    """Order and synonyms do not count, and nothing is right where there is nothing."""
    assert prepare(MINI | {"ask": "components"}, 0).score(answer, target) == expected


def answer_as_folder(model: Path, prompts: Iterable[str], *, max_gen_toks: int) -> list[str]:
    """Stand in for a model that names its folder as the action and forgets the flavour."""
    assert max_gen_toks == 16
    answers = {"主要操作": model.name, "主要风味": "", "主要食材": "土豆, 鱼"}
    responses = []
    for prompt_text in prompts:
        (topic,) = [topic for topic in answers if f"{topic}是什么" in prompt_text]
        responses.append(answers[topic])
    return responses


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that makes the folder of an auxiliary model, with a stand-in for it."""
    monkeypatch.setattr(training, "generate_answers", answer_as_folder)

    def make(name: str, **data: Any) -> str:
        folder = tmp_path / name
        folder.mkdir()
        recipe = {"source": training.__name__, "data": MINI | {"ask": "components"} | data}
        (folder / "training.json").write_text(json.dumps({"recipe": recipe}))
        return str(folder)

    return make


STATED = "这个菜谱的主要操作是aux,这个菜谱的主要食材是土豆,鱼,这个菜谱的菜名是什么？"
"""The end of a prompt with the predictions of the stand-in in the folder ``aux``."""


def test_predictions_stand_before_the_question_in_training_and_in_the_task(
    trained: Callable[..., str],
) -> None:
    """The task has the prompts that were trained."""
    material = prepare(MINI | {"ask": "cp", "auxiliary": trained("aux")}, 0)
    for text, _ in (*material.train, *material.gates["dev"]):
        assert text.endswith(f"” {STATED}")
    docs = load_task("diner_mini_cp", **material.model_file["metadata"]).eval_docs
    assert len(docs) == 24
    for doc in docs:
        assert doc["input"].endswith(f"” {STATED}")


def test_predictions_are_kept(trained: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The auxiliary model is not asked a second time."""
    data = MINI | {"ask": "cp", "auxiliary": trained("aux")}
    material = prepare(data, 0)
    monkeypatch.setattr(training, "generate_answers", None)
    assert prepare(data, 0).digest() == material.digest()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"ask": "cp"}, "auxiliary is for ask: cp"),
        ({"ask": "text"}, "are for ask: text, which needs them"),
        ({"shar": 0.5}, "did you mean share"),
        ({"corpus": "published"}, "go with corpus: mini"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(data: dict[str, Any], message: str) -> None:
    """The error says which option goes with which."""
    with pytest.raises(OptionError, match=message):
        prepare(MINI | data, 0)


@pytest.mark.parametrize(
    ("trained_with", "message"),
    [
        ({"ask": "name"}, "data.ask 'name', and here an auxiliary model with 'c"),
        ({"share": 0.5}, "data.share 0.5, and here"),
    ],
    ids=str,
)
def test_an_auxiliary_model_of_another_training_is_refused(
    trained: Callable[..., str], trained_with: dict[str, Any], message: str
) -> None:
    """It must have been trained on the same recipes, and on questions about components."""
    folder = trained("other", **trained_with)
    with pytest.raises(OptionError, match=message):
        prepare(MINI | {"ask": "cp", "auxiliary": folder}, 0)


def test_a_folder_without_an_auxiliary_model_is_refused(tmp_path: Path) -> None:
    """The error says that it holds no training."""
    with pytest.raises(OptionError, match="no training"):
        prepare(MINI | {"ask": "cp", "auxiliary": str(tmp_path)}, 0)
