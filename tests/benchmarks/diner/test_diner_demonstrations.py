"""Demonstrations, compared with an exhaustive search; scores by BM25, compared with its formula."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import math
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

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
from lm_eval_ext.benchmarks.diner.glossary import Component, Glossary
from lm_eval_ext.benchmarks.diner.records import Recipe, Split
from lm_eval_ext.errors import DataError
from lm_eval_ext.fewshot import Choice

pytestmark = pytest.mark.slow

SELECTIONS = (INSTRUCTION, ORACLE)
GLOSSARY = Glossary(diner_own.GLOSSARY)


def random_names(rng: random.Random) -> list[str]:
    """Return names that the glossary's words make, in a random order."""
    words: list[str] = []
    for classes in diner_own.GLOSSARY.values():
        words.extend(classes)
    drawn = {"".join(rng.sample(words, rng.randint(1, 3))) for _ in range(25)}
    names = [name for name in sorted(drawn) if GLOSSARY.parse(name)]
    rng.shuffle(names)
    return names


def random_split(seed: int) -> Split:
    """Return two recipes of each name, of which five are tested; no two recipes are copies."""
    rng = random.Random(seed)
    names = random_names(rng)
    tested_names = set(names[-5:])
    train = []
    test = []
    for number, name in enumerate([*names, *names]):
        steps = "，".join(rng.choices(diner_own.STEPS, k=rng.randint(3, 6)))
        recipe = Recipe(f"{number}", f"{steps}，{number}", name)
        if name in tested_names:
            test.append(recipe)
        else:
            train.append(recipe)
    return Split(tuple(train), tuple(test), GLOSSARY)


def shown(split: Split, choice: Choice) -> list[Recipe]:
    """Return the recipes that a choice shows, in their order."""
    return [split.by_id[name] for name in choice.ids]


def scores_of(split: Split, sample: Recipe) -> dict[Recipe, float]:
    """Return the BM25 score of each training recipe for a sample's instruction."""
    index = index_of([recipe.instruction for recipe in split.train])
    return dict(zip(split.train, scores(index, sample.instruction).tolist(), strict=True))


@pytest.mark.parametrize("how", SELECTIONS)
@pytest.mark.parametrize("name", ["tmcd", "random"])
def test_order_and_other_samples_change_no_choice(
    name: Literal["tmcd", "random"], how: str
) -> None:
    """A sample's demonstrations depend on training recipes and on the sample only."""
    split, *_ = load.Recipes(corpus="mini", split=name).read()
    choices = choose(split, split.test, how, 2, seed=1).by_sample
    assert choices.keys() == {recipe.id for recipe in split.test}
    reversed_split = replace(split, train=split.train[::-1])
    of_four_samples = choose(reversed_split, split.test[7:3:-1], how, 2, seed=1).by_sample
    assert of_four_samples == {sample.id: choices[sample.id] for sample in split.test[4:8]}


@pytest.mark.parametrize("name", ["tmcd", "random"])
def test_the_oracle_shows_different_names_and_never_the_gold_one(
    name: Literal["tmcd", "random"],
) -> None:
    """A random split has the gold name in training, too."""
    split, *_ = load.Recipes(corpus="mini", split=name).read()
    choices = choose(split, split.test, ORACLE, 2, seed=1).by_sample
    for sample in split.test:
        names = [recipe.name for recipe in shown(split, choices[sample.id])]
        assert len({sample.name, *names}) == 3, sample


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_by_instruction_shows_the_highest_scores(seed: int) -> None:
    """The two recipes with the highest scores are shown, the best first."""
    split = random_split(seed)
    choices = choose(split, split.test, INSTRUCTION, 2, seed=0)
    for sample in split.test:
        all_scores = scores_of(split, sample)
        shown_recipes = shown(split, choices.by_sample[sample.id])
        shown_scores = [all_scores[recipe] for recipe in shown_recipes]
        highest = sorted(all_scores.values(), reverse=True)[:2]
        assert shown_scores == pytest.approx(highest, rel=1e-6)


@pytest.mark.parametrize(("how", "is_same"), [(INSTRUCTION, True), (ORACLE, False)])
def test_only_the_oracle_looks_at_the_gold_name(how: str, is_same: bool) -> None:
    """Exchanging the gold names of samples changes the oracle's choices only."""
    split = random_split(0)
    renamed = []
    for sample, last_sample in zip(split.test, split.test[::-1], strict=True):
        renamed.append(replace(sample, name=last_sample.name))
    chosen = choose(split, split.test, how, 2, seed=1)
    assert (chosen == choose(split, renamed, how, 2, seed=1)) == is_same


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_the_oracle_follows_the_paper(seed: int) -> None:
    """It greedily covers the gold components that are left, by F1; BM25 chooses among equals."""
    split = random_split(seed)
    parsed = {name: set(split.glossary.parse(name) or ()) for name in split.train_names}
    trained_components = set[Component]().union(*parsed.values())

    def f1(name: str, components: set[Component]) -> Fraction:
        hits = len(parsed[name] & components)
        return Fraction(2 * hits, len(parsed[name]) + len(components))

    choices = choose(split, split.test, ORACLE, 2, seed=0)
    for sample in split.test:
        all_scores = scores_of(split, sample)
        gold = set(split.glossary.parse(sample.name) or ())
        uncovered = gold
        names = set(parsed) - {sample.name}
        for recipe in shown(split, choices.by_sample[sample.id]):
            to_cover = uncovered & trained_components or gold
            assert f1(recipe.name, to_cover) == max(f1(name, to_cover) for name in names)
            of_this_name = [each for each in split.train if each.name == recipe.name]
            assert all_scores[recipe] == max(all_scores[each] for each in of_this_name)
            uncovered = uncovered - parsed[recipe.name]
            names = names - {recipe.name}


