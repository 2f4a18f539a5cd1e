"""Files in the published format, documents made from them, and the glossary that parses names."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import csv
import hashlib
import json
import re
from collections.abc import Iterable
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
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories, Recipe
from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError, OptionError


def documents(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the documents of a folder under these options."""
    return list(load.dataset(diner_dir=str(folder), **options)["test"])


def test_every_test_recipe_becomes_a_document(tmp_path: Path) -> None:
    """Documents have the question, and the category by which training names combine to theirs."""
    # The training names are 红烧牛肉 and 炒土豆, among others; 番茄牛肉, 炒鸡蛋 and 麻辣面.
    categories = ("RecoTwo", "RecoTwo", "RecoTwo", "RecoTwo", "RecoThree")
    expected = []
    for number, (name, instruction) in enumerate(diner_own.TEST):
        expected.append(
            {
                "id": f"test-{number}",
                "instruction": instruction,
                "answer": name,
                "category": categories[number],
                "input": f"“{instruction}” 这个菜谱的菜名是什么？",
            }
        )
    loaded = documents(diner_own.write(tmp_path))
    assert sorted(loaded, key=lambda doc: doc["id"]) == expected


def test_a_name_of_training_has_no_category(tmp_path: Path) -> None:
    """A test recipe whose name is trained on generalizes nothing."""
    recipes = (*diner_own.TRAIN, ("红烧土豆", "随便做做就可以吃了吧。"))
    changed = diner_own.content() | {"train": diner_own.part(recipes)}
    folder = diner_own.write(tmp_path, changed=changed)
    loaded = documents(folder)
    categories = {doc["category"] for doc in loaded if doc["answer"] == "红烧土豆"}
    assert categories == {load.OTHER}


@pytest.mark.parametrize(
    "sides", ["words", "names", "answers", "words names", "words names answers"]
)
def test_scripts_do_not_make_an_answer_wrong(tmp_path: Path, sides: str) -> None:
    """Glossary, gold names and answers, each in traditional or in simplified characters."""
    to_traditional = opencc.OpenCC("s2t").convert
    changed = diner_own.content()
    if "names" in sides:
        for recipes in changed.values():
            recipes["names"] = list(map(to_traditional, recipes["names"]))
    folder = diner_own.write(tmp_path, changed=changed)
    if "words" in sides:
        file = folder / "glossary.json"
        file.write_text(to_traditional(file.read_text("utf-8")), "utf-8")
    split, *_ = load.Recipes(dir=str(folder)).read()
    assert split.glossary.digest == Glossary(diner_own.GLOSSARY).digest
    names = [doc["answer"] for doc in documents(folder)]
    assert sorted(names) == sorted(name for name, _ in diner_own.TEST)
    for name in names:
        answer = to_traditional(name) if "answers" in sides else name
        row, *_ = score.name(name, name_of(answer), split.glossary)
        assert row["exact_match"] == 1
        rows = score.components(name, ["", "", answer], split.glossary)
        hits = pick(rows, "hits", kind="food")
        assert isinstance(hits, (int, float))
        assert hits > 0


SEVENTY = [
    Recipe(f"test-{number}", f"step {number}", f"dish {number // 10}") for number in range(70)
]
"""Ten recipes of each of seven dishes."""


def test_a_draw_does_not_depend_on_other_dishes() -> None:
    """Three recipes of each dish are drawn, the same whatever other dishes there are."""
    of_seven_dishes = set(load.drawn(SEVENTY, 3, seed=5))
    of_two_dishes = set(load.drawn(SEVENTY[:20], 3, seed=5))
    assert of_two_dishes < of_seven_dishes
    assert len(of_seven_dishes) == 21


def test_each_seed_draws_others() -> None:
    """Eight seeds give eight draws."""
    assert len({tuple(load.drawn(SEVENTY, 3, seed)) for seed in range(8)}) == 8


@pytest.mark.parametrize("per_dish", [0, 99])
def test_without_a_number_or_with_a_large_one_all_are_drawn(per_dish: int) -> None:
    """Zero means no limit."""
    assert len(load.drawn(SEVENTY, per_dish, 0)) == 70


