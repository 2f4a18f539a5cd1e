"""The list of tasks, as ``lm-eval-ext tasks`` prints it: 80 columns, no name cut off.

The times in it are rough: they follow from the number of requests and the longest answers, at the
speed of a small model on one CPU thread, which is what was measured (docs/results.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import wrap

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.cards import Card, TaskFacts, cards
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.task_folder import tasks_folder
from lm_eval_ext.task_settings import TaskSettings, task_settings
from lm_eval_ext.text import counted

WIDTH = 80
_NAME_WIDTH, _COUNT_WIDTH = 36, 9
_INDENT = "    "

LOGPROBS_PER_S = 25
"""Log-probabilities that SmolLM2-135M gives in a second, with ``hf-prefix`` and one CPU thread."""

NEW_TOKENS_PER_S = 50
"""Tokens that it writes in a second, over all answers of a batch."""

GPU_FACTOR = 10
"""How many times as fast the machine of docs/index.md is, which writes 500 tokens a second: an
estimate, as there."""

_HOUR = 60
_DAY = 24 * _HOUR

MODELS_NEEDED = {
    "loglikelihood": (
        "models: those that return log-probabilities of given texts: local ones (hf, hf-prefix), "
        "and completions servers that echo a prompt with its log-probabilities; not APIs for chat "
        "only"
    ),
    "generate_until": (
        "models: any that write answers: local ones (hf, hf-prefix, vllm), servers, APIs for chat"
    ),
}
"""The models that can answer, by lm-eval's name of the kind of request."""


@dataclass(frozen=True)
class TaskRow:
    """One row in the list of tasks.

    Attributes:
        task: The name of the task or group.
        benchmark: The benchmark's name.
        documents: The number of documents; 0 if it is not known.
        requests: The number of requests to the model; 0 if it is not known.
        data: Whether the data are there.
        description: One line.
        output_type: The kind of request, by lm-eval's name.
        max_new_tokens: The most tokens that an answer has; 0 where nothing is generated.
        cpu_minutes: Roughly how long SmolLM2-135M takes on one CPU thread; where answers are
            generated, if each is as long as it may be. None if the size is not known.
    """

    task: str
    benchmark: str
    documents: int
    requests: int
    data: str
    description: str
    output_type: str
    max_new_tokens: int
    cpu_minutes: float | None


def task_rows() -> list[TaskRow]:
    """Return every task and group that ships, with its size and where its data come from.

    A group stands before its members, with the sums of their sizes.
    """
    rows = []
    for card in cards().values():
        for group, members in card.groups.items():
            rows.append(_task_row(group, card, members, f"All of: {', '.join(members)}"))
        for task, fact in card.tasks.items():
            rows.append(_task_row(task, card, (task,), fact.description))
    return rows


def _task_row(name: str, card: Card, members: Sequence[str], description: str) -> TaskRow:
    """Return the row of a task, or of a group of several."""
    facts = [card.tasks[member] for member in members]
    settings = [task_settings(member) for member in members]
    seconds = 0.0
    for fact, setting in zip(facts, settings, strict=True):
        seconds += _cpu_seconds(fact, setting)
    return TaskRow(
        task=name,
        benchmark=card.name,
        documents=sum(fact.documents for fact in facts),
        requests=sum(fact.requests for fact in facts),
        data=_data_state(facts),
        description=description,
        output_type=settings[0].output_type,
        max_new_tokens=max(setting.max_new_tokens for setting in settings),
        cpu_minutes=seconds / 60 if seconds else None,
    )


def _cpu_seconds(facts: TaskFacts, settings: TaskSettings) -> float:
    """Return how long a task's requests take at the measured speeds."""
    if settings.output_type == "loglikelihood":
        return facts.requests / LOGPROBS_PER_S
    return facts.requests * settings.max_new_tokens / NEW_TOKENS_PER_S


def duration(minutes: float) -> str:
    """Return a rough time in words: ``under 1 minute``, ``3 hours``."""
    if minutes < 1:
        return "under 1 minute"
    if minutes < 2 * _HOUR:
        return counted(round(minutes), "minute")
    if minutes < 2 * _DAY:
        return counted(round(minutes / _HOUR), "hour")
    return counted(round(minutes / _DAY), "day")


