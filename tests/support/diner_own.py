"""A few recipes of our own, as files of the published format."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

GLOSSARY = {
    "food": {
        "土豆": "土豆", "洋芋": "土豆", "牛肉": "牛肉", "鸡蛋": "鸡蛋", "面": "面",
        "豆腐": "豆腐", "番茄": "番茄", "西红柿": "番茄", "和酒": "和酒",
    },
    "action": {"红烧": "红烧", "炒": "炒", "清蒸": "清蒸"},
    "flavour": {"麻辣": "麻辣", "酸": "酸"},
}  # fmt: skip

TRAIN = (
    ("红烧牛肉", "牛肉切块焯水，加酱油和糖小火炖一个钟头，收汁后装盘。"),
    ("红烧牛肉", "牛腱切大块，锅里放酱油、八角和清水，慢慢炖到软烂为止。"),
    ("炒土豆", "土豆切片泡水，热锅下油，大火翻几分钟，加盐和葱花。"),
    ("炒鸡蛋", "四个蛋打散加盐，油热后倒进锅里，凝固就划散盛出。"),
    ("清蒸豆腐", "嫩豆腐切块摆盘，水开上锅八分钟，淋上酱油和葱油。"),
    ("麻辣面", "面煮熟过凉水，拌上辣椒油、花椒粉、芝麻酱和黄瓜丝。"),
    ("番茄牛肉", "番茄去皮切块炒出汁，放入焯好的牛肉块，炖四十分钟。"),
)
VALID = (("酸土豆", "土豆擦丝焯水，加白醋、盐和小米辣拌匀，放凉再吃。"),)
TEST = (
    ("红烧土豆", "土豆切块煎黄，加酱油和糖，添水小火炖到软，收汁装盘。"),
    ("炒牛肉", "牛肉切薄片用淀粉抓匀，热锅下油大火快速翻熟，加盐出锅。"),
    ("麻辣豆腐", "豆腐切块焯水，锅里炒香花椒和辣椒，加水烧开放入，勾芡。"),
    ("红烧土豆", "小土豆洗净不去皮，油里煎到起皱，倒酱油、糖和水炖透。"),
    ("番茄鸡蛋面", "番茄炒出汁加水烧开，下面条，快熟时淋入打散的蛋液。"),
)

STEPS = (
    "土豆切丝", "热锅下油", "鸡蛋打散", "加盐调味", "小火慢炖", "撒上葱花", "面粉加水", "大火收汁",
)  # fmt: skip
"""Steps of which tests put instructions together at random."""


Content = dict[str, dict[str, list[str]]]
"""The parts of a split, each with its instructions and its names."""


def part(recipes: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return a part of a split, as the published format has it."""
    return {
        "instructions": [instruction for _, instruction in recipes],
        "names": [name for name, _ in recipes],
    }


def content() -> Content:
    """Return a split's three parts."""
    return {"train": part(TRAIN), "valid": part(VALID), "test": part(TEST)}


def write(folder: Path, name: str = "tmcd", changed: Mapping[str, object] | None = None) -> Path:
    """Write a split, or what a test made of its content, and the glossary, as ``diner build`` does.

    Returns:
        The folder.
    """
    folder.mkdir(exist_ok=True)
    files = {f"{name}_data": changed or content(), "glossary": GLOSSARY}
    for stem, value in files.items():
        text = json.dumps(value, ensure_ascii=False)
        (folder / f"{stem}.json").write_text(text, encoding="utf-8")
    return folder
