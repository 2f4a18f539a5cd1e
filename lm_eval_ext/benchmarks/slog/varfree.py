"""Variable-free logical forms: ``see ( agent = Mia , theme = dog ( nmod . on = * bed ) )``."""

from collections.abc import Sequence
from typing import Any

from lm_eval_ext.logical_forms import normalise

Tree = tuple[str, tuple[tuple[str, Any], ...]]
"""A word with its star, and its arguments in alphabetical order: the role and a tree of each."""

_MAX_TOKENS = 2_000
_MAX_DEPTH = 200
"""Tokens and depth of the largest form that is read; the largest of SLOG has 200 tokens."""


def spaced(text: str) -> str:
    """Return a form with single spaces between its tokens."""
    return normalise(text.replace("=", " = "))


def equivalent(answer: str, gold: str) -> bool:
    """Return whether forms differ in the order of arguments alone.

    Args:
        answer: A text with spaces between its tokens.
        gold: The same. Another order has the same tokens, so that a long answer costs no more than
            the gold.
    """
    answer_tokens = answer.split()
    gold_tokens = gold.split()
    if sorted(answer_tokens) != sorted(gold_tokens):
        return False
    try:
        return _tree(answer_tokens) == _tree(gold_tokens)
    except (ValueError, IndexError):
        return False


def parses_closed(text: str) -> bool:
    """Return whether a text is a form of a word with arguments, if need be with brackets closed.

    The authors' program closes open brackets, so an answer that was cut off is a form, too.
    """
    if ":" in text or "：" in text:  # noqa: RUF001
        return False  # a label before a form would be read as its word
    tokens = spaced(text).split()
    if len(tokens) > _MAX_TOKENS or "(" not in tokens:
        return False
    if tokens[-1] == ")":
        tokens += [")"] * max(0, tokens.count("(") - tokens.count(")"))
    try:
        _, arguments = _tree(tokens)
    except (ValueError, IndexError):
        return False
    return bool(arguments)


def is_part(part: str, form: str) -> bool:
    """Return whether a form stands within another one, as one that explains it does."""
    inner = spaced(part)
    outer = spaced(form)
    return len(inner) < len(outer) and inner in outer


class _TreeReader:
    """Reads a tree from tokens.

    Raises:
        ValueError: The tokens are no form.
        IndexError: They end too early.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._remaining = list(reversed(tokens))

    def read_all(self) -> Tree:
        """Return the tree of all tokens."""
        tree = self._read_tree(0)
        if self._remaining:
            raise ValueError(self._remaining[-1])
        return tree

    def _read_tree(self, depth: int) -> Tree:
        if depth > _MAX_DEPTH:
            raise ValueError(depth)
        word = self._remaining.pop()
        if word == "*":
            word += self._remaining.pop()
        arguments = []
        if self._remaining and self._remaining[-1] == "(":
            self._remaining.pop()
            closing = ","
            while closing == ",":
                role = self._read_role()
                arguments.append((role, self._read_tree(depth + 1)))
                closing = self._remaining.pop()
            if closing != ")":
                raise ValueError(closing)
        return word, tuple(sorted(arguments))

    def _read_role(self) -> str:
        """Return a role such as ``nmod.on``, and pass over the sign behind it."""
        role = self._remaining.pop()
        mark = self._remaining.pop()
        while mark == ".":
            role += mark + self._remaining.pop()
            mark = self._remaining.pop()
        if mark != "=":
            raise ValueError(mark)
        return role


def _tree(tokens: Sequence[str]) -> Tree:
    return _TreeReader(tokens).read_all()
