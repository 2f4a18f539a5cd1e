"""The embedded recipes: their number, that they can be scored, and their splits."""

from collections import Counter

import pytest

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, clean_name
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories


def pairs(split: str, *parts: str) -> list[tuple[str, str]]:
    content = mini.split(split)
    return [
        pair
        for part in parts or content
        for pair in zip(content[part]["instructions"], content[part]["names"], strict=True)
    ]


def parsed(split: str, *parts: str) -> list[tuple[Component, ...]]:
    found = [mini.glossary().parse(name) for _, name in pairs(split, *parts)]
    assert all(found)
    return [components for components in found if components]


def test_there_are_enough_recipes_of_enough_dishes() -> None:
    counts = Counter(name for _, name in pairs("tmcd"))
    assert sum(counts.values()) >= 60
    assert len(counts) >= 20
    assert min(counts.values()) >= 3


def test_recipes_differ_and_do_not_give_their_name_away() -> None:
    recipes = pairs("tmcd")
    assert len({text for text, _ in recipes}) == len(recipes)
    for text, name in recipes:
        assert 40 <= len(text) <= 120, text
        assert name not in text
        assert clean_name(name) == name


@pytest.mark.parametrize("split", mini.SPLITS)
def test_splits_divide_the_same_recipes(split: str) -> None:
    assert Counter(pairs(split)) == Counter(pairs("tmcd"))
    sizes = {part: len(pairs(split, part)) for part in mini.split(split)}
    assert sizes == {"train": 34, "valid": 8, "test": 24}


@pytest.mark.parametrize("split", mini.SPLITS)
def test_every_component_to_be_recognised_occurs_in_training(split: str) -> None:
    known = {component for name in parsed(split, "train") for component in name}
    for part in ("valid", "test"):
        assert {component for name in parsed(split, part) for component in name} <= known
    assert {component.kind for component in known} == set(KINDS)


def test_tmcd_asks_for_new_dishes_of_every_category() -> None:
    train, test = ({name for _, name in pairs("tmcd", part)} for part in ("train", "test"))
    assert not train & test
    assert {name for _, name in pairs("tmcd", "valid")} <= train
    categories = Categories(parsed("tmcd", "train"))
    assert {categories.of(name) for name in parsed("tmcd", "test")} == set(CATEGORIES)


def test_random_asks_for_known_dishes() -> None:
    train, test = ({name for _, name in pairs("random", part)} for part in ("train", "test"))
    assert len(train & test) > len(test) / 2


def test_every_component_is_used_and_some_have_synonyms() -> None:
    glossary = mini.glossary()
    used = {component for name in parsed("tmcd") for component in name}
    assert used == set(glossary.components())
    assert sum(len(glossary.words(component)) > 1 for component in used) >= 10


def test_the_digest_tells_texts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    before, recipes = mini.digest(), mini._recipes()
    name, (first, *others) = next(iter(recipes.test.items()))
    changed = recipes.model_copy(
        update={"test": {**recipes.test, name: (first + "趁热吃。", *others)}}
    )
    monkeypatch.setattr(mini, "_recipes", lambda: changed)
    assert mini.digest() != before
