"""COGS's answers: the instruction for a chat model, and the reader of logical forms."""

from pathlib import Path

from lm_eval_ext.answers.formal import FormalGrammar, Notation
from lm_eval_ext.answers.phrases import read_phrases
from lm_eval_ext.answers.reader import AnswerReader, ReaderOptions
from lm_eval_ext.logical_forms import NotAFormError, is_part, normalise, parse

INSTRUCTION = """\
Translate the sentence into its logical form.
- x _ N is the word at position N; the first word has position 0. Names stand for themselves.
- A noun gives noun ( x _ N ), a verb for each of its roles verb . role ( x _ N , argument ).
- These parts follow the order of the words and are joined by AND. Nouns with "the" come before
  all others, each as * noun ( x _ N ) ;
- All words and marks are separated by single spaces, and everything stands on one line.
For example, "The pilot handed a ticket to Nora ." becomes
* pilot ( x _ 1 ) ; hand . agent ( x _ 2 , x _ 1 ) AND hand . theme ( x _ 2 , x _ 4 ) AND \
hand . recipient ( x _ 2 , Nora ) AND ticket ( x _ 4 )
Answer with the logical form alone.

Sentence:"""
"""Our own words and example; the paper has no such condition."""


def parses(text: str) -> bool:
    """Return whether a text is a logical form of at least one predicate."""
    if text[:1].isdigit() or ":" in text or "：" in text:  # noqa: RUF001
        # A label or the number of a list would be read as a predicate: "1 . dog ( x _ 1 )".
        return False
    try:
        return bool(parse(normalise(text)).atoms)
    except NotAFormError:
        return False


def is_name(text: str) -> bool:
    """Return whether a text is a logical form that is a single name."""
    try:
        return parse(text).name is not None
    except NotAFormError:
        return False


NOTATION = Notation(parses, is_part, is_name)

READER = AnswerReader(
    ReaderOptions(
        FormalGrammar(read_phrases(Path(__file__).with_name("phrases.yaml")), NOTATION),
    )
)
"""Reads a logical form, unchanged but for markup around it and Markdown's escapes in it."""
