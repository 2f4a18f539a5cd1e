"""A corpus of some thousand recipes, with hand-written cases of everything that is dropped."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOODS = """
    猪肉 牛肉 羊肉 鸡肉 鸭肉 鱼 虾 蟹 鸡蛋 豆腐 白菜 菠菜 芹菜 韭菜 萝卜 土豆 番茄 茄子 黄瓜
    南瓜 豆角 蘑菇 木耳 海带 莲藕 山药 芋头 红薯 玉米 花生 糯米 面条 米饭 粥 馒头 饺子 饼
    蛋糕 面包 汤 排骨 牛腩 鸡翅 香肠 火腿 培根 洋葱 大蒜 香菇 粉丝 年糕 牛奶 草莓 苹果 柠檬
    绿豆 芝麻 蜂蜜"""
ACTIONS = "红烧 清蒸 油炸 爆炒 凉拌 水煮 烤 炖 焖 煎 卤 烩 煲 熏 干煸"
FLAVOURS = "麻辣 酸辣 糖醋 蒜香 五香 咖喱 椒盐 香辣 孜然 鱼香 甜 酸 奶香 酱香"
KINDS = {"food": FOODS.split(), "action": ACTIONS.split(), "flavour": FLAVOURS.split()}
FORMS = ("food food", "food food food", "food action food", "action food", "flavour food",
         "flavour food food", "action food food", "flavour action food", "food")  # fmt: skip
GLOSSARY = {kind: dict(zip(words, words, strict=True)) for kind, words in KINDS.items()}

DISHES = 80
RECIPES_PER_DISH = 25

SHORT_PER_DISH = 2
REPEATS_PER_DISH = 3

UNPARSED_NAMES = 6
RARE_NAMES = 3
SINGLE_TITLES = 400
UNUSABLE_TITLES = (None, "", "DIY", "(汤)", "ケーキ", "!", " ")

DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")


def names(count: int, seed: int = 0) -> list[str]:
    """Return different names that parse; common words are drawn more often than rare ones."""
    rng = random.Random(seed)
    drawn: set[str] = set()
    while len(drawn) < count:
        name = ""
        for kind in rng.choice(FORMS).split():
            words = KINDS[kind]
            name += words[int(len(words) * rng.random() ** 1.7)]
        drawn.add(name)
    return sorted(drawn)


def recipe(title: object, *steps: str) -> dict[str, Any]:
    """Return a recipe in the corpus's format."""
    return {
        "name": title,
        "recipeIngredient": ["500克猪肉", "2勺盐"],
        "recipeInstructions": list(steps),
    }


def recipes(seed: int = 0) -> list[dict[str, Any]]:
    """Return all recipes, mixed.

    - DISHES names that parse, with RECIPES_PER_DISH recipes each, of which SHORT_PER_DISH are too
      short and REPEATS_PER_DISH are repeats;
    - a name that parses and has nothing but short recipes;
    - UNPARSED_NAMES with a word that no glossary has, 20 times each; RARE_NAMES 19 times;
    - SINGLE_TITLES that occur once, and recipes without a Chinese title.
    """
    rng = random.Random(seed)
    drawn = names(DISHES + RARE_NAMES, seed)
    corpus = []
    for name in drawn[:DISHES]:
        corpus += _recipes_of_dish(rng, name)
    for number in range(20):
        corpus.append(recipe("红烧红烧红烧猪肉", f"煮{number}"))
    for name_number in range(UNPARSED_NAMES):
        for number in range(20):
            corpus.append(recipe(f"怪{'怪' * name_number}猪肉", *_steps(rng, number)))
    for name in drawn[DISHES:]:
        for number in range(19):
            corpus.append(recipe(name, *_steps(rng, number)))
    for number in range(SINGLE_TITLES):
        corpus.append(recipe(f"怪菜{str(number).translate(DIGITS)}鱼", "煮一煮"))
    for title in UNUSABLE_TITLES:
        corpus.append(recipe(title, "煮一煮"))
    rng.shuffle(corpus)
    return corpus


def _recipes_of_dish(rng: random.Random, name: str) -> list[dict[str, Any]]:
    """Return different recipes of a dish, one with a decorated title, short ones and repeats."""
    different = []
    for number in range(RECIPES_PER_DISH - SHORT_PER_DISH - REPEATS_PER_DISH):
        different.append(recipe(name, *_steps(rng, number)))
    different[0]["name"] = f"【家常】{name}(一) ✨"
    short = [recipe(name, "切" * (18 - number), "") for number in range(SHORT_PER_DISH)]
    repeats = [{**original, "author": "x"} for original in different[:REPEATS_PER_DISH]]
    return [*different, *short, *repeats]


def write(path: Path, corpus: Iterable[dict[str, Any]]) -> Path:
    """Write recipes as a corpus."""
    with path.open("w", encoding="utf-8") as file:
        for entry in corpus:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return path


def _steps(rng: random.Random, number: int) -> list[str]:
    """Return steps that no other call gives for this number, of 20 characters and more."""
    return [f"第{number}种做法把所有材料准备好放在一边", rng.choice(KINDS["food"]) * 3]
