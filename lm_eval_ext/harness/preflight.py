"""Loads the documents of our tasks before lm-eval loads the model.

lm-eval loads the model first and the tasks' data second, so that a missing file would show only
after the minutes that a model takes. The hook in :mod:`lm_eval_ext._autoload` calls
:func:`check` in between.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lm_eval.tasks._yaml_loader import load_yaml

from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.task import ExtTask

YAML_PATH = "__yaml_path__"
"""The key under which a configuration of the index has its file; functions are names there."""


def check(manager: Any, tasks: Iterable[Any], num_fewshot: int | None = None) -> None:
    """Loads the documents of every task of ours among ``tasks`` (lm-eval finds them cached).

    Args:
        manager: lm-eval's ``TaskManager``.
        tasks: What the user asked for: names of tasks, groups and tags, or configurations.
        num_fewshot: The user's number of demonstrations; None leaves it to the tasks.

    Raises:
        LmEvalExtError: As the benchmark's loading function, or the task's class about the number
            of demonstrations.
    """
    for config in _leaf_configs(manager.task_index, tasks):
        function: Any = config.get("custom_dataset")
        kind: Any = config.get("class")
        if isinstance(function, str) and "lm_eval_ext." in function and YAML_PATH in config:
            resolved = load_yaml(config[YAML_PATH], resolve_func=True)
            function, kind = resolved["custom_dataset"], resolved.get("class")
        if isinstance(function, Loader):
            if num_fewshot is not None and isinstance(kind, type) and issubclass(kind, ExtTask):
                kind.check_num_fewshot(str(config.get("task")), num_fewshot)
            own = config.get("metadata")
            metadata = {**(own if isinstance(own, dict) else {}), **(manager.metadata or {})}
            function(**metadata, **(config.get("dataset_kwargs") or {}))


def _leaf_configs(index: dict[str, Any], tasks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yields one configuration per task, groups and tags opened."""
    for task in tasks:
        config = dict(task) if isinstance(task, dict) else {"task": task}
        name = config.get("group", config.get("task"))
        entry = index.get(name) if isinstance(name, str) else None
        if entry is not None:
            if entry.tags and entry.cfg is None:  # a tag
                yield from _leaf_configs(index, sorted(entry.tags))
                continue
            config = {**(entry.cfg or {}), **config, YAML_PATH: entry.yaml_path}
            if not isinstance(task.get("task") if isinstance(task, dict) else None, list):
                config["task"] = (entry.cfg or {}).get("task", config.get("task"))
        members = config.get("task")
        if isinstance(members, list):
            yield from _leaf_configs(index, members)
        else:
            yield config
