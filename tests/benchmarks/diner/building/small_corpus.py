"""A corpus of some thousand recipes, with hand-written cases of everything that is dropped."""

import json
import random
from pathlib import Path
from typing import Any

KINDS = {
    kind: words.split()
    for kind, words in {
        "food": """
            猪肉 牛肉 羊肉 鸡肉 鸭肉 鱼 虾 蟹 鸡蛋 豆腐 白菜 菠菜 芹菜 韭菜 萝卜 土豆 番茄 茄子 黄瓜
            南瓜 豆角 蘑菇 木耳 海带 莲藕 山药 芋头 红薯 玉米 花生 糯米 面条 米饭 粥 馒头 饺子 饼
            蛋糕 面包 汤 排骨 牛腩 鸡翅 香肠 火腿 培根 洋葱 大蒜 香菇 粉丝 年糕 牛奶 草莓 苹果 柠檬
            绿豆 芝麻 蜂蜜""",
        "action": "红烧 清蒸 油炸 爆炒 凉拌 水煮 烤 炖 焖 煎 卤 烩 煲 熏 干煸",
        "flavour": "麻辣 酸辣 糖醋 蒜香 五香 咖喱 椒盐 香辣 孜然 鱼香 甜 酸 奶香 酱香",
    }.items()
}
FORMS = ("food food", "food food food", "food action food", "action food", "flavour food",
         "flavour food food", "action food food", "flavour action food", "food")  # fmt: skip
GLOSSARY = {kind: {word: word for word in words} for kind, words in KINDS.items()}

DISHES, EACH = 80, 25
SHORT, REPEATS = 2, 3
"""Of the recipes of each dish."""

UNPARSED, RARE, SINGLE = 6, 3, 400
UNTITLED = (None, "", "DIY", "(汤)", "ケーキ", "!", " ")

DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")


def names(count: int, seed: int = 0) -> list[str]:
    """Different names that parse; common words are drawn more often than rare ones."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        kinds = (KINDS[kind] for kind in rng.choice(FORMS).split())
        found["".join(words[int(len(words) * rng.random() ** 1.7)] for words in kinds)] = None
    return sorted(found)


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
    - SINGLE titles that stand once, and recipes without a Chinese title.
    """
    rng = random.Random(seed)
    drawn = names(DISHES + RARE, seed)
    found = []
    for name in drawn[:DISHES]:
        kept = [recipe(name, *_steps(rng, n)) for n in range(EACH - SHORT - REPEATS)]
        kept[0]["name"] = f"【家常】{name}(一) ✨"
        short = [recipe(name, "切" * (18 - n), "") for n in range(SHORT)]
        found += [*kept, *short, *({**one, "author": "x"} for one in kept[:REPEATS])]
    found += [recipe("红烧红烧红烧猪肉", f"煮{n}") for n in range(20)]
    for n in range(UNPARSED):
        found += [recipe(f"怪{'怪' * n}猪肉", *_steps(rng, k)) for k in range(20)]
    for name in drawn[DISHES:]:
        found += [recipe(name, *_steps(rng, n)) for n in range(19)]
    found += [recipe(f"怪菜{str(n).translate(DIGITS)}鱼", "煮一煮") for n in range(SINGLE)]
    found += [recipe(title, "煮一煮") for title in UNTITLED]
    rng.shuffle(found)
    return found


def write(path: Path, found: list[dict[str, Any]]) -> Path:
    """Writes recipes as a corpus."""
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in found)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _steps(rng: random.Random, number: int) -> list[str]:
    """Steps that no other call gives for this number; 20 characters and more."""
    return [f"第{number}种做法把所有材料准备好放在一边", rng.choice(KINDS["food"]) * 3]
