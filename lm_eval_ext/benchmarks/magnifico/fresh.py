"""Foreign words that were never printed, in the place of the published ones.

The published words stand in a paper, and a model may have been trained on it. New ones are
drawn from a seed; everything else stays.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from lm_eval_ext.benchmarks.magnifico.records import Corpus, Example, Form, Interpretation
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import WORDLIKE, draw_words
from lm_eval_ext.lexicon.english import is_english

FOREIGN: Form = "foreign"
_K = TypeVar("_K")
_V = TypeVar("_V")
_WORD = re.compile(r"[a-z]+")


def renew(corpus: Corpus, seed: int, schemas: Iterable[str]) -> Corpus:
    """Returns the corpus with new foreign words.

    They can be pronounced, are no English words, and occur in no question, query or schema, not
    even as a part of a longer word. Dialogues have no say, since only some tasks read them and
    a seed must give the same words in all.

    Args:
        corpus: The corpus; not changed.
        seed: Decides about the words, together with the corpus.
        schemas: Texts that show the databases, such as their CREATE statements.

    Raises:
        OptionError: The seed is no whole number from 0 on.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise OptionError(f"magnifico_seed={seed!r}: must be a whole number from 0 on")
    foreign = {
        name: interpretation.forms[FOREIGN]
        for name, interpretation in corpus.interpretations.items()
        if FOREIGN in interpretation.forms
    }
    seen = _seen(corpus, schemas)

    def refused(word: str) -> bool:
        return is_english(word) or word in seen

    drawn = draw_words(WORDLIKE, len(foreign), random.Random(seed), refused=refused)
    words = dict(zip(foreign, drawn, strict=True))
    return _reworded(corpus, foreign, words)


def _seen(corpus: Corpus, schemas: Iterable[str]) -> str:
    """Every run of letters in sight, as one text in which parts of words are found, too."""
    texts = [example.question for example in (*corpus.examples, *corpus.combinations)]
    texts += [example.query for example in (*corpus.examples, *corpus.combinations)]
    texts += [example.question for examples in corpus.support.values() for example in examples]
    found = {word for text in (*texts, *schemas) for word in _WORD.findall(text.lower())}
    return "\n".join(sorted(found))


def _reworded(corpus: Corpus, old: Mapping[str, str], new: Mapping[str, str]) -> Corpus:
    def reword(text: str, names: Iterable[str]) -> str:
        for name in names:
            text = text.replace(old[name], new[name])
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
        interpretations=_mapped(corpus.interpretations, interpretation),
        examples=tuple(map(example, corpus.examples)),
        combinations=tuple(map(example, corpus.combinations)),
        support=_mapped(corpus.support, lambda examples: tuple(map(example, examples))),
        dialogues=MappingProxyType(
            {
                key: {place: reword(text, key[:1]) for place, text in dialogue.items()}
                if key[1] == FOREIGN
                else dialogue
                for key, dialogue in corpus.dialogues.items()
            }
        ),
    )


def _mapped(values: Mapping[_K, _V], change: Callable[[_V], _V]) -> Mapping[_K, _V]:
    return MappingProxyType({key: change(value) for key, value in values.items()})
