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
_NAME, _COUNT = 36, 9
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
    """Every task and group that ships, with its size and where its data come from.

    A group stands before its members, with the sums of their sizes.
    """

    def row(task: str, card: Card, facts: list[TaskFacts], description: str) -> TaskRow:
        documents = sum(fact.documents for fact in facts)
        requests = sum(fact.requests for fact in facts)
        return TaskRow(task, card.name, documents, requests, _where(facts), description)

    rows = []
    for card in cards().values():
        for group, members in card.groups.items():
            facts = [card.tasks[member] for member in members]
            rows.append(row(group, card, facts, f"All of: {', '.join(members)}"))
        rows += [row(task, card, [fact], fact.description) for task, fact in card.tasks.items()]
    return rows


def _where(facts: list[TaskFacts]) -> str:
    if any(fact.is_user_data for fact in facts):
        return "your own"
    if not any(fact.sources for fact in facts):
        return "embedded"
    return "available" if all(fact.available for fact in facts) else "to fetch"


def matching(only: str) -> list[TaskRow]:
    """The tasks and groups of a benchmark, of a group, or that a pattern matches; all for "".

    Raises:
        OptionError: If there is none.
    """
    rows = task_rows()
    if not only:
        return rows
    members = {name: group for card in cards().values() for name, group in card.groups.items()}
    found = [
        row
        for row in rows
        if row.benchmark == only or row.task in members.get(only, ()) or fnmatchcase(row.task, only)
    ]
    if not found:
        near = nearest(only, [*cards(), *(row.task for row in rows)])
        raise OptionError(
            f"no benchmark, group or task is called {only}"
            + (near or f"; benchmarks are {', '.join(cards())}")
        )
    return found


def write_plain(folder: Path) -> None:
    """Writes a file for each task and group, as lm-eval reads them without the start-up file."""
    with atomic_folder(folder) as part:
        for card in cards().values():
            for task in card.tasks:
                text = f"include: {tasks_folder()}/{card.name}.yaml\ntask: {task}\n"
                (part / f"{task}.yaml").write_text(text, encoding="utf-8")
            for group, members in card.groups.items():
                text = f"group: {group}\ntask: [{', '.join(members)}]\n"
                (part / f"{group}.yaml").write_text(text, encoding="utf-8")


def lines(rows: Sequence[TaskRow], *, overview: bool = False) -> Iterator[str]:
    """Yields the list; in an overview groups and embedded tasks stand for the others."""
    for name, card in cards().items():
        own = [row for row in rows if row.benchmark == name]
        if not own:
            continue
        first = [*card.groups, f"{name}_mini"]
        shown = [row for row in own if row.task in first] if overview else own
        yield from wrap(card.title, WIDTH)
        yield f"  facets: {', '.join(card.facets)}"
        yield f"  {'task':{_NAME}}{'documents':>{_COUNT}} {'requests':>{_COUNT}}  data"
        for row in shown:
            counts = [f"{count:,}" if count else "-" for count in (row.documents, row.requests)]
            yield f"  {row.task:{_NAME}}{counts[0]:>{_COUNT}} {counts[1]:>{_COUNT}}  {row.data}"
            if not overview:
                yield from wrap(
                    row.description, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
                )
        if overview:
            yield f"  all {len(own)}, with descriptions: lm-eval-ext tasks {name}"
        yield ""
