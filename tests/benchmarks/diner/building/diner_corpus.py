"""Writes a synthetic corpus of recipes in the format of the XiaChuFang corpus.

One JSON object per line with the corpus's keys (Liu et al. 2022). Ordinary words are combined at
random, so the recipes are nonsense. Their length (180 characters in 8 steps on average), the
decorated titles and the share of titles that recur are realistic: about one recipe in seven has
a name that parses, as in the DiNeR paper.
"""

import itertools
import json
import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


FOODS = _words(
    """
    猪肉 牛肉 羊肉 鸡肉 鸭肉 鱼 虾 蟹 鸡蛋 豆腐 白菜 菠菜
    芹菜 韭菜 萝卜 土豆 番茄 茄子 黄瓜 南瓜 冬瓜 苦瓜 丝瓜 豆角
    豆芽 蘑菇 木耳 海带 紫菜 莲藕 山药 芋头 红薯 玉米 花生 核桃
    红枣 枸杞 银耳 百合 糯米 小米 燕麦 面条 米饭 粥 馒头 包子
    饺子 馄饨 饼 蛋糕 面包 饼干 布丁 沙拉 披萨 三明治 寿司 汤
    排骨 五花肉 里脊 牛腩 鸡翅 鸡腿 鸡胸 鸡爪 猪蹄 肥肠 猪肝 腊肉
    香肠 火腿 培根 三文鱼 带鱼 鲈鱼 鱿鱼 蛤蜊 牡蛎 扇贝 龙虾 毛豆
    豌豆 青椒 洋葱 大葱 生姜 大蒜 香菜 茼蒿 生菜 西兰花 花菜 莴笋
    竹笋 香菇 金针菇 杏鲍菇 粉丝 粉条 腐竹 豆皮 年糕 汤圆 粽子 月饼
    春卷 烧麦 牛奶 酸奶 奶酪 黄油 巧克力 草莓 香蕉 苹果 芒果 榴莲
    椰子 菠萝 柠檬 蓝莓 樱桃 葡萄 西瓜 木瓜 雪梨 山楂 绿豆 红豆
    黑豆 芝麻 蜂蜜 豆浆 奶茶 果酱 泡菜 咸菜
    """
)
ACTIONS = _words("红烧 清蒸 油炸 爆炒 凉拌 水煮 烤 炖 焖 煎 卤 烩 煲 烘焙 腌 熏 白灼 干煸 煨 焗")
FLAVOURS = _words("麻辣 酸辣 糖醋 蒜香 五香 咖喱 椒盐 香辣 孜然 鱼香 葱香 甜 酸 辣 咸 鲜 奶香 酱香")
OTHERS = _words("妈妈 秘制 家常 快手 简单 营养 宝宝 外婆 懒人 周末 冬日 下饭 私房 经典 美味 减脂")

KINDS = {"food": FOODS, "action": ACTIONS, "flavour": FLAVOURS}
FORMS = (
    (("food", "food"), 28),
    (("food", "food", "food"), 18),
    (("food", "action", "food"), 17),
    (("action", "food"), 15),
    (("flavour", "food"), 8),
    (("flavour", "food", "food"), 5),
    (("action", "food", "food", "food"), 4),
    (("flavour", "action", "food"), 3),
    (("food",), 2),
)
"""Forms of names and their weights, after table 3 of the paper."""

UNITS = _words("克 勺 个 片 块 根 碗 杯 把 瓣")
VERBS = _words("放入 切碎 翻炒 洗净 搅拌 煮熟 沥干 备好 腌制 撒上")
TAILS = _words("备用 待凉 至变色 十分钟 出香味 装盘 均匀 后盖上锅盖 并调小火 直到汤汁收浓")
BRACKETS = ("（", "）"), ("(", ")"), ("【", "】"), ("[", "]")  # noqa: RUF001

SHARE_OF_DISHES = 0.3
"""Share of the recipes whose titles recur; the others hardly ever do."""

