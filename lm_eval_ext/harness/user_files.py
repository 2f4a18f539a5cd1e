"""What a user's own task files say, read without lm-eval and without their code.

lm-eval imports the functions that a file names; here a file is only read, so that a mistake in it
can be reported before anything runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from lm_eval_ext.cards import Card, card_in, cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.harness.task_files import ABOUT, CARD, TASKS
from lm_eval_ext.reading import read_yaml

SUFFIXES = (".yaml", ".yml")
"""Endings of a name that is a file and no task."""

_IGNORED_FOLDERS = {"__pycache__", ".ipynb_checkpoints"}
"""Folders in which lm-eval looks for no tasks."""

OUTPUT_TYPES = ("loglikelihood", "loglikelihood_rolling", "generate_until", "multiple_choice")
"""lm-eval's kinds of requests."""

_DEFAULT_OUTPUT_TYPE = "generate_until"
"""What lm-eval takes where a file does not say it."""

_LOGLIKELIHOOD_CLASS = "GroupedLoglikelihoodTask"
"""The class of ours that asks for log-probabilities."""

_MAX_INCLUDES = 10
"""Files that include each other one after the other."""

_NAMED_FILES = 5
"""Files that an error names."""


@dataclass(frozen=True)
class UserTask:
    """A task or group in a user's file.

    Attributes:
        name: The name that ``--tasks`` takes.
        file: The file.
        members: The tasks of a group; () for a task.
        card: The card of its benchmark; None for a task of plain lm-eval, and for a group.
        ships: Whether the benchmark is one of ours, so that the task is a variant.
        output_type: The kind of request, by lm-eval's name; "" for a group.
        max_new_tokens: The most tokens that an answer has; None where that is not said, or nothing
            is generated.
        metrics: The task's metrics, the headline first; () where lm-eval's defaults hold.
        problems: What is missing or wrong, a line each.
    """

    name: str
    file: Path
    members: tuple[str, ...] = ()
    card: Card | None = None
    ships: bool = False
    output_type: str = ""
    max_new_tokens: int | None = None
    metrics: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def replaces_ours(self) -> bool:
        """Whether it takes the place of a task that ships."""
        return any(self.name in card.tasks or self.name in card.groups for card in cards().values())


@dataclass(frozen=True)
class UserFiles:
    """What a file or a folder holds.

    Attributes:
        folder: The folder that ``--include_path`` takes.
        tasks: The tasks and groups, in the order of the files.
        other_files: YAML files without a task.
        unreadable: A line for each file that cannot be read; lm-eval passes over them.
    """

    folder: Path
    tasks: tuple[UserTask, ...]
    other_files: tuple[Path, ...] = ()
    unreadable: tuple[str, ...] = ()


def is_path(name: str) -> bool:
    """Return whether a name is that of a file or folder, rather than of a task."""
    path = Path(name)
    is_file_name = path.suffix in SUFFIXES or len(path.parts) > 1
    return bool(name) and (is_file_name or path.is_dir())


def read_user_files(path: Path) -> UserFiles:
    """Read a user's task file, or all task files of a folder.

    Raises:
        OptionError: There is no such file or folder, or no task in it.
        DataError: A file that was named cannot be read, or its card is malformed.
    """
    if path.is_file():
        tasks = tuple(_tasks_in(path))
        if not tasks:
            raise OptionError(
                f"{path} is no task file: it has neither the key task (a name), nor group, nor "
                "tasks with a card (docs/adding.md)"
            )
        return UserFiles(path.parent, tasks)
    if not path.is_dir():
        raise OptionError(
            f"{path}: no such file or folder; give a task file, a folder with task files, or the "
            "name of a task of ours (lm-eval-ext tasks)"
        )
    return _read_folder(path)


def _read_folder(folder: Path) -> UserFiles:
    tasks: list[UserTask] = []
    other_files = []
    unreadable = []
    files = [file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file()]
    for file in sorted(files):
        if not _IGNORED_FOLDERS.isdisjoint(file.parts):
            continue
        try:
            tasks_of_file = list(_tasks_in(file))
        except DataError as error:
            unreadable.append(str(error))
            continue
        tasks += tasks_of_file
        if not tasks_of_file:
            other_files.append(file)
    if not tasks:
        raise OptionError(_no_task(folder, other_files, unreadable))
    return UserFiles(folder, tuple(tasks), tuple(other_files), tuple(unreadable))


