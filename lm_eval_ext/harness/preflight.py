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
from lm_eval_ext.errors import DataError, OptionError, nearest, of_author
from lm_eval_ext.harness.loading import refuse_unknown
from lm_eval_ext.harness.model_path import check_model_path
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.text import one_line

_NOT_FOUND = "Tasks not found: "
"""What lm-eval's own error starts with."""


def explain_tasks(error: ValueError, folder: str | None = None) -> None:
    """Explains that tasks are not found.

    Args:
        error: lm-eval's.
        folder: The folder of ``--include_path``; lm-eval passes over files that it cannot read.

    Raises:
        DataError: A file in the folder is no valid YAML.
        OptionError: An unknown task is nearly equal to one of ours.
    """
    for file in Path(folder).rglob("*.yaml") if folder else ():
        read_yaml(file, TypeAdapter(Any))
    ours = [name for card in cards().values() for name in (*card.groups, *card.tasks)]
    for name in str(error).removeprefix(_NOT_FOUND).split(", "):
        if hint := nearest(name, ours, cutoff=0.8):
            raise OptionError(
                f"no task {one_line(name, limit=80)!r}{hint} lm-eval-ext tasks lists ours, lm-eval "
                "ls tasks the others"
            )


def check_run(manager: Any, config: Any) -> None:
    """Checks what ``lm_eval run`` is asked for: the model's folder, and the tasks by :func:`check`.

    Args:
        manager: lm-eval's ``TaskManager``.
        config: lm-eval's ``EvaluatorConfig``, whose metadata include the model's arguments.
    """
    check_model_path(config.model, config.model_args)
    check(manager, config.tasks, config.metadata.keys() - config.model_args.keys())


def check(manager: Any, asked: Iterable[Any], given: Iterable[str] = ()) -> None:
    """Loads every task of ours among those that are asked; lm-eval finds their documents kept.

    Args:
        manager: lm-eval's ``TaskManager``.
        asked: Names of tasks, groups and tags, or configurations.
        given: The keys of ``--metadata`` itself. If all tasks are ours, one of them takes each, or
            it belongs to a benchmark that is not asked: a model's file may have such keys.

    Raises:
        LmEvalExtError: As the benchmark's loading function, or there is an unknown key.
    """
    tasks = [found for one in asked for found in _opened(manager.task_index, one)]
    # A class of ours, whether it is a name or the class itself.
    ours = [task for task, config in tasks if "lm_eval_ext." in str(config.get("class"))]
    legal: dict[str, str] = {}
    others = {f"{name}_" for name in cards()}
    # First those whose files are not all there, so that a problem shows before others take time.
    for task in sorted(ours, key=_is_available):
        try:
            with of_author(task, ships=card_of(str(task)) is not None):
                (loaded,) = manager.load([task])["tasks"].values()
        except DataError as error:
            card = None if _is_available(task) else card_of(task)
            instead = f"; or use {card.name}_mini, which can do without" if card else ""
            raise DataError(f"{error}{instead}") from error
        legal |= loaded.config.custom_dataset.fields
        others.discard(loaded.config.custom_dataset.prefix)
    if len(ours) == len(tasks):
        unknown = set(given) - legal.keys()
        refuse_unknown((key for key in unknown if not key.startswith(tuple(others))), legal)


def _opened(index: Mapping[str, Any], asked: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The tasks that a name stands for, with their configurations; groups and tags are opened."""
    config = asked if isinstance(asked, dict) else {}
    if isinstance(asked, str) and (entry := index.get(asked)):
        config = entry.cfg or {"task": sorted(entry.tags)}
    members = config.get("task")
    if isinstance(members, list):
        for one in members:
            yield from _opened(index, one)
    else:
        yield asked, config


def _is_available(task: Any) -> bool:
    card = card_of(str(task))  # a configuration is no task that ships
    return card is None or card.tasks[task].available
