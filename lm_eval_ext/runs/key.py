"""The key of a run: what a model was asked, written beside its results and compared later.

``run_<date>.json`` beside ``results_<date>.json`` holds all that answers and scores depend on
and that is known before the model is loaded: the model, the settings of its file that change
answers, the version of lm-eval, and of each task its configuration and signature. Results count as
present if their key equals that of the requested run. The number of documents is compared with the
results file itself, since ``--limit`` may be a share of them.

Results without a key, of plain lm_eval or of an earlier version, count if all that the results
file says agrees with the key.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.signature import METADATA_KEY
from lm_eval_ext.results.files import ResultsFile, arguments_of, find_all, identity, metadata_of
from lm_eval_ext.results.table import samples_file
from lm_eval_ext.runs.model_files import SET_BY_RUN, lm_eval_config
from lm_eval_ext.runs.tasks import Selection

NO_EFFECT = frozenset(
    ("batch_size", "max_batch_size", "device", "write_out", "show_config", "verbosity",
     "wandb_args", "wandb_config_args", "hf_hub_log_args", "trackio_args", "trust_remote_code",
     "confirm_run_unsafe_code", "include_path")
)  # fmt: skip
"""lm-eval's options that change no answer. Which files ``include_path`` leads to is in the tasks'
part of the key."""

_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""The parts of the option ``seed``, as results files name them."""


def run_key(settings: Mapping[str, Any], selection: Selection) -> dict[str, Any]:
    """The key of a run on tasks, with lm-eval's options from the model's file."""
    from importlib.metadata import version

    config = asdict(lm_eval_config(settings))
    elsewhere = SET_BY_RUN | NO_EFFECT | {"model", "model_args"}
    asked = {name: value for name, value in config.items() if name not in elsewhere}
    asked["metadata"] = arguments_of(settings, "metadata")
    key = {
        "model": identity(settings),
        "settings": asked,
        "lm_eval": version("lm_eval"),
        "tasks": selection.facts(metadata_of(settings)),
    }
    found: dict[str, Any] = json.loads(json.dumps(key, default=str))
    return found


def write_key(key: Mapping[str, Any], results: ResultsFile) -> None:
    """Writes a key beside the results that it is of."""
    with atomic_text(_path(results)) as file:
        file.write(json.dumps(key, indent=2) + "\n")


def missing(
    folder: Path, key: Mapping[str, Any], selection: Selection, limit: float | None
) -> list[str]:
    """The requested names of which a model's folder has no results for this key.

    There are results of a name if one file holds all of its tasks, with their samples beside it.
    """
    try:
        files = [one for one in find_all(folder) if identity(one.content["config"]) == key["model"]]
    except OptionError:
        files = []
    return [
        name
        for name in selection.requested
        if not any(_holds(file, name, key, selection, limit) for file in files)
    ]


def _holds(
    file: ResultsFile,
    name: str,
    key: Mapping[str, Any],
    selection: Selection,
    limit: float | None,
) -> bool:
    tasks = selection.requested[name]
    wanted = [*tasks, name] if selection.is_group(name) else tasks
    kept = _read(file)
    return all(task in file.content["results"] for task in wanted) and all(
        samples_file(file, task).is_file()
        and (_agrees(file, task, key) if kept is None else _equal(kept, task, key))
        and _as_many_documents(file, task, limit)
        for task in tasks
    )


def _equal(kept: Mapping[str, Any], task: str, key: Mapping[str, Any]) -> bool:
    shared = all(kept.get(part) == key[part] for part in key if part != "tasks")
    tasks = kept.get("tasks")
    return shared and isinstance(tasks, dict) and tasks.get(task) == key["tasks"][task]


def _agrees(file: ResultsFile, task: str, key: Mapping[str, Any]) -> bool:
    """Whether a results file without a key agrees with the key in all that it says."""
    content, config, facts = file.content, file.content["config"], key["tasks"][task]
    asked = dict(key["settings"])
    shots, own = asked.pop("num_fewshot"), facts["num_fewshot"]
    said = {
        "gen_kwargs": arguments_of(config, "gen_kwargs"),
        "seed": [config.get(seed) for seed in _SEEDS],
        "system_instruction": content.get("system_instruction"),
        "apply_chat_template": content.get("chat_template") is not None,
    }
    if asked["apply_chat_template"]:  # otherwise it has no effect
        said["fewshot_as_multiturn"] = bool(content.get("fewshot_as_multiturn"))
    asked["apply_chat_template"] = bool(asked["apply_chat_template"])
    asked["seed"] = asked["seed"] or [None] * len(_SEEDS)
    signed = (content["configs"].get(task, {}).get("metadata") or {}).get(METADATA_KEY)
    signature = {"version": content["versions"].get(task)}
    signature |= signed if isinstance(signed, dict) else {}
    # The digest of the configuration has lm-eval's gen_kwargs in it.
    compared = {part for part in facts["signature"] if part != "config" or not said["gen_kwargs"]}
    return (
        all(asked[name] == value for name, value in said.items())
        # A task whose own number is 0 keeps it, whatever is asked.
        and content["n-shot"].get(task, 0) == ((own if shots is None or own == 0 else shots) or 0)
        and content.get("lm_eval_version") == key["lm_eval"]
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


def _path(results: ResultsFile) -> Path:
    return results.path.with_name(results.path.name.replace("results_", "run_", 1))


def _read(results: ResultsFile) -> dict[str, Any] | None:
    """The key beside a results file; None without one, {} if it cannot be read."""
    path = _path(results)
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