def _no_task(folder: Path, other_files: list[Path], unreadable: list[str]) -> str:
    """Return the line about a folder without a task."""
    if unreadable:
        return f"{folder} has no task that can be read; {unreadable[0]}"
    if other_files:
        names = ", ".join(str(file.relative_to(folder)) for file in other_files[:_NAMED_FILES])
        seen = f"its YAML files have no key task, group or card: {names}"
    else:
        seen = "it holds no file that ends in .yaml or .yml"
    return f"{folder} has no task; {seen} (docs/adding.md)"


def _tasks_in(file: Path) -> Iterator[UserTask]:
    """Yield the tasks and groups of a file; none if it is no task file.

    Raises:
        DataError: The file cannot be read, or its card is malformed.
    """
    content = _with_includes(file)
    name = content.get("task")
    if CARD in content:
        card = card_in(_keys_of_card(content, file))
        names = [name] if isinstance(name, str) else list(content.get(TASKS) or {})
        if not names:
            raise DataError(f"{file}: it has a card, but neither the key task nor tasks")
        for task_name in names:
            yield _user_task(task_name, file, content, card)
        if not isinstance(name, str):
            for group, members in card.groups.items():
                yield UserTask(group, file, members)
    elif isinstance(content.get("group"), str):
        group_members = name if isinstance(name, list) else [name]
        yield UserTask(content["group"], file, tuple(map(_member_name, group_members)))
    elif isinstance(name, str):
        yield _user_task(name, file, content, None)


def _member_name(member: object) -> str:
    """Return the name of a group's member, which may be a configuration."""
    if isinstance(member, Mapping):
        return str(member.get("task") or member.get("group"))
    return str(member)


def _keys_of_card(content: Keys, file: Path) -> Keys:
    """Return the keys of a file that a card is read from."""
    keys = {key: content.get(key) for key in (CARD, TASKS, ABOUT)}
    return {**keys, "task": content.get("task") or file.name}


def _with_includes(file: Path, depth: int = 0) -> dict[str, Any]:
    """Return the content of a file, with what it includes; the file's own keys win."""
    if depth > _MAX_INCLUDES:
        raise DataError(f"{file}: more than {_MAX_INCLUDES} files include each other")
    content = read_yaml(file, TypeAdapter(Any))
    if not isinstance(content, dict):
        return {}
    included = content.pop("include", None) or []
    paths = included if isinstance(included, list) else [included]
    merged: dict[str, Any] = {}
    for path in paths:
        merged |= _with_includes(file.parent / str(path), depth + 1)
    _check_keys({**merged, **content}, file)
    return {**merged, **content}


class _TaskKeys(BaseModel, strict=True):
    """The keys of a task file that are read here; lm-eval reads the others."""

    task: str | list[str | dict[str, Any]] | None = None
    group: str | None = None
    tasks: dict[str, dict[str, Any] | None] | None = None
    metadata: dict[str, Any] | None = None
    generation_kwargs: dict[str, Any] | None = None
    metric_list: list[str | dict[str, Any]] | None = None


_LEGAL_KEYS = {
    "task": "a name, or in a group a list of tasks",
    "group": "a name",
    "tasks": "names, each with the keys of that task",
    "metadata": "keys with values",
    "generation_kwargs": "keys with values, such as {max_gen_toks: 64}",
    "metric_list": "a list, such as [{metric: acc}]",
}


def _check_keys(content: Keys, file: Path) -> None:
    """Check the form of the keys that are read here, also those of each of several tasks.

    Raises:
        DataError: One has another form; the line names what is legal.
    """
    _check_form(content, f"{file}")
    for name, variant in (content.get(TASKS) or {}).items():
        _check_form(variant or {}, f"{file}: tasks: {name}")
    has_group = content.get("group") is not None
    if has_group and not content.get("task") and CARD not in content:
        raise DataError(f"{file}: group has no key task; it is legal with a list of tasks")


