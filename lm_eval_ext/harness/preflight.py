"""Checks a run before lm-eval loads the model: its tasks' names, keys and data.

lm-eval loads the model first and the tasks' data second, so that a missing file would show only
after the minutes that a model takes. The hook in :mod:`lm_eval_ext._autoload` calls
:func:`check_run` in between.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.errors import DataError, OptionError, author_errors, nearest
from lm_eval_ext.harness.exclusions import loading_task
from lm_eval_ext.harness.lm_eval_types import IndexEntry, Keys, RunConfig, TaskManager, TaskName
from lm_eval_ext.harness.loading import Loader, refuse_unknown
from lm_eval_ext.harness.model_path import check_model_path
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.text import one_line

_NOT_FOUND = "Tasks not found: "
"""The beginning of lm-eval's own error."""

_MISSPELT_SIMILARITY = 0.8
"""Similarity (difflib's ratio) from which a name counts as a misspelt one of our tasks."""


def explain_tasks(error: ValueError, folder: str | None = None) -> None:
    """Explain that tasks are not found.

    Args:
        error: lm-eval's error.
        folder: The folder of ``--include_path``; lm-eval passes over files that it cannot read.

    Raises:
        DataError: A file in the folder is no valid YAML.
        OptionError: An unknown task is nearly equal to one of ours.
    """
    if folder:
        for file in Path(folder).rglob("*.yaml"):
            read_yaml(file, TypeAdapter(object))
    our_names: list[str] = []
    for card in cards().values():
        our_names += [*card.groups, *card.tasks]
    for name in str(error).removeprefix(_NOT_FOUND).split(", "):
        hint = nearest(name, our_names, cutoff=_MISSPELT_SIMILARITY)
        if hint:
            raise OptionError(
                f"no task {one_line(name, limit=80)!r}{hint} lm-eval-ext tasks lists ours, lm-eval "
                "ls tasks the others"
            )


def check_run(manager: TaskManager, config: RunConfig) -> None:
    """Check what ``lm_eval run`` is asked for: the model's folder, and the tasks by :func:`check`.

    Args:
        manager: lm-eval's index and loader of tasks.
        config: lm-eval's configuration of the run.
    """
    check_model_path(config.model, config.model_args)
    check(manager, config.tasks, config.metadata.keys() - config.model_args.keys())


def check(
    manager: TaskManager, names: Iterable[TaskName], metadata_keys: Iterable[str] = ()
) -> None:
    """Load every task of ours among those that are asked; lm-eval then finds their documents kept.

    Args:
        manager: lm-eval's index and loader of tasks.
        names: Names of tasks, groups and tags, or configurations.
        metadata_keys: The keys of ``--metadata`` itself. If all tasks are ours, one of them takes
            each, or it belongs to a benchmark that is not asked: a model's file may have such keys.

    Raises:
        LmEvalExtError: As the benchmark's loading function, or there is an unknown key.
    """
    tasks = [task for name in names for task in _open_groups(manager.task_index, name)]
    # A class of ours, whether it is a name or the class itself.
    our_tasks = [task for task, config in tasks if "lm_eval_ext." in str(config.get("class"))]
    legal_keys: dict[str, str] = {}
    unasked_prefixes = {f"{name}_" for name in cards()}
    # First those whose files are not all there, so that a problem shows before others take time.
    for task in sorted(our_tasks, key=_is_available):
        loader = _load_task(manager, task)
        legal_keys |= loader.fields
        unasked_prefixes.discard(loader.prefix)
    if len(our_tasks) == len(tasks):
        unknown_keys = []
        for key in metadata_keys:
            if key not in legal_keys and not key.startswith(tuple(unasked_prefixes)):
                unknown_keys.append(key)
        refuse_unknown(unknown_keys, legal_keys)


def _load_task(manager: TaskManager, task: TaskName) -> Loader[Any]:
    """Load a task and return its loading function."""
    card = card_of(str(task))
    try:
        with loading_task(str(task)), author_errors(str(task), ships=card is not None):
            (loaded,) = manager.load([task])["tasks"].values()
    except DataError as error:
        remedy = ""
        if card is not None and not _is_available(task):
            remedy = f"; or use {card.name}_mini, which can do without"
        raise DataError(f"{error}{remedy}") from error
    loader: Loader[Any] = loaded.config.custom_dataset
    return loader


def _open_groups(
    index: Mapping[str, IndexEntry], name: TaskName
) -> Iterator[tuple[TaskName, Keys]]:
    """Yield the tasks that a name stands for, with their configurations."""
    config: Keys = {}
    if isinstance(name, dict):
        config = name
    elif isinstance(name, str) and name in index:
        entry = index[name]
        config = entry.cfg or {"task": sorted(entry.tags)}
    members = config.get("task")
    if isinstance(members, list):
        for member in members:
            yield from _open_groups(index, member)
    else:
        yield name, config


def _is_available(task: TaskName) -> bool:
    card = card_of(str(task))  # a configuration is no task that ships
    return card is None or card.tasks[str(task)].available
