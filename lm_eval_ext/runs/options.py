"""Checks of ``lm-eval-ext run`` before anything is loaded: its options, and models that exist."""

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.lm_eval_types import Metadata
from lm_eval_ext.harness.model_path import check_model_path
from lm_eval_ext.models.recorded_files import find_files
from lm_eval_ext.results.files import arguments_of
from lm_eval_ext.runs.model_files import ModelFile
from lm_eval_ext.text import one_line

RECORDED = "recorded"
"""The type of a model whose answers are read from files."""


def check_limit(limit: float | None) -> None:
    """Check that ``--limit`` is a number of documents, or a share of them."""
    if limit is None:
        return
    is_share = 0 < limit < 1
    is_number = limit >= 1 and float(limit).is_integer()
    if not is_share and not is_number:
        raise OptionError(f"--limit {limit:g} must be a number of documents or a share below 1")


def parse_metadata(text: str) -> Metadata:
    """Parse ``--metadata``: JSON, or ``key=value`` pairs separated by commas."""
    from lm_eval._cli.utils import try_parse_json

    try:
        return arguments_of({"metadata": try_parse_json(text)}, "metadata")
    except (ValueError, TypeError) as error:
        raise OptionError(
            f"--metadata {one_line(text, limit=80)}: neither JSON nor key=value pairs ({error})"
        ) from None


def check_model_exists(model_file: ModelFile) -> None:
    """Check that the folder of a model, or the files of recorded answers, exist.

    Raises:
        OptionError: They do not; the line names the model's file.
    """
    model = model_file.settings["model"]
    arguments = arguments_of(model_file.settings)
    try:
        check_model_path(model, arguments)
        if model == RECORDED:
            find_files(arguments.get("path"))
    except OptionError as error:
        raise OptionError(f"{model_file.path}: {error}") from None