def test_dishes_are_mixed() -> None:
    """Recipes that are not drawn but taken whole are mixed, too, since --limit takes the first."""
    assert len({recipe.name for recipe in load.drawn(SEVENTY, 0, 0)[:9]}) > 3


def test_a_folder_without_the_split_is_named(tmp_path: Path) -> None:
    """The error says how to build it; once it is there, it is read."""
    folder = diner_own.write(tmp_path)
    with pytest.raises(
        DataError, match=r"has no random_data\.json; name a folder made by lm-eval-ext diner build"
    ):
        documents(folder, diner_split="random")
    diner_own.write(tmp_path, "random")
    assert len(documents(folder, diner_split="random")) == len(diner_own.TEST)


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
    part: str, content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """The error names the part and the key."""
    folder = diner_own.write(tmp_path, changed=diner_own.content() | {part: content})
    with pytest.raises(DataError, match=re.escape(message)) as raised:
        documents(folder)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_json_is_refused_in_one_line(tmp_path: Path) -> None:
    """The error says to fetch or build it again, as for a pointer of Git LFS."""
    diner_own.write(tmp_path)
    (tmp_path / "tmcd_data.json").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match=r"Invalid JSON.* fetch or build it again"):
        documents(tmp_path)


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
    """The error names the option and the legal values, or the library that is missing."""

    def find_nothing(name: str) -> None:
        """Say that no library is installed."""

    monkeypatch.setattr("lm_eval_ext.errors.find_spec", find_nothing)
    with pytest.raises(OptionError, match=message):
        load.dataset(**options)


def test_the_published_file_is_the_declared_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading checks size and checksum of the declaration, which fits our file here."""
    declared = sources()["diner"].model_dump(exclude_none=True)
    for spec in declared["files"].values():
        raw = (diner_own.write(tmp_path / "diner") / Path(spec["path"]).name).read_bytes()
        spec |= {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"diner": declared}))
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(tmp_path / "sources.yaml"))
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    assert len(load.dataset()["test"]) == len(diner_own.TEST)
    assert load.dataset.load({}).provenance.source == "diner"


EMPTY: dict[str, dict[str, str]] = {"food": {}, "action": {}, "flavour": {}}
SMALL_GLOSSARY = {
    "food": {
        "鸡": "鸡",
        "鸡肉": "鸡",
        "鸡蛋": "蛋",
        "蛋": "蛋",
        "花饼": "饼",
        "豆": "豆",
        "豆沙": "沙",
        "沙拉": "拉",
    },
    "action": {"炒": "炒", "小炒": "炒"},
    "flavour": {"辣": "辣", "香辣": "香辣"},
}
TITLES = yaml.safe_load(Path(__file__).with_name("diner_cases.yaml").read_text("utf-8"))["titles"]
PARSES = Path(__file__).parents[3] / "docs" / "benchmarks" / "diner_parsing.csv"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("鸡肉", "鸡肉"),  # the longer word, not 鸡 and a remainder
        ("香辣鸡", "香辣 鸡"),
        ("小炒鸡蛋", "小炒 鸡蛋"),
        ("鸡鸡", "鸡 鸡"),  # repeats are kept
        ("豆沙豆", "豆沙 豆"),
        ("豆沙沙拉", "豆沙 沙拉"),
        ("", ""),
    ],
)
def test_matching_takes_the_longest_word_from_the_left(name: str, words: str) -> None:
    """A name is divided into words of the glossary, and each is its class's component."""
    glossary = Glossary(SMALL_GLOSSARY)
    component_of = {}
    for kind, classes in SMALL_GLOSSARY.items():
        for word, class_name in classes.items():
            component_of[word] = Component(kind, class_name)
    assert glossary.words_in(name) == tuple(words.split())
    assert glossary.parse(name) == tuple(component_of[word] for word in words.split())


@pytest.mark.parametrize("name", ["豆沙拉", "鸡蛋花", "香鸡", "饼", "炒 鸡"])
def test_nothing_is_given_back_and_a_class_is_no_word(name: str) -> None:
    """A name with a remainder does not parse, even if shorter words would leave none."""
    glossary = Glossary(SMALL_GLOSSARY)
    assert glossary.words_in(name) is None
    assert glossary.parse(name) is None


