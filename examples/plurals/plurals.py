"""Plurals: can a model form the plural of a noun that it has never seen?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from lm_eval_ext.harness.loading import loader
from lm_eval_ext.stats.table import Row

NOUNS = Path(__file__).with_name("nouns.txt")


class Options(BaseModel, extra="forbid"):
    """What ``--metadata`` may say: ``{"plurals_number": "three"}``."""

    number: Literal["two", "three"] = "two"


@loader(prefix="plurals_", options=Options)
def documents(options: Options) -> Iterator[dict[str, str]]:
    """A document for each noun."""
    for line in NOUNS.read_text(encoding="utf-8").splitlines():
        noun, plural = line.split()
        asked = f"This is a {noun}. Now there is another one. There are {options.number}"
        ending = plural.removeprefix(noun)
        yield {"id": noun, "ending": ending, "prompt": asked, "answer": plural}


def score(document: Mapping[str, str], answers: Sequence[str]) -> list[Row]:
    """One row: whether the first word of the response is the plural."""
    words = answers[0].lower().replace(",", " ").split()
    right = words[:1] == [document["answer"]]
    return [{"ending": document["ending"], "correct": float(right), "empty": float(not words)}]
