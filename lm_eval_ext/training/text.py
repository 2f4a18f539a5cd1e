"""Running text as material: a folder of files, for span corruption."""

import random
from collections.abc import Mapping
from typing import Any

from pydantic import DirectoryPath

from lm_eval_ext.reading import Strict, checked
from lm_eval_ext.training.recipe import Material


class Options(Strict):
    """What a recipe's ``data`` may say.

    Attributes:
        folder: Of UTF-8 text files (``*.txt``), at any depth; an empty line ends a document.
    """

    folder: DirectoryPath


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The documents of a folder, in an order that the seed decides.

    Raises:
        OptionError: An option is wrong.
    """
    files = sorted(checked(Options, data, "recipe, data").folder.rglob("*.txt"))
    texts = [text for file in files for text in file.read_text("utf-8", "replace").split("\n\n")]
    found = [("", part) for text in texts if (part := text.strip())]
    random.Random(f"documents {seed}").shuffle(found)
    return Material(found)
