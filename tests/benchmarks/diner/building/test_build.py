"""``lm-eval-ext diner build`` on a small corpus; the TMCD split beside independent computations."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import gzip
import hashlib
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import opencc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import small_corpus as small

from lm_eval_ext.benchmarks.diner import build as building
from lm_eval_ext.benchmarks.diner.build import MIX, PAPER, Options, build, documents, figures, forms
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Components, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Categories
from lm_eval_ext.benchmarks.diner.tmcd import compounds, search
from lm_eval_ext.cli import diner as command
from lm_eval_ext.errors import DataError, OptionError

pytestmark = pytest.mark.slow

FILES = ["glossary.json", "random_data.json", "report.json", "tmcd_data.json"]
OPTIONS = Options(divergence=0.9)
SPLITS = ("tmcd", "random")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the corpus, the glossary ``words.json``, and the build in ``out``."""
    folder = tmp_path_factory.mktemp("diner")
    (folder / "words.json").write_text(json.dumps(small.GLOSSARY), encoding="utf-8")
    corpus = small.write(folder / "corpus.jsonl", small.recipes())
    build(corpus, folder / "out", folder / "words.json", OPTIONS)
    return folder


def read(folder: Path, name: str = "report.json") -> Any:
    """Return the content of a file that a build wrote."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of each split's file."""
    of_splits = {}
    for split in SPLITS:
        content = (folder / f"{split}_data.json").read_bytes()
        of_splits[split] = hashlib.sha256(content).hexdigest()[:16]
    return of_splits


def test_files_are_those_of_every_version_so_far(built: Path) -> None:
    """Published scores would be incomparable after a change of these files."""
    assert digests(built / "out") == {"tmcd": "85ad3988a80ca53c", "random": "5d310fca0443737d"}


def test_files_with_other_options_are_those_of_every_version_so_far(
    built: Path, tmp_path: Path
) -> None:
    """The report has the options, and the search for a split that diverges more went somewhere."""
    options = Options(divergence=1.0, seed=5, compounds="subsets")
    report = build(built / "corpus.jsonl", tmp_path / "out", built / "words.json", options)
    assert digests(tmp_path / "out") == {"tmcd": "2c0f1d0be5ce0e3d", "random": "a2bcc182cb6f5a62"}
    assert report["options"] == options.model_dump()
    assert report["course"][-1] > report["course"][0]


Pairs = list[tuple[str, str]]


def pairs(split: dict[str, Any], *part_names: str) -> Pairs:
    """Return names with their instructions, of all parts if none is named."""
    all_pairs: Pairs = []
    for part_name in part_names or split:
        recipes = split[part_name]
        all_pairs.extend(zip(recipes["names"], recipes["instructions"], strict=True))
    return all_pairs


def test_counts_are_those_that_were_planted(built: Path) -> None:
    """The report counts what is left after each step of the selection."""
    in_dishes = small.DISHES * small.RECIPES_PER_DISH
    of_rare_names = small.RARE_NAMES * 19
    with_usual_title = in_dishes + 20 + small.UNPARSED_NAMES * 20 + of_rare_names
    parsing_names = small.DISHES + 1
    repeats = small.DISHES * small.REPEATS_PER_DISH
    different = in_dishes - small.DISHES * small.SHORT_PER_DISH - repeats
    assert read(built / "out")["kept"] == {
        "recipes": with_usual_title + small.SINGLE_TITLES + len(small.UNUSABLE_TITLES),
        "with a title": with_usual_title + small.SINGLE_TITLES,
        "titles": (parsing_names + small.UNPARSED_NAMES + small.RARE_NAMES + small.SINGLE_TITLES),
        "dish names": parsing_names + small.UNPARSED_NAMES,
        "with a dish name": with_usual_title - of_rare_names,
        "dish names that parse": parsing_names,
        "with such a name": in_dishes + 20,
        "long enough": different + repeats,
        "different": different,
        "their dishes": small.DISHES,
    }


