"""Signatures: one line per score that says what was asked and how it was scored.

As in sacreBLEU, two scores with the same signature are comparable. The model, its arguments and its
precision are not part of it; they are in lm-eval's results file. A task puts its part into its
metadata, so lm-eval writes it into every results file; :func:`of_result` adds what depends on the
run.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from lm_eval_ext import __version__
from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.text import one_line

METADATA_KEY = "signature"
UNKNOWN_TEMPLATE = "recorded: not known"
"""In place of a chat template that a model cannot show, since its answers were recorded."""
FIXED_KEY = "lm_eval_ext"
"""The key of a task's metadata with the parts of the signature that no option changes."""

TAKEN = re.compile(
    "task|version|data|sha256|prompt|scoring|samples|answers|instruction|stops|config|docs|shots"
    "|multiturn|chat|system"
)
"""Parts that no option may have the name of."""

PROMPT_KEYS = (
    "output_type", "doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix",
    "target_delimiter", "fewshot_delimiter", "fewshot_split", "fewshot_config", "use_prompt",
    "generation_kwargs", "repeats", "filter_list",
)  # fmt: skip
"""The keys of lm-eval's task configuration that decide about prompts and answers. A user's own YAML
may change any of them, and the command line ``generation_kwargs``."""


def of_task(
    task: str, metadata: Mapping[str, Any], data: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, str]:
    """The part of a signature that a task knows.

    Args:
        task: Its name.
        metadata: As the task's file has it: ``version``, and under ``lm_eval_ext`` the
            ``prompt`` (variant) and the ``scoring`` (comparison semantics).
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
        **{name: "none" if value is None else str(value) for name, value in options.items()},
        "lm-eval-ext": __version__,
    }


def of_config(config: Mapping[str, Any], functions: Mapping[str, Any] | None = None) -> str:
    """A digest of the parts of lm-eval's task configuration that affect prompts and answers.

    Args:
        config: As lm-eval dumps it.
        functions: What a task file may replace by functions of its own (which lm-eval dumps
            as source code); they count by name.
    """
    return digest([{key: config.get(key) for key in PROMPT_KEYS}, functions])


def digest(value: Any) -> str:
    """A digest of JSON-like values, eight hexadecimal digits; functions count by name."""

    def name(other: Any) -> str:
        module, qualified = getattr(other, "__module__", ""), getattr(other, "__qualname__", "")
        return f"{module}.{qualified}" if qualified else str(other)

    return sha256_of_text(json.dumps(value, sort_keys=True, default=name))[:8]


def of_result(results: Mapping[str, Any], task: str) -> str:
    """The full signature of one task in a results file that lm-eval wrote.

    Args:
        results: The file's content.
        task: The task's name.

    Returns:
        ``key:value`` pairs joined by ``|``; a task that is not ours has those that are in every
        results file.
    """
    own = (results["configs"].get(task, {}).get("metadata") or {}).get(METADATA_KEY)
    parts: dict[str, Any] = dict(own) if isinstance(own, Mapping) else {"task": task}
    parts.setdefault("version", results["versions"].get(task, "?"))
    parts.setdefault("config", of_config(results["configs"].get(task, {})))
    counts = results["n-samples"].get(task) or {}
    parts["docs"] = f"{counts.get('effective', '?')}/{counts.get('original', '?')}"
    parts["shots"] = shots = results["n-shot"].get(task, 0)
    if shots:
        parts["fewshot-seed"] = results["config"].get("fewshot_seed")
        parts["multiturn"] = "yes" if results.get("fewshot_as_multiturn") else "no"
    parts["chat"] = _chat(results)
    parts["system"] = str(results.get("system_instruction_sha") or "no")[:12]
    parts["lm-eval"] = results.get("lm_eval_version", "?")
    return "|".join(f"{key}:{_value(value)}" for key, value in parts.items())


def _chat(results: Mapping[str, Any]) -> str:
    template = results.get("chat_template")
    if template is None:
        return "no"
    if template == UNKNOWN_TEMPLATE:
        return "unknown"
    # A server applies its own template without reporting it: lm-eval then stores an empty one.
    return str(results.get("chat_template_sha") or "yes")[:12]


def _value(value: Any) -> str:
    return one_line(str(value), limit=100).replace("|", "/")