def _check_form(keys: Keys, location: str) -> None:
    try:
        _TaskKeys.model_validate(keys)
    except ValidationError as error:
        key = str(error.errors(include_url=False)[0]["loc"][0])
        raise DataError(f"{location}: {key} is not legal; legal: {_LEGAL_KEYS[key]}") from None
    tokens = (keys.get("generation_kwargs") or {}).get("max_gen_toks", 1)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise DataError(
            f"{location}: generation_kwargs: max_gen_toks {tokens} is not legal; legal: a number "
            "of tokens from 1"
        )


def _user_task(name: str, file: Path, content: Keys, card: Card | None) -> UserTask:
    """Return what a file says about one of its tasks."""
    keys = {**content, **_keys_of_variant(name, file, content)}
    metrics = _metrics(keys, card)
    problems = [*_output_problems(keys), *_metric_problems(metrics, card)]
    if card is not None and not isinstance((keys.get("metadata") or {}).get("version"), str):
        problems.append('metadata has no version, a text in quotes, such as version: "1.0"')
    return UserTask(
        name=name,
        file=file,
        card=card,
        ships=card is not None and card.name in cards(),
        output_type=str(keys.get("output_type") or _DEFAULT_OUTPUT_TYPE),
        max_new_tokens=_max_new_tokens(keys),
        metrics=metrics,
        problems=tuple(problems),
    )


def _keys_of_variant(name: str, file: Path, content: Keys) -> Keys:
    """Return the keys that a task has beyond those of its file; a file that includes one wins."""
    variant = dict((content.get(TASKS) or {}).get(name) or {})
    keys_of_file = read_yaml(file, TypeAdapter(dict[str, Any]))
    if TASKS in keys_of_file:
        return variant
    return {key: value for key, value in variant.items() if key not in keys_of_file}


def _metrics(keys: Keys, card: Card | None) -> tuple[str, ...]:
    """Return the names of a task's metrics, the headline first."""
    names = []
    for entry in keys.get("metric_list") or ():
        names.append(str(entry.get("metric")) if isinstance(entry, Mapping) else str(entry))
    if card is None:
        return tuple(names)
    names = names or list(card.metrics)
    headline = card.headline_of(names)
    return tuple(sorted(names, key=lambda name: name != headline))


def _metric_problems(metrics: tuple[str, ...], card: Card | None) -> Iterator[str]:
    if card is None:
        return
    for name in metrics:
        if name not in card.metrics and name not in card.measures:
            available = ", ".join(card.metrics)
            yield f"metric_list has {name}, which the card lacks; it has: {available}"


def _max_new_tokens(keys: Keys) -> int | None:
    if (keys.get("output_type") or _DEFAULT_OUTPUT_TYPE) != "generate_until":
        return None
    tokens = (keys.get("generation_kwargs") or {}).get("max_gen_toks")
    return tokens if isinstance(tokens, int) else None


def _output_problems(keys: Keys) -> Iterator[str]:
    """Yield what is missing or wrong about the kind of request and the length of answers."""
    output_type = keys.get("output_type")
    if output_type is not None and output_type not in OUTPUT_TYPES:
        yield f"output_type {output_type} is not legal; legal: {', '.join(OUTPUT_TYPES)}"
        return
    asks_loglikelihood = str(keys.get("class", "")).endswith(_LOGLIKELIHOOD_CLASS)
    if asks_loglikelihood and output_type != "loglikelihood":
        value = "missing" if output_type is None else output_type
        yield f"output_type is {value}, and its class needs output_type: loglikelihood"
        return
    if output_type is None:
        yield (
            "output_type is missing, so lm-eval takes generate_until; add output_type: "
            "generate_until, or loglikelihood"
        )
    if (output_type or _DEFAULT_OUTPUT_TYPE) == "generate_until" and not _max_new_tokens(keys):
        yield (
            "generation_kwargs has no max_gen_toks, so each model's default decides how long "
            "answers may be (mostly 256 tokens); add generation_kwargs: {max_gen_toks: 64}, or as "
            "many as answers need"
        )