@pytest.fixture(scope="module")
def built_of_traditional(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return such a folder with glossary and half of the recipes in traditional characters.

    The recipes are in another order, too.
    """
    folder = tmp_path_factory.mktemp("traditional")
    to_traditional = opencc.OpenCC("s2t").convert
    corpus = sorted(small.recipes(), key=json.dumps)
    for entry in corpus[::2]:
        if entry["name"]:
            entry["name"] = to_traditional(entry["name"])
    small.write(folder / "corpus.jsonl", corpus)
    words = to_traditional(json.dumps(small.GLOSSARY, ensure_ascii=False))
    (folder / "words.json").write_text(words, encoding="utf-8")
    build(folder / "corpus.jsonl", folder / "out", folder / "words.json", OPTIONS)
    return folder


def test_neither_script_nor_order_changes_a_file(built: Path, built_of_traditional: Path) -> None:
    """Splits and report are the same but for the corpus's checksum."""
    out = built_of_traditional / "out"
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert digests(out) == digests(built / "out")
    report = read(built / "out")
    other_report = read(out)
    assert [key for key in report if report[key] != other_report[key]] == ["corpus"]


def test_a_folder_with_a_build_is_refused(built: Path) -> None:
    """A second build needs another folder."""
    with pytest.raises(OptionError, match="is not empty; name another folder"):
        build(built / "corpus.jsonl", built / "out", built / "words.json", OPTIONS)


def test_both_splits_divide_the_same_recipes(built: Path) -> None:
    """Each recipe is in one part of each split, and the parts have the same sizes."""
    tmcd = read(built / "out", "tmcd_data.json")
    mixed = read(built / "out", "random_data.json")
    recipes = sorted(pairs(tmcd))
    assert recipes == sorted(set(recipes))
    assert recipes == sorted(pairs(mixed))
    assert tmcd.keys() == mixed.keys()
    sizes = {name: len(pairs(tmcd, name)) for name in tmcd}
    for name, size in sizes.items():
        assert size == len(pairs(mixed, name)), name
    assert sizes["valid"] == round(0.2 * (sizes["train"] + sizes["valid"]))


@pytest.mark.parametrize(("split", "divides_dishes"), [("tmcd", True), ("random", False)])
def test_the_tmcd_split_divides_dishes_and_the_random_one_recipes(
    built: Path, split: str, divides_dishes: bool
) -> None:
    """Only in the random split, dishes of the test set have recipes in training."""
    content = read(built / "out", f"{split}_data.json")
    trained_names = {name for name, _ in pairs(content, "train", "valid")}
    assert trained_names.isdisjoint(content["test"]["names"]) == divides_dishes


def test_the_tmcd_split_tests_the_papers_share_of_dishes(built: Path) -> None:
    """Two of eleven dishes are in the test set."""
    content = read(built / "out", "tmcd_data.json")
    assert len(set(content["test"]["names"])) == round(small.DISHES / 5.5)


BEEF = Component("food", "beef")
EGG = Component("food", "egg")
TOFU = Component("food", "tofu")
FRY = Component("action", "fry")
SPICY = Component("flavour", "spicy")
NAMES = {
    "fried beef": (FRY, BEEF),
    "beef, fried, beef": (BEEF, FRY, BEEF),
    "spicy fried beef": (SPICY, FRY, BEEF),
    "egg": (EGG,),
    "egg, egg": (EGG, EGG),
    "fried tofu": (FRY, TOFU),
}


def test_figures_of_a_split_are_what_counting_gives() -> None:
    """Training and test set have three names each."""
    split = {
        "train": {"names": ["fried beef", "egg", "egg, egg"]},
        "valid": {"names": ["egg"]},
        "test": {"names": ["spicy fried beef", "fried tofu", "fried beef"]},
    }
    values = figures(NAMES, split, "subsets")
    counts = [values[key] for key in list(PAPER)[:7]]
    assert counts == [3, 3, 4, 3, 3, 4, 2], "the last: training lacks spicy and tofu"
    expected = {
        # Training names with fry, beef, spicy and tofu: 1, 1, 0, 0.
        "training dishes per test component": 2 / 4,
        # Of spicy+fry, spicy+beef, fry+beef, all three and fry+tofu, training has one.
        "share of the test compounds that training has": 1 / 5,
        "divergence of compounds": 1 - (2 / 6) ** 0.9,
        "share of none": 1,
        "distance of these shares from the paper's": 1,
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected)


def test_forms_are_counted_by_kinds() -> None:
    """Each form has its number of names and of their recipes; repeated components count once."""
    assert forms(NAMES, dict.fromkeys(NAMES, 10)) == {
        "1 action + 1 food": [3, 30],
        "1 food": [2, 20],
        "1 flavour + 1 action + 1 food": [1, 10],
    }


RECIPE = small.recipe("红烧猪肉", "煮" * 19)  # 20 characters with the full stop


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ([RECIPE] * 19, "no title occurs 20 times in 19 recipes"),
        ([], "no title occurs 20 times in 0 recipes"),
        ([RECIPE | {"name": "怪物"}] * 20, "none of 1 dish names parses and has"),
        ([RECIPE | {"recipeInstructions": ["煮" * 18]}] * 20, "an instruction of 20 characters"),
        ([RECIPE] * 20, "none of 1 dish names can be in test"),
    ],
    ids=["rare titles", "no recipes", "no glossary word", "short recipes", "one dish"],
)
def test_a_corpus_without_dishes_is_refused(
    built: Path, tmp_path: Path, corpus: list[dict[str, Any]], message: str
) -> None:
    """The error says at which step nothing was left; nothing is written."""
    file = small.write(tmp_path / "corpus.jsonl", corpus)
    with pytest.raises(DataError, match=message):
        build(file, tmp_path / "out", built / "words.json", OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def cleaned(path: Path, content: bytes) -> list[tuple[str, str]]:
    """Write a corpus and read its titles and instructions."""
    path.write_bytes(content)
    return [(entry.title, entry.instruction) for entry in building.read(path, "")]


STEPS = [" 切\n\n块 ", "", "　", None, "洗净！", "煮 5", "好吃💕", "新\U0001fae8", "\0\x85煮"]
ODD_CORPUS = "\n".join(
    [
        "\ufeff" + json.dumps({"name": "红烧肉(1)", "recipeInstructions": STEPS}),
        '{}\n\n{"name": null, "recipeInstructions": null, "x": 1}',
        '{"name": "肉", "name": "湯"}\n',
    ]
).encode()
"""A byte order mark, absent values and keys that occur twice are no errors."""

READ_FROM_IT = [
    # An end mark where there is neither punctuation nor a sign; space of any kind becomes one.
    ("红烧肉", "切 块。洗净！煮 5。好吃💕新\U0001fae8煮。"),
    ("", ""),
    ("", ""),
    ("汤", ""),
]


def test_titles_and_instructions_are_cleaned(tmp_path: Path) -> None:
    """Brackets go, steps become sentences, and characters are simplified."""
    assert cleaned(tmp_path / "corpus.jsonl", ODD_CORPUS) == READ_FROM_IT


def test_a_corpus_may_be_compressed(tmp_path: Path) -> None:
    """A file by gzip is read in the same way; one that is cut off is refused."""
    compressed = gzip.compress(ODD_CORPUS)
    assert cleaned(tmp_path / "corpus.jsonl.gz", compressed) == READ_FROM_IT
    with pytest.raises(DataError, match="cannot be read"):
        cleaned(tmp_path / "corpus.jsonl.gz", compressed[:-4])


def test_text_to_pretrain_on_names_no_dish(tmp_path: Path) -> None:
    """Recipes of dishes, repeats, and titles without Chinese are left out."""
    long_step = "切" * 30
    corpus = []
    for title in ("红烧牛肉", "【家常】红烧牛肉面(一)", "凉拌黄瓜", "DIY", "蛋糕", "蛋糕"):
        corpus.append(small.recipe(title, long_step))
    corpus.append(small.recipe("豆腐", "切"))
    path = small.write(tmp_path / "corpus.jsonl", corpus)
    texts = documents(path, {"红烧牛肉", "黄瓜丝"})
    assert texts == [f"凉拌黄瓜\n{long_step}。", f"蛋糕\n{long_step}。"]


@pytest.mark.e2e
def test_a_build_from_the_command_line(
    cli: Callable[..., Any], built: Path, tmp_path: Path
) -> None:
    """It prints a table beside the paper's, and no progress where there is no terminal."""
    files = ["--corpus", str(built / "corpus.jsonl"), "--glossary", str(built / "words.json")]
    completed = cli("diner", "build", *files, "-o", str(tmp_path / "out"))
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == ""
    assert re.search(r"training recipes, valid included +187,520 ", completed.stdout)
    assert "asked for 0.98" in completed.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def test_the_report_says_what_the_files_hold(built: Path) -> None:
    """It has the figures of the paper's table, the course of the search, and forms of names."""
    report = read(built / "out")
    values = report["figures"]["tmcd"]
    assert list(values) == list(PAPER)
    assert list(report["figures"]["paper, TMCD"]) == list(PAPER)
    assert values["test components that training lacks"] == 0
    divergence = values["divergence of compounds"]
    assert report["course"][-1] == pytest.approx(divergence, abs=1e-12, rel=0)
    assert sum(names for names, _ in report["forms"].values()) == small.DISHES
    recipes = sum(recipes for _, recipes in report["forms"].values())
    assert recipes == report["kept"]["different"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"name": "..."', "Invalid JSON"),
        (rb'{"name": "\ud800"}', "Invalid JSON"),
        (b'{"name": "\xff\xfe"}', "Invalid JSON"),
        (b"[1, 2]", "should be an object"),
        (b'{"recipeInstructions": "..."}', "recipeInstructions: Input should be a valid array"),
    ],
    ids=["cut off", "half a character", "no UTF-8", "a list", "no list of steps"],
)
def test_the_wrong_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    """The error has the line's number, and what is wrong in it."""
    with pytest.raises(DataError, match=f"line 1501: .*{message}") as caught:
        cleaned(tmp_path / "corpus.jsonl", b"{}\n" * 1_500 + line + b"\n{}\n")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpus": Path("nowhere.jsonl")}, "nowhere.jsonl: cannot be read"),
        ({"divergence": float("nan")}, "diner build: divergence: "),
        ({"compounds": "pairs"}, "compounds: Input should be 'whole' or 'subsets'"),
        ({"glossary": Path("nowhere.json")}, "nowhere.json: cannot be read"),
        ({"out": Path(__file__) / "out"}, "cannot write .*out: Not a directory"),
    ],
    ids=["no corpus", "no number", "no such compounds", "no glossary", "no folder"],
)
def test_wrong_options_are_one_line(
    built: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    """The error names the file or the option; nothing is written."""
    arguments: dict[str, Any] = {
        "out": tmp_path / "out",
        "corpus": built / "corpus.jsonl",
        "glossary": built / "words.json",
    }
    with pytest.raises((DataError, OptionError), match=message) as caught:
        command.build(**{**arguments, **options})
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_a_glossary_the_published_one_is_used(
    tmp_path: Path, real_data: Path, published: Glossary
) -> None:
    """The build's copy of the glossary is the authors'."""
    corpus = small.write(tmp_path / "corpus.jsonl", small.recipes())
    build(corpus, tmp_path / "out", None, OPTIONS)
    assert Glossary.read(tmp_path / "out" / "glossary.json").digest == published.digest


Names = Mapping[str, Components]


def random_names(rng: random.Random, count: int, components: int) -> Names:
    """Return names of one to five components, some of which occur twice in a name."""
    drawn = [Component(rng.choice(KINDS), str(number)) for number in range(components)]
    names = {}
    for number in range(count):
        names[f"n{number}"] = tuple(rng.choices(drawn, k=rng.randint(1, 5)))
    return names


def compound_shares(names: Names, compound_type: str) -> dict[tuple[Any, ...], float]:
    """Return each compound's share of all compounds of some names."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for components in names.values():
        counts.update(compounds(components, compound_type))
    return {compound: count / counts.total() for compound, count in counts.items()}


def divergence_by_definition(train: Names, test: Names, compound_type: str) -> float:
    """Return one minus the Chernoff coefficient of the compounds' shares, as the paper has it."""
    train_shares = compound_shares(train, compound_type)
    test_shares = compound_shares(test, compound_type)
    products = []
    for compound in train_shares.keys() & test_shares.keys():
        products.append(train_shares[compound] ** 0.1 * test_shares[compound] ** 0.9)
    return 1 - math.fsum(products)


def check_split(
    names: Names, tested: list[str], course: list[float], target: float, compound_type: str
) -> None:
    """Check what must hold of every split."""
    test = {name: names[name] for name in tested}
    train = {name: components for name, components in names.items() if name not in test}
    assert tested == sorted(test)
    assert set().union(*test.values()) <= set().union(*train.values())
    for name, components in test.items():
        assert len(set(components)) > 1, name
    assert len(test) <= round(len(names) / 5.5)
    assert course == sorted(set(course))
    divergence = divergence_by_definition(train, test, compound_type)
    assert course[-1] == pytest.approx(divergence, abs=1e-12, rel=0)
    for divergence_before in course[:-1]:
        assert divergence_before < target


def test_compounds_of_three_components_are_one_set_or_all_subsets() -> None:
    """Subsets have two components and more; repeats do not count."""
    assert compounds("cabc", "whole") == [("a", "b", "c")]
    subsets = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]
    assert compounds("cabc", "subsets") == subsets


