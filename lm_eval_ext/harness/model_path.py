"""Checks that a model's folder exists, before anything is loaded.

transformers looks for what is no folder on the model hub, which takes up to a minute without a
network and ends with an error about the hub.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line

READ_BY_TRANSFORMERS = frozenset(("hf", "hf-auto", "huggingface", "hf-prefix"))
"""Model types whose argument ``pretrained`` is a folder that transformers reads."""

HUB_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
"""A name on the model hub: the owner, which old models lack, and the model."""

CONFIG_FILES = ("config.json", "adapter_config.json")
"""The files of which a folder of transformers has one: of a model, or of an adapter."""


def check_model_path(model: str, model_args: Mapping[str, Any]) -> None:
    """Check the folder of a model that transformers reads; names on the hub pass.

    Args:
        model: The type of the model, such as ``hf``.
        model_args: Its arguments; ``pretrained`` names the folder.

    Raises:
        OptionError: There is no such folder, or it holds no model.
    """
    pretrained = model_args.get("pretrained")
    if model not in READ_BY_TRANSFORMERS or not isinstance(pretrained, str) or not pretrained:
        return
    folder = Path(pretrained)
    shown = one_line(pretrained, limit=200)
    if folder.is_dir():
        holds_model = any((folder / name).is_file() for name in CONFIG_FILES)
        if not holds_model and "gguf_file" not in model_args:
            raise OptionError(
                f"pretrained={shown}: the folder has no {CONFIG_FILES[0]}, so it is no Hugging "
                "Face model; name the folder that save_pretrained wrote"
            )
    elif folder.is_file():
        raise OptionError(
            f"pretrained={shown}: this is a file; name a Hugging Face folder or a model of the hub"
        )
    elif not HUB_NAME.fullmatch(pretrained) or _has_models(folder.parent):
        raise OptionError(
            f"pretrained={shown}: no such folder{_nearby(folder)}; name a Hugging Face folder, "
            "from the folder that the command runs in, or a model of the hub as OWNER/NAME"
        )


def _has_models(folder: Path) -> bool:
    """Whether the folder, which is not the present one, holds folders of models."""
    return folder != Path() and any(folder.glob(f"*/{CONFIG_FILES[0]}"))


def _nearby(folder: Path) -> str:
    """Name up to five models that are in the same folder, for an error."""
    models = sorted(file.parent.name for file in folder.parent.glob(f"*/{CONFIG_FILES[0]}"))
    if not models:
        return ""
    return f" ({folder.parent} has {one_line(', '.join(models[:5]), limit=200)})"
