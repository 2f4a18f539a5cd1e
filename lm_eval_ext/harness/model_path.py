"""Checks that a model's folder exists, before anything is loaded.

transformers looks for what is no folder on the model hub, which takes up to a minute without a
network and ends with an error about the hub.
"""

import re
from pathlib import Path

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.text import one_line

READ_BY_TRANSFORMERS = frozenset(("hf", "hf-auto", "huggingface", "hf-prefix"))
"""Model types whose argument ``pretrained`` is a folder that transformers reads."""

FOLDER_ARGUMENTS = ("pretrained", "peft", "delta", "tokenizer")
"""Arguments of these types that name a folder, or a model of the hub."""

HUB_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
"""A name on the model hub: the owner, which old models lack, and the model."""

CONFIG_FILES = ("config.json", "adapter_config.json")
"""The files of which a folder of transformers has one: of a model, or of an adapter."""


def check_model_path(model: str, model_args: Keys) -> None:
    """Check the folders of a model that transformers reads; names on the hub pass.

    Args:
        model: The type of the model, such as ``hf``.
        model_args: Its arguments; ``pretrained`` names the folder, and others may name more.

    Raises:
        OptionError: There is no such folder, or ``pretrained`` holds no model.
    """
    if model not in READ_BY_TRANSFORMERS:
        return
    for argument in FOLDER_ARGUMENTS:
        path = model_args.get(argument)
        if not isinstance(path, str) or not path:
            continue
        _check_exists(argument, path)
        if argument == "pretrained":
            _check_holds_model(path, has_gguf_file="gguf_file" in model_args)


def _check_exists(argument: str, path: str) -> None:
    """Check that there is a folder, if the path is not a name on the hub."""
    folder = Path(path)
    if folder.exists():
        return
    if not HUB_NAME.fullmatch(path) or _has_models(folder.parent):
        raise OptionError(
            f"{argument}={one_line(path, limit=200)}: no such folder{_nearby(folder)}; name a "
            "Hugging Face folder, from the folder that the command runs in, or a model of the hub "
            "as OWNER/NAME"
        )


def _check_holds_model(path: str, *, has_gguf_file: bool) -> None:
    """Check that what is there is a folder with a model."""
    folder = Path(path)
    shown_path = one_line(path, limit=200)
    if folder.is_file():
        raise OptionError(
            f"pretrained={shown_path}: this is a file; name a Hugging Face folder or a model of "
            "the hub"
        )
    if not folder.is_dir() or has_gguf_file:
        return
    if not any((folder / name).is_file() for name in CONFIG_FILES):
        raise OptionError(
            f"pretrained={shown_path}: the folder has no {CONFIG_FILES[0]}, so it is no Hugging "
            "Face model; name the folder that save_pretrained wrote"
        )


def _has_models(folder: Path) -> bool:
    """Return whether the folder, which is not the present one, holds folders of models."""
    return folder != Path() and any(folder.glob(f"*/{CONFIG_FILES[0]}"))


def _nearby(folder: Path) -> str:
    """Name up to five models that are in the same folder, for an error."""
    models = sorted(file.parent.name for file in folder.parent.glob(f"*/{CONFIG_FILES[0]}"))
    if not models:
        return ""
    return f" ({folder.parent} has {one_line(', '.join(models[:5]), limit=200)})"
