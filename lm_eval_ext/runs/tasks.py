"""Names of tasks as lm-eval takes them, and what is known of a task before it is run.

Indexing the 14,000 tasks of lm-eval costs seconds, ours a tenth of one. So names and patterns are
looked for among ours and the user's own first, and among lm-eval's only if they match none.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext._autoload import install
from lm_eval_ext.errors import LmEvalExtError, OptionError, nearest
from lm_eval_ext.harness.signature import METADATA_KEY
from lm_eval_ext.task_folder import tasks_folder
from lm_eval_ext.text import names_in, one_line

FILE = ".yaml"


@dataclass(frozen=True)
class Selection:
    """The tasks of a run.

    Attributes:
        names: What lm-eval is asked for: tasks, groups, tags, or files of tasks.
        folders: Of the user's own tasks.
    """

    names: Sequence[str]
    folders: Sequence[str]

    def check(
        self, metadata: Mapping[str, Any], given: Iterable[str] = ()
    ) -> dict[str, dict[str, Any]]:
        """Loads the tasks that are ours or the user's, as a run with this metadata does.

        Args:
            metadata: What tasks get: the model's arguments and ``metadata``.
            given: The keys of ``metadata`` alone, whose spelling is checked.

        Returns:
            For each name, by task, what makes it the same task as before: of ours, the part of
            the signature that it knows itself; of the user's, the version. lm-eval's tasks have
            the version of lm-eval, so nothing is said of them. A name whose tasks are part of
            another's is left out, as in ``lieder*``, since lm-eval refuses a task that comes twice.

        Raises:
            LmEvalExtError: If data are missing or broken, or an option of a task is wrong.
        """
        from lm_eval_ext.harness import preflight

        manager = own_manager(self.folders, metadata)
        preflight.check(manager, self.names, metadata_keys=given)
        found = {name: _loaded(manager, name) for name in self.names}
        return {
            name: tasks
            for name, tasks in found.items()
            if not tasks or not any(tasks.keys() < other.keys() for other in found.values())
        }


def _loaded(manager: Any, name: str) -> dict[str, Any]:
    if name not in manager.all_tasks and not name.endswith(FILE):
        return {}
    try:
        tasks = manager.load([name])["tasks"]
    except LmEvalExtError:
        raise
    except Exception as error:  # noqa: BLE001 - a user's own task may fail in any way
        problem = one_line(f"{type(error).__name__}: {error}", limit=200)
        raise OptionError(f"{name}: the task cannot be loaded ({problem})") from None
    configs = {task: one.dump_config().get("metadata") or {} for task, one in tasks.items()}
    return {task: one.get(METADATA_KEY) or one.get("version") for task, one in configs.items()}


def select(names: str, include_path: str = "") -> Selection:
    """Finds tasks by the value of ``--tasks``.

    Raises:
        OptionError: If a name or pattern matches nothing; similar names are given.
    """
    wanted = names_in(names)
    if not wanted:
        raise OptionError("--tasks names no task; lm-eval-ext tasks lists ours")
    folders = [include_path] if include_path else []
    own = own_manager(folders)
    whole = functools.cache(lambda: own_manager(others=True))

    def matches(name: str) -> list[str]:
        if name.endswith(FILE) and Path(name).is_file():
            return [name]
        found: list[str] = own.match_tasks([name]) or whole().match_tasks([name])
        if found:
            return found
        raise OptionError(
            f"no task {one_line(name, limit=80)!r} (lm-eval-ext tasks lists ours, lm-eval ls tasks "
            f"the others){nearest(name, [*own.all_tasks, *whole().all_tasks])}"
        )

    found = dict.fromkeys(one for name in wanted for one in matches(name))
    return Selection(tuple(found), folders)


def own_manager(folders: Sequence[str] = (), metadata: Any = None, *, others: bool = False) -> Any:
    """lm-eval's ``TaskManager`` of our folder and the user's own, and of lm-eval's if asked."""
    install()  # where the start-up file is not read
    from lm_eval.tasks import TaskManager

    paths = [tasks_folder(), *folders]
    return TaskManager(include_defaults=others, include_path=paths, metadata=metadata)
