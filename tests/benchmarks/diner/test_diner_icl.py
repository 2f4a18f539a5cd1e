"""Demonstrations, compared with an exhaustive search."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import diner_own

from lm_eval_ext.benchmarks.diner import mini, retrieval
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.in_context import INSTRUCTION, ORACLE, SELECTIONS, choose
from lm_eval_ext.benchmarks.diner.records import Recipe, Split, split_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.fewshot import Choice

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def mini_split(name: str = "tmcd") -> Split:
    return split_of(mini.split(name), mini.glossary(), "mini")


def drawn_split(seed: int, dishes: int = 25) -> Split:
    """Names that the glossary's words make at random; no two recipes are copies."""
    rng = random.Random(seed)
    words = [word for kind in diner_own.GLOSSARY.values() for word in kind]
    names = sorted({"".join(rng.sample(words, rng.randint(1, 3))) for _ in range(dishes)})
    glossary = Glossary.of(diner_own.GLOSSARY)
    names = [name for name in names if glossary.parse(name)]
    rng.shuffle(names)

    def recipes(part: str, some: list[str]) -> tuple[Recipe, ...]:
        texts = [
            (name, rng.choices(diner_own.STEPS, k=rng.randint(3, 6))) for name in some for _ in "ab"
        ]
        return tuple(
            Recipe(f"{part}-{n}", f"{'，'.join(steps)}，{part}{n}", name)
            for n, (name, steps) in enumerate(texts)
        )

    return Split(recipes("train", names[:-5]), recipes("test", names[-5:]), glossary)


def shown(split: Split, choice: Choice) -> list[Recipe]:
    return [split.by_id[name] for name in choice.ids]


@pytest.mark.parametrize("how", SELECTIONS)
@pytest.mark.parametrize("split", [mini_split(), mini_split("random"), drawn_split(3)])
def test_two_for_each_and_no_copy(split: Split, how: str) -> None:
    choices = choose(split, split.test, how, 2, seed=1)
    assert choices.by_sample.keys() == {recipe.id for recipe in split.test}
    for sample in split.test:
        recipes = shown(split, choices.by_sample[sample.id])
        keys = [recipe.copy_key for recipe in recipes]
        assert len({*keys, sample.copy_key}) == 3


@pytest.mark.parametrize("how", SELECTIONS)
def test_neither_order_nor_limit_changes_a_choice(how: str) -> None:
    split = mini_split()
    whole = choose(split, split.test, how, 2, seed=1).by_sample
    few = choose(split, split.test[7:3:-1], how, 2, seed=1).by_sample
    assert few == {sample.id: whole[sample.id] for sample in split.test[4:8]}
    train = list(split.train)
    random.Random(0).shuffle(train)
    mixed = Split(tuple(train), split.test, split.glossary)
    assert choose(mixed, split.test, how, 2, seed=1).by_sample == whole


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_by_instruction_shows_the_highest_scores(seed: int) -> None:
    split = drawn_split(seed)
    index = retrieval.index_of([recipe.instruction for recipe in split.train])
    choices = choose(split, split.test, INSTRUCTION, 2, seed=0)
    for sample in split.test:
        scores = dict(zip(split.train, index.scores(sample.instruction).tolist(), strict=True))
        best: list[float] = []
        keys = {sample.copy_key}
        for recipe in sorted(split.train, key=lambda one: -scores[one]):
            if recipe.copy_key not in keys:
                keys.add(recipe.copy_key)
                best.append(scores[recipe])
        found = [scores[recipe] for recipe in shown(split, choices.by_sample[sample.id])]
        assert found == pytest.approx(best[:2], rel=1e-6)


def test_only_the_oracle_looks_at_the_gold_name() -> None:
    split = mini_split()
    unlike = sorted({recipe.name for recipe in split.test})
    renamed = [replace(one, name=unlike[n % len(unlike)]) for n, one in enumerate(split.test)]
    assert sum(one != two for one, two in zip(renamed, split.test, strict=True)) > 12
    for how in SELECTIONS:
        chosen = [choose(split, samples, how, 2, seed=1) for samples in (split.test, renamed)]
        assert (chosen[0] == chosen[1]) == (how == INSTRUCTION)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_the_oracle_follows_the_paper(seed: int) -> None:
    split = drawn_split(seed)
    parsed = {name: set(split.glossary.parse(name) or ()) for name in split.train_names}
    index = retrieval.index_of([recipe.instruction for recipe in split.train])

    def f1(name: str, wanted: set[object]) -> Fraction:
        return Fraction(2 * len(parsed[name] & wanted), len(parsed[name]) + len(wanted))

    choices = choose(split, split.test, ORACLE, 2, seed=0)
    for sample in split.test:
        scores = dict(zip(split.train, index.scores(sample.instruction).tolist(), strict=True))
        gold: set[object] = set(split.glossary.parse(sample.name) or ())
        recipes = shown(split, choices.by_sample[sample.id])
        first, second = (recipe.name for recipe in recipes)
        assert sample.name not in {first, second}
        others = [name for name in parsed if name != sample.name]
        assert f1(first, gold) == max(f1(name, gold) for name in others)
        left: set[object] = ((gold - parsed[first]) & set.union(*parsed.values())) or gold
        remaining = [name for name in others if name != first]
        assert f1(second, left) == max(f1(name, left) for name in remaining)
        for recipe in recipes:
            same = [one for one in split.train if one.name == recipe.name]
            assert scores[recipe] == max(scores[one] for one in same)


