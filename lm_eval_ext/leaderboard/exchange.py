"""``results.json``: all figures of a page in a published format, to be merged with those of others.

The format is that of the classes here; ``results.schema.json`` beside it is their JSON schema.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    ValidationError,
)

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import card_of
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.leaderboard.board import Board, Model, Past, Run, TaskBoard, arranged
from lm_eval_ext.results.about import About
from lm_eval_ext.results.files import Score, Tokens
from lm_eval_ext.text import one_line

NAME, SCHEMA = "results.json", "results.schema.json"

_LONGEST = 2000
"""Characters of a text from elsewhere that are kept."""

Interval = Annotated[
    tuple[FiniteFloat, FiniteFloat] | None, Field(description="95 % interval: low, high")
]
Documents = Annotated[
    tuple[int, int], Field(description="documents that were scored, and that the task has")
]
Signature = Annotated[str, Field(description="all that the score depends on, in one line")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ScoreEntry(_Entry):
    """A metric's value, standard error and interval; null where there is none."""

    value: FiniteFloat | None
    stderr: FiniteFloat | None = None
    interval: Interval = None
    method: str | None = None
    """How the interval was made."""
    clusters: int | None = None
    """Of the documents that the metric is about."""
    documents: int | None = None
    """That the metric is about."""
    level: int = 0
    """Which of the task's kinds of clusters they are."""


class PastEntry(_Entry):
    """A result of the same model on the same task, on the leading metric."""

    date: str
    value: FiniteFloat | None
    interval: Interval = None
    documents: Documents
    signature: Signature


class RunEntry(_Entry):
    """A model's scores on a task."""

    scores: dict[str, ScoreEntry]
    """By metric."""
    documents: Documents
    signature: Signature
    date: str = ""
    seconds: FiniteFloat | None = None
    """What the run took; all its tasks together."""
    together: int = 1
    """The number of tasks of that run."""
    tokens: tuple[NonNegativeInt, NonNegativeInt] | None = None
    """Of requests and of answers, by the model's tokenizer."""
    history: tuple[PastEntry, ...] = ()
    """All results on this task, the oldest first; empty if there is one."""


class TaskEntry(_Entry):
    """A task with the runs on it."""

    name: str
    benchmark: str
    """Of this project; empty for other tasks."""
    leading: str
    """The metric that stands for the task in the overview."""
    lower: tuple[str, ...] = ()
    """Metrics for which lower is better."""
    runs: dict[str, RunEntry]
    """By the model's label."""


class AboutEntry(_Entry):
    """What is known of a model."""

    family: str = ""
    size: FiniteFloat | None = None
    """Number of parameters."""
    weights: Literal["open", "closed", ""] = ""
    licence: str = ""
    date: str = ""
    price: tuple[NonNegativeFloat, NonNegativeFloat] | None = None
    """Of a million tokens of input and of output."""


class ModelEntry(_Entry):
    """A model."""

    label: str
    notes: str = ""
    arguments: str = ""
    about: AboutEntry = AboutEntry()


class Published(_Entry):
    """A leaderboard's results."""

    schema_: Annotated[str, Field(alias="$schema")] = SCHEMA
    format: Literal[1] = 1
    """Rises when a program that reads the format has to be changed."""
    program: str = ""
    """What wrote the file, with its version."""
    models: tuple[ModelEntry, ...]
    tasks: tuple[TaskEntry, ...]


