"""Every benchmark's card, read and checked.

A card (``benchmarks/<name>/card.yaml``) says in one place what users need to know before a run: the
paper, the tasks with their sizes, the metrics to look at first, human performance. Tests compare
cards with the task files and, where they are available locally, with the data.

Importing this module or reading a card imports neither lm-eval nor a benchmark.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from lm_eval_ext import data
from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.stats.intervals import level_of

T = TypeVar("T")

PART = ":"
"""Between a metric and the part of the documents that it is over."""

VARIANT = "/"
"""Between a metric's variant and its name, as in ``direct/mean``."""


def _is_called(metric: str, name: str) -> bool:
    """Whether a metric has this name, with or without its variant (and its filter)."""
    plain = metric.partition(",")[0]
    return name in (metric, plain, plain.rpartition(VARIANT)[2])


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Paper(_Strict):
    """The publication that a benchmark comes from."""

    title: str
    authors: str
    venue: str
    url: str


class Level(_Strict):
    """What documents are clustered by where all are from one coarser cluster; as `Cluster`."""

    unit: str
    column: str


class Cluster(_Strict):
    """What a benchmark's documents are clustered by for standard errors.

    Attributes:
        unit: What a cluster is, for display.
        column: Of the logged documents: which cluster a document belongs to.
        any_case: Whether names that differ only in case are one cluster (SQLite's databases).
        documents_within: Whether a metric about a single cluster takes each document as a
            cluster, as the benchmark's own standard errors do.
        own_within: Of users' own documents from a single cluster: finer clusters
            (:func:`~lm_eval_ext.stats.intervals.level_of`).
    """

    unit: str
    column: str
    any_case: bool = False
    documents_within: bool = False
    own_within: tuple[Level, ...] = ()

    def name(self, value: Any) -> str:
        """The name of the cluster that a document with this value is in."""
        return str(value).casefold() if self.any_case else str(value)

    def of(self, columns: Mapping[str, Sequence[Any]], *, own: bool) -> tuple[int, list[str]]:
        """The level of clusters of documents, and the cluster of each.

        Args:
            columns: Of the documents, with the column of the clusters, by name.
            own: Whether the documents are a user's own.
        """
        levels = [[self.name(value) for value in columns[self.column]]]
        for finer in self.own_within if own else ():
            levels.append([str(value) for value in columns[finer.column]])
        level = level_of(levels)
        return level, levels[level]

    def unit_at(self, level: int) -> str:
        """What a cluster is, at a level that the results file notes."""
        return (self.unit, *(one.unit for one in self.own_within))[level]


class Trial(_Strict):
    """Which documents ``--limit`` takes first.

    Attributes:
        across: Columns of the documents that a trial is spread over, the most important first.
        together: The column of which documents with the same value are taken together.
    """

    across: tuple[str, ...]
    together: str = ""


