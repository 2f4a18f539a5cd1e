"""New foreign words: the published ones may have been seen in training.

They are drawn from a seed and replace the old ones everywhere.
"""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, Corpus, Example, Interpretation
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import WORDLIKE, draw_words
from lm_eval_ext.lexicon.fresh import fresh_words
from lm_eval_ext.lexicon.words import is_english

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
    foreign = {
        name: interpretation.forms[FOREIGN]
        for name, interpretation in corpus.interpretations.items()
        if FOREIGN in interpretation.forms
    }
    seen = _seen(corpus, schemas)

    def refused(word: str) -> bool:
        return is_english(word) or word in seen

    if fresh is None:
        drawn = draw_words(WORDLIKE, len(foreign), random.Random(seed), refused=refused)
    else:
        drawn = fresh_words(WORDLIKE, len(foreign), fresh, use="MAGNIFICo", refused=refused)
    words = dict(zip(foreign, drawn, strict=True))
    return _reworded(corpus, foreign, words)


def _seen(corpus: Corpus, schemas: Iterable[str]) -> str:
    """All words of the corpus and the schemas as one text, so that parts of words match, too."""
    texts = [example.question for example in (*corpus.examples, *corpus.combinations)]
    texts += [example.query for example in (*corpus.examples, *corpus.combinations)]
    texts += [example.question for examples in corpus.support.values() for example in examples]
    found = {word for text in (*texts, *schemas) for word in _WORD.findall(text.lower())}
    return "\n".join(sorted(found))


def _reworded(corpus: Corpus, old: Mapping[str, str], new: Mapping[str, str]) -> Corpus:
    def reword(text: str, names: Iterable[str]) -> str:
        for name in names:
            text = re.sub(re.escape(old[name]), new[name], text, flags=re.IGNORECASE)
        return text

    def example(one: Example) -> Example:
        if one.form != FOREIGN:
            return one
        return replace(one, question=reword(one.question, one.interpretations))

    def interpretation(one: Interpretation) -> Interpretation:
        if one.name not in new:
            return one
        return replace(one, forms=MappingProxyType({**one.forms, FOREIGN: new[one.name]}))

    return replace(
        corpus,
        interpretations=MappingProxyType(
            {name: interpretation(one) for name, one in corpus.interpretations.items()}
        ),
        examples=tuple(map(example, corpus.examples)),
        combinations=tuple(map(example, corpus.combinations)),
        support=MappingProxyType(
            {key: tuple(map(example, examples)) for key, examples in corpus.support.items()}
        ),
        dialogues=MappingProxyType(
            {
                key: {place: reword(text, key[:1]) for place, text in dialogue.items()}
                if key[1] == FOREIGN
                else dialogue
                for key, dialogue in corpus.dialogues.items()
            }
        ),
    )
