"""Scores of one answer: ROUGE-L as in the paper, and whether it is the right answer."""

import functools
import re
from collections.abc import Sequence
from typing import Any

from lm_eval_ext.benchmarks.conceptual.records import Option, plain, words

ROUGE_L, ROUGE_L_F1, ACCURACY = "rouge_l", "rouge_l_f1", "accuracy"

MOST_CHARACTERS = 20_000
"""Longest part of an answer that is compared; the cost of ROUGE-L grows with it."""

_LABELLED = re.compile(r"""[\s("'\[*]*(\w)(?:[\s)\]}.,:*"'-]+)(.+)""", re.DOTALL)
"""A label, something that ends it, and the text behind it: ``(B) ice`` or ``B. ice``."""

_ALONE = re.compile(r"""[\W_]*(\w)[^\w+=/<>-]*""")
"""A label alone; behind it no sign, which may be an option's text."""


def score(
    answer: str,
    gold: str,
    options: Sequence[Option] = (),
    right: str = "",
    *,
    labels_shown: bool = False,
) -> dict[str, float]:
    """Compare any text that a model wrote with the right answer.

    Args:
        answer: What the model wrote.
        gold: The right answer, as the template words it.
        options: The question's options, if any: an answer may name the right one otherwise
            than the template does.
        right: The label of the right option.
        labels_shown: Whether the prompt shows the options' labels.

    Returns:
        ``rouge_l``: recall of ROUGE-L with Porter stemming, as in the paper; that is the share
        of the gold's words that the answer has in the same order (why recall:
        ``docs/fidelity.md``). ``rouge_l_f1``: F1, which a long answer does not raise.
        ``accuracy``: 1.0 if the whole answer is the right one, by :func:`is_right`.
    """
    answer = answer.strip()[:MOST_CHARACTERS]
    rouge = _scorer().score(gold, answer)["rougeL"]
    return {
        ROUGE_L: float(rouge.recall),
        ROUGE_L_F1: float(rouge.fmeasure),
        ACCURACY: float(is_right(answer, gold, options, right, labels_shown=labels_shown)),
    }


def is_right(
    answer: str,
    gold: str,
    options: Sequence[Option] = (),
    right: str = "",
    *,
    labels_shown: bool = False,
) -> bool:
    """Return whether the whole answer is the right one, regardless of case and punctuation.

    An answer may also name the right option in another way than the template does: by its text, by
    its label where the prompt shows labels, or by both. A label before another option's text is
    wrong. Where an answer is both one option's text and another one's label, what the template asks
    for decides.
    """
    if gold == right:
        asked_for = {option.label for option in options if _is_label(answer, option.label)}
    else:
        asked_for = {option.label for option in options if _same(answer, option.text)}
        if _same(answer, gold):
            return True
    named = asked_for or named_options(answer, options, labels_shown=labels_shown)
    return named == {right}


def named_options(answer: str, options: Sequence[Option], *, labels_shown: bool) -> set[str]:
    """Return the labels of the options that all of a text names: by text, by label, or by both.

    Args:
        answer: A text without markup around it.
        options: The question's options.
        labels_shown: Whether a label alone names an option.
    """
    labels = set()
    for option in options:
        if _names(answer, option, labels_shown=labels_shown):
            labels.add(option.label)
    return labels


def _names(answer: str, option: Option, *, labels_shown: bool) -> bool:
    if _same(answer, option.text) or (labels_shown and _is_label(answer, option.label)):
        return True
    labelled = _LABELLED.fullmatch(answer)
    if labelled is None:
        return False
    return _same(labelled[1], option.label) and _same(labelled[2], option.text)


def _is_label(answer: str, label: str) -> bool:
    alone = _ALONE.fullmatch(answer)
    return alone is not None and _same(alone[1], label)


def _same(answer: str, gold: str) -> bool:
    plain_gold = plain(gold)
    if not plain_gold:  # a gold such as "+" has no words, like an empty answer
        return answer.strip() == gold.strip()
    return plain(answer) == plain_gold


class _Tokenizer:
    """The tokenizer of rouge-score, which drops every letter beyond a to z, with these letters."""

    def __init__(self) -> None:
        from rouge_score.tokenizers import DefaultTokenizer

        self._ascii_tokenizer = DefaultTokenizer(use_stemmer=True)

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text; a word with other letters is one token."""
        tokens: list[str] = []
        for word in words(text):
            if word.isascii():
                tokens.extend(self._ascii_tokenizer.tokenize(word))
            else:
                tokens.append(word)
        return tokens


@functools.cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_Tokenizer())