class TaskFacts(_Strict):
    """One task: its content and its size.

    ``documents`` are what ``--limit`` counts, ``sources`` those of ``data/sources.yaml`` that it
    needs; ``cites`` are works on other data, in their form of citation. A task that asks about the
    user's own documents has no numbers.
    """

    description: str
    documents: int = Field(0, ge=0)
    requests: int = Field(0, ge=0)
    sources: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
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
        headlines: The one metric that stands for a task is the first of these that it has.
        summary: The metrics to look at first, the headline aside; a name without its variant
            (``mean`` for ``direct/mean``) stands for all variants.
        undefined: By aggregation, when its value is not defined; ends "N/A where ...".
        trial: What ``--limit`` takes.
        names: Of metrics for readers, where :func:`readable` would not find them: of whole ones
            (``exact_match/all``), or of what stands before or after the slash.
        parts: Of the documents, such as sentence families: every metric is also reported over
            each alone, as ``metric:part``.
        figures: The tables that the leaderboard shows beside the headline, the paper's own first.
        chance: Scores of random guessing on the metrics of the summary.
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
    headlines: tuple[str, ...]
    summary: tuple[str, ...]
    undefined: dict[str, str] = {}
    trial: Trial | None = None
    names: dict[str, str] = {}
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

    def asks_own(self, task: str) -> bool:
        """Whether a task asks about the user's own documents."""
        return task in self.tasks and self.tasks[task].asks_own

    def headline_of(self, metrics: Iterable[str]) -> str:
        """The one metric that stands for a task with these metrics; "" if it has none."""
        there = list(metrics)
        wanted = (*self.headlines, *self.summary)
        return next((one for name in wanted for one in there if _is_called(one, name)), "")

    def first_of(self, metrics: Iterable[str]) -> list[str]:
        """The headline of a task with these metrics, and then its summary, in the card's order."""
        there = list(metrics)
        found = [self.headline_of(there)] if there else []
        found += [one for name in self.summary for one in there if _is_called(one, name)]
        return [one for one in dict.fromkeys(found) if one]

    def published(self, task: str, metrics: Iterable[str]) -> dict[str, dict[str, float]]:
        """Published values of a task's metrics: by label, then by metric.

        A value under a name without a variant belongs to the task's first variant.
        """
        first: dict[str, str] = {}
        for metric in metrics:
            for name in (metric, metric.rpartition(VARIANT)[2]):
                first.setdefault(name, metric)
        found: dict[str, dict[str, float]] = {}
        for one in self.references:
            if task in one.tasks:
                known = {first[name]: value for name, value in one.figures.items() if name in first}
                found.setdefault(one.label, {}).update(known)
        return {label: figures for label, figures in found.items() if figures}


_QUICK: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Of libyaml, if PyYAML has it: a tenth of the time, in every command that reads a card."""


def in_benchmarks(file: str, model: TypeAdapter[T]) -> dict[str, T]:
    """Reads a YAML file from the folder of every benchmark that has it, by folder.

    Raises:
        DataError: If one is malformed; file and key are named.
    """
    found = {}
    for folder in sorted(files("lm_eval_ext.benchmarks").iterdir(), key=lambda place: place.name):
        place = folder / file
        if not place.is_file():
            continue
        try:
            # Through JSON, where a strict model takes a list for a tuple.
            content = json.dumps(yaml.load(place.read_text(encoding="utf-8"), _QUICK))
            found[folder.name] = model.validate_json(content)
        except ValidationError as error:
            raise DataError(f"{place}: {first_problem(error)}") from None
        except yaml.YAMLError as error:
            raise DataError(f"{place}: not valid YAML: {error}") from None
    return found


@cache
def cards() -> Mapping[str, Card]:
    """Returns all cards by benchmark, in alphabetical order.

    Raises:
        DataError: If a card is malformed; file and key are named.
    """
    found = in_benchmarks("card.yaml", TypeAdapter(Card)).values()
    return MappingProxyType({card.name: card for card in found})


def card_of(task: str) -> Card | None:
    """The card of the benchmark that a task belongs to, or None if the task is not ours."""
    return next((card for card in cards().values() if task in card.tasks), None)


def headline_of(task: str, metrics: Iterable[str]) -> str:
    """The one metric that stands for a task; of a task that isn't ours, its first."""
    there = list(metrics)
    card = card_of(task)
    found = card.headline_of(there) if card else ""
    return found or (there[0] if there else "")


def readable(task: str, metric: str) -> str:
    """A metric's name for readers: ``Relative performance, foreign (populated)``."""
    card = card_of(task)
    names = card.names if card else {}
    whole, part = card.whole_and_part(metric) if card else (metric, "")

    def one(text: str) -> str:
        # The comparisons of LIEDER are names that readers know from its paper.
        plain = text.replace(">", " > ") if ">" in text else text.replace("_", " ")
        return names.get(text, plain.replace("+", " + "))

    name = names.get(whole)
    if name is None:
        variant, _, last = whole.rpartition(VARIANT)
        name, *parts = (one(piece) for piece in last.split(PART))
        name = ", ".join([name[:1].upper() + name[1:] if ">" not in name else name, *parts])
        name += f" ({one(variant)})" if variant else ""
    return f"{name}, {one(part)}" if part else name
