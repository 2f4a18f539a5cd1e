"""Exact match as the authors' programs score it, and equivalence of logical forms, which is ours.

``exact_match`` compares whole forms after the spacing of the authors' T5 program, ``closed`` after
all of that program, which also closes open brackets. ``equivalent`` is true of forms that say the
same: in COGS's notation :mod:`lm_eval_ext.logical_forms` decides; a variable-free form names the
role of each argument, so the order of arguments says nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext import logical_forms
from lm_eval_ext.benchmarks.slog import varfree
from lm_eval_ext.stats.table import Row

_MARK = re.compile(r"([.,=])")


def score(answer: str, gold: str, notation: str) -> dict[str, float]:
    """Return the values of a row.

    Args:
        answer: What was read from the response.
        gold: The right form.
        notation: ``cogs`` or ``varfree``.
    """
    text = " ".join(_MARK.sub(r" \1 ", answer).split())
    open_brackets = text.split().count("(") - text.split().count(")")
    closed = text + " )" * open_brackets
    return {
        "exact_match": float(text == gold),
        "closed": float(closed == gold),
        "equivalent": float(_is_equivalent(answer, gold, notation)),
    }


def _is_equivalent(answer: str, gold: str, notation: str) -> bool:
    answer = varfree.spaced(answer)
    gold = varfree.spaced(gold)
    if answer == gold:
        return True
    if notation == "varfree":
        return varfree.equivalent(answer, gold)
    return logical_forms.equivalent(answer, gold)


def process_results(
    doc: Mapping[str, Any], results: Sequence[str], most_tokens: int = 0
) -> list[Row]:
    """Score a document.

    Args:
        doc: With ``form``, ``notation`` and ``type``.
        results: The form that was read from the response.
        most_tokens: How many tokens the model may write; 0 for any number. A form of more words
            and marks has at least as many tokens, so ``too_long`` is then 1.
    """
    is_too_long = most_tokens > 0 and len(doc["form"].split()) > most_tokens
    scores = score(results[0], doc["form"], doc["notation"])
    return [{"type": doc["type"], **scores, "too_long": float(is_too_long)}]
