"""diner_mini: our own recipes, glossary and splits, embedded in the package.

It needs no download and is too small to measure real models. The folder ``mini`` has the files
that ``lm-eval-ext diner build`` writes. The dishes of the TMCD split are chosen by hand so that all
generalization categories occur; the random split divides the same recipes. One training recipe in
five is for validation, as in the paper (section 5.2).
"""

import json
from functools import cache
from pathlib import Path

from lm_eval_ext.benchmarks.diner.glossary import Glossary

SPLITS = ("tmcd", "random")

FOLDER = Path(__file__).parent / "mini"


@cache
def glossary() -> Glossary:
    """Return the glossary that parses the embedded names."""
    return Glossary.read(FOLDER / "glossary.json")


@cache
def split(name: str) -> dict[str, dict[str, list[str]]]:
    """Return one of :data:`SPLITS`: ``instructions`` and ``names`` of each part."""
    text = (FOLDER / f"{name}_data.json").read_text(encoding="utf-8")
    texts: dict[str, dict[str, list[str]]] = json.loads(text)
    return texts
