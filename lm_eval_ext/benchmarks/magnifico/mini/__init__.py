"""magnifico_mini: a small MAGNIFICo of our own, embedded in the package.

It has MAGNIFICo's design (paper, section 3: interpretations of four categories and phrases,
forms, base examples, pairs of interpretations, dialogues) and none of its text: other meanings,
words, questions, queries and databases. It needs no download and is too small to tell much
about a real model.

``*.sql`` are the databases' scripts. ``*.yaml`` hold interpretations with their templates,
``combinations.yaml`` and ``dialogues_*.yaml`` what their names say.
"""

import hashlib
from dataclasses import replace

from lm_eval_ext.benchmarks.magnifico.mini.files import embedded
from lm_eval_ext.benchmarks.magnifico.mini.rendering import DIALOGUE_FORMS, content, databases
from lm_eval_ext.benchmarks.magnifico.records import Corpus

__all__ = ["DIALOGUE_FORMS", "content", "corpus", "databases", "digest", "embedded"]


def corpus() -> Corpus:
    """Returns the whole corpus; its databases are built in the cache if they are not there.

    Raises:
        DataError: As :func:`databases` and :func:`content`.
    """
    return replace(content(embedded()), databases=databases())


def digest() -> str:
    """Names this version of the corpus.

    Returns:
        SHA-256 (hex) of the embedded files and of everything rendered from them, so that a
        change of a text, or of how texts are put together, shows. Touches no cache.
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
