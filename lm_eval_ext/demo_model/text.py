"""What the demonstration model is trained on, one by one, and what of it must be in no task."""

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

import yaml

Text = tuple[str, str]
"""What is read, and what is then to be written, with its leading space."""

RUN = 13
"""So many words in a row that are an item's, too, make a text unfit for training (as for GPT-3)."""


def words(text: str) -> list[str]:
    """Words and Chinese characters, in lower case."""
    return re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())


def runs(texts: Iterable[str]) -> set[tuple[str, ...]]:
    """All runs of :data:`RUN` words; of a shorter text, the whole of it."""
    found = set()
    for text in texts:
        of_text = words(text)
        for start in range(max(1, len(of_text) - RUN + 1)):
            found.add(tuple(of_text[start : start + RUN]))
    return found


@cache
def lexicon(name: str) -> Any:
    """The content of a YAML file beside this module, which says itself what is in it."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