def test_words_of_a_class_are_one_component() -> None:
    """A component has its words, in its own kind only."""
    glossary = Glossary(SMALL_GLOSSARY)
    assert glossary.parse("鸡肉") == (Component("food", "鸡"),)
    assert glossary.parse("鸡") == (Component("food", "鸡"),)
    assert glossary.words(Component("food", "鸡")) == ("鸡", "鸡肉")
    assert glossary.words(Component("action", "鸡")) == ()
    assert glossary.words(Component("flavour", "鸡")) == ()


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Neither its order counts nor a byte order mark, which some editors write."""
    file = tmp_path / "glossary.json"
    reordered = {kind: dict(reversed(SMALL_GLOSSARY[kind].items())) for kind in reversed(KINDS)}
    file.write_text(json.dumps(reordered), encoding="utf-8-sig")
    glossary = Glossary.read(file)
    assert glossary.as_dict() == SMALL_GLOSSARY
    assert glossary.digest == Glossary(SMALL_GLOSSARY).digest


def test_words_that_differ_in_script_only_are_one_word() -> None:
    """They may not contradict each other, and are kept simplified."""
    glossary = Glossary(EMPTY | {"food": {"麵": "面", "面": "麵"}})
    assert glossary.as_dict()["food"] == {"面": "面"}


def test_a_digest_depends_on_classes() -> None:
    """The same words in other classes are another glossary."""
    changed = SMALL_GLOSSARY | {"flavour": {"辣": "香辣", "香辣": "香辣"}}
    assert Glossary(changed).digest != Glossary(SMALL_GLOSSARY).digest


@pytest.mark.parametrize("title", TITLES)
def test_titles_become_names(title: str) -> None:
    """Remarks in brackets, signs and other scripts go."""
    assert clean_name(title) == TITLES[title]


@given(st.text(alphabet="鱼肉a(（)）[]【】<>{} \n🐟"))
def test_a_name_is_chinese_and_stays(title: str) -> None:
    """Cleaning leaves nothing but Chinese, and a clean name as it is."""
    name = clean_name(title)
    assert set(name) <= set("鱼肉")
    assert clean_name(name) == name


def test_the_page_shows_what_the_published_glossary_does(published: Glossary) -> None:
    """The documentation's table has the words and components that the glossary gives."""
    _, *examples = csv.reader(PARSES.read_text(encoding="utf-8").splitlines())
    assert len(examples) > 10
    for name, words, components in examples:
        parsed = published.parse(name) or ()
        listed = ", ".join(f"{component.kind} {component.name}" for component in parsed)
        assert " ".join(published.words_in(name) or ()) == words, name
        assert listed == components, name


def test_the_published_glossary_has_the_papers_sizes(published: Glossary) -> None:
    """Each kind has its number of words and classes; 40 classes are called by no word."""
    content = published.as_dict()
    sizes = {}
    all_words: set[str] = set()
    for kind, words in content.items():
        sizes[kind] = (len(words), len(set(words.values())))
        all_words.update(words)
    assert sizes == {"food": (535, 413), "action": (40, 31), "flavour": (35, 35)}
    without_word = set()
    for kind, words in content.items():
        for class_name in words.values():
            if class_name not in all_words:
                without_word.add((kind, class_name))
    assert len(without_word) == 40


def chinese_outside_round_brackets(title: str) -> str:
    """Clean a title by the paper's rule alone."""
    without_remarks = re.sub(r"[(（][^()（）]*[)）]", "", title)
    return re.sub("[^\u4e00-\u9fa5]", "", without_remarks)


def test_as_many_real_names_parse_as_the_fact_sheet_says(
    published: Glossary, thousand_titles: list[str], how_to_cook_titles: list[str]
) -> None:
    """The counts are of titles as they are, cleaned by the paper's rule, and cleaned by ours."""

    def count_parsing(names: Iterable[str]) -> int:
        return sum(bool(published.parse(name)) for name in names)

    assert len(thousand_titles) == 1000
    assert count_parsing(thousand_titles) == 269
    assert count_parsing(map(chinese_outside_round_brackets, thousand_titles)) == 309
    assert count_parsing(map(clean_name, thousand_titles)) == 314
    assert len(how_to_cook_titles) == 368
    assert count_parsing(how_to_cook_titles) == 190
    assert count_parsing(map(clean_name, how_to_cook_titles)) == 191


