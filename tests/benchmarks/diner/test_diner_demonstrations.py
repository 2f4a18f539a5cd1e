"""Demonstrations, compared with an exhaustive search; BM25, compared with another library."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import diner_own

from lm_eval_ext.benchmarks.diner import demonstrations, load
from lm_eval_ext.benchmarks.diner.demonstrations import (
    INSTRUCTION,
    ORACLE,
    choose,
    index_of,
    scores,
    words_of,
)
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.records import Recipe, Split
from lm_eval_ext.errors import DataError
from lm_eval_ext.fewshot import Choice

pytestmark = pytest.mark.slow

SELECTIONS = (INSTRUCTION, ORACLE)
GLOSSARY = Glossary(diner_own.GLOSSARY)


def drawn_split(seed: int) -> Split:
    """Names that the glossary's words make at random; no two recipes are copies."""
    rng = random.Random(seed)
    words = [word for kind in diner_own.GLOSSARY.values() for word in kind]
    drawn = {"".join(rng.sample(words, rng.randint(1, 3))) for _ in range(25)}
    names = [name for name in sorted(drawn) if GLOSSARY.parse(name)]
    rng.shuffle(names)
    found = [
        Recipe(f"{n}", f"{'，'.join(rng.choices(diner_own.STEPS, k=rng.randint(3, 6)))}，{n}", name)
        for n, name in enumerate([*names, *names])
    ]
    tested = set(names[-5:])
    train, test = (
        tuple(one for one in found if (one.name in tested) == side) for side in (False, True)
    )
    return Split(train, test, GLOSSARY)


def shown(split: Split, choice: Choice) -> list[Recipe]:
    return [split.by_id[name] for name in choice.ids]


def scored(split: Split, sample: Recipe) -> dict[Recipe, float]:
    index = index_of([recipe.instruction for recipe in split.train])
    return dict(zip(split.train, scores(index, sample.instruction).tolist(), strict=True))


@pytest.mark.parametrize("how", SELECTIONS)
@pytest.mark.parametrize("name", ["tmcd", "random"])
def test_order_and_other_samples_change_no_choice(name: str, how: str) -> None:
    split = load.Recipes(corpus="mini", split=name).read()[0]
    choices = choose(split, split.test, how, 2, seed=1).by_sample
    assert choices.keys() == {recipe.id for recipe in split.test}
    # In a random split the gold name is a training name, too: the oracle does not show it.
    for sample in split.test:
        names = {sample.name, *(recipe.name for recipe in shown(split, choices[sample.id]))}
        assert how == INSTRUCTION or len(names) == 3
    # Neither the order of recipes nor the other samples change a choice.
    mixed = replace(split, train=split.train[::-1])
    few = choose(mixed, split.test[7:3:-1], how, 2, seed=1).by_sample
    assert few == {sample.id: choices[sample.id] for sample in split.test[4:8]}


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_by_instruction_shows_the_highest_scores(seed: int) -> None:
    split = drawn_split(seed)
    choices = choose(split, split.test, INSTRUCTION, 2, seed=0)
    for sample in split.test:
        found = scored(split, sample)
        by_chosen = [found[recipe] for recipe in shown(split, choices.by_sample[sample.id])]
        assert by_chosen == pytest.approx(sorted(found.values())[:-3:-1], rel=1e-6)


def test_only_the_oracle_looks_at_the_gold_name() -> None:
    split = drawn_split(0)
    renamed = [
        replace(one, name=other.name)
        for one, other in zip(split.test, split.test[::-1], strict=True)
    ]
    for how in SELECTIONS:
        chosen = [choose(split, samples, how, 2, seed=1) for samples in (split.test, renamed)]
        assert (chosen[0] == chosen[1]) == (how == INSTRUCTION)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_the_oracle_follows_the_paper(seed: int) -> None:
    split = drawn_split(seed)
    parsed = {name: set(split.glossary.parse(name) or ()) for name in split.train_names}

    def f1(name: str, wanted: set[Any]) -> Fraction:
        return Fraction(2 * len(parsed[name] & wanted), len(parsed[name]) + len(wanted))

    choices = choose(split, split.test, ORACLE, 2, seed=0)
    for sample in split.test:
        found = scored(split, sample)
        left: set[Any] = set(split.glossary.parse(sample.name) or ())
        gold, names = left, set(parsed) - {sample.name}
        for recipe in shown(split, choices.by_sample[sample.id]):
            wanted = left & set.union(*parsed.values()) or gold
            assert f1(recipe.name, wanted) == max(f1(name, wanted) for name in names)
            same = [one for one in split.train if one.name == recipe.name]
            assert found[recipe] == max(found[one] for one in same)
            left, names = left - parsed[recipe.name], names - {recipe.name}


