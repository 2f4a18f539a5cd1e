"""Names of tasks, as lm-eval takes them, found without its whole index where that can be.

Indexing the 14,000 tasks of lm-eval costs seconds, ours a tenth of one. Where every name is
one of ours, or in the user's own ``include_path``, nothing else is looked at. A pattern may mean
any task, so it is resolved with the whole index.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from lm_eval_ext._autoload import install, tasks_folder
from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line

FILE = ".yaml"


@dataclass(frozen=True)
class Selection:
    """The tasks of a run.

    Attributes:
        units: What lm-eval is asked for, in order: tasks, groups, tags or files of tasks; by
            each, the tasks that it comes to.
        own_only: Whether our folder holds them all.
        manager: lm-eval's, that knows them.
    """

    units: Mapping[str, tuple[str, ...]]
    own_only: bool
    manager: Any

    def check(self, metadata: Mapping[str, Any]) -> None:
        """Loads the documents of our tasks, as a run with this metadata does.

        Raises:
            LmEvalExtError: If data are missing or broken, or an option of a task is wrong.
        """
        from lm_eval_ext.harness import preflight

        preflight.check(self._with(metadata), list(self.units))

    def load(self, unit: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Loads the tasks of a unit as a run with this metadata does; by name."""
        loaded: dict[str, Any] = self._with(metadata).load([unit])["tasks"]
        return loaded

    def _with(self, metadata: Mapping[str, Any]) -> Any:
        """The manager with other metadata, without a new index."""
        from lm_eval.tasks._factory import TaskFactory

        manager = copy.copy(self.manager)
        manager.metadata = dict(metadata)
        manager._factory = TaskFactory(meta=dict(metadata))
        return manager

    def is_group(self, unit: str) -> bool:
        """Whether lm-eval writes results of the unit itself beside its tasks'."""
        entry = self.manager.task_index.get(unit)
        return entry is not None and isinstance((entry.cfg or {}).get("task"), list)


def select(names: str, include_path: Sequence[str] = ()) -> Selection:
    """Finds tasks by what ``--tasks`` says.

    Args:
        names: Separated by commas; ``*``, ``?`` and ``[...]`` as in lm-eval.
        include_path: The user's own folders of tasks.

    Raises:
        OptionError: If a name or pattern fits nothing; similar names are given.
    """
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not wanted:
        raise OptionError("--tasks names no task; lm-eval-ext tasks lists ours")
    manager = own = own_manager(include_path)
    if not all(_is_among(own, name) for name in wanted):  # a pattern never is
        manager = _whole_manager(include_path)
    found = dict.fromkeys(
        match
        for name in wanted
        for match in ([name] if name.endswith(FILE) else _matches(manager, name))
    )
    units = {unit: tuple(dict.fromkeys(_leaves(manager.task_index, unit))) for unit in found}
    own_only = all(_is_among(own, unit) for unit in units)
    return Selection(_without_members(units), own_only, manager)


def own_manager(include_path: Sequence[str] = (), metadata: Any = None) -> Any:
    """lm-eval's ``TaskManager`` with our folder and the user's own, and no other."""
    from lm_eval.tasks import TaskManager

    return TaskManager(
        include_defaults=False, include_path=[tasks_folder(), *include_path], metadata=metadata
    )


def _whole_manager(include_path: Sequence[str]) -> Any:
    install()  # our folder is in its index, wherever the start-up file is not read
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path=list(include_path) or None)


def _is_among(manager: Any, name: str) -> bool:
    return name in manager.all_tasks or name.endswith(FILE)


def _matches(manager: Any, name: str) -> list[str]:
    found: list[str] = manager.match_tasks([name])
    if found:
        return found
    similar = get_close_matches(name, manager.all_tasks)
    hint = f"; similar are {', '.join(similar)}" if similar else ""
    raise OptionError(
        f"no task {one_line(name, limit=80)!r}{hint}; lm-eval-ext tasks lists ours, "
        "lm-eval ls tasks the others"
    )


def _leaves(index: Mapping[str, Any], name: str) -> list[str]:
    """The tasks that a name comes to: groups and tags opened, files read."""
    entry = index.get(name)
    if entry is None:
        return [_task_of_file(name)] if name.endswith(FILE) else [name]
    members = (entry.cfg or {}).get("task")
    if entry.cfg is None and entry.tags:
        members = sorted(entry.tags)
    if not isinstance(members, list):
        return [name]
    names = [m.get("group", m.get("task")) if isinstance(m, dict) else m for m in members]
    return [leaf for member in names for leaf in _leaves(index, str(member))]


def _task_of_file(path: str) -> str:
    from lm_eval.tasks._yaml_loader import load_yaml

    try:
        return str(load_yaml(path, resolve_func=False)["task"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        problem = one_line(f"{type(error).__name__}: {error}", limit=200)
        raise OptionError(f"{path}: no file of a task ({problem})") from None


def _without_members(units: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Drops what a group brings anyway; lm-eval refuses a task that comes twice."""
    kept: dict[str, tuple[str, ...]] = {}
    by_size = sorted(units, key=lambda unit: -len(units[unit]))
    taken: set[str] = set()
    for unit in by_size:
        if not set(units[unit]) <= taken:
            kept[unit] = units[unit]
            taken |= set(units[unit])
    return {unit: kept[unit] for unit in units if unit in kept}
