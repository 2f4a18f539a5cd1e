"""Running text as material: a folder of files, for span corruption."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError
from lm_eval_ext.reading import Strict, checked
from lm_eval_ext.training.recipe import Material


class Options(Strict):
    """What a recipe's ``data`` may say.

    Attributes:
        folder: Of UTF-8 text files (``*.txt``), at any depth; an empty line ends a document.
    """

    folder: str


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The documents of a folder, in an order that the seed decides.

    Raises:
        OptionError: An option is wrong.
        DataError: There is no text.
    """
    folder = Path(checked(Options, data, "recipe, data").folder).expanduser()
    texts = [file.read_text("utf-8", "replace") for file in sorted(folder.rglob("*.txt"))]
    found = [part for text in texts for one in text.split("\n\n") if (part := one.strip())]
    if not found:
        raise DataError(f"{folder}: no text; name a folder with UTF-8 files that end in .txt")
    random.Random(f"documents {seed}").shuffle(found)
    return Material([("", text) for text in found], facts={"documents": len(found)})
