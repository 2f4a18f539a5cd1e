"""One line about wrong tasks, models and model arguments, where lm-eval has a traceback.

Only what is certainly wrong is refused: unknown to lm-eval, or absent, or an argument that is no
parameter of the model and nearly equal to one.
"""

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line

_LIKE = 0.88
"""Similarity (difflib's ratio) from which an argument counts as a misspelt parameter."""

_LOCAL = ("hf", "huggingface", "vllm", "sglang")
"""Beginnings of model types that read their weights here; others name a model of a server."""

_NOT_FOUND = "Tasks not found: "
"""What lm-eval's own error starts with."""


def explain_tasks(error: ValueError) -> None:
    """Raises an OptionError for unknown tasks if one is nearly equal to one of ours."""
    text = str(error)
    if not text.startswith(_NOT_FOUND):
        return
    ours = [name for card in cards().values() for name in (*card.groups, *card.tasks)]
    missing = text.removeprefix(_NOT_FOUND).split(", ")
    near = {name: get_close_matches(name, ours, cutoff=0.8) for name in missing}
    if any(near.values()):
        named = ", ".join(
            repr(one_line(name, limit=80)) + (f" (similar: {', '.join(found)})" if found else "")
            for name, found in near.items()
        )
        raise OptionError(
            f"no task {named}; lm-eval-ext tasks lists ours, lm-eval ls tasks the others"
        )


def check_names(model: Any, arguments: Mapping[str, Any]) -> None:
    """Refuses a model type that is not registered and a local folder that is not there.

    Raises:
        OptionError: With the nearest model type, or the folder.
    """
    if not isinstance(model, str):
        return
    import lm_eval.models  # noqa: F401 (registers them, by name)
    from lm_eval.api.registry import model_registry

    types = sorted(model_registry.keys())
    if model not in types:
        near = get_close_matches(model, types)
        hint = f"similar: {', '.join(near)}" if near else f"use one of {', '.join(types)}"
        raise OptionError(f"no model type {one_line(model, limit=80)!r}; {hint}")
    for key in ("pretrained", "peft", "delta", "tokenizer"):
        path = arguments.get(key)
        if (
            model.startswith(_LOCAL)
            and isinstance(path, str)
            and path.startswith(("/", "./", "../"))
            and not Path(path).exists()
        ):
            raise OptionError(
                f"--model_args {key}={one_line(path, limit=200)}: no such folder; name a model's "
                "folder, or one of the Hugging Face Hub as OWNER/NAME"
            )


def check_spelling(model: Any, arguments: Mapping[str, Any]) -> None:
    """Refuses arguments that are no parameter of the model's class and nearly equal to one.

    Others pass, since classes hand on what they don't know (``from_pretrained``).

    Raises:
        OptionError: With the nearest parameter.
    """
    if not isinstance(model, str) or not arguments:
        return
    from lm_eval.api.registry import model_registry

    try:
        kind = model_registry.get(model)
    except Exception:  # noqa: BLE001 (a library is absent: lm-eval says which)
        return
    known = {
        name
        for base in inspect.getmro(kind)
        if "__init__" in vars(base)
        for name in inspect.signature(vars(base)["__init__"]).parameters
    }
    for key in arguments:
        near = get_close_matches(key, known - arguments.keys(), n=1, cutoff=_LIKE)
        if key not in known and near:
            raise OptionError(
                f"--model_args {one_line(key, limit=80)}: no argument of --model {model}; "
                f"nearest: {near[0]}"
            )