def cost(row: TaskRow) -> str:
    """Return what a task asks of a model, and roughly how long that takes."""
    kind = "log-probabilities"
    if row.output_type != "loglikelihood":
        kind = f"answers of up to {row.max_new_tokens:,} tokens"
    if row.cpu_minutes is None:
        return kind
    cpu = duration(row.cpu_minutes)
    gpu = duration(row.cpu_minutes / GPU_FACTOR)
    if cpu == gpu:
        return f"{kind}: {cpu}"
    return f"{kind}: {cpu} on a CPU, {gpu} on a GPU"


def _data_state(facts: list[TaskFacts]) -> str:
    """Return whether the data of tasks are there."""
    if any(fact.is_user_data for fact in facts):
        return "your own"
    if not any(fact.sources for fact in facts):
        return "embedded"
    if all(fact.available for fact in facts):
        return "available"
    return "to fetch"


def matching(name: str) -> list[TaskRow]:
    """Return tasks and groups.

    Args:
        name: A benchmark, a group, a task or a pattern; "" for all tasks.

    Raises:
        OptionError: None has the name.
    """
    rows = task_rows()
    if not name:
        return rows
    members: dict[str, tuple[str, ...]] = {}
    for card in cards().values():
        members.update(card.groups)
    matches = []
    for row in rows:
        if (
            row.benchmark == name
            or row.task in members.get(name, ())
            or fnmatchcase(row.task, name)
        ):
            matches.append(row)
    if not matches:
        hint = nearest(name, [*cards(), *(row.task for row in rows)])
        if not hint:
            hint = f"; benchmarks are {', '.join(cards())}; for tasks of your own give their file"
        raise OptionError(f"no benchmark, group or task is called {name}{hint}")
    return matches


def is_name(name: str) -> bool:
    """Return whether a benchmark, group or task of ours has this very name."""
    return any(name in (row.task, row.benchmark) for row in task_rows())


def write_plain(folder: Path) -> None:
    """Write a file for each task and group, as lm-eval reads them without the start-up file."""
    with atomic_folder(folder) as unfinished:
        for card in cards().values():
            for task in card.tasks:
                text = f"include: {tasks_folder()}/{card.name}.yaml\ntask: {task}\n"
                (unfinished / f"{task}.yaml").write_text(text, encoding="utf-8")
            for group, members in card.groups.items():
                text = f"group: {group}\ntask: [{', '.join(members)}]\n"
                (unfinished / f"{group}.yaml").write_text(text, encoding="utf-8")


def lines(rows: Sequence[TaskRow], *, overview: bool = False) -> Iterator[str]:
    """Yield the list; in an overview groups and embedded tasks stand for the others."""
    for name, card in cards().items():
        benchmark_rows = [row for row in rows if row.benchmark == name]
        if not benchmark_rows:
            continue
        yield from wrap(card.title, WIDTH)
        yield f"  facets: {', '.join(card.facets)}"
        if not overview:
            yield from wrap(
                MODELS_NEEDED[benchmark_rows[0].output_type],
                WIDTH,
                initial_indent="  ",
                subsequent_indent=_INDENT,
            )
        yield _columns("task", "documents", "requests", "data")
        if overview:
            representatives = {*card.groups, f"{name}_mini"}
            for row in benchmark_rows:
                if row.task in representatives:
                    yield _row_line(row)
            yield f"  all {len(benchmark_rows)}, with descriptions: lm-eval-ext tasks {name}"
        else:
            for row in benchmark_rows:
                yield _row_line(row)
                yield from wrap(
                    row.description, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
                )
                yield f"{_INDENT}{cost(row)}"
        yield ""
    if not overview:
        yield from wrap(
            "Times are rough. CPU: a model of 135 million weights with hf-prefix on one thread, "
            f"measured at {LOGPROBS_PER_S} log-probabilities or {NEW_TOKENS_PER_S} new tokens a "
            f"second. GPU: an estimate, {GPU_FACTOR} times as fast. Larger models take longer in "
            "proportion to their weights. Answers count as long as they may be; most are shorter. "
            "Loading, and reading prompts of thousands of tokens, come on top.",
            WIDTH,
        )


def _row_line(row: TaskRow) -> str:
    """Return the line of a task; a size that is not known is a dash."""
    documents = f"{row.documents:,}" if row.documents else "-"
    requests = f"{row.requests:,}" if row.requests else "-"
    return _columns(row.task, documents, requests, row.data)


def _columns(task: str, documents: str, requests: str, data: str) -> str:
    return f"  {task:{_NAME_WIDTH}}{documents:>{_COUNT_WIDTH}} {requests:>{_COUNT_WIDTH}}  {data}"
