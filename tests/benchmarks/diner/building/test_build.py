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
import small_corpus as small
from hypothesis import given, settings
from hypothesis import strategies as st

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
    folder = tmp_path_factory.mktemp("diner")
    (folder / "words.json").write_text(json.dumps(small.GLOSSARY), encoding="utf-8")
    corpus = small.write(folder / "corpus.jsonl", small.recipes())
    build(corpus, folder / "out", folder / "words.json", OPTIONS)
    return folder


def read(folder: Path, name: str = "report.json") -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def digests(folder: Path) -> list[str]:
    """Of both splits."""
    files = (folder / f"{split}_data.json" for split in SPLITS)
    return [hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files]


def test_files_are_those_of_every_version_so_far(built: Path, tmp_path: Path) -> None:
    """What a change here makes incomparable is published scores."""
    assert digests(built / "out") == ["85ad3988a80ca53c", "5d310fca0443737d"]
    options = Options(divergence=1.0, seed=5, compounds="subsets")
    report = build(built / "corpus.jsonl", tmp_path / "out", built / "words.json", options)
    assert digests(tmp_path / "out") == ["2c0f1d0be5ce0e3d", "a2bcc182cb6f5a62"]
    assert report["options"] == options.model_dump()
    assert report["course"][-1] > report["course"][0]


def pairs(content: dict[str, Any], *parts: str) -> list[tuple[str, str]]:
    some = [content[part] for part in parts or content]
    return [pair for one in some for pair in zip(one["names"], one["instructions"], strict=True)]


def test_counts_are_those_that_were_planted(built: Path) -> None:
    kept = read(built / "out")["kept"]
    total = small.DISHES * small.EACH + 20 + small.UNPARSED * 20 + small.RARE * 19
    names = small.DISHES + 1
    different = small.DISHES * (small.EACH - small.SHORT - small.REPEATS)
    assert kept == {
        "recipes": total + small.SINGLE + len(small.UNTITLED),
        "with a title": total + small.SINGLE,
        "titles": names + small.UNPARSED + small.RARE + small.SINGLE,
        "dish names": names + small.UNPARSED,
        "with a dish name": total - small.RARE * 19,
        "dish names that parse": names,
        "with such a name": small.DISHES * small.EACH + 20,
        "long enough": different + small.DISHES * small.REPEATS,
        "different": different,
        "their dishes": small.DISHES,
    }


def test_neither_script_nor_order_changes_a_file(built: Path, tmp_path: Path) -> None:
    """Every other recipe and the glossary in traditional characters, in another order."""
    traditional = opencc.OpenCC("s2t").convert
    found = sorted(small.recipes(), key=json.dumps)
    for one in found[::2]:
        one["name"] = one["name"] and traditional(one["name"])
    words = traditional(json.dumps(small.GLOSSARY, ensure_ascii=False))
    (tmp_path / "words.json").write_text(words, encoding="utf-8")
    given = small.write(tmp_path / "corpus.jsonl", found), tmp_path / "out", tmp_path / "words.json"
    build(*given, OPTIONS)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert digests(tmp_path / "out") == digests(built / "out")
    before, after = (read(folder / "out") for folder in (built, tmp_path))
    assert [key for key in before if before[key] != after[key]] == ["corpus"]
    with pytest.raises(OptionError, match="is not empty; name another folder"):
        build(*given, OPTIONS)


def test_every_recipe_is_in_one_part_of_each_split(built: Path) -> None:
    """The TMCD split divides dishes, and the random one recipes."""
    tmcd, mixed = (read(built / "out", f"{split}_data.json") for split in SPLITS)
    assert sorted(pairs(tmcd)) == sorted(pairs(mixed)) == sorted(set(pairs(tmcd)))
    sizes = [len(pairs(tmcd, part)) for part in tmcd]
    assert sizes == [len(pairs(mixed, part)) for part in mixed]
    assert sizes[1] == round(0.2 * sum(sizes[:2]))
    for data, divides_dishes in ((tmcd, True), (mixed, False)):
        shown = (name for name, _ in pairs(data, "train", "valid"))
        assert set(data["test"]["names"]).isdisjoint(shown) == divides_dishes
    assert len(set(tmcd["test"]["names"])) == round(small.DISHES / 5.5)


BEEF, EGG, TOFU = (Component("food", name) for name in ("beef", "egg", "tofu"))
FRY, SPICY = Component("action", "fry"), Component("flavour", "spicy")
NAMES = {
    "fried beef": (FRY, BEEF),
    "beef, fried, beef": (BEEF, FRY, BEEF),
    "spicy fried beef": (SPICY, FRY, BEEF),
    "egg": (EGG,),
    "egg, egg": (EGG, EGG),
    "fried tofu": (FRY, TOFU),
}


