"""From the arguments of a command to models and their results."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain, combinations
from pathlib import Path

from lm_eval_ext.cards import cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.align import settings_in_words
from lm_eval_ext.results.files import (
    WEIGHTS,
    ResultsFile,
    Run,
    identifying_arguments,
    identity,
    label,
    model_file,
    model_file_path,
    read_results,
)
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_LONGEST_LIST = 200
"""Characters of a list of tasks in a warning."""


@dataclass(frozen=True)
class Model:
    """A model under a unique label, with the run that counts for each task."""

    label: str
    runs: Mapping[str, Run]


@dataclass(frozen=True)
class _ModelKey:
    """What tells models apart while results files are read.

    Attributes:
        label: The model's name.
        identity: The model's type and arguments; or, of a model with a display name, its file.
        argument: Which path the results are from; None if one model may lie in several.
    """

    label: str
    identity: str
    argument: int | None


@dataclass(frozen=True)
class _CollectedRuns:
    """The runs of one model.

    Attributes:
        folder: The folder of its first results file.
        has_display_name: Whether a model file names the model.
        runs: By task, the run that counts.
        older_runs: By task, the last run that a newer one of the same size and version replaced.
    """

    folder: Path
    has_display_name: bool = False
    runs: dict[str, Run] = field(default_factory=dict)
    older_runs: dict[str, Run] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Add a run, if it counts before the one on the same task."""
        other_run = self.runs.get(run.task)
        if other_run is None:
            self.runs[run.task] = run
            return
        older, newer = sorted((other_run, run), key=_rank)
        self.runs[run.task] = newer
        is_older_alone = _rank(older)[:2] == _rank(newer)[:2]
        if is_older_alone and older is not newer:
            self.older_runs[run.task] = older

    def contradicts(self, other: "_CollectedRuns") -> bool:
        """Return whether both have a task on which they ran differently."""
        for task in self.runs.keys() & other.runs.keys():
            if _difference_in_words(self.runs[task], other.runs[task]):
                return True
        return False


def runs_by_model(models: Iterable[Model], task: str) -> dict[str, Run]:
    """Return the runs on a task, by the label of their model."""
    return {model.label: model.runs[task] for model in models if task in model.runs}


def read_models(paths: Sequence[Path], *, joined: bool = True) -> list[Model]:
    """Read the models that results files or folders hold.

    Results of the same model and arguments are one model's, and so are results below one
    ``model.yaml`` with a display name. Of several results on one task those of a whole run count
    before a trial's, then the newest version of the task, then the newest file; a warning says so
    where model or settings differed. Models of the same name get their folder added.

    Args:
        paths: Results files or folders.
        joined: Whether one model may lie in several paths, and have several files with its display
            name, unless they ran one task differently; otherwise each path holds its own models.

    Raises:
        OptionError: A path holds no results.
        DataError: No file can be read; others are left out with a warning.
    """
    collected: dict[_ModelKey, _CollectedRuns] = {}
    unscored: dict[str, list[str]] = {}
    for argument, path in enumerate(paths):
        for results in read_results(path):
            key = _key_of(results, argument, joined=joined)
            has_display_name = bool(model_file(results).get("display_name"))
            new_collection = _CollectedRuns(results.path.parent, has_display_name)
            collection = collected.setdefault(key, new_collection)
            for run in results.runs:
                if run.is_unscored:
                    unscored.setdefault(key.label, []).append(run.task)
                else:
                    collection.add(run)
    for name, tasks in unscored.items():
        _log.warning(
            "left out: %s on %s: responses without scores (--predict_only); run again without it",
            name,
            one_line(", ".join(dict.fromkeys(tasks)), limit=_LONGEST_LIST),
        )
    scored = {key: collection for key, collection in collected.items() if collection.runs}
    if not scored:
        raise DataError("these results have no scores: they are of --predict_only")
    if joined:
        scored = _join_display_names(scored)
    for key, collection in scored.items():
        _warn_of_other_weights(key.label, collection.runs)
        _warn_of_other_settings(key.label, collection)
    labels = _unique_labels(scored)
    models = []
    for unique_label, collection in zip(labels, scored.values(), strict=True):
        models.append(Model(unique_label, collection.runs))
    return models


def _key_of(results: ResultsFile, argument: int, *, joined: bool) -> _ModelKey:
    """Return which model a results file belongs to."""
    model_identity = identity(results.settings)
    if model_file(results).get("display_name"):
        # A display name declares these results to be one model's, whatever its arguments.
        model_identity = str(model_file_path(results))
    return _ModelKey(label(results), model_identity, None if joined else argument)


