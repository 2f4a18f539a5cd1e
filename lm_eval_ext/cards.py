"""Every benchmark's card, read and checked.

A card says in one place what users need to know before a run: the paper, tasks with their sizes,
what can be asked of their scores, human performance. It lies in the benchmark's task file. Of a
benchmark that does not ship, results files have the card.

Importing this module or reading a card imports neither lm-eval nor a benchmark.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from lm_eval_ext import data
from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import Exact, read_yaml
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.table import Row

PART = "/"
"""Between a measure and the part that a metric is about, as in ``direct/existence``."""

MOST_METRICS = 12
"""That a task may have in lm-eval's results. All else is a question to the table of scores."""


class Paper(Exact):
    """The publication that a benchmark comes from."""

    title: str
    authors: str
    venue: str
    url: str


class Level(Exact):
    """What documents are clustered by where all are from one coarser cluster; as `Cluster`."""

    unit: str
    column: str


class Cluster(Exact):
    """What a benchmark's documents are clustered by for standard errors.

    Attributes:
        unit: What a cluster is, for display.
        column: The column of the logged documents that names the cluster.
        any_case: Whether names that differ only in case are one cluster (SQLite's databases).
        documents_within: Whether a metric about a single cluster takes each document as a
            cluster, as the benchmark's own standard errors do.
        own_within: Finer clusters, where all of a user's own documents are from one cluster
            (:func:`~lm_eval_ext.stats.intervals.level_of`).
    """

    unit: str
    column: str
    any_case: bool = False
    documents_within: bool = False
    own_within: tuple[Level, ...] = ()

    def names(self, doc: Mapping[str, Any], *, own: bool) -> tuple[str, ...]:
        """The clusters that a document is in, from the coarsest to the finest.

        Args:
            doc: With the columns of the levels.
            own: Whether the documents are a user's own.
        """
        name = str(doc[self.column])
        found = [name.casefold() if self.any_case else name]
        if own:
            found += [str(doc[finer.column]) for finer in self.own_within]
        if self.documents_within:
            found.append(str(doc["id"]))
        return tuple(found)

    def unit_at(self, level: int) -> str:
        """What a cluster is, at a level that the results file notes."""
        return (self.unit, *(one.unit for one in self.own_within), "document")[level]


class Trial(Exact):
    """Which documents ``--limit N`` takes: N that are spread over all, not the first ones.

    The first documents of a file are often of one database or of one type. lm-eval takes them; a
    trial of ours takes documents in turn from every cluster, and of these from every kind. Smaller
    trials are parts of larger ones. Without a limit documents, their order and their ids are as
    ever.

    Attributes:
        across: Columns of the documents that a trial is spread over: the cluster, then the kind.
        together: The column of which documents with the same value are taken together.
    """

    across: tuple[str, ...]
    together: str = ""

    def order(self, docs: Any) -> Iterator[int]:
        """Yields the places of all documents, in the order in which trials take them.

        In every round it takes one of each cluster, and each time of the kind taken least so far.

        Args:
            docs: A data set.
        """
        units: dict[Any, list[int]] = {}
        together = docs[self.together][:] if self.together else range(len(docs))
        for place, unit in enumerate(together):
            units.setdefault(unit, []).append(place)
        members = list(units.values())
        columns = [docs[name][:] for name in self.across]
        waiting: dict[str, dict[tuple[str, ...], list[list[int]]]] = {}
        for number in shuffled(len(members), "trial"):
            cluster, *kind = (str(column[members[number][0]]) for column in columns)
            waiting.setdefault(cluster, {}).setdefault(tuple(kind), []).append(members[number])
        taken: Counter[tuple[str, ...]] = Counter()
        while waiting:
            of_round = dict(waiting)
            while of_round:
                there = ((kind, name) for name, own in of_round.items() for kind in own)
                least, cluster = min(there, key=lambda one: taken[one[0]])
                left = of_round.pop(cluster)
                yield from left[least].pop()
                taken[least] += 1
                if not left[least]:
                    del left[least]
                if not left:
                    del waiting[cluster]


class TaskFacts(Exact):
    """One task: its content and its size.

    ``documents`` are what ``--limit`` counts, ``sources`` those of ``data/sources.yaml`` that it
    needs; ``cites`` are works on other data, by key in ``citations.bib``. A task that asks about
    the user's own documents has no numbers, and others need none. ``title`` is for a column's
    head, within its benchmark.
    """

    title: str = ""
    description: str = ""
    documents: int = Field(0, ge=0)
    requests: int = Field(0, ge=0)
    sources: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    asks_own: bool = False

    @property
    def available(self) -> bool:
        """Whether every file that the task needs is available locally."""
        return all(data.available(source) for source in self.sources)


