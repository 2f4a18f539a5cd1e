"""Prompts, and extraction from answers that contain more than a name."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from pathlib import Path
from typing import Any

import pytest
from answer_families import COMPONENTS, NO_COMPONENTS
from support import diner_own

from lm_eval_ext.benchmarks.diner import component_answers, load, mini, prompt
from lm_eval_ext.benchmarks.diner.component_answers import (
    UNKNOWN,
    components_in,
    name_after_components,
    parts,
)
from lm_eval_ext.benchmarks.diner.extract import name_of
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.missing import PLACEHOLDER

GLOSSARY = Glossary(diner_own.GLOSSARY)


def test_the_name_is_asked_as_the_authors_do() -> None:
    assert prompt.name_prompt("切好，炒熟。") == "“切好，炒熟。” 这个菜谱的菜名是什么？"


def test_given_components_stand_before_the_question() -> None:
    components = {"action": ["炒"], "flavour": [], "food": ["鸡蛋", "番茄"]}
    assert prompt.given_components_prompt("做熟。", components, prompt.OURS) == (
        "“做熟。” 烹饪方法：炒；主料或形式：鸡蛋、番茄。这个菜谱的菜名是什么？"
    )
    nothing: dict[str, tuple[str, ...]] = dict.fromkeys(prompt.ASKED_KINDS, ())
    for wording in prompt.QUESTIONS:
        text = prompt.given_components_prompt("做熟。", nothing, wording)
        assert text == prompt.name_prompt("做熟。")


def test_the_authors_models_are_asked_as_they_were_trained() -> None:
    """Their questions, order and commas (dataset.py of their repository)."""
    assert prompt.component_prompts("做熟。", prompt.AUTHORS) == [
        "“做熟。” 这个菜谱的主要操作是什么？",
        "“做熟。” 这个菜谱的主要风味是什么？",
        "“做熟。” 这个菜谱的主要食材是什么？",
    ]
    components = {"action": ["炒"], "flavour": [], "food": ["鸡蛋", "番茄"]}
    assert prompt.given_components_prompt("做熟。", components, prompt.AUTHORS) == (
        "“做熟。” 这个菜谱的主要操作是炒,这个菜谱的主要食材是鸡蛋,番茄,这个菜谱的菜名是什么？"
    )


def test_one_prompt_begins_the_first_line() -> None:
    text = prompt.one_prompt("做熟。")
    assert text.startswith("“做熟。”\n")
    assert text.endswith(f"\n{prompt.LABELS['action']}：")
    assert prompt.NAME_QUESTION in text
    assert all(text.count(f"“{label}：”") == 1 for label in prompt.LABELS.values())


PARTS = {
    "": [],
    "无": [],
    "无。": [],
    "没有": [],
    "没有明显的味道。": [],
    "这道菜没有": [],
    "这道菜没有特别突出的味道。": [],
    "叫炒。": ["炒"],
    "主要的烹饪方法叫炒。": ["炒"],
    "None": [],
    "n/a": [],
    "…": [],
    "炒": ["炒"],
    "「炒」": ["炒"],
    "炒\n因为热锅下油": ["炒"],
    "烹饪方法：炒": ["炒"],
    "烹饪方法: 炒；": ["炒"],
    "这道菜的主要烹饪方法是炒。其他的没有。": ["炒"],
    "鸡蛋,番茄": ["鸡蛋", "番茄"],
    "鸡蛋，番茄。": ["鸡蛋", "番茄"],
    "鸡蛋、番茄；面": ["鸡蛋", "番茄", "面"],
    "鸡蛋 番茄": ["鸡蛋", "番茄"],
    "鸡蛋/鸡蛋": ["鸡蛋"],
    "“鸡蛋”、“番茄”": ["鸡蛋", "番茄"],
    "鸡蛋（打散）、番茄": ["鸡蛋", "番茄"],
    "**雞蛋**": ["鸡蛋"],
    "主料为鸡蛋、番茄": ["鸡蛋", "番茄"],
    "鸡蛋和番茄": ["鸡蛋和番茄"],
    "<think>可能是炒</think>红烧": ["红烧"],
    "<think>可能是炒": [],
    "stir-fry": ["stir-fry"],
}


@pytest.mark.parametrize("answer", PARTS)
def test_the_parts_of_an_answer(answer: str) -> None:
    assert list(parts(answer)) == PARTS[answer]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", ""),
        ("洋芋", "food 土豆"),
        ("鸡蛋和番茄", "food 番茄, food 鸡蛋"),
        ("番茄鸡蛋面", "food 番茄, food 面, food 鸡蛋"),
        ("红烧牛肉", "action 红烧, food 牛肉"),
        ("和牛", "unknown 牛"),
        ("宫保", "unknown 宫保"),
        ("鸡蛋、宫保", "food 鸡蛋, unknown 宫保"),
    ],
)
def test_the_components_of_an_answer(answer: str, expected: str) -> None:
    found = sorted(components_in(answer, GLOSSARY))
    assert ", ".join(f"{one.kind} {one.name}" for one in found) == expected


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_component_with_the_word_for_its_kind_is_that_component(
    kind: str, published: Glossary
) -> None:
    words = sorted(mini.glossary().as_dict()[kind])
    pairs = [(mini.glossary(), word) for word in words]
    pairs += [(published, word) for word in sorted(published.as_dict()[kind])]
    answers = [(form.format(word), word, by) for form in COMPONENTS[kind] for by, word in pairs]
    wrong = [
        answer
        for answer, word, glossary in answers
        if components_in(answer, glossary) != set(glossary.parse(word) or ())
    ]
    assert (len(answers) - len(wrong)) / len(answers) == 1, wrong


def test_such_words_make_no_component_of_what_is_none() -> None:
    found = {answer: components_in(answer, GLOSSARY) for answer in NO_COMPONENTS}
    wrong = {
        answer: named for answer, named in found.items() if {one.kind for one in named} != {UNKNOWN}
    }
    assert (len(found) - len(wrong)) / len(found) == 1, wrong


LINES = {
    "炒\n味道：无\n主料或形式：鸡蛋\n菜名：炒鸡蛋": "炒鸡蛋",
    "炒\n味道：无\n主料或形式：鸡蛋\n菜名: 炒鸡蛋\n\n谢谢": "炒鸡蛋",
    "烹饪方法：炒\n味道：\n主料或形式：鸡蛋\n**菜名**：“炒鸡蛋”": "炒鸡蛋",
    "炒\n味道：无\n主料或形式：鸡蛋\n菜名是：炒鸡蛋。": "炒鸡蛋",
    "<think>菜名：红烧牛肉</think>炒\n菜名：炒雞蛋": "炒鸡蛋",
    "炒\n味道：无\n主料或形式：鸡蛋\n炒鸡蛋": "炒鸡蛋",
    "炒鸡蛋": "炒鸡蛋",
    "炒\n味道：无\n主料或形式：鸡蛋": "",
    "": "",
    "菜名：": "",
    "菜名：待定\n炒\n味道：无\n主料或形式：鸡蛋\n菜名：炒鸡蛋": "炒鸡蛋",
}


@pytest.mark.parametrize("answer", LINES)
def test_the_name_after_components(answer: str) -> None:
    assert name_of(name_after_components(answer)) == LINES[answer]


def logged(folder: Path, responses: dict[str, list[str]], **changed: Any) -> Path:
    """A log of diner_components as lm-eval writes it."""
    recipes = {f"test-{n}": text for n, (_, text) in enumerate(diner_own.TEST)}
    rows = [
        {"doc_id": n, "doc": {"id": name, "instruction": recipes[name]},
         "filtered_resps": given, **changed}
        for n, (name, given) in enumerate(responses.items())
    ]  # fmt: skip
    file = folder / "samples_diner_components_2026.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def test_earlier_answers_stand_in_the_prompts(tmp_path: Path) -> None:
    folder = diner_own.write(tmp_path / "data")
    file = logged(
        tmp_path, {"test-0": ["红烧", "无", "洋芋，糖。"], "test-2": ["", "麻辣", "豆腐"]}
    )
    dataset = load.dataset(diner_dir=str(folder), diner_ask="cp", diner_components_file=str(file))
    found = {row["id"]: row["input"] for row in dataset["test"]}
    texts = [text for _, text in diner_own.TEST]
    assert found == {
        "test-0": f"“{texts[0]}” 烹饪方法：红烧；主料或形式：洋芋、糖。这个菜谱的菜名是什么？",
        "test-2": f"“{texts[2]}” 味道：麻辣；主料或形式：豆腐。这个菜谱的菜名是什么？",
    }
    options = {"diner_components_file": str(file), "diner_wording": "authors"}
    authors = load.dataset(diner_dir=str(folder), diner_ask="cp", **options)["test"]
    assert next(row["input"] for row in authors if row["id"] == "test-0") == (
        f"“{texts[0]}” 这个菜谱的主要操作是红烧,这个菜谱的主要食材是洋芋,糖,这个菜谱的菜名是什么？"
    )
    named = provenance.left_out(dataset)
    assert sorted(named[load.UNANSWERED]) == ["test-1", "test-3", "test-4"]


def test_answers_that_were_not_recorded_are_no_answers(tmp_path: Path) -> None:
    file = logged(tmp_path, {"test-0": ["红烧", PLACEHOLDER, "土豆"], "test-2": ["", "", ""]})
    recipes = [Recipe(f"test-{n}", text, name) for n, (name, text) in enumerate(diner_own.TEST)]
    assert component_answers.read_answers(file, recipes) == {
        "test-2": dict.fromkeys(prompt.ASKED_KINDS, ())
    }


def test_files_that_are_no_such_answers(tmp_path: Path) -> None:
    recipes = [Recipe(f"test-{n}", text, name) for n, (name, text) in enumerate(diner_own.TEST)]
    with pytest.raises(OptionError, match=r"none\.jsonl: No such file.*; name the file samples"):
        component_answers.read_answers(tmp_path / "none.jsonl", recipes)
    file = logged(tmp_path, {"test-1": ["", "", ""]})
    with pytest.raises(OptionError, match="has no answers about these recipes"):
        component_answers.read_answers(file, recipes[:1])
    with pytest.raises(DataError, match="line 1: test-1 is a different recipe in this log"):
        component_answers.read_answers(file, [Recipe("test-1", "另一种做法。", "炒牛肉")])
    whole = file.read_bytes()
    for line in (b"{", b"\xff\xfe{}", b"{}", whole.replace(b'["", "", ""]', b'["a"]')):
        file.write_bytes(line)
        with pytest.raises(DataError, match="line 1: not a logged answer to 3 component questions"):
            component_answers.read_answers(file, recipes)