def schema() -> str:
    """The JSON schema of the format, as text."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found |= Published.model_json_schema()
    return json.dumps(found, indent=2) + "\n"


def write(board: Board, site: Path) -> None:
    """Writes the results of a board, and the schema beside them."""
    from lm_eval_ext import __version__

    found = Published(
        program=f"lm-eval-ext {__version__}",
        models=tuple(
            ModelEntry(
                label=one.label,
                notes=one.notes,
                arguments=one.arguments,
                about=AboutEntry(**asdict(one.about)),
            )
            for one in board.models
        ),
        tasks=tuple(
            TaskEntry(
                name=task.name,
                benchmark=task.benchmark,
                leading=task.leading,
                lower=tuple(sorted(task.lower)),
                runs={label: _run_entry(run) for label, run in task.runs.items()},
            )
            for task in board.tasks
        ),
    )
    with atomic_text(site / NAME) as out:
        out.write(found.model_dump_json(indent=1, by_alias=True) + "\n")
    with atomic_text(site / SCHEMA) as out:
        out.write(schema())


def _run_entry(run: Run) -> RunEntry:
    content = asdict(replace(run, samples=None, differs=()))
    del content["samples"], content["differs"]
    return RunEntry.model_validate(_finite(content))


def _finite(content: Any) -> Any:
    """The same without numbers that are none: JSON has no such."""
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def read(file: Path) -> Board:
    """Reads the results of another page.

    Raises:
        OptionError: If there is no such file.
        DataError: If it is not of this format; the key is named.
    """
    try:
        found = Published.model_validate_json(file.read_bytes())
    except OSError as error:
        raise OptionError(f"cannot read {file}: {error.strerror}") from None
    except ValidationError as error:
        raise DataError(
            f"{file}: not the results.json of a leaderboard ({first_problem(error)})"
        ) from None
    models = [
        Model(
            label=_text(one.label),
            notes=_text(one.notes),
            arguments=_text(one.arguments),
            about=About(**{k: _text(v) for k, v in one.about.model_dump().items()}),
            source=_text(file.stem),
        )
        for one in found.models
    ]
    labels = {model.label for model in models}
    tasks = [
        TaskBoard(
            name=_text(task.name),
            benchmark=card.name if (card := card_of(task.name)) else "",
            leading=_text(task.leading),
            lower=frozenset(map(_text, task.lower)),
            runs={_text(name): _run(run) for name, run in task.runs.items()},
        )
        for task in found.tasks
        if task.runs
    ]
    for task in tasks:
        if unknown := task.runs.keys() - labels:
            raise DataError(f"{file}: {task.name} has runs of {min(unknown)!r}, no model there")
    return arranged(models, tasks)


def _text(value: Any) -> Any:
    return one_line(value, limit=_LONGEST) if isinstance(value, str) else value


def _run(entry: RunEntry) -> Run:
    return Run(
        scores={_text(name): Score(**dict(score)) for name, score in entry.scores.items()},
        documents=entry.documents,
        signature=_text(entry.signature),
        date=_text(entry.date),
        seconds=entry.seconds,
        together=entry.together,
        tokens=Tokens(*entry.tokens) if entry.tokens else None,
        history=tuple(Past(**dict(past)) for past in entry.history),
    )


def merged(own: Board | None, others: Iterable[Board]) -> Board:
    """Adds the results of other pages to a board.

    A model of the same name is the same if its arguments are, and no figure differs; what
    both have is taken from the first. Other models of that name get their file's added to it.
    """
    models = {model.label: model for model in own.models} if own else {}
    tasks = {task.name: task for task in own.tasks} if own else {}
    for other in others:
        labels = {model.label: _label(model, other, models, tasks) for model in other.models}
        for model in other.models:
            models.setdefault(labels[model.label], replace(model, label=labels[model.label]))
        for task in other.tasks:
            known = tasks.setdefault(task.name, replace(task, runs={}))
            known.lower |= task.lower
            for name, run in task.runs.items():
                known.runs.setdefault(labels[name], run)
    return arranged(models.values(), tasks.values())


def _label(
    model: Model, other: Board, models: Mapping[str, Model], tasks: Mapping[str, TaskBoard]
) -> str:
    known = models.get(model.label)
    if known is None or (
        known.arguments == model.arguments and not _conflicts(model.label, other.tasks, tasks)
    ):
        return model.label
    label, count = f"{model.label} · {model.source}", 1
    while label in models:
        count += 1
        label = f"{model.label} · {model.source} ({count})"
    return label


def _conflicts(label: str, others: Sequence[TaskBoard], tasks: Mapping[str, TaskBoard]) -> bool:
    both = [
        (task.runs[label], tasks[task.name].runs[label])
        for task in others
        if label in task.runs and label in (tasks[task.name].runs if task.name in tasks else {})
    ]
    return any(
        one.signature != two.signature or one.documents != two.documents or one.scores != two.scores
        for one, two in both
    )