SHARE_OF_SHORT, SHARE_OF_REPEATS = 0.02, 0.03
"""Shares of the recipes to be dropped: the instruction is too short; a repeated recipe."""


def glossary() -> dict[str, dict[str, str]]:
    """Returns a glossary of the generator's words, each in a class of its own."""
    return {kind: {word: word for word in words} for kind, words in KINDS.items()}


def name(rng: random.Random) -> str:
    """Returns a name that parses; common words are drawn more often than rare ones."""
    kinds = rng.choices([form for form, _ in FORMS], [weight for _, weight in FORMS])[0]
    return "".join(KINDS[kind][_skewed(rng, len(KINDS[kind]))] for kind in kinds)


def dishes(recipes: int, rng: random.Random) -> tuple[list[str], list[float]]:
    """Returns recurring names and their weights; half of them have a word in no glossary."""
    wanted = max(20, recipes // 200)
    found: dict[str, None] = {}
    while len(found) < wanted:
        drawn = name(rng)
        found[drawn if rng.random() < 0.5 else rng.choice(OTHERS) + drawn] = None
    return list(found), [1 / (20 + place) ** 0.5 for place in range(wanted)]


def recipes(count: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Yields recipes in the corpus's format, the same for the same count and seed."""
    rng = random.Random(seed)
    known, weights = dishes(count, rng)
    cumulated = list(itertools.accumulate(weights))
    pool = [_step(rng) for _ in range(20_000)]
    amounts = [f"{rng.randint(1, 500)}{rng.choice(UNITS)}{food}" for food in FOODS * 20]
    recent: deque[tuple[str, list[str]]] = deque(maxlen=1_000)
    for _ in range(count):
        if rng.random() < SHARE_OF_DISHES:
            dish = rng.choices(known, cum_weights=cumulated)[0]
        else:
            dish = rng.choice(OTHERS) + name(rng) + rng.choice(OTHERS) + rng.choice(FOODS)
        steps = rng.choices(pool, k=max(1, round(rng.lognormvariate(2, 0.5))))
        if rng.random() < SHARE_OF_SHORT:
            steps = [rng.choice(VERBS) + rng.choice(FOODS)]
        if recent and rng.random() < SHARE_OF_REPEATS:
            dish, steps = rng.choice(recent)
        recent.append((dish, steps))
        yield {
            "name": _decorated(dish, rng),
            "dish": "Unknown",
            "description": "".join(rng.choices(TAILS, k=rng.randint(0, 12))),
            "recipeIngredient": rng.choices(amounts, k=rng.randint(2, 14)),
            "recipeInstructions": steps,
            "author": f"author_{rng.randint(1, 200_000)}",
            "keywords": [dish, rng.choice(FOODS), rng.choice(OTHERS)],
        }


def write(path: Path, count: int, seed: int = 0) -> None:
    """Writes the recipes as JSON lines."""
    with path.open("w", encoding="utf-8") as handle:
        for recipe in recipes(count, seed):
            handle.write(json.dumps(recipe, ensure_ascii=False) + "\n")


def _skewed(rng: random.Random, size: int) -> int:
    return int(size * rng.random() ** 1.7)


def _step(rng: random.Random) -> str:
    parts = [
        rng.choice(VERBS) + rng.choice(FOODS) + rng.choice(TAILS)
        for _ in range(max(1, round(rng.lognormvariate(0.9, 0.5))))
    ]
    return "，".join(parts) + rng.choice(("。", "！", "", "～"))  # noqa: RUF001


def _decorated(dish: str, rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.15:
        opening, closing = rng.choice(BRACKETS)
        return f"{dish}{opening}{rng.choice(OTHERS)}版{closing}"
    if chance < 0.3:
        return f"{rng.choice(('✨', '#', 'DIY ', '~'))}{dish}{rng.choice(('!', '💕', ' no.2', ''))}"
    return dish
