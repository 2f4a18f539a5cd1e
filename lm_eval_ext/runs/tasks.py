"""Names of tasks as lm-eval takes them, and what is known of a task before it is run.

Indexing the 14,000 tasks of lm-eval costs seconds, ours a tenth of one. So names and patterns are
looked for among ours and the user's own first, and among lm-eval's only if they match none.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lm_eval_ext._autoload import install
from lm_eval_ext.errors import LmEvalExtError, OptionError, nearest
from lm_eval_ext.harness.exclusions import loading_task
from lm_eval_ext.harness.lm_eval_types import Metadata, TaskManager
from lm_eval_ext.harness.signature import METADATA_KEY
from lm_eval_ext.task_folder import tasks_folder
from lm_eval_ext.text import names_in, one_line

TaskIdentity: TypeAlias = Mapping[str, object]
"""By task, what makes it the same as before: its part of the signature, or its version."""

FILE_SUFFIX = ".yaml"


@dataclass(frozen=True)
class Selection:
    """The tasks of a run.

    Attributes:
        names: What lm-eval is asked for: tasks, groups, tags, or files of tasks.
        folders: The folders of the user's own tasks.
    """

    names: Sequence[str]
    folders: Sequence[str]

    def check(
        self, metadata: Metadata, metadata_keys: Iterable[str] = ()
    ) -> dict[str, TaskIdentity]:
        """Load the tasks that are ours or the user's, as a run with this metadata does.

        Args:
            metadata: What tasks get: the model's arguments and ``metadata``.
            metadata_keys: The keys of ``metadata`` alone, whose spelling is checked.

        Returns:
            For each name, what makes its tasks the same as before: for a task of ours, the part
            of the signature that the task knows; for one of the user's, the version; for
            lm-eval's, nothing, since they change only with lm-eval itself. A name whose tasks
            are part of another's is left out, as in ``lieder*``, since lm-eval refuses a task
            that comes twice.

        Raises:
            LmEvalExtError: Data are missing or broken, or an option of a task is wrong.
        """
        from lm_eval_ext.harness import preflight

        manager = our_task_manager(self.folders, metadata)
        preflight.check(manager, self.names, metadata_keys)
        identities = {}
        for name in self.names:
            with loading_task(name):
                identities[name] = _load_identity(manager, name)
        checked = {}
        for name, tasks in identities.items():
            is_part = any(tasks.keys() < other.keys() for other in identities.values())
            if not tasks or not is_part:
                checked[name] = tasks
        return checked


def _load_identity(manager: TaskManager, name: str) -> TaskIdentity:
    """Load the tasks of a name; an empty mapping stands for tasks of lm-eval's."""
    if name not in manager.all_tasks and not name.endswith(FILE_SUFFIX):
        return {}
    try:
        tasks = manager.load([name])["tasks"]
    except LmEvalExtError:
        raise
    except Exception as error:  # noqa: BLE001 - a user's own task may fail in any way
        problem = one_line(f"{type(error).__name__}: {error}", limit=200)
        raise OptionError(f"{name}: the task cannot be loaded ({problem})") from None
    identity = {}
    for task_name, task in tasks.items():
        metadata = task.dump_config().get("metadata") or {}
        identity[task_name] = metadata.get(METADATA_KEY) or metadata.get("version")
    return identity


def select(names: str, include_path: str = "") -> Selection:
    """Find tasks by the value of ``--tasks``.

    Args:
        names: Names and patterns, separated by commas.
        include_path: The folder of the user's own tasks; "" for none.

    Raises:
        OptionError: A name or pattern matches nothing; the line has similar names.
    """
    patterns = names_in(names)
    if not patterns:
        raise OptionError("--tasks names no task; lm-eval-ext tasks lists ours")
    folders = [include_path] if include_path else []
    our_manager = our_task_manager(folders)

    @functools.cache
    def lm_eval_manager() -> TaskManager:
        return our_task_manager(with_lm_eval=True)

    selected: dict[str, None] = {}
    for pattern in patterns:
        if pattern.endswith(FILE_SUFFIX) and Path(pattern).is_file():
            matches = [pattern]
        else:
            matches = our_manager.match_tasks([pattern])
        if not matches:
            matches = lm_eval_manager().match_tasks([pattern])
        if not matches:
            hint = nearest(pattern, [*our_manager.all_tasks, *lm_eval_manager().all_tasks])
            raise OptionError(
                f"no task {one_line(pattern, limit=80)!r} (lm-eval-ext tasks lists ours, lm-eval "
                f"ls tasks the others){hint}"
            )
        selected.update(dict.fromkeys(matches))
    return Selection(tuple(selected), folders)


def our_task_manager(
    folders: Sequence[str] = (), metadata: Metadata | None = None, *, with_lm_eval: bool = False
) -> TaskManager:
    """Return a ``TaskManager`` of lm-eval that indexes our tasks and the user's own.

    Args:
        folders: The folders of the user's own tasks.
        metadata: What tasks get.
        with_lm_eval: Whether to index lm-eval's tasks as well.
    """
    install()  # where the start-up file is not read
    from lm_eval.tasks import TaskManager as LmEvalTaskManager

    paths = [tasks_folder(), *folders]
    manager: TaskManager = LmEvalTaskManager(
        include_defaults=with_lm_eval, include_path=paths, metadata=metadata
    )
    return manager
