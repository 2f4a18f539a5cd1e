"""The list of tasks, as ``lm-eval-ext tasks`` prints it: 80 columns, no name cut off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import wrap

from lm_eval_ext.atomic import atomic_folder
from lm_eval_ext.cards import Card, TaskFacts, cards
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.task_folder import tasks_folder

WIDTH = 80
_NAME_WIDTH, _COUNT_WIDTH = 36, 9
_INDENT = "    "


@dataclass(frozen=True)
class TaskRow:
    """One row in the list of tasks."""

    task: str
    benchmark: str
    documents: int
    requests: int
    data: str
    description: str


def task_rows() -> list[TaskRow]:
    """Return every task and group that ships, with its size and where its data come from.

    A group stands before its members, with the sums of their sizes.
    """
    rows = []
    for card in cards().values():
        for group, members in card.groups.items():
            facts = [card.tasks[member] for member in members]
            rows.append(_task_row(group, card, facts, f"All of: {', '.join(members)}"))
        for task, fact in card.tasks.items():
            rows.append(_task_row(task, card, [fact], fact.description))
    return rows


def _task_row(task: str, card: Card, facts: list[TaskFacts], description: str) -> TaskRow:
    """Return the row of a task, or of a group of several."""
    return TaskRow(
        task=task,
        benchmark=card.name,
        documents=sum(fact.documents for fact in facts),
        requests=sum(fact.requests for fact in facts),
        data=_data_state(facts),
        description=description,
    )


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
            hint = f"; benchmarks are {', '.join(cards())}"
        raise OptionError(f"no benchmark, group or task is called {name}{hint}")
    return matches


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
        yield ""


def _row_line(row: TaskRow) -> str:
    """Return the line of a task; a size that is not known is a dash."""
    documents = f"{row.documents:,}" if row.documents else "-"
    requests = f"{row.requests:,}" if row.requests else "-"
    return _columns(row.task, documents, requests, row.data)


def _columns(task: str, documents: str, requests: str, data: str) -> str:
    return f"  {task:{_NAME_WIDTH}}{documents:>{_COUNT_WIDTH}} {requests:>{_COUNT_WIDTH}}  {data}"
