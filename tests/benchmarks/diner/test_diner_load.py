"""Files in the published format: reading, errors, and the documents made from them."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import hashlib
import re
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"valid": {}}, "valid.instructions: the key is missing"),
        ({"dev": {}}, "dev: unknown key"),
        (
            {"train": {"instructions": ["面"], "names": "面"}},
            "train.names: Input should be a valid array",
        ),
        ({"valid": {"instructions": ["面"], "names": []}}, "every instruction needs one name"),
        ({"test": {"instructions": [" "], "names": ["面"]}}, "test.instructions.0: String should"),
        ({"test": {"instructions": [], "names": []}}, "train or test has no recipes"),
        (
            {"test": {"instructions": ["面"], "names": ["x"]}},
            "no recipe can be asked about (gold_d",
        ),
    ],
)
def test_another_format_is_refused_in_one_line(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as raised:
        rows(diner_own.write(tmp_path, changed=diner_own.content() | change))
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
        ({"diner_foo": 1}, "unknown metadata key diner_foo"),
    ],
)
def test_options_that_are_not_legal(options: dict[str, Any], message: str) -> None:
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
    assert provenance.of_dataset(found)["source"] == "diner"
