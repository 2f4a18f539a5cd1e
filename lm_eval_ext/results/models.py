"""From the arguments of a command to models and their results."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lm_eval_ext.cards import cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import (
    ResultsFile,
    find_learned,
    identity,
    label,
    model_file,
    model_file_path,
)
from lm_eval_ext.text import one_line


@dataclass(frozen=True)
class Model:
    """A model under a unique label, with the results file that counts for each task."""

    label: str
    runs: Mapping[str, ResultsFile]


@dataclass(frozen=True)
class _Found:
    name: str
    argument: str
    place: str
    runs: dict[str, ResultsFile]


def read_models(paths: Sequence[Path]) -> list[Model]:
    """Reads the models that results files or folders hold.

    In a folder, results of the same model and arguments are one model's, and so are results
    below one ``model.yaml`` with a display name. Of several results on one task those of a whole
    run count before a trial's, then the newest version of the task, then the newest file. Models of
    the same name get the path of the argument that they come from, or of their folder, added.

    Raises:
        OptionError: If a path holds no results.
        DataError: If a file cannot be read.
    """
    found = [model for path in paths for model in _models_under(path)]
    labels = [model.name for model in found]
    for more in ("argument", "place"):
        labels = [
            label if labels.count(label) == 1 else _longer(label, getattr(model, more))
            for label, model in zip(labels, found, strict=True)
        ]
    seen: dict[str, int] = {}
    models = []
    for name, model in zip(labels, found, strict=True):
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        models.append(Model(unique, model.runs))
    return models


def read_joined(paths: Sequence[Path]) -> list[Model]:
    """Models by name, each with all that any of the paths has of it.

    Of several results on a task the same ones count as in :func:`read_models`. What bears the same
    display name is one model, if no task occurs twice.
    """
    runs: dict[str, dict[str, ResultsFile]] = {}
    for path in paths:
        for model in read_models([path]):
            _keep_best(runs.setdefault(model.label, {}), model.runs)
    named: dict[str, list[str]] = {}
    for unique, own in runs.items():
        names = {str(model_file(one).get("display_name") or "") for one in own.values()}
        name = one_line(names.pop()) if len(names) == 1 else ""
        named.setdefault(name or unique, []).append(unique)
    models = []
    for name, labels in named.items():
        tasks = [(task, run) for unique in labels for task, run in runs[unique].items()]
        if len(dict(tasks)) == len(tasks):
            models.append(Model(name, dict(tasks)))
        else:
            models += [Model(unique, runs[unique]) for unique in labels]
    return models


def choose_tasks(models: Iterable[Model], patterns: Sequence[str], *, least: int = 2) -> list[str]:
    """The tasks that at least so many models have, in the order of the first model that has them.

    ``patterns`` are names of tasks, of groups of ours, or patterns with ``*``; all if empty.

    Raises:
        OptionError: If no task is left; the message lists those that two models have.
    """
    counts: dict[str, int] = {}
    for model in models:
        for task in model.runs:
            counts[task] = counts.get(task, 0) + 1
    shared = [task for task, count in counts.items() if count >= least]
    groups = {name: members for card in cards().values() for name, members in card.groups.items()}
    wanted = [name for pattern in patterns for name in groups.get(pattern, (pattern,))]
    chosen = [
        task for task in shared if not wanted or any(fnmatchcase(task, one) for one in wanted)
    ]
    if not chosen:
        what = f"no task {', '.join(patterns)}" if patterns and shared else "no task"
        there = ", ".join(shared) if shared else "nothing; each has other tasks"
        where = "the results of two models; what two have" if least > 1 else "the results; there is"
        raise OptionError(f"{what} is in {where}: {there}")
    return chosen


def _models_under(path: Path) -> list[_Found]:
    found: dict[tuple[str, str], _Found] = {}
    for results in find_learned(path):
        name = label(results)
        # A display name declares these results to be one model's, whatever its arguments.
        named = model_file_path(results) if model_file(results).get("display_name") else None
        key = (name, str(named) if named else identity(results.content["config"]))
        place = one_line(str(results.path.parent))
        model = found.setdefault(key, _Found(name, one_line(str(path)), place, {}))
        _keep_best(model.runs, dict.fromkeys(results.tasks, results))
    return list(found.values())


def _keep_best(known: dict[str, ResultsFile], new: Mapping[str, ResultsFile]) -> None:
    for task, results in new.items():
        if task not in known or _rank(results, task) > _rank(known[task], task):
            known[task] = results


def _rank(results: ResultsFile, task: str) -> tuple[bool, list[int], str]:
    version = re.findall(r"\d+", str(results.content["versions"].get(task, "")))
    return results.is_whole(task), [int(number) for number in version], results.path.name


def _longer(name: str, more: str) -> str:
    return name if more in name else f"{name} · {more}"
