"""The types of what lm-eval hands over, as far as this package relies on them.

lm-eval types most of it as ``Any``. The protocols here list the attributes that are used, so that
a reader sees the whole contract in one place.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

TaskConfig: TypeAlias = dict[str, Any]
"""A task's configuration: the keys of its YAML file, which may hold anything."""

Metadata: TypeAlias = Mapping[str, Any]
"""A task's ``metadata``, overlaid with ``--model_args`` and ``--metadata``."""

Keys: TypeAlias = Mapping[str, Any]
"""A configuration, or a part of a file, that is only read."""

Doc: TypeAlias = dict[str, Any]
"""A document with its columns."""

Answer: TypeAlias = Any
"""A response after the filters: a text, a pair of log-probability and "is greedy", or a list."""

TaskName: TypeAlias = "str | TaskConfig"
"""What a run is asked for: the name of a task, group or tag, or a configuration."""


class IndexEntry(Protocol):
    """An entry of lm-eval's index of task files: a task, a group or a tag."""

    cfg: Keys | None
    tags: Collection[str]


class TaskManager(Protocol):
    """lm-eval's ``TaskManager``: its index, and what loads tasks."""

    task_index: Mapping[str, IndexEntry]
    all_tasks: Sequence[str]
    all_subtasks: Sequence[str]

    def match_tasks(self, task_list: list[str]) -> list[str]:
        """Return the names in the index that match names or patterns."""
        ...

    def load(self, names: Sequence[TaskName]) -> Mapping[str, Mapping[str, Any]]:
        """Load tasks; ``tasks`` holds them by name."""
        ...


class RunConfig(Protocol):
    """lm-eval's ``EvaluatorConfig``; its metadata include the model's arguments."""

    model: str
    tasks: Sequence[TaskName]
    metadata: Metadata
    model_args: Keys


class Request(Protocol):
    """One of lm-eval's ``Instance`` objects: a request to the model with its responses."""

    request_type: str
    doc: Doc
    idx: int
    arguments: tuple[Any, ...]
    resps: list[Answer]
    filtered_resps: dict[str, Answer]
