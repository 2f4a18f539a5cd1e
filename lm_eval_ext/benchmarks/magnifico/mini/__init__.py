"""magnifico_mini: our own small MAGNIFICo, embedded in the package.

It needs no download and is too small to measure real models. It has MAGNIFICo's design (paper,
section 3: interpretations of four categories and phrases, forms, base examples, combinations,
dialogues), but none of its meanings, words, questions, queries and databases.

``*.sql`` create the databases; ``combinations.yaml`` and ``dialogues_*.yaml`` have what their names
say; the other ``*.yaml`` have interpretations with their templates.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.mini.files import embedded
from lm_eval_ext.benchmarks.magnifico.mini.rendering import DIALOGUE_FORMS, content, databases
from lm_eval_ext.benchmarks.magnifico.records import Corpus

__all__ = ["DIALOGUE_FORMS", "SHIPPED", "content", "corpus", "databases", "digest", "embedded"]

SHIPPED = Path(__file__).with_name("populated.json")
"""The rows that a search added to the databases."""


def corpus() -> Corpus:
    """The whole corpus; builds its databases in the cache if they are missing.

    Raises:
        DataError: As :func:`databases` and :func:`content`.
    """
    return replace(content(embedded()), databases=databases())


def digest() -> str:
    """SHA-256 (hex) of the embedded files and of all text rendered from them.

    It changes with the files and with the code that renders them. Builds no databases.
    """
    texts = embedded()
    found = content(texts)
    held_out = (example for examples in found.support.values() for example in examples)
    rendered = [
        "\t".join((one.id, one.db_id, one.question, one.query))
        for one in (*found.examples, *held_out, *found.combinations)
    ]
    rendered += [
        "\t".join((*key, position, text))
        for key, dialogue in found.dialogues.items()
        for position, text in dialogue.items()
    ]
    files = (part for file in texts.items() for part in file)
    return hashlib.sha256("\n".join((*files, *rendered)).encode()).hexdigest()
