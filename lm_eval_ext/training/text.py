"""Running text as material: a folder of files, for span corruption."""

import random

from pydantic import DirectoryPath

from lm_eval_ext.reading import Strict
from lm_eval_ext.training.recipe import Material


class Options(Strict):
    """What a recipe's ``data`` may say.

    Attributes:
        folder: It has UTF-8 text files (``*.txt``), at any depth; an empty line ends a document.
    """

    folder: DirectoryPath


def prepare(options: Options, seed: int) -> Material:
    """The documents of a folder, in an order that the seed decides."""
    found = [
        ("", part)
        for file in sorted(options.folder.rglob("*.txt"))
        for text in file.read_text("utf-8", "replace").split("\n\n")
        if (part := text.strip())
    ]
    random.Random(f"documents {seed}").shuffle(found)
    return Material(found)