def oracle_choices(names: Sequence[str], gold: str, k: int) -> dict[str, str]:
    """Return the training names that the oracle shows for a gold name, with its reasons."""
    train = []
    for number, name in enumerate(names):
        train.append(Recipe(f"{number}", f"做法{number}号", name))
    sample = Recipe("test-0", "切好再做", gold)
    split = Split(tuple(train), (sample,), GLOSSARY)
    choice = choose(split, [sample], ORACLE, k, 0).by_sample["test-0"]
    return {names[int(picked.id)]: picked.why for picked in choice.picked}


def test_the_oracle_covers_what_the_first_does_not() -> None:
    """Three names together have the gold name's components."""
    reasons = oracle_choices([name for name, _ in diner_own.TRAIN], "番茄鸡蛋面", 3)
    assert reasons.keys() == {"番茄牛肉", "炒鸡蛋", "麻辣面"}
    first_reason = next(iter(reasons.values()))
    assert first_reason.startswith("F1 0.40 to 番茄+面+鸡蛋, BM25 ")


def test_the_oracle_passes_over_components_that_training_lacks() -> None:
    """The next demonstration covers what another one could."""
    assert oracle_choices(["炒面", "面", "豆腐"], "麻辣酸面", 2).keys() == {"炒面", "面"}


@pytest.mark.parametrize("how", SELECTIONS)
def test_copies_are_never_shown_and_too_few_are_counted(how: str) -> None:
    """Nine of ten training recipes are the sample but for punctuation."""
    train = []
    for number in range(9):
        train.append(Recipe(f"{number}", "土豆切丝，热锅下油！" + "。" * number, "炒土豆"))
    train.append(Recipe("9", "鸡蛋打散，下油", "炒鸡蛋"))
    sample = Recipe("test-0", "土豆切丝热锅下油", "红烧土豆")
    split = Split(tuple(train), (sample,), GLOSSARY)
    assert choose(split, [sample], how, 1, seed=0).by_sample["test-0"].ids == ("9",)
    assert choose(split, [sample], how, 2, seed=0).not_enough == {"test-0": 1}


def test_text_is_divided_into_words() -> None:
    """Punctuation and space are no words, and case does not count."""
    words = words_of("把土豆切成丝，放入锅中。 180度烤20分钟！")
    assert "|".join(words) == "把|土豆|切成|丝|放入|锅中|180|度|烤|20|分钟"
    assert words_of("，。！ \n") == []
    assert words_of("Oven") == ["oven"]


PRINT_WORDS = """
from lm_eval_ext.benchmarks.diner import demonstrations
print(demonstrations.words_of("土豆"))
"""


def test_jieba_prints_nothing_and_keeps_its_dictionary_with_ours(tmp_path: Path) -> None:
    """Its cache is in our folder, even where there is no folder for temporary files."""
    folders = {"LM_EVAL_EXT_CACHE": str(tmp_path), "TMPDIR": str(tmp_path / "none")}
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_WORDS],
        env={**os.environ, **folders},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == "['土豆']"
    assert printed.stderr == ""
    assert [path.name for path in (tmp_path / "jieba").iterdir()] == ["jieba.cache"]


def test_scores_are_robertsons() -> None:
    """With the usual k1 and b; a word that most recipes have counts nothing."""
    index = index_of(["盐，土豆，土豆", "盐，鸡蛋", "盐，面粉"])
    weight = math.log((3 - 1 + 0.5) / (1 + 0.5))
    relative_length = 3 / (7 / 3)
    expected = weight * 2 / (2 + 1.5 * (1 - 0.75 + 0.75 * relative_length))
    assert scores(index, "土豆").tolist() == pytest.approx([expected, 0, 0])
    assert scores(index, "盐").tolist() == [0, 0, 0]
    assert scores(index, "豆腐").tolist() == [0, 0, 0]


def test_recipes_without_words_are_refused() -> None:
    """The error says that no training recipe has one."""
    with pytest.raises(DataError, match="no training recipe has a word"):
        index_of(["，", "。"])


def test_an_index_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same texts and settings find the index of before; others have one of their own."""
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path))

    def kept_indexes() -> dict[Path, int]:
        """Return when each kept index was last changed."""
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("diner/bm25-*")}

    built = scores(index_of(["土豆", "鸡蛋"]), "土豆").tolist()
    kept = kept_indexes()
    assert len(kept) == 1
    assert scores(index_of(["土豆", "鸡蛋"]), "土豆").tolist() == built
    assert kept_indexes() == kept
    index_of(["鸡蛋", "土豆"])
    monkeypatch.setattr(demonstrations, "B", 0.5)
    index_of(["土豆", "鸡蛋"])
    assert len(kept_indexes()) == 3


def test_a_cache_that_is_no_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the variable to set."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="Set LM_EVAL_EXT_CACHE to a writable folder"):
        index_of(["土豆"])
