"""The embedded recipes: their number, that they can be scored, and their splits."""

from collections import Counter

import pytest

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, clean_name
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories

GLOSSARY = mini.glossary()


def pairs(split: str, *parts: str) -> list[tuple[str, str]]:
    content = mini.split(split)
    return [
        pair
        for part in parts or content
        for pair in zip(content[part]["instructions"], content[part]["names"], strict=True)
    ]


def parsed(split: str, *parts: str) -> list[tuple[Component, ...]]:
    found = [GLOSSARY.parse(name) for _, name in pairs(split, *parts)]
    assert all(found)
    return [components for components in found if components]


def test_there_are_enough_recipes_that_do_not_give_their_name_away() -> None:
    recipes = pairs("tmcd")
    counts = Counter(name for _, name in recipes)
    assert len({text for text, _ in recipes}) == len(recipes) >= 60
    assert len(counts) >= 20
    assert min(counts.values()) >= 3
    for text, name in recipes:
        assert 40 <= len(text) <= 120, text
        assert name not in text
        assert clean_name(name) == name


@pytest.mark.parametrize("split", mini.SPLITS)
def test_splits_divide_the_same_recipes(split: str) -> None:
    assert Counter(pairs(split)) == Counter(pairs("tmcd"))
    sizes = {part: len(pairs(split, part)) for part in mini.split(split)}
    assert sizes == {"train": 34, "valid": 8, "test": 24}
    # Every component to be recognised occurs in training.
    known = {component for name in parsed(split, "train") for component in name}
    assert {component for name in parsed(split) for component in name} == known
    assert {component.kind for component in known} == set(KINDS)
    # All components are used, and some have synonyms.
    assert {
        Component(k, c) for k, words in GLOSSARY.as_dict().items() for c in words.values()
    } == known
    assert sum(len(GLOSSARY.words(component)) > 1 for component in known) >= 10


def test_tmcd_asks_for_new_dishes_of_every_category_and_random_for_known_ones() -> None:
    train, valid, test = (
        {name for _, name in pairs("tmcd", p)} for p in ("train", "valid", "test")
    )
    assert not train & test
    assert valid <= train
    categories = Categories(parsed("tmcd", "train"))
    assert {categories.of(name) for name in parsed("tmcd", "test")} == set(CATEGORIES)
    train, test = ({name for _, name in pairs("random", part)} for part in ("train", "test"))
    assert len(train & test) > len(test) / 2
