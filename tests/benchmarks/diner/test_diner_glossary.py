"""The glossary, its parser, the names that real titles give, and the embedded recipes."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, PARTS, Categories
from lm_eval_ext.errors import DataError

OWN = {
    "food": {
        "鸡": "鸡", "鸡肉": "鸡", "鸡蛋": "蛋", "蛋": "蛋", "花饼": "饼", "豆": "豆", "豆沙": "沙",
        "沙拉": "拉",
    },
    "action": {"炒": "炒", "小炒": "炒"},
    "flavour": {"辣": "辣", "香辣": "香辣"},
}  # fmt: skip
PARSES = Path(__file__).parents[3] / "docs" / "benchmarks" / "diner_parsing.csv"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("鸡肉", "鸡肉"),  # the longer word, not 鸡 and a rest
        ("香辣鸡", "香辣 鸡"),
        ("小炒鸡蛋", "小炒 鸡蛋"),
        ("鸡鸡", "鸡 鸡"),  # repeats are kept
        ("豆沙豆", "豆沙 豆"),
        ("豆沙沙拉", "豆沙 沙拉"),
        ("", ""),
    ],
)
def test_matching_takes_the_longest_word_from_the_left(name: str, words: str) -> None:
    glossary = Glossary(OWN)
    classes = {word: Component(kind, OWN[kind][word]) for kind in OWN for word in OWN[kind]}
    assert glossary.words_in(name) == tuple(words.split())
    assert glossary.parse(name) == tuple(map(classes.get, words.split()))


@pytest.mark.parametrize("name", ["豆沙拉", "鸡蛋花", "香鸡", "饼", "炒 鸡"])
def test_nothing_is_given_back_and_a_class_is_no_word(name: str) -> None:
    glossary = Glossary(OWN)
    assert glossary.words_in(name) is glossary.parse(name) is None


def test_words_of_a_class_are_one_component() -> None:
    glossary = Glossary(OWN)
    assert glossary.parse("鸡肉") == glossary.parse("鸡") == (Component("food", "鸡"),)
    found = [glossary.words(Component(kind, "鸡")) for kind in KINDS]
    assert found == [("鸡", "鸡肉"), (), ()]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "glossary.json"
    # In any order, and with a byte order mark, which some editors write.
    turned = {kind: dict(reversed(OWN[kind].items())) for kind in reversed(KINDS)}
    file.write_text(json.dumps(turned), encoding="utf-8-sig")
    again = Glossary.read(file)
    assert again.as_dict() == OWN
    assert again.digest == Glossary(OWN).digest
    assert Glossary(OWN | {"flavour": {"辣": "香辣", "香辣": "香辣"}}).digest != again.digest


EMPTY: dict[str, dict[str, str]] = {"food": {}, "action": {}, "flavour": {}}


def test_words_that_differ_in_script_only_are_one_word() -> None:
    assert Glossary(EMPTY | {"food": {"麵": "面", "面": "麵"}}).as_dict()["food"] == {"面": "面"}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("红烧鱼（家常版）", "红烧鱼"),
        ("红烧鱼(家常版)", "红烧鱼"),
        ("红烧鱼（家常版)", "红烧鱼"),  # mixed widths
        ("【快手】红烧鱼[原创]", "红烧鱼"),
        ("红烧鱼（很(非常)好吃）", "红烧鱼"),
        ("红烧（鱼", "红烧鱼"),  # a bracket alone
        ("红烧）鱼（", "红烧鱼"),
        ("「红烧鱼」", "红烧鱼"),
        ("《红烧鱼》", "红烧鱼"),
        ("🐟 红烧-鱼 No.1~", "红烧鱼"),
        ("红烧鱼\n(两人份)", "红烧鱼"),
        ("【红烧鱼】", ""),
        ("fish", ""),
        ("午后の鱼", "午后鱼"),
        ("〇𠮷鱼", "〇𠮷鱼"),
        ("(鱼(酱(肉(汤))))", "鱼"),  # the innermost three go with what they enclose
    ],
)
def test_titles_become_names(title: str, name: str) -> None:
    assert clean_name(title) == name


@given(st.text(alphabet="鱼肉a(（)）[]【】<>{} \n🐟"))
def test_a_name_is_chinese_and_stays(title: str) -> None:
    name = clean_name(title)
    assert set(name) <= set("鱼肉")
    assert clean_name(name) == name


def test_the_page_shows_what_the_published_glossary_does(published: Glossary) -> None:
    (_, *rows) = csv.reader(PARSES.read_text(encoding="utf-8").splitlines())
    assert len(rows) > 10
    for name, words, components in rows:
        parsed = published.parse(name)
        shown = [f"{one.kind} {one.name}" for one in parsed or ()]
        assert (" ".join(published.words_in(name) or ()), ", ".join(shown)) == (words, components)


def test_the_published_glossary_has_the_papers_sizes(published: Glossary) -> None:
    content = published.as_dict()
    assert {kind: (len(words), len(set(words.values()))) for kind, words in content.items()} == {
        "food": (535, 413), "action": (40, 31), "flavour": (35, 35),
    }  # fmt: skip
    words = {word for some in content.values() for word in some}
    classes = {(kind, name) for kind in content for name in content[kind].values()}
    assert sum(name not in words for _, name in classes) == 40


def test_as_many_real_names_parse_as_the_fact_sheet_says(
    published: Glossary, thousand: list[str], how_to_cook: list[str], diner_names: list[str]
) -> None:
    # Round brackets alone, the paper's parentheses.
    round_only = [re.sub(r"[(（][^()（）]*[)）]", "", title) for title in thousand]
    words = "|".join(word for found in published.as_dict().values() for word in found)
    cleaned = {*map(clean_name, diner_names), ""} - {""}
    coverable = [name for name in cleaned if re.fullmatch(f"(?:{words})+", name)]
    for names, count, parse in (
        (thousand, 1000, 269),
        (how_to_cook, 368, 190),
        ([re.sub("[^\u4e00-\u9fa5]", "", title) for title in round_only], 1000, 309),
        ([*map(clean_name, thousand)], 1000, 314),
        ([*map(clean_name, how_to_cook)], 368, 191),
        # Trying again would parse one more.
        (coverable, 554, 553),
    ):
        assert (len(names), sum(bool(published.parse(name)) for name in names)) == (count, parse)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"food": {"鸡": "鸡"}}, "the key is missing"),
        (EMPTY | {"taste": {}}, "taste: unknown key"),
        (EMPTY, "has no word"),
        (EMPTY | {"food": {"鸡": 1}}, "food.鸡: Input should be a valid string"),
        (EMPTY | {"food": {"鸡 肉": "鸡"}}, "food.鸡 肉.[key]: String should match"),
        (EMPTY | {"food": {"卤": "卤"}, "action": {"卤": "卤"}}, "'卤' as food '卤' and as action"),
        (EMPTY | {"food": {"麵": "面", "面": "粉"}}, "has '面' as food '面' and as food '粉'"),
        ("{", "not valid YAML"),
        ('{"food": {"鸡": "鸡", "鸡": "肉"}, "action": {}, "flavour": {}}', "'鸡' is repeated"),
    ],
)
def test_what_is_no_glossary_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "glossary.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    with pytest.raises(DataError, match=re.escape(message)) as error:
        Glossary.read(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


GLOSSARY = mini.glossary()


def pairs(split: str, *parts: str) -> list[tuple[str, str]]:
    content = mini.split(split)
    some = [content[part] for part in parts or content]
    return [pair for one in some for pair in zip(one["instructions"], one["names"], strict=True)]


def test_both_splits_divide_the_same_recipes() -> None:
    for split, new in (("tmcd", True), ("random", False)):
        assert sorted(pairs(split)) == sorted(pairs("tmcd"))
        assert [len(pairs(split, part)) for part in PARTS] == [34, 8, 24]
        train, valid, tested = (
            {name: GLOSSARY.parse(name) or () for _, name in pairs(split, part)} for part in PARTS
        )
        assert train.keys().isdisjoint(tested) == new
        # Every component to be recognised occurs in training.
        known = {component for found in train.values() for component in found}
        for found in (*valid.values(), *tested.values()):
            assert found and known.issuperset(found)
        if new:
            categories = Categories(train.values())
            assert {categories.of(found) for found in tested.values()} == set(CATEGORIES)
    for text, name in pairs("tmcd"):
        assert name not in text and clean_name(name) == name
