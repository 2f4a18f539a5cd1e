"""Extracting names from answers: the documentation's examples, gold names, hostile text."""

# ruff: noqa: RUF001

import csv
from pathlib import Path

import pytest
from answer_families import FOUND, STAYS
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.extract import MAX_CHARS, name_of
from lm_eval_ext.benchmarks.diner.glossary import Glossary, clean_name

FILE = Path(__file__).parents[3] / "docs" / "benchmarks" / "diner_extraction.csv"
MARKS = {"⏎": "\n", "␀": "\0", "·": "\u200b"}
CASES = list(csv.reader(FILE.read_text(encoding="utf-8").splitlines()))[1:]


@pytest.mark.parametrize(("answer", "name"), CASES)
def test_a_documented_case(answer: str, name: str) -> None:
    for mark, meaning in MARKS.items():
        answer = answer.replace(mark, meaning)
    assert name_of(answer) == name


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        # A quoted name in a long line takes precedence over an announcement in a later line.
        ("经过这么多步骤以后做出来的美味佳肴“红烧土豆”非常好吃呀\n菜名：炒面", "红烧土豆"),
        # So does an announcement in that line; it is too long for a name without one.
        ("这道菜的做法很简单，所以这道菜应该叫做红烧土豆\n菜名：炒面", "红烧土豆"),
        ("经过这么多步骤以后做出来的美味佳肴非常好吃呀\n菜名：炒面", "炒面"),
        # A line of 20 characters may be a name, one of 21 may not.
        ("土豆" * 10 + "\n菜名：炒面", "土豆" * 10),
        ("土豆" * 10 + "片\n菜名：炒面", "炒面"),
        # Quoted text without Chinese characters is no name.
        ("“OK”就做“红烧鱼”", "红烧鱼"),
        # The name may be long when what follows announces it.
        ("红烧土豆牛肉豆腐面是这道菜的菜名", "红烧土豆牛肉豆腐面"),
        # The first 4,000 characters are read.
        ("\n" * 3_997 + "红烧鱼", "红烧鱼"),
        ("\n" * 4_000 + "红烧鱼", ""),
        # Commas in nested brackets do not end the name.
        ("红烧（家常，（简单，快手））土豆", "红烧土豆"),
    ],
)
def test_an_undocumented_case(answer: str, name: str) -> None:
    assert name_of(answer) == name


def test_real_names_come_back_as_they_are(diner_names: list[str], published: Glossary) -> None:
    names = [name for title in diner_names if published.parse(name := clean_name(title)) and name]
    assert len(names) > 500
    assert [name for name in names if name_of(name) != name] == []
    assert [name for name in names if name_of(f"这个菜谱的菜名是“{name}”。") != name] == []


@pytest.mark.parametrize("family", FOUND)
def test_every_form_of_a_family_gives_every_name(family: str, diner_names: list[str]) -> None:
    embedded = sorted({name for part in mini.split("tmcd").values() for name in part["names"]})
    real = [name for title in diner_names[::10] if (name := clean_name(title)) and name_of(name)]
    names = [*embedded, "叫花鸡", "可乐鸡翅", *(name for name in real if name_of(name) == name)]
    answers = [(form.format(name), name) for form in FOUND[family] for name in names]
    wrong = [(answer, name_of(answer)) for answer, name in answers if name_of(answer) != name]
    assert len(names) > 100
    assert (len(answers) - len(wrong)) / len(answers) == 1, wrong[:3]


def test_what_only_looks_like_an_announcement_is_none() -> None:
    wrong = {answer: name_of(answer) for answer, name in STAYS.items() if name_of(answer) != name}
    assert (len(STAYS) - len(wrong)) / len(STAYS) == 1, wrong


def test_every_published_word_comes_back_as_it_is(published: Glossary) -> None:
    words = [word for words in published.as_dict().values() for word in words]
    assert [word for word in words if name_of(word) != word] == []


@pytest.mark.parametrize(
    "piece",
    [
        "番",
        "“",
        "(",
        "菜名是",
        "这道菜是",
        " ",
        "\n",
        "\0",
        "\ufdfa",
        "是一道",
        "a",
        "*`",
        "“番",
        '"',
    ],
)
def test_hostile_length_is_cut(piece: str) -> None:
    assert len(name_of(piece * 200_000)) <= MAX_CHARS


def test_a_name_after_long_thoughts_is_found() -> None:
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
