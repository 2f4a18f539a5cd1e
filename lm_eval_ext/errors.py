"""The errors that users can fix.

Each has one line that says what was wrong, what is legal and what to do. On the command line
(``lm-eval-ext`` and ``lm_eval``) that line is printed without a traceback and the exit status is
1; a Python caller gets the exception.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lm_eval_ext.text import one_line


class LmEvalExtError(Exception):
    """Base of these errors; any other exception is a defect of the project."""


class DataError(LmEvalExtError):
    """A data file is missing or broken, or cannot be fetched."""


class OptionError(LmEvalExtError):
    """An option, a metadata key or an argument has a value that is not legal."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Ends the process on an :class:`LmEvalExtError` with its message as the last line.

    Everything else passes: a traceback is right for a defect.
    """
    try:
        yield
    except LmEvalExtError as error:
        print(f"lm-eval-ext: error: {one_line(str(error))}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
