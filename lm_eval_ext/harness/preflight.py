"""Checks a run before lm-eval loads the model: its tasks' names, keys and data.

lm-eval loads the model first and the tasks' data second, so that a missing file would show only
after the minutes that a model takes. The hook in :mod:`lm_eval_ext._autoload` calls
:func:`check_run` in between.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.data import available, local_copy
from lm_eval_ext.errors import DataError, OptionError, nearest
from lm_eval_ext.harness import keys
from lm_eval_ext.harness.declared import function_of, is_ours, opened
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.text import one_line

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
    configs = (one for task in config.tasks for one in opened(manager.task_index, task))
    if not any(map(is_ours, configs)):
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
    others = False
    for config in (one for task in tasks for one in opened(manager.task_index, task)):
        load, kind = function_of(config, "custom_dataset"), function_of(config, "class")
        if not isinstance(load, Loader):
            others = True
            continue
        name = str(config.get("task"))
        if num_fewshot is not None and hasattr(kind, "check_num_fewshot"):
            kind.check_num_fewshot(name, num_fewshot)
        own = config.get("metadata")
        metadata = {**(own if isinstance(own, dict) else {}), **(manager.metadata or {})}
        found.append((name, load, {**metadata, **(config.get("dataset_kwargs") or {})}))
    chosen = tuple(dict.fromkeys(load.prefix for _, load, _ in found))
    taken = {key for _, load, _ in found for key in load.keys}
    keys.check_run(given, chosen, others=others, taken=taken)
    _load(found)


def _load(found: Iterable[tuple[str, Loader, dict[str, Any]]]) -> None:
    """Loads documents, first of tasks whose files are not all there.

    So a problem shows before others take their time. A source that cannot be fetched is tried
    once.
    """
    absent = {name: _absent(name) for name, *_ in found}
    problems: dict[str, DataError] = {}
    failed: dict[tuple[str, ...], DataError] = {}
    for name, load, metadata in sorted(found, key=lambda one: not absent[one[0]]):
        try:
            if error := failed.get(absent[name]):
                raise error
            load(**metadata)
        except DataError as error:
            problems[name] = error
            if absent[name]:
                failed[absent[name]] = error
    if problems:
        raise DataError(_missing(problems, {name: absent[name] for name in problems}, len(absent)))


def _absent(task: str) -> tuple[str, ...]:
    """The sources of a task of ours whose files are not all there."""
    card = card_of(task)
    sources = card.tasks[task].sources if card else ()
    return tuple(source for source in sources if not available(source))


def _missing(
    problems: Mapping[str, DataError], absent: Mapping[str, tuple[str, ...]], count: int
) -> str:
    """One line: which tasks, why, how to get the data, and what runs without them."""
    names = ", ".join(list(problems)[:_SHOWN])
    if len(problems) > _SHOWN:
        names += f" and {len(problems) - _SHOWN} more"
    if count > 1:
        names = f"{len(problems)} of {count} tasks cannot be loaded ({names})"
    sources = dict.fromkeys(one for lacking in absent.values() for one in lacking)
    cards_ = (card_of(task) for task, lacking in absent.items() if lacking)
    minis = dict.fromkeys(f"{card.name}_mini" for card in cards_ if card)
    remedies = [str(next(iter(problems.values()))).rstrip(".")]
    if sources and local_copy() is None:
        remedies.append(f"fetch them with lm-eval-ext data fetch {' '.join(sources)}")
    if minis:
        remedies.append(f"or use {', '.join(minis)}, which can do without")
    return f"{names}: {'; '.join(remedies)}"