@pytest.mark.parametrize("compound_type", ["whole", "subsets"])
def test_one_component_makes_no_compound_and_two_make_one(compound_type: str) -> None:
    """A component that comes twice is one."""
    assert compounds("bb", compound_type) == []
    assert compounds("ba", compound_type) == [("a", "b")]


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.integers(20, 80),
    st.sampled_from([0.6, 0.8, 0.98, 1.0]),
    st.sampled_from(["whole", "subsets"]),
)
def test_any_names_are_split_as_they_should(
    seed: int, count: int, target: float, compound_type: str
) -> None:
    """All that must hold does, and the order of names changes nothing."""
    names = random_names(random.Random(seed), count, 20)
    tested, course = search(names, target=target, compounds=compound_type, seed=seed)
    check_split(names, tested, course, target, compound_type)
    backwards = dict(reversed(list(names.items())))
    of_backwards = search(backwards, target=target, compounds=compound_type, seed=seed)
    assert of_backwards == (tested, course)


@pytest.mark.parametrize(("compound_type", "distance"), [("whole", 0.39), ("subsets", 0.53)])
def test_whole_sets_come_nearest_to_the_papers_figures(
    real_titles: list[str], published: Glossary, compound_type: str, distance: float
) -> None:
    """The mix of categories (table 2) is nearer to the paper's, the reason for the default."""
    names = {}
    for title in real_titles:
        name = clean_name(title)
        components = published.parse(name)
        if components:
            names[name] = components
    tested, course = search(names, target=0.98, compounds=compound_type, seed=0)
    check_split(names, tested, course, 0.98, compound_type)
    assert course[-1] >= 0.98
    assert len(tested) == round(len(names) / 5.5)
    train = [components for name, components in names.items() if name not in tested]
    categories = Categories(train)
    mix = Counter(categories.of(names[name]) or "none" for name in tested)
    differences = 0.0
    for category, count in MIX.items():
        differences += abs(mix[category] / len(tested) - count / 694)
    assert round(differences / 2, 2) == distance


def search_subsets(names: Names, target: float) -> tuple[list[str], list[float]]:
    return search(names, target=target, compounds="subsets", seed=2)


def test_a_lower_target_is_a_part_of_the_way() -> None:
    """The search for a higher target goes on where that for a lower one ends."""
    names = random_names(random.Random(0), 200, 60)
    tested, course = search_subsets(names, 0.9)
    check_split(names, tested, course, 0.9, "subsets")
    _, longer_course = search_subsets(names, 0.98)
    assert longer_course[: len(course)] == course
    assert course[-1] >= 0.9
    assert longer_course[-1] >= 0.98


def test_a_target_that_is_met_exactly_is_reached() -> None:
    """The search ends at the divergence that it reaches, if that is asked for."""
    names = random_names(random.Random(0), 200, 60)
    tested, course = search_subsets(names, 0.9)
    assert search_subsets(names, course[-1]) == (tested, course)


def test_where_the_best_first_move_leads_nowhere_others_are_tried() -> None:
    """A crowded set of names is still split."""
    names = random_names(random.Random(10), 200, 20)
    _, course = search(names, target=1.0, compounds="subsets", seed=0)
    assert course[-1] > 0.8
