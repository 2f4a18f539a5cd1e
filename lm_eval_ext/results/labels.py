"""What a model is called: the name that its file gives it, or lm-eval's."""

from pathlib import Path
from typing import Any

from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.text import one_line

MODEL_FILE = "model.yaml"
"""Beside results that ``lm-eval-ext run`` made: the file of the model that made them."""

_LEVELS = 2
"""It lies beside a results file, or above the folder that lm-eval makes for each model."""


def model_file_path(results: ResultsFile) -> Path | None:
    """Where the file of the model lies that made these results, or None if none lies near."""
    for folder in list(results.path.resolve().parents)[:_LEVELS]:
        if (folder / MODEL_FILE).is_file():
            return folder / MODEL_FILE
    return None


def model_file(results: ResultsFile) -> dict[str, Any]:
    """The content of that file; {} if there is none, or it cannot be read."""
    import yaml

    file = model_file_path(results)
    if file is None:
        return {}
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def label(results: ResultsFile) -> str:
    """The model's display name, fit for one line."""
    return one_line(str(model_file(results).get("display_name") or results.model))
