"""The command that asks a question about the size of a comparison, for users to copy."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

_DEFAULTS = (("power", 0.8), ("models", 2))
"""Options of the question that a command need not repeat."""


def power_command(paths: Sequence[Path], options: Mapping[str, object]) -> str:
    """Return the command that asks a question about results.

    Args:
        paths: The pilot's results.
        options: The options by their Python names, with the task. None, False and an empty text
            are options that were not given; 0 is a value.
    """
    words = ["lm-eval-ext power", shlex.quote(str(options["task"]))]
    if paths:
        words.append(shlex.join(map(str, paths)))
    for name, value in options.items():
        is_missing = value is None or value is False or value == ""
        if name == "task" or is_missing or (name, value) in _DEFAULTS:
            continue
        option = f"--{name.replace('_', '-')}"
        words.append(option if value is True else f"{option} {shlex.quote(_text(value))}")
    return " ".join(words)


def _text(value: object) -> str:
    """Return a value as it is typed: 40 rather than 40.0, and no power of ten."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
