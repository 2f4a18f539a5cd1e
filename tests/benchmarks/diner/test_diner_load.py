"""Files in the published format: reading, errors, and the documents made from them."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opencc
import pytest
import yaml
from support import diner_own
from support.asking import pick

from lm_eval_ext.benchmarks.diner import load, score
from lm_eval_ext.benchmarks.diner.extract import name_of
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance


def rows(folder: Path, **options: Any) -> list[dict[str, Any]]:
    found = load.dataset(diner_dir=str(folder), **options)["test"]
    return [dict(row) for row in found]


def test_every_test_recipe_becomes_a_document(tmp_path: Path) -> None:
    found = rows(diner_own.write(tmp_path))
    by_id = {row["id"]: row for row in found}
    assert sorted(by_id) == [f"test-{number}" for number in range(5)]
    for number, (name, instruction) in enumerate(diner_own.TEST):
        row = by_id[f"test-{number}"]
        assert (row["answer"], row["instruction"]) == (name, instruction)
        assert row["input"] == f"“{instruction}” 这个菜谱的菜名是什么？"
    # Categories come from the training names: 红烧牛肉 and 炒土豆; 番茄牛肉, 炒鸡蛋 and 麻辣面.
    categories = {row["answer"]: row["category"] for row in found}
    assert (categories["红烧土豆"], categories["番茄鸡蛋面"]) == ("RecoTwo", "RecoThree")
    known = {"train": diner_own.part((*diner_own.TRAIN, ("红烧土豆", "随便做做就可以吃了吧。")))}
    folder = diner_own.write(tmp_path / "b", changed={**diner_own.content(), **known})
    assert {row["category"] for row in rows(folder) if row["answer"] == "红烧土豆"} == {load.OTHER}


def test_validation_recipes_may_be_shown(tmp_path: Path) -> None:
    split, _ = load.Recipes(dir=str(diner_own.write(tmp_path))).read()
    assert [recipe.name for recipe in split.train] == [
        name for name, _ in (*diner_own.TRAIN, *diner_own.VALID)
    ]
    assert len(split.by_id) == len(split.train)
    assert "酸土豆" in split.train_names


def test_names_that_do_not_parse_are_left_out_and_named(tmp_path: Path) -> None:
    changed = diner_own.content()
    changed["test"]["names"][1] = "宫保鸡丁"
    changed["train"]["names"][0] = "不知道"
    dataset = load.dataset(diner_dir=str(diner_own.write(tmp_path, changed=changed)))
    assert provenance.left_out(dataset) == {load.UNPARSED: ["test-1"]}
    assert "test-1" not in dataset["test"]["id"]


@pytest.mark.parametrize("sides", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)])
def test_scripts_do_not_make_an_answer_wrong(tmp_path: Path, sides: tuple[int, int, int]) -> None:
    """Glossary, gold names and answers, each in traditional or in simplified characters."""
    traditional = opencc.OpenCC("s2t").convert
    words, names, answered = sides
    changed = diner_own.content()
    if names:
        for part in changed.values():
            part["names"] = [traditional(name) for name in part["names"]]
    folder = diner_own.write(tmp_path, changed=changed)
    if words:
        file = folder / "glossary.json"
        file.write_text(traditional(json.dumps(diner_own.GLOSSARY, ensure_ascii=False)), "utf-8")
    glossary = load.Recipes(dir=str(folder)).read()[0].glossary
    assert glossary.digest == Glossary(diner_own.GLOSSARY).digest
    found = rows(folder)
    assert sorted(row["answer"] for row in found) == sorted(name for name, _ in diner_own.TEST)
    for row in found:
        answer = traditional(row["answer"]) if answered else row["answer"]
        (scored, *_) = score.name(row["answer"], name_of(answer), glossary)
        assert (scored["exact_match"], scored["f1"]) == (1, 1)
        kinds = score.components(row["answer"], ["", "", answer], glossary)
        assert pick(kinds, "hits", kind="food") > 0


def test_recipes_per_dish(tmp_path: Path) -> None:
    folder = diner_own.write(tmp_path)
    one = rows(folder, diner_per_dish=1)
    assert sorted(row["answer"] for row in one) == sorted({name for name, _ in diner_own.TEST})
    assert len(rows(folder, diner_per_dish=9)) == len(diner_own.TEST)
    drawn = {
        seed: [row["id"] for row in rows(folder, diner_per_dish=1, diner_draw_seed=seed)]
        for seed in range(8)
    }
    assert len({tuple(sorted(ids)) for ids in drawn.values()}) == 2
    assert drawn[0] == [row["id"] for row in one]


def test_what_is_drawn_does_not_depend_on_other_dishes() -> None:
    recipes = [Recipe(f"test-{n}", f"step {n}", f"dish {n % 7}") for n in range(70)]
    some = [recipe for recipe in recipes if recipe.name in {"dish 1", "dish 4"}]
    whole = {recipe.id for recipe in load.drawn(recipes, 3, seed=5)}
    part = {recipe.id for recipe in load.drawn(some, 3, seed=5)}
    assert part < whole
    assert len(whole) == 21


def test_documents_are_mixed(tmp_path: Path) -> None:
    changed = diner_own.content()
    names = ["红烧土豆"] * 40 + ["炒牛肉"] * 40
    changed["test"] = {
        "names": names,
        "instructions": [f"第{n}种做法，炒熟就好。" for n in range(80)],
    }
    found = rows(diner_own.write(tmp_path, changed=changed))
    assert len({row["answer"] for row in found[:10]}) == 2


Change = Callable[[dict[str, Any]], Any]
BROKEN: list[tuple[Change, str]] = [
    (lambda c: c.pop("valid"), "valid: the key is missing"),
    (lambda c: c.update(dev={}), "dev: unknown key"),
    (lambda c: c["test"].pop("names"), "test.names: the key is missing"),
    (lambda c: c["train"].update(x=[]), "train.x: unknown key"),
    (lambda c: c["train"].update(names="面"), "train.names: Input should be a valid array"),
    (lambda c: c["valid"]["names"].clear(), "every instruction needs one name"),
    (lambda c: c["test"]["instructions"].__setitem__(2, " "), "test.instructions.2: String should"),
    (lambda c: c["train"]["names"].__setitem__(0, 7), "train.names.0: Input should be a valid str"),
    (lambda c: c.update(test={"instructions": [], "names": []}), "train or test has no recipes"),
    (lambda c: c["test"].update(names=["x"] * 5), "no recipe can be asked about (gold_does_not_p"),
]


@pytest.mark.parametrize(("breaks", "message"), BROKEN)
def test_another_format_is_refused_in_one_line(
    breaks: Change, message: str, tmp_path: Path
) -> None:
    changed = diner_own.content()
    breaks(changed)
    with pytest.raises(DataError) as raised:
        rows(diner_own.write(tmp_path, changed=changed))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version https://git-lfs.github.com/spec/v1\n", "Invalid JSON.* fetch or build it again"),
        ('{"train": {}}', "train.instructions: the key is missing"),
    ],
)
def test_a_file_that_was_edited_badly(tmp_path: Path, text: str, message: str) -> None:
    folder = diner_own.write(tmp_path)
    (folder / "tmcd_data.json").write_text(text)
    with pytest.raises(DataError, match=message):
        rows(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"diner_corpus": "xia"}, "diner_corpus: Input should be 'published' or 'mini'"),
        ({"diner_split": "iid"}, "diner_split: Input should be 'tmcd' or 'random'"),
        ({"diner_split": "random"}, "random split is not published; build one"),
        ({"diner_ask": "x"}, "diner_ask: Input should be 'name', 'components' or 'cp'"),
        ({"diner_demonstrations": "x"}, "diner_demonstrations: Input should be 'instruction' or"),
        *(({"diner_per_dish": value}, "diner_per_dish: Input") for value in (-1, True, 1.5)),
        *(({"diner_draw_seed": seed}, "diner_draw_seed: Input") for seed in (-1, 1.5, "1", None)),
        ({"diner_wording": "x"}, "diner_wording: Input should be 'ours' or 'authors'"),
        ({"diner_ask": "cp", "diner_wording": "authors"}, "with diner_components_file, or use"),
        ({"diner_components_file": "x"}, "diner_components_file is only for diner_cp"),
        ({"diner_corpus": "mini", "diner_dir": "x"}, "diner_dir cannot be used with the mini"),
        ({"diner_dir": 5}, "diner_dir: Input should be a valid string"),
        ({"diner_foo": 1}, "unknown metadata key diner_foo"),
    ],
)
def test_options_that_are_not_legal(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load.dataset(**options)


def test_missing_libraries_are_named_where_demonstrations_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = diner_own.write(tmp_path)
    monkeypatch.setattr("lm_eval_ext.errors.find_spec", lambda name: None)
    assert rows(folder)
    with pytest.raises(OptionError, match=r"needs jieba and bm25s: .*'lm-eval-ext\[diner"):
        rows(folder, diner_demonstrations="instruction")


def test_a_folder_without_the_split_is_named(tmp_path: Path) -> None:
    folder = diner_own.write(tmp_path)
    with pytest.raises(
        DataError, match=r"has no random_data\.json; name a folder made by lm-eval-ext diner build"
    ):
        rows(folder, diner_split="random")
    diner_own.write(tmp_path, "random")
    assert len(rows(folder, diner_split="random")) == len(diner_own.TEST)


def test_the_published_file_is_the_declared_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through data.require, with a declaration that fits our file."""
    copy = tmp_path / "copy"
    copy.mkdir()
    folder = diner_own.write(copy / "diner")
    real = sources()["diner"]
    files = {}
    for name, spec in real.files.items():
        raw = (folder / Path(spec.path).name).read_bytes()
        files[name] = {
            "path": spec.path,
            "url": spec.url,
            "size": len(raw),
            "sha256": hashlib.sha256(raw).hexdigest(),
        }
    declared = {**real.model_dump(exclude_none=True), "files": files}
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"diner": declared}))
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(tmp_path / "sources.yaml"))
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    found = load.dataset()
    assert len(found["test"]) == len(diner_own.TEST)
    assert provenance.of_dataset(found)["source"] == "diner"
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(DataError, match="diner"):
        load.dataset()


def test_the_published_glossary(real_data: Path) -> None:
    found = sources()["diner"].files["glossary"]
    raw = (real_data / found.path).read_bytes()
    assert (len(raw), hashlib.sha256(raw).hexdigest()) == (found.size, found.sha256)
    assert set(json.loads(raw)) == {"food", "action", "flavour"}
