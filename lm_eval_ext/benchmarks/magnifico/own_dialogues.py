"""A dialogue of a user's own, with the definition of a word at three positions.

A text file with turns that blank lines separate. A line ``[definition]`` stands before the turns
that define the word, and ``[/definition]`` behind them; ``{word}`` stands for the word::

    User1: What do you keep in the yard?

    User2: Masts and spars.

    [definition]
    User1: We call a mast {word} if it is higher than 30.

    User2: I see.
    [/definition]

    User1: Some of them are old.

    User2: So they are.

The definition goes before all other turns, between them, or behind them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.records import Position
from lm_eval_ext.errors import DataError

SLOT = "{word}"
"""Stands for the word."""

_PARTS = re.compile(r"^[ \t]*\[(/?)definition\][ \t]*$", re.MULTILINE | re.IGNORECASE)
_BLANK = re.compile(r"\n[ \t]*\n\s*")


def read(path: Path) -> Mapping[Position, str]:
    """The dialogue with the definition at each position; :data:`SLOT` stands for the word.

    Raises:
        DataError: The file cannot be read, or its definition is not marked or lacks the word.
    """
    try:
        text = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the dialogue cannot be read ({error})") from None
    marks = list(_PARTS.finditer(text))
    if [mark[1] for mark in marks] != ["", "/"]:
        raise DataError(
            f"{path}: mark the turns that define the word with a line [definition] before them and "
            "a line [/definition] behind them, once"
        )
    opening, closing = marks
    definition = _turns(text[opening.end() : closing.start()])
    if not any(SLOT in turn for turn in definition):
        raise DataError(f"{path}: the definition does not name the word; write {SLOT} for it")
    turns = [*_turns(text[: opening.start()]), *_turns(text[closing.end() :])]
    middle = _middle(turns)
    return MappingProxyType(
        {
            "start": _joined(definition, turns),
            "mid": _joined(turns[:middle], definition, turns[middle:]),
            "end": _joined(turns, definition),
        }
    )


def worded(text: str, word: str) -> str:
    """The dialogue with a word."""
    return text.replace(SLOT, word)


def _turns(text: str) -> list[str]:
    return [turn for turn in _BLANK.split(text.strip()) if turn]


def _middle(turns: Sequence[str]) -> int:
    """Half of the turns, and an even number of them, so that nobody has two in a row."""
    half = (len(turns) + 1) // 2
    return half + half % 2


def _joined(*groups: Sequence[str]) -> str:
    return "\n\n".join(turn for group in groups for turn in group)
