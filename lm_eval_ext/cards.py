"""Every benchmark's card, read and checked, and the list of tasks made from them.

A card (``benchmarks/<name>/card.yaml``) says in one place what users need to know before a run: the
paper, the tasks with their sizes, the headline metrics, human performance. The tests compare the
cards with the task files and, where they are available locally, with the data.

Importing this module or reading a card imports neither lm-eval nor a benchmark.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lm_eval_ext import data
from lm_eval_ext.errors import DataError, first_problem

PART = ":"
"""Between a metric and the part of the documents that it is over."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Paper(_Strict):
    """The publication that a benchmark comes from."""

    title: str
    authors: str
    venue: str
    url: str


class Cluster(_Strict):
    """What a benchmark's documents are clustered by for standard errors.

    Attributes:
        unit: What a cluster is, for display.
        column: Of the logged documents: which cluster a document belongs to.
        any_case: Whether names that differ only in case are one cluster (SQLite's databases).
        documents_within: Whether a metric about a single cluster takes each document as a
            cluster, as the benchmark's own standard errors do.
    """

    unit: str
    column: str
    any_case: bool = False
    documents_within: bool = False


class TaskFacts(_Strict):
    """One task: its content and its size.

    ``documents`` are what ``--limit`` counts, ``sources`` those of ``data/sources.yaml`` that it
    needs. A task that asks about the user's own documents has no numbers.
    """

    description: str
    documents: int = Field(0, ge=0)
    requests: int = Field(0, ge=0)
    sources: tuple[str, ...] = ()
    asks_own: bool = False

    @model_validator(mode="after")
    def _sized(self) -> "TaskFacts":
        if self.asks_own == bool(self.documents and self.requests):
            raise ValueError("give documents and requests, or asks_own: true")
        return self

    @property
    def available(self) -> bool:
        """Whether every file that the task needs is available locally."""
        return all(data.available(source) for source in self.sources)


class Reference(_Strict):
    """Published values for some of a benchmark's tasks, shown beside ours."""

    label: str
    tasks: tuple[str, ...]
    figures: dict[str, float]


class Figure(_Strict):
    """A table of a benchmark's page section: what its paper shows.

    Attributes:
        title: What it shows.
        tasks: One table for each, with the metrics as columns; or, with ``columns``, none.
        metrics: Names as in results; a name without a variant (``mean`` for ``direct/mean``)
            stands for all variants.
        parts: Of the card's; a table for each, of the metrics over this part alone.
        columns: By heading, ``task metric``: a table over several tasks.
    """

    title: str
    tasks: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    columns: dict[str, Annotated[str, Field(pattern=r"^\S+ \S+$")]] = {}

    @model_validator(mode="after")
    def _one_kind(self) -> "Figure":
        if bool(self.columns) == bool(self.tasks and self.metrics):
            raise ValueError("give tasks and metrics, or columns")
        return self


class Card(_Strict):
    """A benchmark.

    Attributes:
        cluster: What standard errors are clustered on.
        item: Columns of the logged documents that identify the item a document is about, across the
            benchmark's tasks; none if tasks cannot be compared item by item.
        statistics: For metrics that aren't averages of documents' scores, by the name of their
            aggregation: ``module:object`` of the
            :class:`~lm_eval_ext.results.samples.SampleStatistic` that recomputes them.
        headline: The metrics that summarise it, first the one to rank by.
        leading: Metrics that can represent a task alone, the preferred one first; for a task
            without any of them, the headline's first.
        parts: Of the documents, such as sentence families: every metric is also reported over
            each alone, as ``metric:part``.
        figures: The tables that the leaderboard shows beside the headline, the paper's own first.
        chance: Scores of random guessing on the headline metrics.
        references: Published results, shown beside ours.
        tasks: By name.
        groups: lm-eval groups, by name: their members.
    """

    name: str
    title: str
    paper: Paper
    cluster: Cluster
    item: tuple[str, ...] = ()
    statistics: dict[str, Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]] = {}
    headline: tuple[str, ...]
    leading: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    chance: float | None = None
    references: tuple[Reference, ...] = ()
    tasks: dict[str, TaskFacts]
    groups: dict[str, tuple[str, ...]] = {}

    def whole_and_part(self, name: str) -> tuple[str, str]:
        """Splits ``metric:part``; the part is "" for a metric over all documents."""
        whole, _, part = name.rpartition(PART)
        return (whole, part) if part in self.parts else (name, "")


_QUICK: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Of libyaml, if PyYAML has it: a tenth of the time, in every command that reads a card."""


@cache
def cards() -> Mapping[str, Card]:
    """Returns all cards by benchmark, in alphabetical order.

    Raises:
        DataError: If a card is malformed; file and key are named.
    """
    found = {}
    for folder in sorted(files("lm_eval_ext.benchmarks").iterdir(), key=lambda place: place.name):
        place = folder / "card.yaml"
        if not place.is_file():
            continue
        try:
            # Through JSON, where a strict model takes a list for a tuple.
            content = json.dumps(yaml.load(place.read_text(encoding="utf-8"), _QUICK))
            card = Card.model_validate_json(content)
        except ValidationError as error:
            raise DataError(f"{place}: {first_problem(error)}") from None
        except yaml.YAMLError as error:
            raise DataError(f"{place}: not valid YAML: {error}") from None
        found[card.name] = card
    return MappingProxyType(found)


def card_of(task: str) -> Card | None:
    """The card of the benchmark that a task belongs to, or None if the task is not ours."""
    return next((card for card in cards().values() if task in card.tasks), None)


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
    if any(fact.asks_own for fact in facts):
        return "your own"
    if not any(fact.sources for fact in facts):
        return "embedded"
    return "available" if all(fact.available for fact in facts) else "to fetch"