def test_the_oracle_covers_what_the_first_does_not() -> None:
    def chosen(names: list[str], gold: str, k: int) -> dict[str, str]:
        train = tuple(Recipe(f"{n}", f"做法{n}号", name) for n, name in enumerate(names))
        sample = Recipe("test-0", "切好再做", gold)
        (choice,) = choose(
            Split(train, (sample,), GLOSSARY), [sample], ORACLE, k, 0
        ).by_sample.values()
        return {names[int(one.id)]: one.why for one in choice.picked}

    found = chosen([name for name, _ in diner_own.TRAIN], "番茄鸡蛋面", 3)
    assert found.keys() == {"番茄牛肉", "炒鸡蛋", "麻辣面"}
    assert next(iter(found.values())).startswith("F1 0.40 to 番茄+面+鸡蛋, BM25 ")
    # Components that no training name has are passed over.
    assert chosen(["炒面", "面", "豆腐"], "麻辣酸面", 2).keys() == {"炒面", "面"}


def test_copies_are_never_shown_and_too_few_are_counted() -> None:
    copies = [Recipe(f"{n}", "土豆切丝，热锅下油！" + "。" * n, "炒土豆") for n in range(9)]
    sample = Recipe("test-0", "土豆切丝热锅下油", "红烧土豆")
    split = Split((*copies, Recipe("9", "鸡蛋打散，下油", "炒鸡蛋")), (sample,), GLOSSARY)
    for how in SELECTIONS:
        found = [choose(split, [sample], how, k, seed=0) for k in (1, 2)]
        assert found[0].by_sample["test-0"].ids == ("9",)
        assert found[1].not_enough == {"test-0": 1}


def test_words_are_words() -> None:
    assert words_of("把土豆切成丝，放入锅中。 180度烤20分钟！") == [
        "把", "土豆", "切成", "丝", "放入", "锅中", "180", "度", "烤", "20", "分钟",
    ]  # fmt: skip
    assert words_of("，。！ \n") == []
    assert words_of("Oven") == ["oven"]


def test_jieba_prints_nothing_and_keeps_its_dictionary_with_ours(tmp_path: Path) -> None:
    code = "from lm_eval_ext.benchmarks.diner import demonstrations as d; print(d.words_of('土豆'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LM_EVAL_EXT_CACHE": str(tmp_path), "TMPDIR": str(tmp_path / "none")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['土豆']"
    assert done.stderr == ""
    assert [path.name for path in (tmp_path / "jieba").iterdir()] == ["jieba.cache"]


def test_scores_are_robertsons() -> None:
    """With the usual k1 and b; a word that most recipes have counts nothing."""
    index = index_of(["盐，土豆，土豆", "盐，鸡蛋", "盐，面粉"])
    weight, length = math.log((3 - 1 + 0.5) / (1 + 0.5)), 3 / (7 / 3)
    expected = weight * 2 / (2 + 1.5 * (1 - 0.75 + 0.75 * length))
    assert scores(index, "土豆").tolist() == pytest.approx([expected, 0, 0])
    assert scores(index, "盐").tolist() == scores(index, "豆腐").tolist() == [0, 0, 0]
    with pytest.raises(DataError, match="no training recipe has a word"):
        index_of(["，", "。"])


def test_an_index_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path))

    def folders() -> set[tuple[Path, int]]:
        return {(one, one.stat().st_mtime_ns) for one in tmp_path.glob("diner/bm25-*")}

    built = scores(index_of(["土豆", "鸡蛋"]), "土豆").tolist()
    (kept,) = folders()
    assert scores(index_of(["土豆", "鸡蛋"]), "土豆").tolist() == built
    assert folders() == {kept}
    # Other texts or settings have one of their own.
    index_of(["鸡蛋", "土豆"])
    monkeypatch.setattr(demonstrations, "B", 0.5)
    index_of(["土豆", "鸡蛋"])
    assert len(folders()) == 3
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="Set LM_EVAL_EXT_CACHE to a writable folder"):
        index_of(["土豆"])