def test_trying_again_would_parse_one_name_more(
    published: Glossary, real_titles: list[str]
) -> None:
    """The longest word from the left covers 553 of 554 names that words can cover."""
    words: list[str] = []
    for classes in published.as_dict().values():
        words.extend(classes)
    covered = re.compile(f"(?:{'|'.join(words)})+")
    coverable = set()
    for title in real_titles:
        name = clean_name(title)
        if covered.fullmatch(name):
            coverable.add(name)
    assert len(coverable) == 554
    assert sum(bool(published.parse(name)) for name in coverable) == 553


def check_that_glossary_is_refused(file: Path, text: str, message: str) -> None:
    """Write a glossary and check the error of reading it."""
    file.write_text(text, "utf-8")
    with pytest.raises(DataError, match=re.escape(message)) as error:
        Glossary.read(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


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
    ],
)
def test_a_glossary_of_another_form_is_refused(
    content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """The error names the file and the key or word, in one line."""
    check_that_glossary_is_refused(tmp_path / "glossary.json", json.dumps(content), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid YAML"),
        ('{"food": {"鸡": "鸡", "鸡": "肉"}, "action": {}, "flavour": {}}', "'鸡' is repeated"),
    ],
    ids=["cut off", "a repeated key"],
)
def test_a_file_that_is_no_glossary_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """The error names the file and what is wrong, in one line."""
    check_that_glossary_is_refused(tmp_path / "glossary.json", text, message)


GLOSSARY = mini.glossary()


def pairs(split: str, *part_names: str) -> list[tuple[str, str]]:
    """Return instructions with their names, of all parts if none is named."""
    content = mini.split(split)
    all_pairs: list[tuple[str, str]] = []
    for part_name in part_names or content:
        recipes = content[part_name]
        all_pairs.extend(zip(recipes["instructions"], recipes["names"], strict=True))
    return all_pairs


def names_in(split: str, part_name: str) -> list[str]:
    """Return the names of a part, with repeats."""
    return [name for _, name in pairs(split, part_name)]


@pytest.mark.parametrize(("split", "divides_dishes"), [("tmcd", True), ("random", False)])
def test_both_splits_divide_the_same_recipes(split: str, divides_dishes: bool) -> None:
    """They have the same sizes, and only the TMCD split tests names that are not trained on."""
    assert sorted(pairs(split)) == sorted(pairs("tmcd"))
    assert len(pairs(split, "train")) == 34
    assert len(pairs(split, "valid")) == 8
    assert len(pairs(split, "test")) == 24
    trained_names = set(names_in(split, "train"))
    assert trained_names.isdisjoint(names_in(split, "test")) == divides_dishes


@pytest.mark.parametrize("split", ["tmcd", "random"])
def test_every_component_to_be_recognised_occurs_in_training(split: str) -> None:
    """All names outside of training parse into its components."""
    trained_components: set[Component] = set()
    for name in names_in(split, "train"):
        trained_components.update(GLOSSARY.parse(name) or ())
    for name in (*names_in(split, "valid"), *names_in(split, "test")):
        components = GLOSSARY.parse(name)
        assert components, name
        assert trained_components.issuperset(components), name


def test_the_tmcd_split_tests_all_categories() -> None:
    """Each way in which training names can combine is in the test set."""
    trained = [GLOSSARY.parse(name) or () for name in names_in("tmcd", "train")]
    categories = Categories(trained)
    tested = {categories.of(GLOSSARY.parse(name) or ()) for name in names_in("tmcd", "test")}
    assert tested == set(CATEGORIES)


def test_no_instruction_has_its_name() -> None:
    """Names are clean, and the text does not give them away."""
    for instruction, name in pairs("tmcd"):
        assert name not in instruction
        assert clean_name(name) == name, instruction
