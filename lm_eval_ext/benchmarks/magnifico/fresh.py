"""New foreign words: the published ones may have been seen in training.

They are drawn from a seed and replace the old ones everywhere.
"""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, Corpus, Example
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import WORDLIKE, draw_words, fresh_words, is_english

_WORD = re.compile(r"[a-z]+")


def with_fresh_words(
    corpus: Corpus, seed: int | None, schemas: Iterable[str], *, fresh: int | None = None
) -> Corpus:
    """Return the corpus with new foreign words.

    They can be pronounced, are not English, and occur in no question, query or schema, not even as
    a part of a word. Dialogues are not searched: only some tasks read them, and a seed must give
    the same words in all tasks.

    Args:
        corpus: The corpus with the words that are replaced.
        seed: 0 or more.
        schemas: The texts that prompts show of databases.
        fresh: Instead of ``seed``, the seed for all benchmarks.

    Raises:
        OptionError: The seed is not a whole number, or is negative.
    """
    if fresh is None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise OptionError(f"magnifico_seed={seed!r}: use a whole number, 0 or more")
    old_words = {}
    for name, interpretation in corpus.interpretations.items():
        if FOREIGN in interpretation.forms:
            old_words[name] = interpretation.forms[FOREIGN]
    seen = _words_in(corpus, schemas)

    def is_refused(word: str) -> bool:
        return is_english(word) or word in seen

    if fresh is None:
        drawn_words = draw_words(WORDLIKE, len(old_words), random.Random(seed), refused=is_refused)
    else:
        drawn_words = fresh_words(
            WORDLIKE, len(old_words), fresh, use="MAGNIFICo", refused=is_refused
        )
    return _Rewording(old_words, dict(zip(old_words, drawn_words, strict=True))).apply(corpus)


def _words_in(corpus: Corpus, schemas: Iterable[str]) -> str:
    """Return all words of questions, queries and schemas.

    They are one text, so that parts of words are found, too.
    """
    words: set[str] = set()
    for example in (*corpus.examples, *corpus.combinations, *corpus.solved):
        words.update(_WORD.findall(example.question.lower()))
        words.update(_WORD.findall(example.query.lower()))
    for schema in schemas:
        words.update(_WORD.findall(schema.lower()))
    return "\n".join(words)


@dataclass(frozen=True)
class _Rewording:
    """The old and the new word of each interpretation."""

    old_words: Mapping[str, str]
    new_words: Mapping[str, str]

    def apply(self, corpus: Corpus) -> Corpus:
        """Return the corpus with the new words."""
        interpretations = dict(corpus.interpretations)
        for name, word in self.new_words.items():
            interpretation = interpretations[name]
            forms = {**interpretation.forms, FOREIGN: word}
            interpretations[name] = replace(interpretation, forms=forms)
        dialogues = dict(corpus.dialogues)
        for key, texts in corpus.dialogues.items():
            name, form, _ = key
            if form == FOREIGN:
                dialogues[key] = {
                    position: self._reword(text, [name]) for position, text in texts.items()
                }
        return replace(
            corpus,
            interpretations=interpretations,
            examples=self._reworded(corpus.examples),
            combinations=self._reworded(corpus.combinations),
            support={key: self._reworded(solved) for key, solved in corpus.support.items()},
            dialogues=dialogues,
        )

    def _reworded(self, examples: Iterable[Example]) -> tuple[Example, ...]:
        reworded = []
        for example in examples:
            if example.form == FOREIGN:
                question = self._reword(example.question, example.interpretations)
                reworded.append(replace(example, question=question))
            else:
                reworded.append(example)
        return tuple(reworded)

    def _reword(self, text: str, names: Iterable[str]) -> str:
        for name in names:
            pattern = re.escape(self.old_words[name])
            text = re.sub(pattern, self.new_words[name], text, flags=re.IGNORECASE)
        return text
