"""Task files of ours: lm-eval's YAML with a card, which may hold all tasks of a benchmark.

Beside lm-eval's keys such a file has ``card`` (:mod:`lm_eval_ext.cards`). One task is named by
``task``. Several are under ``tasks``: by name, what a task has beyond the keys of the file, or
instead of them. ``about`` holds the facts of a task that the card shows. Groups are in the card.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CARD, TASKS, ABOUT = "card", "tasks", "about"


def is_ours(config: Mapping[str, Any]) -> bool:
    """Whether a configuration of lm-eval's index, where functions are names, is of our class."""
    return any("lm_eval_ext." in str(config.get(key)) for key in ("class", "custom_dataset"))


def expanded(config: dict[str, Any], file: Path) -> Iterator[dict[str, Any]]:
    """The configurations of the tasks and groups in a file that lm-eval has read.

    Args:
        config: The whole file, with functions as names.
        file: Its place.
    """
    if TASKS not in config or "task" in config:
        yield _of_task(config, file, config.get("task", ""))
        return
    for name in config[TASKS]:
        yield _of_task(config, file, name)
    for name, members in (config[CARD].get("groups") or {}).items():
        yield {"group": name, "task": list(members), "metadata": {"version": "1.0"}}


def config_of(file: Path, task: str, *, resolve: bool = True) -> dict[str, Any]:
    """The configuration of one task in a file.

    Args:
        file: A task file, also one that includes a file with several tasks.
        task: Its name.
        resolve: Whether functions are imported.
    """
    from lm_eval.tasks._yaml_loader import load_yaml

    return _of_task(load_yaml(file, resolve_func=resolve), file, task)


def _of_task(config: dict[str, Any], file: Path, task: str) -> dict[str, Any]:
    """A task's own keys replace those of the file; those of a user's file that includes it win."""
    from lm_eval.tasks._yaml_loader import load_yaml

    if TASKS not in config:
        return config
    written = load_yaml(file, resolve_func=False, recursive=False)
    users = {} if TASKS in written else {key: config[key] for key in written.keys() & config.keys()}
    shared = {key: value for key, value in config.items() if key != TASKS}
    return {**shared, **config[TASKS].get(task, {}), **users, "task": task}
