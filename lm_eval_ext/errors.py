"""The errors that users can fix.

Each has one line that says what was wrong, what is legal and what to do. On the command line
(``lm-eval-ext`` and ``lm_eval``) that line is printed without a traceback and the exit status is
1; a Python caller gets the exception.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pydantic import ValidationError


class LmEvalExtError(Exception):
    """Base of these errors; any other exception is a defect of the project."""


class DataError(LmEvalExtError):
    """A data file is missing or broken, or cannot be fetched."""


class OptionError(LmEvalExtError):
    """An option, a metadata key or an argument has a value that is not legal."""


def first_problem(error: "ValidationError") -> str:
    """Return the first thing that pydantic finds wrong: the key and the problem."""
    problems = error.errors(include_url=False)
    problem = problems[0]
    key = ".".join(map(str, problem["loc"])) or "top level"
    if problem["type"] == "extra_forbidden":
        message = "unknown key"
    elif problem["type"] == "missing":
        message = "the key is missing"
    elif not problem["loc"] and problem["type"] == "value_error":  # of a whole file
        message = str(problem["ctx"]["error"])
    elif problem["type"] == "json_invalid":
        message = problem["msg"]
    else:
        message = f"{problem['msg'].removeprefix('Value error, ')}, got {problem['input']!r:.80}"
    if len(problems) > 1:
        message += f" (and {len(problems) - 1} more problems)"
    return f"{key}: {message}"


@contextmanager
def author_errors(subject: str, *, ships: bool) -> Iterator[None]:
    """Turn an error in a benchmark that does not ship into one line with the line that raised it.

    An error in a benchmark that ships is a defect of ours and keeps its traceback.
    """
    try:
        yield
    except Exception as error:
        if ships or isinstance(error, LmEvalExtError):
            raise
        frame = extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise DataError(f"{subject}: {type(error).__name__}: {error} ({where})") from error


def nearest(name: str, legal: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the end of a line about an unknown name: ``; did you mean show or plot?``, or "".

    Args:
        name: As the user wrote it.
        legal: The legal names.
        cutoff: How similar a name must be, from 0 to 1.
    """
    similar = get_close_matches(name, list(dict.fromkeys(legal)), cutoff=cutoff)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def require_extra(extra: str, feature: str, *libraries: str) -> None:
    """Check that the libraries of an extra are installed, without importing them.

    Raises:
        OptionError: One is missing; the line says what needs it and how to install it.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise OptionError(
            f"{feature} needs {' and '.join(missing)}: pip install '.[{extra}]' in the checkout"
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into one line about the path.

    Raises:
        OptionError: The block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End the process on an :class:`LmEvalExtError` with its message as the last line.

    Everything else passes: a traceback is right for a defect.
    """
    try:
        yield
    except LmEvalExtError as error:
        print(f"lm-eval-ext: error: {one_line(str(error))}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
