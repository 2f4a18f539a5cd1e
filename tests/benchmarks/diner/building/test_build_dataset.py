"""The whole build on a small corpus: selection, splits and output files."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import opencc
import pytest
import small_corpus as small

from lm_eval_ext.benchmarks.diner.build import Options, build_dataset, divergence
from lm_eval_ext.benchmarks.diner.glossary import Component, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.records import Categories, split_of
from lm_eval_ext.errors import DataError, OptionError

pytestmark = pytest.mark.slow

FILES = ["glossary.json", "random_data.json", "report.json", "report.md", "tmcd_data.json"]
OPTIONS = Options(divergence=0.9, memory_gib=0.5)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diner")
    corpus = small.write(folder / "corpus.jsonl", small.recipes())
    build_dataset(corpus, folder / "out", small.glossary(folder / "words.json"), OPTIONS)
    return folder


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def pairs(part: dict[str, list[str]]) -> list[tuple[str, str]]:
    return list(zip(part["names"], part["instructions"], strict=True))


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_counts_are_those_that_were_planted(built: Path) -> None:
    kept = read(built / "out", "report.json")["kept"]
    total = small.DISHES * small.EACH + 20 + small.UNPARSED * 20 + small.RARE * 19
    names = small.DISHES + 1
    assert kept == {
        "read": total + small.SINGLE + small.UNTITLED,
        "titled": total + small.SINGLE,
        "titles": names + small.UNPARSED + small.RARE + small.SINGLE,
        "dish_names": names + small.UNPARSED,
        "with_dish_name": total - small.RARE * 19,
        "parsed_names": names,
        "with_parsed_name": small.DISHES * small.EACH + 20,
        "short": small.DISHES * small.SHORT + 20,
        "repeats": small.DISHES * small.REPEATS,
        "dishes": small.DISHES,
        "recipes": small.DISHES * (small.EACH - small.SHORT - small.REPEATS),
    }


def test_traditional_titles_and_glossary_give_the_same_dataset(built: Path, tmp_path: Path) -> None:
    """Every other recipe and all words of the glossary in traditional characters."""
    script = opencc.OpenCC("s2t")
    found = small.recipes()
    for one in found[::2]:
        one["name"] = one["name"] and script.convert(one["name"])
    words = script.convert((built / "words.json").read_text(encoding="utf-8"))
    (tmp_path / "words.json").write_text(words, encoding="utf-8")
    corpus = small.write(tmp_path / "corpus.jsonl", found)
    build_dataset(corpus, tmp_path / "out", tmp_path / "words.json", OPTIONS)
    first, other = contents(built / "out"), contents(tmp_path / "out")
    assert {name for name in FILES if first[name] != other[name]} == {"report.json", "report.md"}
    for key in ("kept", "splits", "unparsed"):
        assert read(tmp_path / "out", "report.json")[key] == read(built / "out", "report.json")[key]


@pytest.mark.parametrize("split", ["tmcd", "random"])
def test_every_recipe_is_in_one_part(built: Path, split: str) -> None:
    data = read(built / "out", f"{split}_data.json")
    found = [pair for part in data.values() for pair in pairs(part)]
    glossary = Glossary.read(built / "words.json")
    titles = Counter(clean_name(one["name"] or "") for one in small.recipes())
    expected = set()
    for one in small.recipes():
        name = clean_name(one["name"] or "")
        instruction = "".join(f"{step}。" for step in one["recipeInstructions"] if step)
        if titles[name] >= 20 and len(instruction) >= 20 and glossary.parse(name):
            expected.add((name, instruction))
    assert sorted(found) == sorted(expected)
    sizes = {part: len(content["names"]) for part, content in data.items()}
    assert sizes == read(built / "out", "report.json")["splits"][split]["recipes"]
    rest = sizes["train"] + sizes["valid"]
    assert sizes["valid"] == round(0.2 * rest)
    assert sizes["test"] == len(read(built / "out", "tmcd_data.json")["test"]["names"])


def test_the_tmcd_split_divides_dishes_and_the_random_one_recipes(built: Path) -> None:
    tmcd, random = (read(built / "out", f"{split}_data.json") for split in ("tmcd", "random"))
    train, test = set(tmcd["train"]["names"] + tmcd["valid"]["names"]), set(tmcd["test"]["names"])
    assert not train & test
    assert len(test) == round(small.DISHES / 5.5)
    assert set(random["test"]["names"]) & set(random["train"]["names"])


@pytest.mark.parametrize("split", ["tmcd", "random"])
def test_the_report_says_what_the_files_hold(built: Path, split: str) -> None:
    """Tables 2 to 4, computed again from the written files alone."""
    out = built / "out"
    report, data = read(out, "report.json"), read(out, f"{split}_data.json")
    glossary = Glossary.read(out / "glossary.json")
    sides = [
        {name: set(glossary.parse(name) or ()) for part in parts for name in data[part]["names"]}
        for parts in (("train", "valid"), ("test",))
    ]
    found = report["splits"][split]
    assert found["dishes"] == [len(side) for side in sides]
    assert found["components"] == [len(set().union(*side.values())) for side in sides]
    held = [
        Counter(
            frozenset(part for bit, part in enumerate(sorted(name)) if mask >> bit & 1)
            for name in side.values()
            for mask in range(2 ** len(name))
            if mask.bit_count() == len(name) > 1
        )
        for side in sides
    ]
    whole = found["compounds"]["whole"]
    assert whole["different"] == [len(side) for side in held]
    shared = held[0].keys() & held[1].keys()
    assert whole["shared"] == pytest.approx(len(shared) / len(held[1]), abs=1e-15)
    again = 1 - sum(
        (held[0][c] / held[0].total()) ** 0.1 * (held[1][c] / held[1].total()) ** 0.9
        for c in sorted(shared, key=sorted)
    )
    assert whole["divergence"] == pytest.approx(again, abs=1e-12, rel=0)
    missing = set().union(*sides[1].values()) - set().union(*sides[0].values())
    assert found["missing"] == sorted(part.name for part in missing)
    forms = Counter(tuple(sorted(Counter(part.kind for part in name).items()))
                    for side in sides for name in side.values())  # fmt: skip
    if split == "tmcd":
        assert not missing
        assert sorted(row["dishes"] for row in report["forms"]) == sorted(forms.values())
        assert report["course"][-1] == pytest.approx(again, abs=1e-12, rel=0)
    known = Categories(sides[0].values())
    counted = Counter(known.of(name) or "none" for name in sides[1].values())
    assert {key: n for key, n in found["categories"].items() if n} == counted


def test_the_loader_takes_the_files(built: Path) -> None:
    glossary = Glossary.read(built / "out" / "glossary.json")
    split = split_of(read(built / "out", "tmcd_data.json"), glossary, "here")
    parts = {part for name in split.train_names.values() for part in name}
    assert {part for one in split.test for part in glossary.parse(one.name) or ()} <= parts


def test_the_order_of_the_corpus_and_a_second_build_change_nothing(
    built: Path, tmp_path: Path
) -> None:
    words = built / "words.json"
    shuffled = small.write(tmp_path / "corpus.jsonl", sorted(small.recipes(), key=json.dumps))
    build_dataset(shuffled, tmp_path / "out", words, OPTIONS)
    first, other = contents(built / "out"), contents(tmp_path / "out")
    assert {name for name in FILES if first[name] != other[name]} == {"report.json", "report.md"}
    reports = [read(folder / "out", "report.json") for folder in (built, tmp_path)]
    assert {key for key in reports[0] if reports[0][key] != reports[1][key]} == {"corpus"}
    kept = next((tmp_path / "out" / ".work").glob("cleaned-*.parquet"))
    stamp = kept.stat().st_mtime_ns
    build_dataset(shuffled, tmp_path / "out", words, OPTIONS)
    assert contents(tmp_path / "out") == other
    assert kept.stat().st_mtime_ns == stamp
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".work", *FILES]
    assert sorted(path.name for path in kept.parent.iterdir()) == [kept.name, "lock"]


def test_a_proportion_is_part_of_every_larger_one(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "out", tmp_path / "out")
    whole = read(built / "out", "tmcd_data.json")
    larger = set(pairs(whole["train"]))
    for proportion in (0.6, 0.2):
        options = Options(divergence=0.9, proportion=proportion, memory_gib=0.5)
        build_dataset(built / "corpus.jsonl", tmp_path / "out", built / "words.json", options)
        data = read(tmp_path / "out", "tmcd_data.json")
        smaller = set(pairs(data["train"]))
        assert len(smaller) == round(proportion * len(whole["train"]["names"]))
        assert smaller < larger
        assert data["test"] == whole["test"]
        assert data["valid"] == whole["valid"]
        larger = smaller


def test_the_report_of_a_small_proportion_counts_what_is_left(built: Path, tmp_path: Path) -> None:
    """Some dishes have no recipe any more, neither in the files nor in the report."""
    shutil.copytree(built / "out", tmp_path / "out")
    options = Options(divergence=0.9, proportion=0.02, memory_gib=0.5)
    report = build_dataset(built / "corpus.jsonl", tmp_path / "out", built / "words.json", options)
    glossary = Glossary.read(tmp_path / "out" / "glossary.json")
    parsed = {}
    for split in ("tmcd", "random"):
        data = read(tmp_path / "out", f"{split}_data.json")
        sides = [{*data["train"]["names"], *data["valid"]["names"]}, {*data["test"]["names"]}]
        parsed[split] = [[frozenset(glossary.parse(name) or ()) for name in side] for side in sides]
        found = report["splits"][split]
        assert found["dishes"] == [len(side) for side in sides]
        have, asked = (frozenset().union(*side) for side in parsed[split])
        assert found["missing"] == sorted(part.name for part in asked - have)
    before = read(built / "out", "report.json")["splits"]["tmcd"]["dishes"]
    assert report["splits"]["tmcd"]["dishes"][0] < before[0]
    known = Categories(parsed["tmcd"][0])
    counted = Counter(known.of(name) or "none" for name in parsed["tmcd"][1])
    assert {key: n for key, n in report["splits"]["tmcd"]["categories"].items() if n} == counted


def test_another_seed_gives_other_splits(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "out", tmp_path / "out")
    options = Options(divergence=0.9, seed=5, memory_gib=0.5)
    build_dataset(built / "corpus.jsonl", tmp_path / "out", built / "words.json", options)
    for name in ("tmcd_data.json", "random_data.json"):
        assert read(tmp_path / "out", name)["test"] != read(built / "out", name)["test"]


def test_a_glossary_from_the_corpus(built: Path, tmp_path: Path) -> None:
    report = build_dataset(built / "corpus.jsonl", tmp_path / "out", None, OPTIONS)
    glossary = Glossary.read(tmp_path / "out" / "glossary.json")
    assert report["glossary"]["digest"] == glossary.digest
    assert report["glossary"]["words"] == report["glossary"]["classes"]
    names = {clean_name(one["name"] or "") for one in small.recipes()}
    frequent = Counter(clean_name(one["name"] or "") for one in small.recipes())
    names = {name for name in names if name and frequent[name] >= 20}
    for words in glossary.as_dict().values():
        for word in words:
            assert sum(word in name for name in names) >= 5
    # jieba knows them as a noun and a verb, and many names have them.
    assert glossary.component("猪肉") == Component("food", "猪肉")
    assert report["kept"]["parsed_names"] == sum(glossary.parse(name) is not None for name in names)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([small.recipe("红烧猪肉", "煮" * 30)] * 19, "no title occurs 20 times in 19 recipes"),
        ([], "no title occurs 20 times in 0 recipes"),
        ([small.recipe("怪物", "煮" * 30)] * 20, "none of 1 dish names parses"),
        (
            [small.recipe("红烧猪肉", "煮")] * 20,
            "no recipe of 1 dish names has an instruction of 20",
        ),
        ([small.recipe("红烧猪肉", "煮" * 30)] * 20, "none of 1 dish names can be in test"),
    ],
)
def test_a_corpus_without_dishes(
    built: Path, tmp_path: Path, lines: list[dict[str, Any]], message: str
) -> None:
    corpus = small.write(tmp_path / "corpus.jsonl", lines)
    with pytest.raises(DataError, match=message):
        build_dataset(corpus, tmp_path / "out", built / "words.json", OPTIONS)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".work"]


def test_twenty_characters_are_enough(built: Path, tmp_path: Path) -> None:
    lines = [
        small.recipe(name, f"{n:02}" + "煮" * (17 if n % 2 else 16))
        for name in ("红烧猪肉", "清蒸猪肉", "红烧牛肉", "清蒸牛肉", "红烧鱼", "清蒸鱼")
        for n in range(20)
    ]
    corpus = small.write(tmp_path / "corpus.jsonl", lines)
    report = build_dataset(corpus, tmp_path / "out", built / "words.json", OPTIONS)
    # With the end mark, 17 more characters make 20 and 16 make 19.
    assert report["kept"]["short"] == report["kept"]["recipes"] == 60


@pytest.mark.parametrize(
    "options",
    [
        {"divergence": 0.0},
        {"divergence": 1.5},
        {"divergence": float("nan")},
        {"proportion": 0.0},
        {"proportion": -1.0},
        {"memory_gib": 0.0},
        {"memory_gib": float("inf")},
    ],
)
def test_options_that_are_not_legal(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="use a number"):
        Options(**options)


def test_compounds_that_are_not_legal() -> None:
    with pytest.raises(OptionError, match="--compounds triples: use whole, pairs, subsets"):
        Options(compounds="triples")


@pytest.mark.parametrize("which", divergence.COMPOUNDS)
def test_the_search_goes_by_the_compounds_asked_for(
    built: Path, tmp_path: Path, which: str
) -> None:
    shutil.copytree(built / "out", tmp_path / "out")
    options = Options(divergence=0.9, compounds=which, memory_gib=0.5)
    report = build_dataset(built / "corpus.jsonl", tmp_path / "out", built / "words.json", options)
    found = report["splits"]["tmcd"]["compounds"][which]["divergence"]
    assert report["options"]["compounds"] == which
    assert report["course"][-1] == pytest.approx(found, abs=1e-12, rel=0)


def test_the_divergence_that_is_out_of_reach_is_told(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "out", tmp_path / "out")
    for target in (0.01, 1.0):
        options = Options(divergence=target, compounds="pairs", memory_gib=0.5)
        report = build_dataset(
            built / "corpus.jsonl", tmp_path / "out", built / "words.json", options
        )
        text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
        last = "; reached" if report["course"][-1] >= target else "; NOT reached"
        verdict = " has already" if target < report["course"][0] else last
        assert f"Asked for {target}" in text
        assert verdict in text.replace(f" {report['course'][0]:.4f}", "")


def test_atoms_and_compounds_have_the_usual_alphas() -> None:
    assert (divergence.COMPOUND_ALPHA, divergence.ATOM_ALPHA) == (0.1, 0.5)
