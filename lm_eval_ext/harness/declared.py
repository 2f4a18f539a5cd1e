"""Task files of ours: lm-eval's YAML with a card, which may hold all tasks of a benchmark.

Beside lm-eval's keys such a file has ``card`` (:mod:`lm_eval_ext.cards`). One task is named by
``task``. Several are under ``tasks``: by name, what a task has beyond the keys of the file, or
instead of them. ``about`` holds the facts of a task that the card shows. Groups are in the card.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CARD, TASKS, ABOUT = "card", "tasks", "about"


def function_of(config: Mapping[str, Any], key: str) -> Any:
    """A function or class of a configuration of lm-eval's index, where ours are names."""
    from lm_eval.tasks._yaml_loader import _import_func_in_yml

    named = config.get(key)
    if not isinstance(named, str) or not is_ours(config):
        return named
    return _import_func_in_yml(Path(named).name, Path(named).parent)


def is_ours(config: Mapping[str, Any]) -> bool:
    """Whether a configuration of lm-eval's index, where functions are names, is of our class."""
    return any("lm_eval_ext." in str(config.get(key)) for key in ("class", "custom_dataset"))


def expanded(config: dict[str, Any], file: Path) -> Iterator[dict[str, Any]]:
    """The configurations of the tasks and groups in a file that lm-eval has read.

    Args:
        config: The whole file, with functions as names.
        file: Its place.
    """
    if "task" in config:
        yield of_task(config, written(file, config))
        return
    for name, own in config[TASKS].items():
        metadata = {**config.get("metadata", {}), **(own or {}).get("metadata", {})}
        yield of_task({**config, "task": name, "metadata": metadata}, config)
    for name, members in (config[CARD].get("groups") or {}).items():
        yield {"group": name, "task": list(members), "metadata": {"version": "1.0"}}


def written(file: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """What a task's file says itself: with what it includes, unless that holds several tasks."""
    from lm_eval.tasks._yaml_loader import load_yaml

    found: dict[str, Any] = load_yaml(file, resolve_func=False, recursive=TASKS not in config)
    return found


def of_task(config: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of one task: its own keys replace those of a file with several.

    The keys of a user's file that includes it win. Metadata are merged, and those of ``config``
    win.

    Args:
        config: The file with what it includes, and the task's name.
        said: As :func:`written`.
    """
    if TASKS not in config:
        return dict(config)
    own = config[TASKS].get(config["task"]) or {}
    users = {} if TASKS in said else {key: config[key] for key in said.keys() & config.keys()}
    merged = {**config, **own, **users}
    merged["metadata"] = {**own.get("metadata", {}), **config.get("metadata", {})}
    return merged


def opened(
    index: Mapping[str, Any], asked: Any, changes: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """The configuration of each task that a name stands for; groups and tags are opened.

    Args:
        index: Of lm-eval's ``TaskManager``.
        asked: A name, or a configuration that lm-eval takes in its place.
        changes: What a group changes in its members.
    """
    own = dict(asked) if isinstance(asked, Mapping) else {"task": asked}
    name = own.get("group", own.get("task"))
    entry = index.get(name) if isinstance(name, str) else None
    listed = {} if entry is None else entry.cfg or {"task": sorted(entry.tags)}
    members = own["task"] if isinstance(own.get("task"), list) else listed.get("task", name)
    changed = {**(changes or {}), **own}
    if not isinstance(members, list):
        yield {**listed, **changed, "task": members}
        return
    passed = {key: value for key, value in changed.items() if key not in ("group", "task")}
    for one in members:
        yield from opened(index, one, passed)
