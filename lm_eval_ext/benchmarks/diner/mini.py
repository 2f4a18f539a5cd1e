"""diner_mini: our own recipes, glossary and splits, embedded in the package.

It needs no download and is too small to measure real models. Both splits have the published
file's format. The dishes of the TMCD split are chosen by hand so that all generalization
categories occur; the random split divides the same recipes by a hash of their text.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict

from lm_eval_ext.benchmarks.diner.glossary import Glossary

SPLITS = ("tmcd", "random")

VALID_EVERY = 5
"""One training recipe in this many is for validation, as in the paper (section 5.2)."""

Content = dict[str, dict[str, list[str]]]
"""The published file's content: ``instructions`` and ``names`` of each part."""


class _Recipes(BaseModel):
    """The instructions of each dish."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: dict[str, tuple[str, ...]]
    test: dict[str, tuple[str, ...]]


def _text(name: str) -> str:
    """An embedded file, with Unix line ends on every system."""
    file = resources.files(__package__).joinpath("mini").joinpath(name)
    return file.read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def glossary() -> Glossary:
    """The glossary that parses the embedded names."""
    return Glossary.of(json.loads(_text("glossary.json")))


@cache
def _recipes() -> _Recipes:
    return _Recipes.model_validate(yaml.safe_load(_text("recipes.yaml")))


def split(name: str) -> Content:
    """One of :data:`SPLITS`, in the published file's format."""
    recipes = _recipes()
    train, test = _pairs(recipes.train), _pairs(recipes.test)
    if name == "random":
        mixed = sorted([*train, *test], key=_digest)
        train, test = mixed[: len(train)], mixed[len(train) :]
    valid = _held_out(train, len(train) // VALID_EVERY)
    parts = {"train": [pair for pair in train if pair not in valid], "valid": valid, "test": test}
    return {part: _columns(pairs) for part, pairs in parts.items()}


def _pairs(dishes: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(text, dish) for dish, instructions in dishes.items() for text in instructions]


def _held_out(train: list[tuple[str, str]], number: int) -> list[tuple[str, str]]:
    """One recipe of each of ``number`` dishes that keep another one for training."""
    counts = Counter(dish for _, dish in train)
    first: dict[str, tuple[str, str]] = {}
    for text, dish in sorted(train, key=_digest):
        if counts[dish] > 1:
            first.setdefault(dish, (text, dish))
    return list(first.values())[:number]


def _columns(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    instructions, names = zip(*pairs, strict=True)
    return {"instructions": list(instructions), "names": list(names)}


def _digest(pair: tuple[str, str]) -> str:
    return hashlib.sha256(pair[0].encode()).hexdigest()


def digest() -> str:
    """SHA-256 (hex) of the embedded splits and the glossary."""
    shown = [glossary().as_dict(), *(split(name) for name in SPLITS)]
    return hashlib.sha256(json.dumps(shown, ensure_ascii=False).encode()).hexdigest()
