"""The embedded recipes: their number, that they can be scored, and their splits."""

from collections import Counter

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


def test_recipes_do_not_give_their_name_away() -> None:
    counts = Counter(name for _, name in pairs("tmcd"))
    assert len(counts) >= 20 and min(counts.values()) >= 3
    for text, name in pairs("tmcd"):
        assert 40 <= len(text) <= 120, text
        assert name not in text
        assert clean_name(name) == name


def test_both_splits_divide_the_same_recipes() -> None:
    names = {}
    for split in mini.SPLITS:
        assert Counter(pairs(split)) == Counter(pairs("tmcd"))
        sizes = {part: len(pairs(split, part)) for part in mini.split(split)}
        assert sizes == {"train": 34, "valid": 8, "test": 24}
        # Every component to be recognised occurs in training.
        known = {component for name in parsed(split, "train") for component in name}
        assert {component for name in parsed(split) for component in name} == known
        assert {component.kind for component in known} == set(KINDS)
        names[split] = [{name for _, name in pairs(split, part)} for part in ("train", "test")]
    assert not set.intersection(*names["tmcd"])
    assert len(set.intersection(*names["random"])) > len(names["random"][1]) / 2
    categories = Categories(parsed("tmcd", "train"))
    assert {categories.of(name) for name in parsed("tmcd", "test")} == set(CATEGORIES)