def test_the_oracle_covers_what_the_first_does_not() -> None:
    split = split_of(diner_own.content(), Glossary.of(diner_own.GLOSSARY), "own")
    choices = choose(split, split.test, ORACLE, 3, seed=0)
    choice = choices.by_sample["test-4"]  # 番茄鸡蛋面
    names = [recipe.name for recipe in shown(split, choice)]
    assert len(set(names)) == 3
    assert set(names) <= {"番茄牛肉", "炒鸡蛋", "麻辣面"}
    assert choice.uncovered == ()
    assert choice.picked[0].why.startswith("F1 0.40 to 番茄+面+鸡蛋, BM25 ")
    assert choice.picked[1].why.startswith("F1 0.50 to ")
    assert choice.picked[2].why.startswith("F1 0.67 to ")


def test_the_oracle_does_not_give_the_name_away() -> None:
    """In a random split the gold name is a training name, too."""
    split = mini_split("random")
    choices = choose(split, split.test, ORACLE, 2, seed=0)
    known = [sample for sample in split.test if sample.name in split.train_names]
    assert known
    for sample in known:
        names = [recipe.name for recipe in shown(split, choices.by_sample[sample.id])]
        assert sample.name not in names
        assert len(set(names)) == 2


def test_components_that_no_training_name_has_are_passed_over() -> None:
    glossary = Glossary.of(diner_own.GLOSSARY)
    train = tuple(
        Recipe(f"train-{n}", f"{name}做熟就好", name)
        for n, name in enumerate(["炒面", "面", "豆腐"])
    )
    sample = Recipe("test-0", "切好再做", "麻辣酸面")
    choice = choose(Split(train, (sample,), glossary), [sample], ORACLE, 2, 0).by_sample["test-0"]
    assert {train[int(name[-1])].name for name in choice.ids} == {"面", "炒面"}
    assert choice.uncovered == ("酸", "麻辣")
    stranger = Recipe("test-1", "切好再做", "番茄")
    choice = choose(Split(train, (stranger,), glossary), [stranger], ORACLE, 2, 0).by_sample[
        "test-1"
    ]
    assert all(one.why.startswith("F1 0.00 to 番茄") for one in choice.picked)


@pytest.mark.parametrize("how", SELECTIONS)
def test_copies_of_the_sample_are_never_shown_however_many(how: str) -> None:
    glossary = Glossary.of(diner_own.GLOSSARY)
    copies = [Recipe(f"train-{n}", "土豆切丝，热锅下油！" + "。" * n, "炒土豆") for n in range(300)]
    others = [
        Recipe("train-300", "鸡蛋打散，下油", "炒鸡蛋"),
        Recipe("train-301", "豆腐切块，上锅", "清蒸豆腐"),
        Recipe("train-302", "鸡蛋打散下油。", "炒面"),
    ]
    sample = Recipe("test-0", "土豆切丝热锅下油", "红烧土豆")
    split = Split((*copies, *others), (sample,), glossary)
    picked = choose(split, [sample], how, 2, seed=0).by_sample["test-0"].ids
    assert len(set(picked) & {"train-300", "train-302"}) == 1
    assert "train-301" in picked


@pytest.mark.parametrize("how", SELECTIONS)
def test_too_few_to_show_are_counted(how: str) -> None:
    glossary = Glossary.of(diner_own.GLOSSARY)
    train = (Recipe("train-0", "鸡蛋打散", "炒鸡蛋"), Recipe("train-1", "鸡蛋，打散", "炒面"))
    sample = Recipe("test-0", "土豆切丝", "炒土豆")
    choices = choose(Split(train, (sample,), glossary), [sample], how, 2, seed=0)
    assert choices.not_enough == {"test-0": 1}
    with pytest.raises(OptionError, match="0 demonstrations"):
        choose(Split(train, (sample,), glossary), [sample], how, 0, seed=0)


@pytest.mark.parametrize("how", SELECTIONS)
def test_the_seed_decides_among_equals(how: str) -> None:
    glossary = Glossary.of(diner_own.GLOSSARY)
    words = [word for word in diner_own.GLOSSARY["food"] if word not in {"面", "洋芋", "西红柿"}]
    train = tuple(Recipe(f"train-{n}", f"做法{n}号", f"炒{word}") for n, word in enumerate(words))
    sample = Recipe("test-0", "煮熟捞出", "炒面")
    split = Split(train, (sample,), glossary)
    first = {choose(split, [sample], how, 1, seed).by_sample["test-0"].ids for seed in range(40)}
    assert first == {(recipe.id,) for recipe in train}
    again = {choose(split, [sample], how, 1, 7).by_sample["test-0"].ids for _ in range(3)}
    assert len(again) == 1
