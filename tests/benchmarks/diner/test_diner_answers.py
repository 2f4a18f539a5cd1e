"""Prompts; names, components and earlier answers in what models write."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import csv
import itertools
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import diner_own

from lm_eval_ext.benchmarks.diner import component_answers, load, mini, prompt
from lm_eval_ext.benchmarks.diner.component_answers import (
    UNKNOWN,
    components_in,
    name_after_components,
    parts,
)
from lm_eval_ext.benchmarks.diner.extract import MAX_CHARS, name_of
from lm_eval_ext.benchmarks.diner.glossary import Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.missing import PLACEHOLDER

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
        named = provenance.left_out(dataset)
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
