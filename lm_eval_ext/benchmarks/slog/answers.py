"""SLOG's answers: the readers of logical forms in both notations."""

import re
from pathlib import Path

from lm_eval_ext import logical_forms
from lm_eval_ext.answers.formal import FormalGrammar, Notation
from lm_eval_ext.answers.phrases import read_phrases
from lm_eval_ext.answers.reader import AnswerReader, ReaderOptions
from lm_eval_ext.benchmarks.slog.varfree import is_part, parses_closed

_LOOSELY = re.compile(r"[^(\n]*\([^=_\n]*[=_].*\)?")
"""Looks like a form in either notation; matched in linear time, since models write anything."""

_NAME = re.compile(r"[^\W\d_][\w-]*|\?")


def _parses_cogs(text: str) -> bool:
    if text[:1].isdigit() or ":" in text or "：" in text:  # noqa: RUF001
        return False  # a label or the number of a list would be read as a predicate
    try:
        return bool(logical_forms.parse(logical_forms.normalise(text)).atoms)
    except logical_forms.NotAFormError:
        return False


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


_NOTATIONS = {
    "cogs": Notation(_parses_cogs, logical_forms.is_part, _is_name, _LOOSELY),
    "varfree": Notation(parses_closed, is_part, _is_name, _LOOSELY),
}
_PHRASES = read_phrases(Path(__file__).with_name("phrases.yaml"))

READERS = {
    name: AnswerReader(ReaderOptions(FormalGrammar(_PHRASES, notation)))
    for name, notation in _NOTATIONS.items()
}
"""By notation, what reads a form, unchanged but for markup around it and Markdown's escapes."""
