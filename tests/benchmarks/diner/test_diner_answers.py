"""Prompts; names, components and earlier answers in what models write; material for training."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import csv
import itertools
import json
from collections import defaultdict
from collections.abc import Callable
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
    name_after_components,
    parts,
)
from lm_eval_ext.benchmarks.diner.glossary import Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import PLACEHOLDER
from lm_eval_ext.training.recipe import prepare as of_source

GLOSSARY = Glossary(diner_own.GLOSSARY)
FAMILIES = yaml.safe_load(Path(__file__).with_name("diner_cases.yaml").read_text("utf-8"))
FOUND, STAYS, COMPONENTS, NO_COMPONENTS, PARTS, WORDS, LINES, *_ = FAMILIES.values()


GIVEN: dict[str, list[str]] = {"action": ["炒"], "flavour": [], "food": ["鸡蛋", "番茄"]}


def test_prompts_are_the_authors() -> None:
    """Their questions, order and commas (dataset.py of their repository)."""
    name = "“做熟。” 这个菜谱的菜名是什么？"
    assert prompt.name_prompt("做熟。") == name
    assert prompt.component_prompts("做熟。", prompt.AUTHORS) == [
        "“做熟。” 这个菜谱的主要操作是什么？",
        "“做熟。” 这个菜谱的主要风味是什么？",
        "“做熟。” 这个菜谱的主要食材是什么？",
    ]
    stated = {
        prompt.OURS: "烹饪方法：炒；主料或形式：鸡蛋、番茄。",
        prompt.AUTHORS: "这个菜谱的主要操作是炒,这个菜谱的主要食材是鸡蛋,番茄,",
    }
    for wording, text in stated.items():
        found = prompt.given_components_prompt("做熟。", GIVEN, wording)
        assert found == f"“做熟。” {text}这个菜谱的菜名是什么？"
        nothing = dict.fromkeys(GIVEN, ())
        assert prompt.given_components_prompt("做熟。", nothing, wording) == name
    # All in one prompt, which begins the first line.
    assert prompt.one_prompt("做熟。") == (
        "“做熟。”\n先用三行写出“烹饪方法：”、“味道：”、“主料或形式：”（没有就写“无”），"
        "再用第四行“菜名：”回答：这个菜谱的菜名是什么？\n烹饪方法："
    )


@pytest.mark.parametrize("answer", PARTS)
def test_the_parts_of_an_answer(answer: str) -> None:
    assert list(parts(answer)) == PARTS[answer]


@pytest.mark.parametrize("answer", WORDS)
def test_the_components_of_an_answer(answer: str) -> None:
    found = sorted(components_in(answer, GLOSSARY))
    assert ", ".join(f"{one.kind} {one.name}" for one in found) == WORDS[answer]


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_component_with_the_word_for_its_kind_is_that_component(
    kind: str, published: Glossary
) -> None:
    for form, glossary in itertools.product(COMPONENTS[kind], (mini.glossary(), published)):
        for word in glossary.as_dict()[kind]:
            assert components_in(form.format(word), glossary) == set(glossary.parse(word) or ())


@pytest.mark.parametrize("answer", NO_COMPONENTS)
def test_such_words_make_no_component_of_what_is_none(answer: str) -> None:
    assert {one.kind for one in components_in(answer, GLOSSARY)} == {UNKNOWN}


@pytest.mark.parametrize("answer", LINES)
def test_the_name_after_components(answer: str) -> None:
    assert name_of(name_after_components(answer)) == LINES[answer]


RECIPES = [Recipe(f"test-{n}", text, name) for n, (name, text) in enumerate(diner_own.TEST)]
TEXTS = {one.id: one.instruction for one in RECIPES}


def logged(folder: Path, responses: dict[str, list[str]]) -> Path:
    """A log of diner_components as lm-eval writes it."""
    rows = [
        {"doc": {"id": name, "instruction": TEXTS[name]}, "filtered_resps": given}
        for name, given in responses.items()
    ]
    file = folder / "samples_diner_components_2026.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def test_earlier_answers_stand_in_the_prompts(tmp_path: Path) -> None:
    answers = {
        "test-0": ["红烧", "无", "洋芋，糖。"],
        "test-1": ["红烧", PLACEHOLDER, "土豆"],
        "test-2": ["", "", ""],
    }
    options = {
        "diner_dir": str(diner_own.write(tmp_path / "data")),
        "diner_ask": "cp",
        "diner_components_file": str(logged(tmp_path, answers)),
    }
    for wording, stated in (
        ("ours", "烹饪方法：红烧；主料或形式：洋芋、糖。"),
        ("authors", "这个菜谱的主要操作是红烧,这个菜谱的主要食材是洋芋,糖,"),
    ):
        dataset = load.dataset(**options, diner_wording=wording)
        assert {row["id"]: row["input"] for row in dataset["test"]} == {
            "test-0": f"“{TEXTS['test-0']}” {stated}这个菜谱的菜名是什么？",
            "test-2": f"“{TEXTS['test-2']}” 这个菜谱的菜名是什么？",
        }
        named = load.dataset.load({**options, "diner_wording": wording}).excluded
        assert sorted(named[load.UNANSWERED]) == ["test-1", "test-3", "test-4"]


def test_files_that_are_no_such_answers(tmp_path: Path) -> None:
    file = logged(tmp_path, {"test-1": ["", "", ""]})
    other = Recipe("test-1", "另一种做法。", "炒牛肉")
    for path, recipes, message in (
        (tmp_path / "none.jsonl", RECIPES, r"none\.jsonl: No such file.*; name the file samples"),
        (file, RECIPES[:1], "has no answers about these recipes"),
        (file, [other], "line 1: test-1 is a different recipe in this log"),
    ):
        with pytest.raises((OptionError, DataError), match=message):
            component_answers.read_answers(path, recipes)
    whole = file.read_bytes()
    for line in (b"{", b"\xff\xfe{}", b"{}", whole.replace(b'["", "", ""]', b'["a"]')):
        file.write_bytes(line)
        with pytest.raises(DataError, match="line 1: not a logged answer to 3 component questions"):
            component_answers.read_answers(file, RECIPES)


FILE = Path(__file__).parents[3] / "docs" / "benchmarks" / "diner_extraction.csv"
MARKED = FILE.read_text(encoding="utf-8").translate({ord("␀"): "\0", ord("·"): "\u200b"})
_, *DOCUMENTED = csv.reader(MARKED.splitlines())


@pytest.mark.parametrize(("answer", "name"), [*DOCUMENTED, *STAYS.items()])
def test_what_an_answer_names(answer: str, name: str) -> None:
    """As documented; and what only looks like an announcement is none."""
    assert name_of(answer.replace("⏎", "\n")) == name


def test_real_names_and_words_come_back_as_they_are(
    diner_names: list[str], published: Glossary
) -> None:
    names = [name for title in diner_names if published.parse(name := clean_name(title)) and name]
    assert len(names) > 500
    words = [word for words in published.as_dict().values() for word in words]
    assert [name for name in (*names, *words) if name_of(name) != name] == []
    assert [name for name in names if name_of(f"这个菜谱的菜名是“{name}”。") != name] == []


CHAT = yaml.safe_load(Path(__file__).with_name("diner_chat_cases.yaml").read_text("utf-8"))


@pytest.mark.parametrize("form", [form for forms in CHAT["right"].values() for form in forms])
def test_forms_of_chat_models_are_read(form: str) -> None:
    """Markup, announcements and reasoning around a name, in the forms of chat models."""
    for name in ("红烧土豆", "可乐鸡翅"):
        assert name_of(form.replace("@", name)) == name


@pytest.mark.parametrize("form", [form for forms in CHAT["wrong"].values() for form in forms])
def test_near_forms_are_not_read(form: str) -> None:
    """Denied names, several names, examples, and names in the reasoning alone are no answer."""
    for name in ("红烧土豆", "可乐鸡翅"):
        assert name_of(form.replace("@", name)) != name


@pytest.mark.parametrize("family", FOUND)
def test_every_form_of_a_family_gives_every_name(family: str, diner_names: list[str]) -> None:
    names = {name for part in mini.split("tmcd").values() for name in part["names"]}
    names |= {name for title in diner_names[::10] if name_of(name := clean_name(title)) == name}
    names = names - {""} | {"叫花鸡", "可乐鸡翅"}
    assert len(names) > 100
    for form, name in itertools.product(FOUND[family], names):
        assert name_of(form.format(name)) == name, form


@pytest.mark.parametrize(
    "piece", [*'番“( \n\0\ufdfaa"', "菜名是", "这道菜是", "是一道", "*`", "“番"]
)
def test_hostile_length_is_cut(piece: str) -> None:
    assert len(name_of(piece * 200_000)) <= MAX_CHARS


def test_the_first_characters_after_thoughts_are_read() -> None:
    assert name_of("\n" * (MAX_CHARS - 3) + "红烧鱼") == "红烧鱼"
    assert name_of("\n" * MAX_CHARS + "红烧鱼") == ""
    assert name_of("<think>" + "鱼" * 10 * MAX_CHARS + "</think>\n\n红烧鱼") == "红烧鱼"


@given(
    st.text(
        alphabet="番茄炒蛋是叫菜名这道一的做法“”「」()【】:，。\n<think></ 好1-或*`", max_size=60
    )
)
def test_any_mixture_of_what_the_rule_knows_gives_a_name(answer: str) -> None:
    name = name_of(answer)
    if set(name) & set("番茄炒蛋是叫菜名这道一的做法好或"):
        assert not set(name) & set("\n“”「」()【】:，。<></1-*` ")
    else:
        assert not name or set(name) & set("think1")


MINI = {"corpus": "mini", "generated": 60}
prepare = partial(of_source, training.__name__)
QUESTIONS = ("主要操作", "主要风味", "主要食材")


def test_names_and_component_questions() -> None:
    made = prepare(MINI, 0)
    assert len(made.train) == 34 + 60
    assert {name: len(some) for name, some in made.gates.items()} == {"dev": 200, "written": 8}
    assert not dict(made.train).keys() & dict(made.dev).keys()
    tested = generated.tested_dishes()
    assert not tested & {generated.components(name) for _, name in (*made.train, *made.dev)}
    other = prepare(MINI, 1)
    assert made.train[:34] == other.train[:34] and made.train != other.train
    assert made.gates == other.gates

    three = prepare(MINI | {"ask": "components"}, 0)
    asked = ((*pair, kind) for pair in made.train for kind in QUESTIONS)
    words: defaultdict[str, list[str]] = defaultdict(list)
    for (text, answer), (question, _, kind) in zip(three.train, asked, strict=True):
        assert text == question.replace("菜名", kind)
        words[question] += filter(None, answer.split(","))
    for question, name in made.train:
        assert sorted(words[question]) == sorted(mini.glossary().words_in(name) or ())


def test_what_a_model_file_has(tmp_path: Path) -> None:
    made = [prepare({"corpus": "mini", "share": share}, 0) for share in (0.2, 0.6, 1)]
    assert [len(one.train) for one in made] == [7, 20, 34]
    assert set(made[0].train) < set(made[1].train) < set(made[2].train)
    assert made[0].model_file == {"training_share": 0.2}
    folder = str(diner_own.write(tmp_path))
    own = prepare({"dir": folder, "ask": "components"}, 0)
    assert own.model_file["metadata"] == {"diner_dir": folder, "diner_wording": "authors"}


def test_what_counts_as_learned() -> None:
    score = prepare(MINI, 0).score
    answers = ("红烧牛肉", "菜名是“红烧牛肉”。", "红烧肥牛", "红烧茄子", "清蒸鱼", "")
    assert [score(one, "红烧牛肉") for one in answers] == [1.0, 1.0, 1.0, 0.5, 0.0, 0.0]
    score = prepare(MINI | {"ask": "components"}, 0).score
    right, wrong = (
        [("", ""), ("番茄,土豆", "土豆,西红柿"), ("无", "")],
        [("", "炒"), ("炒", ""), ("烤", "炒")],
    )
    assert [score(*pair) for pair in (*right, *wrong)] == [1.0] * 3 + [0.0] * 3


def answered(model: Path, prompts: Any, *, max_gen_toks: int) -> list[str]:
    """A stand-in for a model, which names itself as the action and forgets the flavour."""
    assert max_gen_toks == 16
    answers = {"主要操作": model.name, "主要风味": "", "主要食材": "土豆, 鱼"}
    return [next(a for kind, a in answers.items() if f"{kind}是什么" in one) for one in prompts]


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Folders of auxiliary models that :func:`answered` stands for."""
    monkeypatch.setattr(training, "generate_answers", answered)

    def folder(name: str, **data: Any) -> str:
        (tmp_path / name).mkdir()
        record = {
            "recipe": {"source": training.__name__, "data": MINI | {"ask": "components"} | data}
        }
        (tmp_path / name / "training.json").write_text(json.dumps(record))
        return str(tmp_path / name)

    return folder


