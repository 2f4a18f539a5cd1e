"""Names of tasks, as lm-eval takes them, found without its whole index where possible.

Indexing the 14,000 tasks of lm-eval costs seconds, ours a tenth of one. Where every name is
one of ours, or in the user's own ``include_path``, nothing else is indexed. A pattern may match
any task, so it is resolved with the whole index.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext._autoload import install, tasks_folder
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.declared import is_ours
from lm_eval_ext.text import one_line

FILE = ".yaml"


@dataclass(frozen=True)
class Selection:
    """The tasks of a run.

    Attributes:
        requested: What lm-eval is asked for, in order (tasks, groups, tags or files of tasks),
            each with the tasks that it stands for.
        own_only: Whether our folder and the user's hold them all.
        manager: lm-eval's ``TaskManager`` that knows them.
    """

    requested: Mapping[str, tuple[str, ...]]
    own_only: bool
    manager: Any

    def check(self, metadata: Mapping[str, Any], given: Iterable[str] = ()) -> None:
        """Loads the documents of our tasks, as a run with this metadata does.

        Args:
            metadata: What tasks get: the model's arguments and ``metadata``.
            given: The keys of ``metadata`` alone, whose spelling is checked.

        Raises:
            LmEvalExtError: If data are missing or broken, or an option of a task is wrong.
        """
        from lm_eval_ext.harness import preflight

        preflight.check(self._with(metadata), list(self.requested), given=given)

    def facts(self, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What is known of each task before it is run, as JSON-like values.

        ``num_fewshot``: its own. ``signature``: of a task of ours, the part that it knows itself;
        of another one, its version. Only tasks of ours are loaded, with the documents that
        :meth:`check` has loaded.
        """
        found: dict[str, dict[str, Any]] = {}
        ours = []
        for name in self.requested:
            for task, config in _configs(self.manager.task_index, name):
                own = config.get("metadata")
                found[task] = {
                    "num_fewshot": config.get("num_fewshot"),
                    "signature": {"version": own.get("version") if isinstance(own, dict) else None},
                }
                if is_ours(config):
                    ours.append(name)
        loaded = self._with(metadata).load(list(dict.fromkeys(ours)))["tasks"] if ours else {}
        for task, one in loaded.items():
            signed = (one.dump_config().get("metadata") or {}).get(signature.METADATA_KEY)
            if signed and task in found:
                found[task]["signature"] = signed
        return found

    def _with(self, metadata: Mapping[str, Any]) -> Any:
        """The manager with other metadata, without a new index."""
        from lm_eval.tasks._factory import TaskFactory

        manager = copy.copy(self.manager)
        manager.metadata = dict(metadata)
        manager._factory = TaskFactory(meta=dict(metadata))
        return manager

    def is_group(self, name: str) -> bool:
        """Whether lm-eval writes results of the name itself beside its tasks'."""
        entry = self.manager.task_index.get(name)
        return entry is not None and isinstance((entry.cfg or {}).get("task"), list)


def select(names: str, include_path: Sequence[str] = ()) -> Selection:
    """Finds tasks by the value of ``--tasks``, in lm-eval's index and the user's own folders.

    Raises:
        OptionError: If a name or pattern matches nothing; similar names are given.
    """
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not wanted:
        raise OptionError("--tasks names no task; lm-eval-ext tasks lists ours")
    manager = own = own_manager(include_path)
    if not all(_is_among(own, name) for name in wanted):  # as with any pattern
        manager = _whole_manager(include_path)
    found = dict.fromkeys(
        match
        for name in wanted
        for match in ([name] if name.endswith(FILE) else _matches(manager, name))
    )
    requested = {
        name: tuple(dict.fromkeys(task for task, _ in _configs(manager.task_index, name)))
        for name in found
    }
    own_only = all(_is_among(own, name) for name in requested)
    return Selection(_without_members(requested), own_only, manager)


def own_manager(include_path: Sequence[str] = (), metadata: Any = None) -> Any:
    """lm-eval's ``TaskManager`` with only our folder and the user's own."""
    from lm_eval.tasks import TaskManager

    return TaskManager(
        include_defaults=False, include_path=[tasks_folder(), *include_path], metadata=metadata
    )


def _whole_manager(include_path: Sequence[str]) -> Any:
    install()  # puts our folder into its index, even where the start-up file is not read
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path=list(include_path) or None)


def _is_among(manager: Any, name: str) -> bool:
    return name in manager.all_tasks or name.endswith(FILE)


def _matches(manager: Any, name: str) -> list[str]:
    found: list[str] = manager.match_tasks([name])
    if found:
        return found
    raise OptionError(
        f"no task {one_line(name, limit=80)!r} (lm-eval-ext tasks lists ours, lm-eval ls tasks the "
        f"others){nearest(name, manager.all_tasks)}"
    )


def _configs(
    index: Mapping[str, Any], name: str, changes: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the tasks that a name stands for, each with its configuration.

    Groups and tags are opened, files read; a group's changes to its members are applied.
    """
    entry = index.get(name)
    if entry is None and not name.endswith(FILE):
        yield name, {}
        return
    config = _read_task(name) if entry is None else entry.cfg or {}
    members = config.get("task")
    if entry is not None and entry.cfg is None and entry.tags:
        members = sorted(entry.tags)
    if isinstance(members, list):
        for one in members:
            member = one if isinstance(one, dict) else {"task": one}
            own = {key: value for key, value in member.items() if key not in ("group", "task")}
            under = str(member.get("group", member.get("task")))
            yield from _configs(index, under, {**(changes or {}), **own})
        return
    yield (str(members) if entry is None else name), config | dict(changes or {})


def _read_task(path: str) -> dict[str, Any]:
    from lm_eval.tasks._yaml_loader import load_yaml

    try:
        config: dict[str, Any] = load_yaml(path, resolve_func=False)
        if isinstance(config["task"], str):
            return config
        problem = "it describes no single task"
    except (OSError, KeyError, TypeError, ValueError) as error:
        problem = one_line(f"{type(error).__name__}: {error}", limit=200)
    raise OptionError(f"{path}: not a task file ({problem})")


def _without_members(requested: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Drops names whose tasks other names include; lm-eval refuses a task that comes twice."""
    kept: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for name in sorted(requested, key=lambda name: -len(requested[name])):
        if not set(requested[name]) <= taken:
            kept[name] = requested[name]
            taken |= set(requested[name])
    return {name: kept[name] for name in requested if name in kept}
