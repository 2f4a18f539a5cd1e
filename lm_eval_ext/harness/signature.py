"""Signatures: one line per score that says what was asked and how it was scored.

As in sacreBLEU, two scores with the same signature are comparable. The model, its arguments and its
precision are not part of it; they are in lm-eval's results file. A task puts its part into its
metadata, so lm-eval writes it into every results file; :func:`result_signature` adds what depends
on the run.
"""

import json
import re
from collections.abc import Mapping

from lm_eval_ext import __version__
from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.harness.provenance import Provenance
from lm_eval_ext.text import one_line

METADATA_KEY = "signature"
UNKNOWN_TEMPLATE = "recorded: not known"
"""The chat template of a model that cannot show it, since its answers were recorded."""
FIXED_KEY = "lm_eval_ext"
"""The key of a task's metadata with the parts of the signature that no option changes."""

RESERVED = re.compile(
    "task|version|data|sha256|prompt|scoring|samples|answers|instruction|stops|config|docs|shots"
    "|multiturn|chat|system"
)
"""Names of parts, which no option may have."""

PROMPT_KEYS = (
    "output_type", "doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix",
    "target_delimiter", "fewshot_delimiter", "fewshot_split", "fewshot_config", "use_prompt",
    "generation_kwargs", "repeats", "filter_list",
)  # fmt: skip
"""The keys of lm-eval's task configuration that decide about prompts and answers. A user's own YAML
may change any of them, and the command line ``generation_kwargs``."""

_REVISION_CHARACTERS = 12
_CHECKSUM_CHARACTERS = 16
_DIGEST_CHARACTERS = 8
_MAX_PART_CHARACTERS = 100


def task_signature(
    task: str, metadata: Keys, provenance: Provenance, options: Mapping[str, object]
) -> dict[str, str]:
    """Return the part of a signature that a task knows.

    Args:
        task: The task's name.
        metadata: The metadata of the task's file: ``version``, and under ``lm_eval_ext`` the
            ``prompt`` (variant) and the ``scoring`` (comparison semantics).
        provenance: Where the documents come from.
        options: The loading function's options by name; a seed is among them where anything is
            drawn.
    """
    fixed = metadata.get(FIXED_KEY) or {}
    parts = {
        "task": task,
        "version": str(metadata.get("version", "?")),
        "data": f"{provenance.source}@{provenance.revision[:_REVISION_CHARACTERS]}",
        "sha256": provenance.sha256[:_CHECKSUM_CHARACTERS],
        "prompt": str(fixed.get("prompt", "?")),
        "scoring": str(fixed.get("scoring", "?")),
        "seed": "none",
    }
    for name, value in options.items():
        parts[name] = "none" if value is None else str(value)
    parts["lm-eval-ext"] = __version__
    return parts


def config_digest(config: Keys, functions: Keys | None = None) -> str:
    """Return a digest of the parts of a task configuration that affect prompts and answers.

    Args:
        config: The configuration as lm-eval dumps it.
        functions: What a task file may replace by functions of its own (which lm-eval dumps
            as source code); they count by name.
    """
    return digest([{key: config.get(key) for key in PROMPT_KEYS}, functions])


def digest(value: object) -> str:
    """Return a digest of JSON-like values, eight hexadecimal digits; functions count by name."""
    text = json.dumps(value, sort_keys=True, default=_qualified_name)
    return sha256_of_text(text)[:_DIGEST_CHARACTERS]


def _qualified_name(value: object) -> str:
    module = getattr(value, "__module__", "")
    qualified = getattr(value, "__qualname__", "")
    return f"{module}.{qualified}" if qualified else str(value)


def result_signature(results: Keys, task: str) -> str:
    """Return the full signature of one task in a results file that lm-eval wrote.

    Args:
        results: The file's content.
        task: The task's name.

    Returns:
        ``key:value`` pairs joined by ``|``; a task that is not ours has those that are in every
        results file.
    """
    config = results["configs"].get(task, {})
    task_part = (config.get("metadata") or {}).get(METADATA_KEY)
    parts: dict[str, object] = {"task": task}
    if isinstance(task_part, Mapping):
        parts = dict(task_part)
    parts.setdefault("version", results["versions"].get(task, "?"))
    parts.setdefault("config", config_digest(config))
    counts = results["n-samples"].get(task) or {}
    parts["docs"] = f"{counts.get('effective', '?')}/{counts.get('original', '?')}"
    shots = results["n-shot"].get(task, 0)
    parts["shots"] = shots
    if shots:
        parts["fewshot-seed"] = results["config"].get("fewshot_seed")
        parts["multiturn"] = "yes" if results.get("fewshot_as_multiturn") else "no"
    parts["chat"] = _chat_template(results)
    system_prompt = str(results.get("system_instruction_sha") or "no")
    parts["system"] = system_prompt[:_REVISION_CHARACTERS]
    parts["lm-eval"] = results.get("lm_eval_version", "?")
    return "|".join(f"{key}:{_part_text(value)}" for key, value in parts.items())


def _chat_template(results: Keys) -> str:
    template = results.get("chat_template")
    if template is None:
        return "no"
    if template == UNKNOWN_TEMPLATE:
        return "unknown"
    # A server applies its own template without reporting it: lm-eval then stores an empty one.
    return str(results.get("chat_template_sha") or "yes")[:_REVISION_CHARACTERS]


def _part_text(value: object) -> str:
    return one_line(str(value), limit=_MAX_PART_CHARACTERS).replace("|", "/")
