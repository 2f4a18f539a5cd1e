"""New foreign words: the published ones may have been seen in training.

They are drawn from a seed and replace the old ones everywhere.
"""

import random
import re
from collections.abc import Iterable
from dataclasses import replace

from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, Corpus, Example
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import WORDLIKE, draw_words, fresh_words, is_english

_WORD = re.compile(r"[a-z]+")


def with_fresh_words(
    corpus: Corpus, seed: int | None, schemas: Iterable[str], *, fresh: int | None = None
) -> Corpus:
    """Returns the corpus with new foreign words.

    They can be pronounced, are not English, and occur in no question, query or schema, not even as
    a part of a word; ``schemas`` are the texts that prompts show of databases. Dialogues are not
    searched: only some tasks read them, and a seed must give the same words in all tasks.

    Args:
        corpus: With the words that are replaced.
        seed: 0 or more.
        schemas: Texts.
        fresh: Instead of ``seed``, the seed for all benchmarks.

    Raises:
        OptionError: The seed is not a whole number, or is negative.
    """
    if fresh is None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise OptionError(f"magnifico_seed={seed!r}: use a whole number, 0 or more")
    old = {
        name: one.forms[FOREIGN]
        for name, one in corpus.interpretations.items()
        if FOREIGN in one.forms
    }
    every = (*corpus.examples, *corpus.combinations, *corpus.solved)
    texts = (text for one in every for text in (one.question, one.query))
    # One text, so that parts of words match, too.
    seen = "\n".join({word for text in (*texts, *schemas) for word in _WORD.findall(text.lower())})

    def refused(word: str) -> bool:
        return is_english(word) or word in seen

    if fresh is None:
        drawn = draw_words(WORDLIKE, len(old), random.Random(seed), refused=refused)
    else:
        drawn = fresh_words(WORDLIKE, len(old), fresh, use="MAGNIFICo", refused=refused)
    new = dict(zip(old, drawn, strict=True))

    def reword(text: str, names: Iterable[str]) -> str:
        for name in names:
            text = re.sub(re.escape(old[name]), new[name], text, flags=re.IGNORECASE)
        return text

    def reworded(examples: Iterable[Example]) -> tuple[Example, ...]:
        return tuple(
            replace(one, question=reword(one.question, one.interpretations))
            if one.form == FOREIGN
            else one
            for one in examples
        )

    interpretations = {
        name: replace(one, forms={**one.forms, FOREIGN: new[name]}) if name in new else one
        for name, one in corpus.interpretations.items()
    }
    dialogues = {
        key: {place: reword(text, key[:1]) for place, text in dialogue.items()}
        if key[1] == FOREIGN
        else dialogue
        for key, dialogue in corpus.dialogues.items()
    }
    return replace(
        corpus,
        interpretations=interpretations,
        examples=reworded(corpus.examples),
        combinations=reworded(corpus.combinations),
        support={key: reworded(some) for key, some in corpus.support.items()},
        dialogues=dialogues,
    )
