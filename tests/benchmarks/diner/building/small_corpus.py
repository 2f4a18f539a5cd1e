"""A corpus of some thousand recipes, with hand-written cases of everything that is dropped."""

import json
import random
from pathlib import Path
from typing import Any

import diner_corpus

DISHES, EACH = 80, 25
SHORT, REPEATS = 2, 3
"""Of the recipes of each dish."""

UNPARSED, RARE, SINGLE, UNTITLED = 6, 3, 400, 7


DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")


def recipe(title: object, *steps: str) -> dict[str, Any]:
    """A recipe in the corpus's format."""
    return {
        "name": title,
        "recipeIngredient": ["500克猪肉", "2勺盐"],
        "recipeInstructions": list(steps),
    }


def recipes(seed: int = 0) -> list[dict[str, Any]]:
    """All recipes, mixed.

    - DISHES names that parse, EACH times, SHORT of them too short and REPEATS of them repeats;
    - one that parses and has nothing but short recipes;
    - UNPARSED names with a word that no glossary has, 20 times each; RARE names 19 times;
    - SINGLE titles that stand once, and UNTITLED recipes without a Chinese title.
    """
    script, rng = diner_corpus, random.Random(seed)
    names: dict[str, None] = {}
    while len(names) < DISHES + RARE:
        names[script.name(rng)] = None
    drawn = sorted(names)
    found = []
    for name in drawn[:DISHES]:
        kept = [recipe(name, *_steps(script, rng, n)) for n in range(EACH - SHORT - REPEATS)]
        kept[0]["name"] = f"【家常】{name}(一){name[:0]} ✨"
        short = [recipe(name, "切" * (18 - n), "") for n in range(SHORT)]
        found += [*kept, *short, *({**one, "author": "x"} for one in kept[:REPEATS])]
    found += [recipe("红烧红烧红烧猪肉", f"煮{n}") for n in range(20)]
    for n in range(UNPARSED):
        found += [recipe(f"怪{'怪' * n}猪肉", *_steps(script, rng, k)) for k in range(20)]
    for name in drawn[DISHES:]:
        found += [recipe(name, *_steps(script, rng, n)) for n in range(19)]
    numbers = (str(n).translate(DIGITS) for n in range(SINGLE))
    found += [recipe(f"怪菜{number}鱼", "煮一煮") for number in numbers]
    found += [recipe(title, "煮一煮") for title in (None, "", "DIY", "(汤)", "ケーキ", "!", " ")]
    rng.shuffle(found)
    return found


def write(path: Path, found: list[dict[str, Any]]) -> Path:
    """Writes recipes as a corpus."""
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in found)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def glossary(path: Path) -> Path:
    """Writes the glossary under which the names parse."""
    path.write_text(json.dumps(diner_corpus.glossary(), ensure_ascii=False), encoding="utf-8")
    return path


def _steps(script: Any, rng: random.Random, number: int) -> list[str]:
    """Steps that no other call gives for this number; 20 characters and more."""
    return [f"第{number}种做法把所有材料准备好放在一边", rng.choice(script.FOODS) * 3]