def test_predictions_stand_before_the_question_in_training_and_in_the_task(
    trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = MINI | {"ask": "cp", "auxiliary": trained("aux")}
    made = prepare(data, 0)
    stated = "这个菜谱的主要操作是aux,这个菜谱的主要食材是土豆,鱼,这个菜谱的菜名是什么？"
    assert all(prompt.endswith(f"” {stated}") for prompt, _ in (*made.train, *made.gates["dev"]))
    docs = load_task("diner_mini_cp", **made.model_file["metadata"]).eval_docs
    assert len(docs) == 24
    assert all(doc["input"].endswith(f"” {stated}") for doc in docs)
    # Kept: nothing is asked a second time.
    monkeypatch.setattr(training, "generate_answers", None)
    assert prepare(data, 0).digest() == made.digest()


def test_what_does_not_fit_is_refused(trained: Any, tmp_path: Path) -> None:
    names, less = trained("names", ask="name"), trained("less", share=0.5)
    for data, said in (
        ({"ask": "cp"}, "auxiliary is for ask: cp"),
        ({"ask": "cp", "auxiliary": str(tmp_path)}, "no training"),
        ({"ask": "cp", "auxiliary": names}, "data.ask 'name', and here an auxiliary model with 'c"),
        ({"ask": "cp", "auxiliary": less}, "data.share 0.5, and here"),
        ({"ask": "text"}, "are for ask: text, which needs them"),
        ({"shar": 0.5}, "did you mean share"),
        ({"corpus": "published"}, "go with corpus: mini"),
    ):
        with pytest.raises(OptionError, match=said):
            prepare(MINI | data, 0)
