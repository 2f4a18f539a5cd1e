"""Whether a results file holds what a run would give now: the same model, asked the same.

All of it stands in lm-eval's results files, so those of plain ``lm_eval --output_path
results/MODEL --log_samples`` count as well.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.signature import METADATA_KEY
from lm_eval_ext.results.files import ResultsFile, arguments_of, find_all, identity, metadata_of
from lm_eval_ext.results.table import samples_file
from lm_eval_ext.runs.model_files import lm_eval_config
from lm_eval_ext.runs.tasks import Selection

_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""The parts of the option ``seed``, as results files name them."""


def missing(
    folder: Path, settings: Mapping[str, Any], selection: Selection, limit: float | None
) -> list[str]:
    """The requested names of which a model's folder has no results with these settings.

    There are results of a name if one file holds all of its tasks, with their samples beside it.
    """
    try:
        files = [one for one in find_all(folder) if _same_model(one, settings)]
    except OptionError:
        files = []
    if not files:
        return list(selection.requested)
    asked = asdict(lm_eval_config(settings))
    facts = selection.facts(metadata_of(settings))

    def holds(file: ResultsFile, name: str) -> bool:
        tasks = selection.requested[name]
        wanted = [*tasks, name] if selection.is_group(name) else tasks
        return all(task in file.content["results"] for task in wanted) and all(
            samples_file(file, task).is_file()
            and _agrees(file, task, asked, facts[task])
            and _as_many_documents(file, task, limit)
            for task in tasks
        )

    return [name for name in selection.requested if not any(holds(one, name) for one in files)]


def _same_model(file: ResultsFile, settings: Mapping[str, Any]) -> bool:
    content = file.content
    known = content.get("lm_eval_version") == version("lm_eval")
    return known and identity(content["config"]) == identity(settings)


def _agrees(
    file: ResultsFile, task: str, asked: Mapping[str, Any], facts: Mapping[str, Any]
) -> bool:
    """Whether a task's settings and signature are those that a run would have now."""
    content, config = file.content, file.content["config"]
    chat, shots, own = asked["apply_chat_template"], asked["num_fewshot"], facts["num_fewshot"]
    gen_kwargs = arguments_of(config, "gen_kwargs")
    signed = (content["configs"].get(task, {}).get("metadata") or {}).get(METADATA_KEY)
    signature = {"version": content["versions"].get(task)}
    signature |= signed if isinstance(signed, dict) else {}
    # The digest of the configuration has lm-eval's gen_kwargs in it.
    compared = {part for part in facts["signature"] if part != "config" or not gen_kwargs}
    return (
        gen_kwargs == asked["gen_kwargs"]
        and [config.get(seed) for seed in _SEEDS] == (asked["seed"] or [None] * len(_SEEDS))
        and content.get("system_instruction") == asked["system_instruction"]
        and (content.get("chat_template") is not None) == bool(chat)
        and (not chat or bool(content.get("fewshot_as_multiturn")) == asked["fewshot_as_multiturn"])
        # A task whose own number is 0 keeps it, whatever is asked.
        and content["n-shot"].get(task, 0) == ((own if shots is None or own == 0 else shots) or 0)
        and all(str(signature.get(part)) == str(facts["signature"][part]) for part in compared)
    )


def _as_many_documents(file: ResultsFile, task: str, limit: float | None) -> bool:
    total = file.documents(task)[1]
    return _asked(file.content["config"].get("limit"), total) == _asked(limit, total)


def _asked(limit: float | None, total: int) -> int:
    """How many documents lm-eval asks under a limit: a number of them, or a share."""
    if limit is None:
        return total
    return min(total, math.ceil(total * limit) if limit < 1 else int(limit))
