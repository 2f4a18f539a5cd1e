"""Dish names for tests of the split: real ones where available, and random ones."""

import json
import random
from pathlib import Path

import diner_corpus

from lm_eval_ext.benchmarks.diner.build.tmcd import Names
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary, clean_name


def real(folder: Path) -> Names:
    """All names in the three files of real recipes that parse, each once."""
    recipes = json.loads((folder / "xiachufang_1000.json").read_text(encoding="utf-8"))
    titles = [recipe["conversation"][0]["input"].removesuffix("的做法") for recipe in recipes]
    recipes = json.loads((folder / "howtocook_all_recipes.json").read_text(encoding="utf-8"))
    titles += [recipe["name"].removesuffix("的做法") for recipe in recipes]
    for line in (folder / "base_recipes.txt").read_text(encoding="utf-8").splitlines():
        titles += line.split("\t")[:2]
    return parsed(titles, Glossary.read(folder / "glossary.json"))


def synthetic(recipes: int, seed: int = 0) -> Names:
    """The names that recur in a synthetic corpus and parse."""
    known, _ = diner_corpus.dishes(recipes, random.Random(seed))
    return parsed(known, Glossary.of(diner_corpus.glossary()))


def parsed(titles: list[str], glossary: Glossary) -> Names:
    """Those that parse."""
    cleaned = sorted({clean_name(title) for title in titles})
    return {name: found for name in cleaned if (found := glossary.parse(name))}


def drawn(rng: random.Random, count: int, kinds: int) -> Names:
    """Names of one to five components, some of them twice in a name."""
    parts = [Component(rng.choice(KINDS), str(number)) for number in range(kinds)]
    return {f"n{n}": tuple(rng.choices(parts, k=rng.randint(1, 5))) for n in range(count)}
