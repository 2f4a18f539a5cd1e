"""Running text as material: a folder of files, for span corruption."""

import random

from pydantic import DirectoryPath

from lm_eval_ext.reading import Strict
from lm_eval_ext.training.recipe import Material


class Options(Strict):
    """The options of a recipe's ``data``.

    Attributes:
        folder: It has UTF-8 text files (``*.txt``), at any depth; an empty line ends a document.
    """

    folder: DirectoryPath


def prepare(options: Options, seed: int) -> Material:
    """Return the documents of a folder, in an order that the seed decides."""
    documents = []
    for file in sorted(options.folder.rglob("*.txt")):
        for paragraph in file.read_text("utf-8", "replace").split("\n\n"):
            document = paragraph.strip()
            if document:
                documents.append(("", document))
    random.Random(f"documents {seed}").shuffle(documents)
    return Material(documents)
