"""From the arguments of a command to models and their results."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lm_eval_ext.cards import cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.files import (
    WEIGHTS,
    Run,
    find,
    identity,
    label,
    model_file,
    model_file_path,
)
from lm_eval_ext.text import one_line

_log = get_logger(__name__)


@dataclass(frozen=True)
class Model:
    """A model under a unique label, with the run that counts for each task."""

    label: str
    runs: Mapping[str, Run]


def having(models: Iterable[Model], task: str) -> dict[str, Run]:
    """The runs on a task, by model."""
    return {model.label: model.runs[task] for model in models if task in model.runs}


def read_models(paths: Sequence[Path], *, joined: bool = True) -> list[Model]:
    """Reads the models that results files or folders hold.

    Results of the same model and arguments are one model's, and so are results below one
    ``model.yaml`` with a display name. Of several results on one task those of a whole run count
    before a trial's, then the newest version of the task, then the newest file. Models of the same
    name get their folder added.

    Args:
        paths: Of results files or folders.
        joined: One model may lie in several paths, and have several files with its display name;
            otherwise each path holds its own models.

    Raises:
        OptionError: If a path holds no results.
        DataError: If no file can be read; others are left out with a warning.
    """
    found: dict[tuple[str, str, int | None], tuple[Path, dict[str, Run]]] = {}
    unscored: dict[str, list[str]] = {}
    for argument, path in enumerate(paths):
        for results in find(path):
            name, which = label(results), identity(results.content["config"])
            if model_file(results).get("display_name"):
                # A display name declares these results to be one model's, whatever its arguments.
                which = "" if joined else str(model_file_path(results))
            key = (name, which, None if joined else argument)
            _, runs = found.setdefault(key, (results.path.parent, {}))
            for run in results.runs:
                if run.is_unscored:
                    unscored.setdefault(name, []).append(run.task)
                elif run.task not in runs or _rank(run) > _rank(runs[run.task]):
                    runs[run.task] = run
    for name, tasks in unscored.items():
        _log.warning(
            "left out: %s on %s: responses without scores (--predict_only); run again without it",
            name,
            one_line(", ".join(dict.fromkeys(tasks)), limit=200),
        )
    found = {key: entry for key, entry in found.items() if entry[1]}
    if not found:
        raise DataError("these results have no scores: they are of --predict_only")
    for (name, *_), (_, runs) in found.items():
        _warn_of_other_weights(name, runs)
    counts = Counter(name for name, *_ in found)
    seen: Counter[str] = Counter()
    models = []
    for (name, *_), (folder, runs) in found.items():
        unique = name
        if counts[name] > 1:
            same_name = [entry[1] for (other, *_), entry in found.items() if other == name]
            unique = f"{name} · {_setting(runs, same_name) or one_line(str(folder))}"
        seen[unique] += 1
        if seen[unique] > 1:
            unique += f" ({seen[unique]})"
        models.append(Model(unique, runs))
    return models


def _setting(runs: Mapping[str, Run], same_name: Sequence[Mapping[str, Run]]) -> str:
    """Return whether a model had a chat template, if that tells two models of one name apart."""
    if len(same_name) != 2:  # noqa: PLR2004
        return ""
    has_template = [_has_chat_template(entry) for entry in same_name]
    if has_template[0] == has_template[1]:
        return ""
    return "chat template" if _has_chat_template(runs) else "no chat template"


def _has_chat_template(runs: Mapping[str, Run]) -> bool:
    return all(run.file.content.get("chat_template") is not None for run in runs.values())


def _warn_of_other_weights(name: str, runs: Mapping[str, Run]) -> None:
    """Warn where the results of one model are of different weights at the same path."""
    tasks_of: dict[str, list[str]] = {}
    for task, run in sorted(runs.items(), key=lambda item: item[1].file.path.name):
        weights = run.file.content.get(WEIGHTS)
        if weights:
            tasks_of.setdefault(str(weights), []).append(task)
    if len(tasks_of) > 1:
        *older, _ = tasks_of.values()
        names = one_line(", ".join(task for tasks in older for task in tasks), limit=200)
        _log.warning("%s: older weights than the newest gave %s; run them again", name, names)


def choose_tasks(models: Iterable[Model], patterns: Sequence[str], *, least: int = 2) -> list[str]:
    """The tasks that at least so many models have, in the order of the first model that has them.

    ``patterns`` are names of tasks, of groups of ours, or patterns with ``*``; all if empty.

    Raises:
        OptionError: If no task is left; the message lists those that two models have.
    """
    counts = Counter(task for model in models for task in model.runs)
    shared = [task for task, count in counts.items() if count >= least]
    groups = {name: members for card in cards().values() for name, members in card.groups.items()}
    wanted = [name for pattern in patterns for name in groups.get(pattern, (pattern,))]
    chosen = [
        task for task in shared if not wanted or any(fnmatchcase(task, one) for one in wanted)
    ]
    if not chosen:
        where = "the results of two models" if least > 1 else "the results"
        there = f"; there is {', '.join(shared)}" if shared else ""
        raise OptionError(one_line(f"no task {', '.join(patterns)} is in {where}{there}"))
    return chosen


def _rank(run: Run) -> tuple[bool, list[int], str]:
    version = re.findall(r"\d+", str(run.file.content["versions"].get(run.task, "")))
    return run.is_whole, list(map(int, version)), run.file.path.name
