"""Errors of ours, on a command line: one line on stderr, exit status 1, no traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.text import one_line


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