def test_figures_by_hand() -> None:
    train = {"names": ["fried beef", "egg", "egg, egg"]}
    test = {"names": ["spicy fried beef", "fried tofu", "fried beef"]}
    found = figures(NAMES, {"train": train, "valid": {"names": ["egg"]}, "test": test}, "subsets")
    assert [found[key] for key in list(PAPER)[:7]] == [3, 3, 4, 3, 3, 4, 2]  # spicy, tofu
    expected = {
        # Training names with fry, beef, spicy and tofu: 1, 1, 0, 0.
        "training dishes per test component": 2 / 4,
        # Of spicy+fry, spicy+beef, fry+beef, all three and fry+tofu, training has one.
        "share of the test compounds that training has": 1 / 5,
        "divergence of compounds": 1 - (2 / 6) ** 0.9,
        "share of none": 1,
        "distance of these shares from the paper's": 1,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert forms(NAMES, dict.fromkeys(NAMES, 10)) == {
        "1 action + 1 food": [3, 30], "1 food": [2, 20], "1 flavour + 1 action + 1 food": [1, 10],
    }  # fmt: skip


RECIPE = small.recipe("红烧猪肉", "煮" * 19)  # 20 characters with the full stop


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([RECIPE] * 19, "no title occurs 20 times in 19 recipes"),
        ([], "no title occurs 20 times in 0 recipes"),
        ([RECIPE | {"name": "怪物"}] * 20, "none of 1 dish names parses and has"),
        ([RECIPE | {"recipeInstructions": ["煮" * 18]}] * 20, "an instruction of 20 characters"),
        ([RECIPE] * 20, "none of 1 dish names can be in test"),
    ],
)
def test_a_corpus_without_dishes(built: Path, tmp_path: Path, found: Any, message: str) -> None:
    corpus = small.write(tmp_path / "corpus.jsonl", found)
    with pytest.raises(DataError, match=message):
        build(corpus, tmp_path / "out", built / "words.json", OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def cleaned(path: Path, content: bytes) -> list[tuple[str, str]]:
    path.write_bytes(content)
    return [(one.title, one.instruction) for one in building.read(path, "")]


def test_what_is_read(tmp_path: Path) -> None:
    steps = [" 切\n\n块 ", "", "　", None, "洗净！", "煮 5", "好吃💕", "新\U0001fae8", "\0\x85煮"]
    # A byte order mark, and keys that occur twice, are no errors.
    raw = "\n".join(
        [
            "\ufeff" + json.dumps({"name": "红烧肉(1)", "recipeInstructions": steps}),
            '{}\n\n{"name": null, "recipeInstructions": null, "x": 1}',
            '{"name": "肉", "name": "湯"}\n',
        ]
    ).encode()
    # An end mark where there is neither punctuation nor a sign; space of any kind becomes one.
    text = "切 块。洗净！煮 5。好吃💕新\U0001fae8煮。"
    found = [("红烧肉", text), ("", ""), ("", ""), ("汤", "")]
    assert cleaned(tmp_path / "corpus.jsonl", raw) == found
    zipped = gzip.compress(raw)
    assert cleaned(tmp_path / "corpus.jsonl.gz", zipped) == found
    with pytest.raises(DataError, match="cannot be read"):
        cleaned(tmp_path / "corpus.jsonl.gz", zipped[:-4])


def test_text_to_pretrain_on_names_no_dish(tmp_path: Path) -> None:
    titles = ("红烧牛肉", "【家常】红烧牛肉面(一)", "凉拌黄瓜", "DIY", "蛋糕", "蛋糕")
    rows = [small.recipe(title, "切" * 30) for title in titles]
    rows.append(small.recipe("豆腐", "切"))
    path = small.write(tmp_path / "corpus.jsonl", rows)
    assert documents(path, {"红烧牛肉", "黄瓜丝"}) == [
        f"{title}\n{'切' * 30}。" for title in ("凉拌黄瓜", "蛋糕")
    ]


@pytest.mark.e2e
def test_a_build_from_the_command_line(
    cli: Callable[..., Any], built: Path, tmp_path: Path
) -> None:
    """It prints a table beside the paper's."""
    done = cli("diner", "build", "--corpus", str(built / "corpus.jsonl"),
               "--glossary", str(built / "words.json"), "-o", str(tmp_path / "out"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bars: it is no terminal
    assert re.search(r"training recipes, valid included +187,520 ", done.stdout)
    assert "asked for 0.98" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def test_the_report_says_what_the_files_hold(built: Path) -> None:
    report = read(built / "out")
    found = report["figures"]["tmcd"]
    assert list(found) == list(report["figures"]["paper, TMCD"]) == list(PAPER)
    assert found["test components that training lacks"] == 0
    assert report["course"][-1] == pytest.approx(found["divergence of compounds"], abs=1e-12, rel=0)
    sums = [sum(column) for column in zip(*report["forms"].values(), strict=True)]
    assert sums == [small.DISHES, report["kept"]["different"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"name": "..."', "Invalid JSON"),
        (rb'{"name": "\ud800"}', "Invalid JSON"),
        (b'{"name": "\xff\xfe"}', "Invalid JSON"),
        (b"[1, 2]", "should be an object"),
        (b'{"recipeInstructions": "..."}', "recipeInstructions: Input should be a valid array"),
    ],
)
def test_the_wrong_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
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
)
def test_one_line_for_what_is_wrong(
    built: Path, tmp_path: Path, options: Any, message: str
) -> None:
    given = {"corpus": built / "corpus.jsonl", "glossary": built / "words.json"}
    with pytest.raises((DataError, OptionError), match=message) as caught:
        command.build(**{"out": tmp_path / "out", **given, **options})
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_a_glossary_the_published_one_is_used(
    tmp_path: Path, real_data: Path, published: Glossary
) -> None:
    corpus = small.write(tmp_path / "corpus.jsonl", small.recipes())
    build(corpus, tmp_path / "out", None, OPTIONS)
    assert Glossary.read(tmp_path / "out" / "glossary.json").digest == published.digest


Names = Mapping[str, Components]


def drawn(rng: random.Random, count: int, kinds: int) -> Names:
    """Names of one to five components, some of them twice in a name."""
    parts = [Component(rng.choice(KINDS), str(number)) for number in range(kinds)]
    return {f"n{n}": tuple(rng.choices(parts, k=rng.randint(1, 5))) for n in range(count)}


def plainly(train: Names, test: Names, which: str) -> float:
    """The divergence by the definition."""
    counts = [
        Counter(one for found in side.values() for one in compounds(found, which))
        for side in (train, test)
    ]
    shares = [{one: n / side.total() for one, n in side.items()} for side in counts]
    both = shares[0].keys() & shares[1].keys()
    return 1 - math.fsum(shares[0][one] ** 0.1 * shares[1][one] ** 0.9 for one in both)


def check(names: Names, tested: list[str], course: list[float], target: float, which: str) -> None:
    """What must hold of every split."""
    test = {name: names[name] for name in tested}
    train = {name: found for name, found in names.items() if name not in test}
    assert tested == sorted(test)
    assert set().union(*test.values()) <= set().union(*train.values())
    assert all(len(set(found)) > 1 for found in test.values())
    assert len(test) <= round(len(names) / 5.5)
    assert course == sorted(set(course))
    assert course[-1] == pytest.approx(plainly(train, test, which), abs=1e-12, rel=0)
    assert all(before < target for before in course[:-1])


def test_compounds_of_three_components() -> None:
    assert compounds("cabc", "whole") == [tuple("abc")]
    assert compounds("cabc", "subsets") == [tuple(one) for one in ("ab", "ac", "bc", "abc")]
    for which in ("whole", "subsets"):
        assert compounds("bb", which) == []
        assert compounds("ba", which) == [("a", "b")]


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.integers(20, 80),
    st.sampled_from([0.6, 0.8, 0.98, 1.0]),
    st.sampled_from(["whole", "subsets"]),
)
def test_any_names_are_split_as_they_should(
    seed: int, count: int, target: float, which: str
) -> None:
    names = drawn(random.Random(seed), count, 20)
    found = search(names, target=target, compounds=which, seed=seed)
    check(names, *found, target, which)
    backwards = dict(reversed(names.items()))
    assert search(backwards, target=target, compounds=which, seed=seed) == found


def test_whole_sets_come_nearest_to_the_papers_figures(
    diner_names: list[str], published: Glossary
) -> None:
    """The reason for the default: the mix of categories (table 2)."""
    titles = map(clean_name, diner_names)
    names = {name: found for name in titles if (found := published.parse(name))}
    for which, distance in (("whole", 0.39), ("subsets", 0.53)):
        tested, course = search(names, target=0.98, compounds=which, seed=0)
        check(names, tested, course, 0.98, which)
        assert course[-1] >= 0.98 and len(tested) == round(len(names) / 5.5)
        known = Categories(found for name, found in names.items() if name not in tested)
        mix = Counter(known.of(names[name]) or "none" for name in tested)
        found = sum(abs(mix[one] / len(tested) - count / 694) for one, count in MIX.items()) / 2
        assert round(found, 2) == distance


def test_a_lower_target_is_a_part_of_the_way() -> None:
    names = drawn(random.Random(0), 200, 60)
    early, late = (search(names, target=one, compounds="subsets", seed=2) for one in (0.9, 0.98))
    check(names, *early, 0.9, "subsets")
    assert late[1][: len(early[1])] == early[1]
    assert early[1][-1] >= 0.9 and late[1][-1] >= 0.98
    # Where the best first move leads nowhere, others are tried.
    crowded = drawn(random.Random(10), 200, 20)
    assert search(crowded, target=1.0, compounds="subsets", seed=0)[1][-1] > 0.8
    # A divergence that is met exactly is reached.
    assert search(names, target=early[1][-1], compounds="subsets", seed=2) == early
