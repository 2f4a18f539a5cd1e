"""The errors that users of the project meet.

Each carries one line that says what was wrong, what is legal and what to do. The command
lines (``lm-eval-ext`` and, through :mod:`lm_eval_ext.harness.cli_guard`, ``lm_eval``) print
that line without a traceback and exit with status 1; a Python caller gets the exception.
"""


class LmEvalExtError(Exception):
    """Base of all errors that are the user's to repair, not a defect of the project."""


class DataError(LmEvalExtError):
    """A data file is missing, broken or cannot be fetched."""


class OptionError(LmEvalExtError):
    """An option, a metadata key or an argument has a value that is not legal."""