class Metric(Exact):
    """A metric of lm-eval: what it asks beyond its measure.

    Attributes:
        where: As a question's.
        value: Instead of the measure's column of values.
        title: In words; otherwise the measure's, with the part.
    """

    where: dict[str, tuple[str, ...]] = {}
    value: str = ""
    title: str = ""


class Reference(Exact):
    """Published values for some of a benchmark's tasks, shown beside ours.

    Attributes:
        label: Whose.
        tasks: That they belong to.
        figures: By metric; or, with ``by``, by part.
        metric: The measure that parts are of.
        where: The documents, as a question's.
        by: The facet that has the parts.
        trivial: Whether this is what an answer scores that takes no skill, such as a copy of the
            last demonstration's: a model is marked as best only if it is better.
    """

    label: str
    tasks: tuple[str, ...]
    figures: dict[str, float]
    metric: str = ""
    where: dict[str, tuple[str, ...]] = {}
    by: str = ""
    trivial: bool = False


class Card(Exact):
    """A benchmark.

    Attributes:
        cluster: What standard errors are clustered on.
        item: Columns of the logged documents that identify the item a document is about, across the
            benchmark's tasks; none if tasks cannot be compared item by item.
        facets: The facets of the rows that scoring gives, in words.
        measures: What can be asked of the rows, by name.
        metrics: What lm-eval's results name, by name: ``measure`` or ``measure/part``; in a
            task file without any, the measures. The first that a task has is its headline; lm-eval
            prints them in alphabetical order, so this is theirs.
        headlines: Metrics that are preferred as headlines, where the first is not the right one.
        words: What facets' values mean, for readers, where the value does not say it.
        representative: Tasks; the first that results have stands for the benchmark.
        trial: What ``--limit`` takes.
        references: Published results, shown beside ours.
        tasks: By name.
        groups: lm-eval groups, by name: their members.
    """

    name: str
    title: str
    paper: Paper | None = None
    cluster: Cluster = Cluster(unit="document", column="id")
    item: tuple[str, ...] = ()
    facets: dict[str, str] = {}
    measures: dict[str, Measure]
    metrics: dict[str, Metric]
    headlines: tuple[str, ...] = ()
    words: dict[str, str] = {}
    representative: tuple[str, ...] = ()
    trial: Trial | None = None
    references: tuple[Reference, ...] = ()
    tasks: dict[str, TaskFacts]
    groups: dict[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _known(self) -> "Card":
        for name in self.metrics:
            if name.partition(PART)[0] not in self.measures:
                raise ValueError(f"metric {name} is of no measure")
            for facet in self.question_of(name).filter.keys() - self.facets.keys():
                raise ValueError(f"metric {name} is about {facet}, which is none of the facets")
        if list(self.metrics) != sorted(self.metrics):
            raise ValueError("metrics must be in alphabetical order, as lm-eval prints them")
        if unknown := {*self.headlines} - self.metrics.keys():
            raise ValueError(f"headlines has {unknown.pop()}, which is none of the metrics")
        return self

    def asks_own(self, task: str) -> bool:
        """Whether a task asks about the user's own documents, as a user's own task may."""
        return task not in self.tasks or self.tasks[task].asks_own

    def question_of(self, metric: str) -> Question:
        """The question behind a metric, or a measure.

        Raises:
            KeyError: There is neither.
        """
        entry = self.metrics.get(metric, Metric())
        name = metric.partition(PART)[0] if metric in self.metrics else metric
        measure = self.measures[name].model_copy(update={"name": name})
        if entry.value:
            measure = measure.model_copy(update={"value": (entry.value,)})
        return Question(measure, entry.where)

    def headline_of(self, metrics: Iterable[str]) -> str:
        """The one metric that stands for a task with these metrics; "" if it has none."""
        there = set(metrics)
        return next((name for name in (*self.headlines, *self.metrics) if name in there), "")

    def title_of(self, metric: str) -> str:
        """A metric in words: ``Relative performance, foreign``."""
        if metric not in self.metrics:
            return self.measures[metric].title if metric in self.measures else metric
        entry = self.metrics[metric]
        name, _, part = metric.partition(PART)
        if entry.title or not part:
            return entry.title or self.measures[name].title
        return f"{self.measures[name].title}, {self.word(part)}"

    @property
    def short_title(self) -> str:
        """The benchmark's name alone."""
        return self.title.partition(":")[0]

    def title_of_task(self, task: str) -> str:
        """A task in words, within its benchmark; a user's own task keeps its name."""
        return (self.tasks[task].title if task in self.tasks else "") or task

    def word(self, value: str) -> str:
        """A facet's value in words."""
        return self.words.get(value) or value.replace("_", " ")

    def published(self, task: str, question: Question) -> dict[str, float]:
        """Return published values of a question about a task, by label."""
        if question.by:
            return {}
        found = {}
        for reference in self.references:
            value = self._value_of(reference, task, question)
            if value is not None:
                found[reference.label] = value
        return found

    def baseline(self, task: str, question: Question) -> float | None:
        """Return the value that a model has to exceed to show anything; None if none is known.

        It is the measure's (chance, or 0 for a gain), or what the best trivial answer scores.
        """
        measure = question.measure
        trivial = [one for one in self.references if one.trivial]
        values = [self._value_of(reference, task, question) for reference in trivial]
        known = [value for value in (measure.baseline, *values) if value is not None]
        if not known:
            return None
        return min(known) if measure.lower_is_better else max(known)

    def _value_of(self, reference: Reference, task: str, question: Question) -> float | None:
        """Return the value that a reference has for a question without parts."""
        if task not in reference.tasks:
            return None
        for key, value in reference.figures.items():
            published = self.question_of(reference.metric or key)
            part = {reference.by: (key,)} if reference.by else {}
            filters = Question(published.measure, {**published.where, **reference.where, **part})
            if filters.measure == question.measure and filters.filter == question.filter:
                return value
        return None


def card_in(config: Mapping[str, Any]) -> Card:
    """The card in the file of a task that does not ship (:mod:`lm_eval_ext.harness.declared`).

    Raises:
        DataError: There is none, or it is malformed, or its name is that of another that ships.
    """
    task = config["task"]
    try:
        card = Card.model_validate_json(json.dumps(_card_and_facts(config)))
    except ValidationError as error:
        raise DataError(f"the card of {task}: {first_problem(error)}") from None
    if cards().get(card.name, card) != card:
        raise DataError(f"the card of {task}: {card.name} is a benchmark that ships; rename yours")
    return card


def _card_and_facts(config: Mapping[str, Any]) -> dict[str, Any]:
    card = config["card"] or {}
    tasks = config.get("tasks") or {config["task"]: config}
    about = {name: (own or {}).get("about") or {} for name, own in tasks.items()}
    metrics: dict[str, Any] = {name: {} for name in sorted(card.get("measures") or {})}
    return {"metrics": metrics, **card, "tasks": about}


@cache
def cards() -> Mapping[str, Card]:
    """Returns the cards of all benchmarks that ship, by name, in alphabetical order.

    Raises:
        DataError: If a card is malformed; file and key are named.
    """
    places = Path(tasks_folder()).glob("*.yaml")
    found = [read_yaml(place, TypeAdapter(Card), _card_and_facts) for place in places]
    return {card.name: card for card in sorted(found, key=lambda one: one.name)}


def card_of(task: str) -> Card | None:
    """The card of the benchmark that a task belongs to, or None if the task is not ours."""
    return next((card for card in cards().values() if task in card.tasks), None)


# Rows of a benchmark that does not ship, whose author is told of each mistake in a line.


def check_rows(rows: Any, questions: Iterable[Question]) -> None:
    """Checks what a scoring function has returned: rows, or None or [] where there are none.

    Raises:
        TypeError: It is no list of mappings, or a measure's value is no number.
        ValueError: The value of a mean is outside the range of the measure's unit.
    """
    for row in rows if isinstance(rows, list) else [rows] if rows is not None else []:
        if not isinstance(row, Mapping):
            raise TypeError(f"a row must be a mapping of facets and values, got {row!r:.80}")
        for measure in (question.measure for question in questions):
            for value in (row[name] for name in measure.value if row.get(name) is not None):
                if not isinstance(value, int | float):
                    raise TypeError(f"{measure.name} needs numbers, got {value!r:.80}")
                low, high = measure.limits
                beyond = (low is not None and value < low) or (high is not None and value > high)
                if beyond and measure.statistic == "mean":
                    raise ValueError(
                        f"{measure.name} is a {measure.unit}, so {value:g} is out of range: give "
                        "its measure another unit"
                    )


def lacking(question: Question, rows: Collection[Row]) -> str:
    """What a question asks for and no row has; "" if some row has each of it."""
    own, has = question.measure, sorted({name for row in rows for name in row})
    for name in (*own.value, *question.filter, *own.groups, *filter(None, [own.facet])):
        if name not in has:
            return f"no row has the column {name}; rows have: {', '.join(has)}"
    for name, values in question.filter.items():
        if {*values}.isdisjoint(there := {str(row.get(name)) for row in rows}):
            return f"no row has {name} {' or '.join(values)}; rows have: {', '.join(sorted(there))}"
    return ""
