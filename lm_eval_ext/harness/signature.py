"""Signatures: everything that a score depends on, in one line beside it.

The habit is sacreBLEU's. A task carries its part (what was asked and how it is scored) in
its metadata, so lm-eval writes it into every results file; :func:`of_result` adds what only
the run knows.
"""

from collections.abc import Mapping
from typing import Any

from lm_eval_ext import __version__

METADATA_KEY = "signature"
FIXED_KEY = "lm_eval_ext"
"""Where a task's YAML says what no option changes."""


def of_task(
    task: str, metadata: Mapping[str, Any], data: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, str]:
    """The part of a signature that a task knows.

    Args:
        task: Its name.
        metadata: Its metadata: ``version``, and under ``lm_eval_ext`` the ``prompt`` (variant)
            and the ``scoring`` (comparison semantics). These stand apart because lm-eval
            overlays ``--model_args`` on the metadata, where a model may have a ``seed``.
        data: ``source``, ``revision`` and ``sha256`` of what the documents come from.
        options: The loading function's, by name; a seed is among them where anything is drawn.
    """
    fixed = metadata.get(FIXED_KEY) or {}
    return {
        "task": task,
        "version": str(metadata.get("version", "?")),
        "data": f"{data['source']}@{str(data['revision'])[:12]}",
        "sha256": str(data["sha256"])[:16],
        "prompt": str(fixed.get("prompt", "?")),
        "scoring": str(fixed.get("scoring", "?")),
        "seed": "none",
        **{name: str(value) for name, value in options.items()},
        "lm-eval-ext": __version__,
    }


def of_result(results: Mapping[str, Any], task: str) -> str:
    """The full signature of one task in a results file that lm-eval wrote.

    Args:
        results: The file's content.
        task: The task's name.

    Returns:
        ``key:value`` pairs joined by ``|``; a task that is not ours has those that every
        results file tells.
    """
    config = results.get("config", {})
    own = (results.get("configs", {}).get(task, {}).get("metadata") or {}).get(METADATA_KEY)
    parts: dict[str, Any] = dict(own or {"task": task})
    parts.setdefault("version", results.get("versions", {}).get(task, "?"))
    parts["shots"] = results.get("n-shot", {}).get(task, 0)
    parts["chat"] = (results.get("chat_template_sha") or "no")[:12]
    parts["system"] = (results.get("system_instruction_sha") or "no")[:12]
    if config.get("limit") is not None:
        parts["limit"] = config["limit"]
    parts["lm-eval"] = results.get("lm_eval_version", "?")
    return "|".join(f"{key}:{value}" for key, value in parts.items())
