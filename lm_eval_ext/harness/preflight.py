"""Checks a run before lm-eval loads the model: its tasks' names, keys and data.

lm-eval loads the model first and the tasks' data second, so that a missing file would show only
after the minutes that a model takes. The hook in :mod:`lm_eval_ext._autoload` calls
:func:`check_run` in between.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lm_eval_ext.cards import TaskFacts, card_of, cards
from lm_eval_ext.data import local_copy
from lm_eval_ext.errors import DataError, OptionError, nearest
from lm_eval_ext.harness import keys
from lm_eval_ext.harness.declared import config_of, is_ours
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.task import ExtTask
from lm_eval_ext.text import one_line

YAML_PATH = "__yaml_path__"
"""The key under which a configuration of the index has its file; functions are names there."""

_NOT_FOUND = "Tasks not found: "
"""What lm-eval's own error starts with."""

_SHOWN = 4
"""Names of tasks in a message."""


def explain_tasks(error: ValueError) -> None:
    """Raises an OptionError for unknown tasks if one is nearly equal to one of ours."""
    text = str(error)
    if not text.startswith(_NOT_FOUND):
        return
    ours = [name for card in cards().values() for name in (*card.groups, *card.tasks)]
    missing = text.removeprefix(_NOT_FOUND).split(", ")
    for name in missing:
        if hint := nearest(name, ours, cutoff=0.8):
            raise OptionError(
                f"no task {one_line(name, limit=80)!r}{hint} lm-eval-ext tasks lists ours, lm-eval "
                "ls tasks the others"
            )


def check_run(manager: Any, config: Any) -> None:
    """Checks what ``lm_eval run`` is asked for, where a task of ours is among it.

    Args:
        manager: lm-eval's ``TaskManager``.
        config: lm-eval's ``EvaluatorConfig``.

    Raises:
        LmEvalExtError: As :func:`check`.
    """
    configs = _leaves(manager.task_index, config.tasks)
    if not any(is_ours(one) for one in configs):
        return
    arguments = config.model_args if isinstance(config.model_args, dict) else {}
    given = [
        key
        for key, value in (config.metadata or {}).items()
        if key not in arguments or arguments[key] != value
    ]
    check(manager, config.tasks, config.num_fewshot, given=given)


def check(
    manager: Any,
    tasks: Iterable[Any],
    num_fewshot: int | None = None,
    *,
    given: Iterable[str] = (),
) -> None:
    """Loads the documents of every task of ours among ``tasks`` (lm-eval finds them cached).

    Args:
        manager: lm-eval's ``TaskManager``.
        tasks: What the user asked for: names of tasks, groups and tags, or configurations.
        num_fewshot: The user's number of demonstrations; None leaves it to the tasks.
        given: The keys of ``--metadata`` itself; :func:`.keys.check_run` checks them.

    Raises:
        LmEvalExtError: As the benchmark's loading function, or the task's class about the number
            of demonstrations.
        DataError: Data are missing; every task is named that lacks them.
    """
    found: list[tuple[str, Loader, dict[str, Any]]] = []
    resolved: dict[str, dict[str, Any]] = {}
    others = False
    for config in _leaves(manager.task_index, tasks):
        loader, kind = _loader(config, resolved)
        if loader is None:
            others = True
            continue
        name = str(config.get("task"))
        if num_fewshot is not None and isinstance(kind, type) and issubclass(kind, ExtTask):
            kind.check_num_fewshot(name, num_fewshot)
        own = config.get("metadata")
        metadata = {**(own if isinstance(own, dict) else {}), **(manager.metadata or {})}
        found.append((name, loader, {**metadata, **(config.get("dataset_kwargs") or {})}))
    chosen = tuple(dict.fromkeys(loader.prefix for _, loader, _ in found))
    taken = {key for _, loader, _ in found for key in loader.keys}
    keys.check_run(given, chosen, others=others, taken=taken)
    if problems := _load(found):
        raise DataError(_missing(problems, len(found)))


def _loader(
    config: Mapping[str, Any], resolved: dict[str, dict[str, Any]]
) -> tuple[Loader | None, Any]:
    """A task's loading function, None if it is not ours, and its class."""
    function: Any = config.get("custom_dataset")
    kind: Any = config.get("class")
    if isinstance(function, str) and is_ours(config) and YAML_PATH in config:
        task = str(config.get("task"))
        if task not in resolved:
            resolved[task] = config_of(config[YAML_PATH], task)
        function, kind = resolved[task]["custom_dataset"], resolved[task].get("class")
    return (function if isinstance(function, Loader) else None), kind


def _load(found: Iterable[tuple[str, Loader, dict[str, Any]]]) -> dict[str, DataError]:
    """Loads documents; returns why tasks have none.

    First those whose files are not all there, so that a problem shows before others take their
    time; and of a source that cannot be fetched no task tries again.
    """
    problems: dict[str, DataError] = {}
    failed: dict[tuple[str, ...], DataError] = {}
    for name, loader, metadata in sorted(found, key=lambda one: _complete(one[0])):
        sources = _sources(name)
        try:
            if sources in failed:
                raise failed[sources]
            loader(**metadata)
        except DataError as error:
            problems[name] = error
            if sources and not _complete(name):
                failed[sources] = error
    return problems


def _facts(task: str) -> TaskFacts | None:
    card = card_of(task)
    return card.tasks[task] if card else None


def _sources(task: str) -> tuple[str, ...]:
    facts = _facts(task)
    return facts.sources if facts else ()


def _complete(task: str) -> bool:
    facts = _facts(task)
    return facts is None or facts.available


def _missing(problems: Mapping[str, DataError], count: int) -> str:
    """One line: which tasks, why, how to get the data, and what runs without them."""
    names = ", ".join(list(problems)[:_SHOWN])
    if len(problems) > _SHOWN:
        names += f" and {len(problems) - _SHOWN} more"
    absent = [task for task in problems if not _complete(task)]
    sources = dict.fromkeys(one for task in absent for one in _sources(task))
    minis = dict.fromkeys(f"{card.name}_mini" for task in absent if (card := card_of(task)))
    remedies = [str(next(iter(problems.values()))).rstrip(".")]
    if sources and local_copy() is None:
        remedies.append(f"fetch them with lm-eval-ext data fetch {' '.join(sources)}")
    if minis:
        remedies.append(f"or use {', '.join(minis)}, which can do without")
    if count > 1:
        names = f"{len(problems)} of {count} tasks cannot be loaded ({names})"
    return f"{names}: {'; '.join(remedies)}"


def _leaves(index: dict[str, Any], tasks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yields each task's configuration; groups and tags are opened."""
    for task in tasks:
        config = dict(task) if isinstance(task, dict) else {"task": task}
        name = config.get("group", config.get("task"))
        entry = index.get(name) if isinstance(name, str) else None
        if entry is not None:
            if entry.tags and entry.cfg is None:  # a tag
                yield from _leaves(index, sorted(entry.tags))
                continue
            config = {**(entry.cfg or {}), **config, YAML_PATH: entry.yaml_path}
            if not isinstance(task.get("task") if isinstance(task, dict) else None, list):
                config["task"] = (entry.cfg or {}).get("task", config.get("task"))
        members = config.get("task")
        if isinstance(members, list):
            yield from _leaves(index, members)
        else:
            yield config
