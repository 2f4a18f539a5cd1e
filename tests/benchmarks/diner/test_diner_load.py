"""Files in the published format, documents made from them, and the glossary that parses names."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import csv
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import opencc
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import diner_own
from support.asking import pick

from lm_eval_ext.benchmarks.diner import load, mini, score
from lm_eval_ext.benchmarks.diner.answers import name_of
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, PARTS, Categories, Recipe
from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError, OptionError


def rows(folder: Path, **options: Any) -> list[dict[str, Any]]:
    return list(load.dataset(diner_dir=str(folder), **options)["test"])


def test_every_test_recipe_becomes_a_document(tmp_path: Path) -> None:
    # Categories come from the training names: 红烧牛肉 and 炒土豆; 番茄牛肉, 炒鸡蛋 and 麻辣面.
    categories = ("RecoTwo", "RecoTwo", "RecoTwo", "RecoTwo", "RecoThree")
    assert sorted(rows(diner_own.write(tmp_path)), key=lambda row: row["id"]) == [
        {
            "id": f"test-{number}",
            "instruction": instruction,
            "answer": name,
            "category": category,
            "input": f"“{instruction}” 这个菜谱的菜名是什么？",
        }
        for number, ((name, instruction), category) in enumerate(
            zip(diner_own.TEST, categories, strict=True)
        )
    ]
    known = {"train": diner_own.part((*diner_own.TRAIN, ("红烧土豆", "随便做做就可以吃了吧。")))}
    folder = diner_own.write(tmp_path / "b", changed={**diner_own.content(), **known})
    assert {row["category"] for row in rows(folder) if row["answer"] == "红烧土豆"} == {load.OTHER}


@pytest.mark.parametrize(
    "sides", ["words", "names", "answers", "words names", "words names answers"]
)
def test_scripts_do_not_make_an_answer_wrong(tmp_path: Path, sides: str) -> None:
    """Glossary, gold names and answers, each in traditional or in simplified characters."""
    traditional = opencc.OpenCC("s2t").convert
    changed = diner_own.content()
    for part in changed.values():
        part["names"] = [traditional(one) if "names" in sides else one for one in part["names"]]
    folder = diner_own.write(tmp_path, changed=changed)
    if "words" in sides:
        file = folder / "glossary.json"
        file.write_text(traditional(file.read_text("utf-8")), "utf-8")
    glossary = load.Recipes(dir=str(folder)).read()[0].glossary
    assert glossary.digest == Glossary(diner_own.GLOSSARY).digest
    found = [row["answer"] for row in rows(folder)]
    assert sorted(found) == sorted(name for name, _ in diner_own.TEST)
    for name in found:
        answer = traditional(name) if "answers" in sides else name
        (scored, *_) = score.name(name, name_of(answer), glossary)
        assert scored["exact_match"] == 1
        assert pick(score.components(name, ["", "", answer], glossary), "hits", kind="food") > 0


def test_what_is_drawn_does_not_depend_on_other_dishes() -> None:
    recipes = [Recipe(f"test-{n}", f"step {n}", f"dish {n // 10}") for n in range(70)]
    whole, part = (set(load.drawn(some, 3, seed=5)) for some in (recipes, recipes[:20]))
    assert part < whole
    assert len(whole) == 21
    assert len({tuple(load.drawn(recipes, 3, seed)) for seed in range(8)}) == 8
    assert len(load.drawn(recipes, 0, 0)) == len(load.drawn(recipes, 99, 0)) == 70
    # Without a number, too, dishes are mixed, since --limit takes the first recipes.
    assert len({one.name for one in load.drawn(recipes, 0, 0)[:9]}) > 3


def test_a_folder_without_the_split_is_named(tmp_path: Path) -> None:
    folder = diner_own.write(tmp_path)
    with pytest.raises(
        DataError, match=r"has no random_data\.json; name a folder made by lm-eval-ext diner build"
    ):
        rows(folder, diner_split="random")
    diner_own.write(tmp_path, "random")
    assert len(rows(folder, diner_split="random")) == len(diner_own.TEST)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("valid", {}, "valid.instructions: the key is missing"),
        ("dev", {}, "dev: unknown key"),
        (
            "train",
            {"instructions": ["面"], "names": "面"},
            "train.names: Input should be a valid a",
        ),
        ("valid", {"instructions": ["面"], "names": []}, "every instruction needs one name"),
        ("test", {"instructions": [" "], "names": ["面"]}, "test.instructions.0: String should"),
        ("test", {"instructions": [], "names": []}, "train or test has no recipes"),
        ("test", {"instructions": ["面"], "names": ["x"]}, "no recipe can be asked about (gold_d"),
    ],
)
def test_another_format_is_refused_in_one_line(
    part: str, content: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as raised:
        rows(diner_own.write(tmp_path, changed=diner_own.content() | {part: content}))
    assert "\n" not in str(raised.value)


def test_what_is_no_json_is_refused_in_one_line(tmp_path: Path) -> None:
    diner_own.write(tmp_path)
    (tmp_path / "tmcd_data.json").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match=r"Invalid JSON.* fetch or build it again"):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"diner_split": "random"}, "random split is not published; build one"),
        ({"diner_ask": "x"}, "diner_ask: Input should be 'name', 'components' or 'cp'"),
        ({"diner_demonstrations": "x"}, "diner_demonstrations: Input should be 'instruction' or"),
        ({"diner_per_dish": True}, "diner_per_dish: Input"),
        ({"diner_draw_seed": None}, "diner_draw_seed: Input"),
        ({"diner_ask": "cp", "diner_wording": "authors"}, "with diner_components_file, or use"),
        ({"diner_components_file": "x"}, "diner_components_file is only for diner_cp"),
        ({"diner_corpus": "mini", "diner_dir": "x"}, "diner_dir cannot be used with the mini"),
        (
            {"diner_corpus": "mini", "diner_demonstrations": "oracle"},
            r"needs jieba and bm25s: .*'\.\[diner",
        ),
        ({"diner_foo": 1}, "unknown metadata key diner_foo"),
    ],
)
def test_options_that_are_not_legal(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lm_eval_ext.errors.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=message):
        load.dataset(**options)


def test_the_published_file_is_the_declared_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through data.require, with a declaration that fits our file."""
    declared = sources()["diner"].model_dump(exclude_none=True)
    for spec in declared["files"].values():
        raw = (diner_own.write(tmp_path / "diner") / Path(spec["path"]).name).read_bytes()
        spec |= {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"diner": declared}))
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(tmp_path / "sources.yaml"))
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    found = load.dataset()
    assert len(found["test"]) == len(diner_own.TEST)
    assert load.dataset.load({}).provenance.source == "diner"


EMPTY: dict[str, dict[str, str]] = {"food": {}, "action": {}, "flavour": {}}
OWN = {
    "food": {
        "鸡": "鸡", "鸡肉": "鸡", "鸡蛋": "蛋", "蛋": "蛋", "花饼": "饼", "豆": "豆", "豆沙": "沙",
        "沙拉": "拉",
    },
    "action": {"炒": "炒", "小炒": "炒"},
    "flavour": {"辣": "辣", "香辣": "香辣"},
}  # fmt: skip
TITLES = yaml.safe_load(Path(__file__).with_name("diner_cases.yaml").read_text("utf-8"))["titles"]
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
    # Words that differ in script only are one word.
    assert Glossary(EMPTY | {"food": {"麵": "面", "面": "麵"}}).as_dict()["food"] == {"面": "面"}
    assert again.digest == Glossary(OWN).digest
    assert Glossary(OWN | {"flavour": {"辣": "香辣", "香辣": "香辣"}}).digest != again.digest


@pytest.mark.parametrize("title", TITLES)
def test_titles_become_names(title: str) -> None:
    assert clean_name(title) == TITLES[title]


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
