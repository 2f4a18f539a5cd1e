"""Our task files: lm-eval's YAML with a card, which may hold all tasks of a benchmark.

Beside lm-eval's keys such a file has ``card`` (:mod:`lm_eval_ext.cards`). A single task is named by
``task``. Several are listed under ``tasks``: by name, the keys that a task has beyond those of the
file, or instead of them. ``about`` holds the facts of a task that the card shows. Groups are listed
in the card.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.lm_eval_types import Keys, TaskConfig
from lm_eval_ext.harness.signature import FIXED_KEY
from lm_eval_ext.reading import read_yaml

CARD, TASKS, ABOUT = "card", "tasks", "about"
"""The keys that our task files have beyond lm-eval's."""

_GROUP_METADATA = {"version": "1.0"}

_FIXED_METADATA = ("version", FIXED_KEY)
"""Metadata that only files decide about."""


def expand_variants(config: Keys) -> Iterator[TaskConfig]:
    """Yield the tasks and groups of a file, for lm-eval's index.

    Args:
        config: The file's content as lm-eval has read it.
    """
    if "task" in config:
        yield dict(config)
        return
    for name in config[TASKS]:
        yield {**config, "task": name}
    groups = config[CARD].get("groups") or {}
    for name, members in groups.items():
        yield {"group": name, "task": list(members), "metadata": dict(_GROUP_METADATA)}


def task_config(config: Keys) -> TaskConfig:
    """Return the configuration of one task: its own keys replace those that the file has for all.

    The keys of a user's file that includes ours win over both. Metadata are merged, but nothing
    outside files changes a version, or how a signature names prompt and scoring.

    Args:
        config: The file with what it includes, the task's name, and lm-eval's metadata.

    Raises:
        DataError: A file with several tasks has metadata of its own.
    """
    variants = config.get(TASKS) or {}
    variant = variants.get(config["task"])
    if not variant:
        return dict(config)
    file = Path(config["metadata"]["config_source"])
    file_keys = _keys_of_file(file)
    lists_tasks = TASKS in file_keys
    if lists_tasks and "metadata" in file_keys:
        raise DataError(f"{file}: give each task its own metadata, not the file")
    user_keys = {}
    if not lists_tasks:
        user_keys = {key: config[key] for key in file_keys.keys() & config.keys()}
    file_metadata = {**variant.get("metadata", {}), **(file_keys.get("metadata") or {})}
    fixed_metadata = {key: file_metadata[key] for key in _FIXED_METADATA if key in file_metadata}
    # lm-eval has laid --metadata and --model_args over all of config["metadata"].
    metadata = {**file_metadata, **config["metadata"], **fixed_metadata}
    return {**config, **variant, **user_keys, "metadata": metadata}


def _keys_of_file(file: Path) -> Keys:
    """Return what a file says itself, without what it includes."""
    if not file.is_file():
        return {}
    return read_yaml(file, TypeAdapter(dict[str, Any]))
