"""Dish names for tests of the split: real ones where available, and random ones."""

import importlib.util
import json
import random
from pathlib import Path
from types import ModuleType

from lm_eval_ext.benchmarks.diner.build.tmcd import Names
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component, Glossary, clean_name

ROOT = Path(__file__).resolve().parents[4]


def corpus_script() -> ModuleType:
    """The generator of synthetic corpora, which is a script."""
    spec = importlib.util.spec_from_file_location(
        "diner_corpus", ROOT / "bench" / "diner_corpus.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    script = corpus_script()
    known, _ = script.dishes(recipes, random.Random(seed))
    return parsed(known, Glossary.of(script.glossary()))


def parsed(titles: list[str], glossary: Glossary) -> Names:
    """Those that parse."""
    cleaned = sorted({clean_name(title) for title in titles})
    return {name: found for name in cleaned if (found := glossary.parse(name))}


def drawn(rng: random.Random, count: int, kinds: int) -> Names:
    """Names of one to five components, some of them twice in a name."""
    parts = [Component(rng.choice(KINDS), str(number)) for number in range(kinds)]
    return {f"n{n}": tuple(rng.choices(parts, k=rng.randint(1, 5))) for n in range(count)}