def _join_display_names(
    collected: Mapping[_ModelKey, _CollectedRuns],
) -> dict[_ModelKey, _CollectedRuns]:
    """Join the results whose model files have the same display name.

    Where two of these ran a task differently, they are two systems under one name by mistake. Then
    all files of this name stay apart, so that no result is hidden by another.
    """
    keys_of: dict[str, list[_ModelKey]] = {}
    for key, collection in collected.items():
        if collection.has_display_name:
            keys_of.setdefault(key.label, []).append(key)
    joined = dict(collected)
    for keys in keys_of.values():
        collections = [collected[key] for key in keys]
        if any(first.contradicts(second) for first, second in combinations(collections, 2)):
            continue
        target, *rest = keys
        for key in rest:
            for run in joined.pop(key).runs.values():
                joined[target].add(run)
    return joined


def _difference_in_words(older: Run, newer: Run) -> str:
    """Return how model and settings of two runs on a task differ; "" if they do not."""
    if identity(older.file.settings) == identity(newer.file.settings):
        return settings_in_words({"older": older, "newest": newer})
    words = []
    for name, run in (("older", older), ("newest", newer)):
        arguments = identifying_arguments(run.file.settings)
        listed = ", ".join(f"{key}={value}" for key, value in arguments.items())
        words.append(f"{name}: {one_line(listed, limit=_LONGEST_LIST) or run.file.model}")
    return "; ".join(words)


def _unique_labels(collected: Mapping[_ModelKey, _CollectedRuns]) -> Iterator[str]:
    """Yield a label for each model; those of the same name get their setting or their folder."""
    collections_of: dict[str, list[_CollectedRuns]] = {}
    for key, collection in collected.items():
        collections_of.setdefault(key.label, []).append(collection)
    uses: Counter[str] = Counter()
    for key, collection in collected.items():
        unique_label = key.label
        same_name = collections_of[key.label]
        if len(same_name) > 1:
            setting = _setting(collection.runs, same_name)
            unique_label = f"{key.label} · {setting or one_line(str(collection.folder))}"
        uses[unique_label] += 1
        if uses[unique_label] > 1:
            unique_label += f" ({uses[unique_label]})"
        yield unique_label


def _setting(runs: Mapping[str, Run], same_name: Sequence[_CollectedRuns]) -> str:
    """Return whether a model had a chat template, if that tells two models of one name apart."""
    if len(same_name) != 2:  # noqa: PLR2004
        return ""
    model, other_model = same_name
    if _has_chat_template(model.runs) == _has_chat_template(other_model.runs):
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
        names = one_line(", ".join(chain.from_iterable(older)), limit=_LONGEST_LIST)
        _log.warning("%s: older weights than the newest gave %s; run them again", name, names)


def _warn_of_other_settings(name: str, collection: _CollectedRuns) -> None:
    """Warn where a model's newest results hide older ones of another model or other settings."""
    tasks_of: dict[str, list[str]] = {}
    for task, older in collection.older_runs.items():
        words = _difference_in_words(older, collection.runs[task])
        if words:
            tasks_of.setdefault(words, []).append(task)
    for words, tasks in tasks_of.items():
        _log.warning(
            "left out: older results of %s on %s, which ran differently (%s); to see both, move "
            "them into two folders with a model.yaml each, which has a display_name of its own",
            name,
            one_line(", ".join(tasks), limit=_LONGEST_LIST),
            words,
        )


def count_models(models: Iterable[Model]) -> Counter[str]:
    """Return how many models have results on each task."""
    counts = Counter[str]()
    for model in models:
        counts.update(model.runs.keys())
    return counts


def choose_tasks(
    models: Iterable[Model], patterns: Sequence[str], *, min_models: int = 2
) -> list[str]:
    """Return the tasks that enough models have, in the order of the first model that has them.

    Args:
        models: The models.
        patterns: Names of tasks, of groups of ours, or patterns with ``*``; all tasks if empty.
        min_models: How many models must have a task.

    Raises:
        OptionError: No task is left; the message lists those that enough models have.
    """
    counts = count_models(models)
    available = [task for task, count in counts.items() if count >= min_models]
    chosen = available
    if patterns:
        names = _without_groups(patterns)
        chosen = [task for task in available if any(fnmatchcase(task, name) for name in names)]
    if not chosen:
        source = "the results of two models" if min_models > 1 else "the results"
        hint = f"; available: {', '.join(available)}" if available else ""
        raise OptionError(one_line(f"no task {', '.join(patterns)} is in {source}{hint}"))
    return chosen


def _without_groups(patterns: Iterable[str]) -> list[str]:
    """Return the patterns, with the members of a group in its place."""
    groups: dict[str, tuple[str, ...]] = {}
    for card in cards().values():
        groups.update(card.groups)
    names: list[str] = []
    for pattern in patterns:
        names += groups.get(pattern, (pattern,))
    return names


def _rank(run: Run) -> tuple[bool, list[int], str]:
    """Return what decides which of several runs on one task counts; the largest does."""
    version = str(run.file.content["versions"].get(run.task, ""))
    numbers = [int(digits) for digits in re.findall(r"\d+", version)]
    return run.is_whole, numbers, run.file.path.name
