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
from lm_eval_ext.harness.chat import fenced, said
from lm_eval_ext.stats.table import Row

_LABELS = re.compile(r"### (?:In|Out)put:|Logical form:")

_FORM = re.compile(r"[^(\n]*\([^=_\n]*[=_].*\)")
"""What looks like a form; matched in linear time, since models write anything."""


def form_in(answer: str) -> str:
    """The form in an answer: a line of it, after labels of a prompt or in a code fence.

    Of several lines that look like a form the first counts; without any, it is the whole answer.
    """
    text = said(answer)
    text = "\n".join(fenced(text)) or text
    lines = (line.strip(" `") for line in _LABELS.sub("\n", text).splitlines())
    found = next((line for line in lines if _FORM.fullmatch(line)), None)
    return text.rpartition("### Output:")[2].strip() if found is None else found


def score(answer: str, gold: str, notation: str) -> dict[str, float]:
    """Scores any text that a model wrote: the values of a row."""
    text = " ".join(re.sub(r"([.,=])", r" \1 ", answer).split())
    closed = text + " )" * (text.split().count("(") - text.split().count(")"))
    same = equivalent if notation == "varfree" else logical_forms.equivalent
    spaced = [logical_forms.normalise(one.replace("=", " = ")) for one in (answer, gold)]
    return {
        "exact_match": float(text == gold),
        "closed": float(closed == gold),
        "equivalent": float(spaced[0] == spaced[1] or same(*spaced)),
    }


def equivalent(answer: str, gold: str) -> bool:
    """Whether variable-free forms, with spaces between tokens, differ in the order of arguments.

    Another order has the same tokens, so that a long answer costs no more than the gold.
    """
    tokens = [text.split() for text in (answer, gold)]
    if sorted(tokens[0]) != sorted(tokens[1]):
        return False
    try:
        trees = [_tree(one) for one in tokens]
    except (ValueError, IndexError):
        return False
    return trees[0] == trees[1]


Tree = tuple[str, tuple[tuple[str, Any], ...]]
"""A word with its star, and its arguments in alphabetical order: the role and a tree of each."""


def _tree(tokens: Sequence[str]) -> Tree:
    """Reads ``word ( role = tree , ... )``; raises ValueError or IndexError if it is not one."""
    left = [*reversed(tokens)]

    def read() -> Tree:
        word = left.pop()
        if word == "*":
            word += left.pop()
        arguments, closing = [], ","
        if left and left[-1] == "(":
            left.pop()
            while closing == ",":
                role = left.pop()
                while (mark := left.pop()) == ".":
                    role += mark + left.pop()
                if mark != "=":
                    raise ValueError(mark)
                arguments.append((role, read()))
                closing = left.pop()
            if closing != ")":
                raise ValueError(closing)
        return word, tuple(sorted(arguments))

    tree = read()
    if left:
        raise ValueError(left)
    return tree


def process_results(
    doc: Mapping[str, Any], results: Sequence[str], most_tokens: int = 0
) -> list[Row]:
    """Scores a document; ``too_long`` is whether its form has more words than the model may write.

    A form of so many words and marks has at least as many tokens.
    """
    long = float(len(doc["form"].split()) > most_tokens) if most_tokens else 0.0
    scores = score(form_in(results[0]), doc["form"], doc["notation"])
    return [{"type": doc["type"], **scores, "too_long": long}]
