"""Task files of ours: lm-eval's YAML with a card, which may hold all tasks of a benchmark.

Beside lm-eval's keys such a file has ``card`` (:mod:`lm_eval_ext.cards`). One task is named by
``task``. Several are under ``tasks``: by name, what a task has beyond the keys of the file, or
instead of them. ``about`` holds the facts of a task that the card shows. Groups are in the card.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.signature import FIXED_KEY

CARD, TASKS, ABOUT = "card", "tasks", "about"


def expanded(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The tasks and groups in a file that lm-eval has read, for its index."""
    if "task" in config:
        yield dict(config)
        return
    yield from ({**config, "task": name} for name in config[TASKS])
    for name, members in (config[CARD].get("groups") or {}).items():
        yield {"group": name, "task": list(members), "metadata": {"version": "1.0"}}


def of_task(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of one task: its own keys replace those of a file with several.

    The keys of a user's file that includes it win. Metadata are merged, but nothing outside files
    changes a version, or how a signature names prompt and scoring.

    Args:
        config: The file with what it includes, the task's name, and lm-eval's metadata.

    Raises:
        DataError: A file with several tasks has metadata of its own.
    """
    from lm_eval.tasks._yaml_loader import load_yaml

    own = (config.get(TASKS) or {}).get(config["task"])
    if not own:
        return dict(config)
    file = Path(config["metadata"]["config_source"])
    read = load_yaml(file, resolve_func=False, recursive=False) if file.is_file() else {}
    if TASKS in read and "metadata" in read:
        raise DataError(f"{file}: give each task its own metadata, not the file")
    users = {} if TASKS in read else {key: config[key] for key in read.keys() & config.keys()}
    files = {**own.get("metadata", {}), **(read.get("metadata") or {})}
    # lm-eval has laid --metadata and --model_args over all of them.
    fixed = {key: files[key] for key in ("version", FIXED_KEY) if key in files}
    metadata = {**files, **config["metadata"], **fixed}
    return {**config, **own, **users, "metadata": metadata}
