"""Every benchmark's card, read and checked.

A card says in one place what users need to know before a run: the paper, the tasks with their
sizes, what can be asked of their scores, human performance. It lies in the benchmark's task file.
For a benchmark that does not ship, results files hold a copy of the card.

Importing this module or reading a card imports neither lm-eval nor a benchmark.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Protocol, TypeAlias

from pydantic import AliasChoices, Field, TypeAdapter, ValidationError, model_validator

from lm_eval_ext import data
from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import Exact, read_yaml
from lm_eval_ext.registry import BENCHMARKS
from lm_eval_ext.stats.measures import Chance, Measure, Question
from lm_eval_ext.stats.planning import PartSize, TypicalCorrelation, TypicalSpread
from lm_eval_ext.text import value_typed

PART = "/"
"""The separator of a measure and the part that a metric is about, as in ``direct/existence``."""

MAX_METRICS = 12
"""The number of metrics that a card may have, and so a task in lm-eval's results.

All else is a question to the table of scores. :func:`card_in` checks the cards of benchmarks that
do not ship, a test those of the package.
"""

TaskFileContent: TypeAlias = Mapping[str, Any]
"""The keys of a task file as YAML gives them."""


class Documents(Protocol):
    """Documents by column, such as a data set."""

    def __len__(self) -> int:
        """Return the number of documents."""
        ...

    def __getitem__(self, column: str, /) -> Any:
        """Return the values of a column, in the order of the documents."""
        ...


class Paper(Exact):
    """The publication that a benchmark comes from."""

    title: str
    authors: str
    venue: str
    url: str


class Level(Exact):
    """A finer clustering, for documents that are all from one coarser cluster; see `Cluster`."""

    unit: str
    column: str


class Cluster(Exact):
    """The clusters of a benchmark's documents for standard errors.

    Attributes:
        unit: The word for a cluster, for display.
        column: The column of the logged documents that names the cluster.
        meaning: What a cluster is, where its word does not say it: ``a noun``.
        any_case: Whether names that differ only in case are one cluster (SQLite's databases).
        documents_within: Whether a metric about a single cluster takes each document as a
            cluster, as the benchmark's own standard errors do.
        user_cluster_levels: Finer clusters for a user's own documents, which may all be from one
            cluster (:func:`~lm_eval_ext.stats.intervals.level_of`). Task files and results of
            earlier versions call it ``own_within``.
    """

    unit: str
    column: str
    meaning: str = ""
    any_case: bool = False
    documents_within: bool = False
    user_cluster_levels: tuple[Level, ...] = Field(
        default=(), validation_alias=AliasChoices("user_cluster_levels", "own_within")
    )

    def names(self, document: Mapping[str, Any], *, is_user_data: bool) -> tuple[str, ...]:
        """Return the clusters that a document is in, from the coarsest to the finest.

        Args:
            document: A document with the columns of the levels.
            is_user_data: Whether the documents are a user's own.
        """
        name = str(document[self.column])
        names = [name.casefold() if self.any_case else name]
        if is_user_data:
            names += [str(document[level.column]) for level in self.user_cluster_levels]
        if self.documents_within:
            names.append(str(document["id"]))
        return tuple(names)

    def unit_at(self, level: int) -> str:
        """Return the word for a cluster at a level that the results file notes."""
        finer_units = [finer.unit for finer in self.user_cluster_levels]
        return [self.unit, *finer_units, "document"][level]


Kind: TypeAlias = tuple[str, ...]
"""The values of a trial's columns after the first, the cluster."""

Unit: TypeAlias = list[int]
"""Positions of documents that a trial takes together."""


class Trial(Exact):
    """The documents that ``--limit N`` takes: N that are spread over all, not the first ones.

    The first documents of a file are often of one database or of one type. lm-eval takes them; a
    trial of ours takes documents from every cluster in turn, and within a cluster from every kind.
    Smaller trials are parts of larger ones. Without a limit, nothing changes.

    Attributes:
        stratify_by: Columns of the documents that a trial is spread over: the cluster, then the
            kind. Task files and results of earlier versions call it ``across``.
        keep_together: A column; documents with the same value in it are taken together. Earlier
            versions call it ``together``.
    """

    stratify_by: tuple[str, ...] = Field(validation_alias=AliasChoices("stratify_by", "across"))
    keep_together: str = Field(
        default="", validation_alias=AliasChoices("keep_together", "together")
    )

    def order(self, documents: Documents) -> Iterator[int]:
        """Yield the positions of all documents, in the order in which trials take them.

        Every round takes one unit of each cluster, and each time of the kind taken least so far.
        """
        waiting = self._units_by_cluster(documents)
        taken: Counter[Kind] = Counter()
        while waiting:
            clusters_left = list(waiting)
            while clusters_left:
                kind, cluster = _least_taken(waiting, clusters_left, taken)
                clusters_left.remove(cluster)
                units_by_kind = waiting[cluster]
                yield from units_by_kind[kind].pop()
                taken[kind] += 1
                if not units_by_kind[kind]:
                    del units_by_kind[kind]
                if not units_by_kind:
                    del waiting[cluster]

    def _units(self, documents: Documents) -> list[Unit]:
        if not self.keep_together:
            return [[position] for position in range(len(documents))]
        units: defaultdict[object, Unit] = defaultdict(list)
        for position, value in enumerate(documents[self.keep_together][:]):
            units[value].append(position)
        return list(units.values())

    def _units_by_cluster(self, documents: Documents) -> dict[str, dict[Kind, list[Unit]]]:
        units = self._units(documents)
        columns = [documents[name][:] for name in self.stratify_by]
        by_cluster: dict[str, dict[Kind, list[Unit]]] = {}
        for number in shuffled(len(units), "trial"):
            unit = units[number]
            cluster, *kind = [str(column[unit[0]]) for column in columns]
            by_kind = by_cluster.setdefault(cluster, {})
            by_kind.setdefault(tuple(kind), []).append(unit)
        return by_cluster


def _least_taken(
    waiting: Mapping[str, Mapping[Kind, Sequence[Unit]]],
    clusters: Sequence[str],
    taken: Mapping[Kind, int],
) -> tuple[Kind, str]:
    """Return the kind that was taken least so far, with the first cluster that has it."""
    candidates = [(kind, cluster) for cluster in clusters for kind in waiting[cluster]]
    return min(candidates, key=lambda candidate: taken[candidate[0]])


class TaskFacts(Exact):
    """What a card says about one task.

    Attributes:
        title: A heading for a table's column, within the benchmark.
        description: One line.
        documents: The number of documents, which is what ``--limit`` counts. A task about the
            user's own documents has no numbers.
        requests: The number of requests to the model.
        clusters: The number of clusters of all documents; 0 where it is not known.
        effective_clusters: The number of clusters of one size that would say as much; 0 where they
            have one size, or nobody has counted.
        parts: By metric, what it counts, where that is not every document.
        correlations: By metric, the intra-cluster correlations of real models.
        sources: The sources of ``data/sources.yaml`` that the task needs.
        cites: Works on other data, by key in ``citations.bib``.
        is_user_data: Whether the documents are the user's own. Task files and results of earlier
            versions call it ``asks_own``.
        cluster: The task's clusters, where the benchmark's are too few in it for an interval.
        items_key: The metadata key that says how many clusters the task draws; "" if it cannot
            draw any number of them.
        more_items: The task that draws any number of clusters for the same questions; "" if there
            is none.
    """

    title: str = ""
    description: str = ""
    documents: int = Field(0, ge=0)
    requests: int = Field(0, ge=0)
    clusters: int = Field(0, ge=0)
    effective_clusters: float = Field(0, ge=0)
    parts: dict[str, PartSize] = {}
    correlations: dict[str, TypicalCorrelation] = {}
    sources: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    is_user_data: bool = Field(
        default=False, validation_alias=AliasChoices("is_user_data", "asks_own")
    )
    cluster: Cluster | None = None
    items_key: str = ""
    more_items: str = ""

    @model_validator(mode="after")
    def _check_clusters(self) -> "TaskFacts":
        if self.clusters > self.documents:
            raise ValueError(f"{self.clusters} clusters of {self.documents} documents")
        return self

    @property
    def documents_per_cluster(self) -> float | None:
        """The mean number of documents in a cluster; None where the clusters are not known."""
        return self.documents / self.clusters if self.clusters else None

    @property
    def available(self) -> bool:
        """Whether every file that the task needs is available locally."""
        return all(data.available(source) for source in self.sources)


class Metric(Exact):
    """A metric of lm-eval, where it differs from its measure.

    Attributes:
        where: The rows that count, by facet, as in a question.
        value: A column of values instead of the measure's.
        title: The metric in words; otherwise the measure's title with the part.
    """

    where: dict[str, tuple[str, ...]] = {}
    value: str = ""
    title: str = ""


class Reference(Exact):
    """Published values for some of a benchmark's tasks, shown beside ours.

    Attributes:
        label: The name of the published system or group.
        tasks: The tasks that the values belong to.
        figures: The values by metric; or, with ``by``, by part.
        metric: The measure that the parts belong to.
        where: The documents, as in a question.
        by: The facet that has the parts.
        trivial: Whether the values are those of answers that take no skill, such as copies of the
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
        name: The benchmark's name.
        title: The benchmark in words, with a subtitle after a colon.
        paper: The publication.
        cluster: The clusters for standard errors.
        item: Columns of the logged documents that identify the item a document is about, across the
            benchmark's tasks; none if tasks cannot be compared item by item.
        facets: The facets of the rows that scoring gives, in words.
        measures: What can be computed from the rows, by name.
        metrics: The metrics in lm-eval's results, by name: ``measure`` or ``measure/part``; if a
            task file names none, they are the measures. The card keeps them in alphabetical order,
            in which lm-eval prints them. The first that a task file names is the headline.
        headlines: Metrics that are preferred as headlines, where the first is not the right one; of
            a task file with metrics in another order, all of them in that order.
        words: The meaning of facets' values, for readers, where the value does not say it.
        representative: Tasks; the first that results have stands for the benchmark.
        trial: The documents that ``--limit`` takes.
        references: Published results, shown beside ours.
        typical_spreads: How much real models differ from cluster to cluster, by metric.
        tasks: The facts of each task, by name.
        groups: lm-eval groups with their members, by name.
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
    typical_spreads: dict[str, TypicalSpread] = {}
    tasks: dict[str, TaskFacts]
    groups: dict[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _check_names(self) -> "Card":
        for name in self.metrics:
            measure_name = name.partition(PART)[0]
            if measure_name not in self.measures:
                raise ValueError(f"metric {name} is of no measure")
            for facet in self.question_of(name).filter.keys() - self.facets.keys():
                raise ValueError(f"metric {name} is about {facet}, which is none of the facets")
        for name in self.headlines:
            if name not in self.metrics:
                raise ValueError(f"headlines has {name}, which is none of the metrics")
        for name in self.typical_spreads:
            if name not in self.metrics:
                raise ValueError(f"typical_spreads has {name}, which is none of the metrics")
        return self

    @model_validator(mode="after")
    def _sort_metrics(self) -> "Card":
        """Sort the metrics as lm-eval prints them; the first one that was named stays preferred."""
        names = sorted(self.metrics)
        if names == list(self.metrics):
            return self
        metrics = {name: self.metrics[name] for name in names}
        headlines = tuple(dict.fromkeys([*self.headlines, *self.metrics]))
        return self.model_copy(update={"metrics": metrics, "headlines": headlines})

    def for_task(self, task: str) -> "Card":
        """Return the card as it holds for a task, which may have its own clusters."""
        facts = self.tasks.get(task)
        if facts is None or facts.cluster is None:
            return self
        return self.model_copy(update={"cluster": facts.cluster})

    def is_user_data(self, task: str) -> bool:
        """Return whether a task is about the user's own documents, as a user's own task may be."""
        return task not in self.tasks or self.tasks[task].is_user_data

    def question_of(self, metric: str) -> Question:
        """Return the question behind a metric, or a measure.

        Raises:
            KeyError: There is neither.
        """
        entry = self.metrics.get(metric, Metric())
        measure_name = metric
        if metric in self.metrics:
            measure_name = metric.partition(PART)[0]
        changes: dict[str, object] = {"name": measure_name}
        if entry.value:
            changes["value"] = (entry.value,)
        measure = self.measures[measure_name].model_copy(update=changes)
        return Question(measure, entry.where)

    def headline_of(self, metrics: Iterable[str]) -> str:
        """Return the one metric that stands for a task with these metrics; "" if it has none."""
        available = set(metrics)
        for name in (*self.headlines, *self.metrics):
            if name in available:
                return name
        return ""

    def title_of(self, metric: str) -> str:
        """Return a metric in words: ``Relative performance, foreign``."""
        if metric in self.measures and metric not in self.metrics:
            return self.measures[metric].title
        if metric not in self.metrics:
            return metric
        entry = self.metrics[metric]
        if entry.title:
            return entry.title
        measure_name, _, facet_value = metric.partition(PART)
        title = self.measures[measure_name].title
        if facet_value:
            title += f", {self.word(facet_value)}"
        return title

    @property
    def short_title(self) -> str:
        """The benchmark's name alone."""
        return self.title.partition(":")[0]

    def title_of_task(self, task: str) -> str:
        """Return a task in words, within its benchmark; a user's own task keeps its name."""
        if task in self.tasks and self.tasks[task].title:
            return self.tasks[task].title
        return task

    def headings_of_task(self, task: str) -> list[str]:
        """Return the names of the benchmark and of a task in words, once if they are the same."""
        title = self.title_of_task(task)
        is_same = title.replace("_", " ").casefold() == self.short_title.casefold()
        return [self.short_title] if is_same else [self.short_title, title]

    def word(self, value: str) -> str:
        """Return a facet's value in words."""
        return self.words.get(value) or value.replace("_", " ")

    def facet_value(self, typed: str) -> str:
        """Return the facet's value that a user typed, perhaps in its :func:`typeable` form."""
        return value_typed(typed, self._known_values)

    @property
    def _known_values(self) -> dict[str, None]:
        """The facets' values that the card names."""
        known = dict.fromkeys(self.words)
        for name in self.metrics:
            for values in self.question_of(name).filter.values():
                known.update(dict.fromkeys(values))
        return known

    def published(self, task: str, question: Question) -> dict[str, float]:
        """Return published values of a question about a task, by label."""
        if question.by:
            return {}
        by_label = {}
        for reference in self.references:
            value = self._value_of(reference, task, question)
            if value is not None:
                by_label[reference.label] = value
        return by_label

    def chance_level(self, task: str, question: Question) -> Chance | None:
        """Return what a model has to exceed to show anything; None if nothing is known.

        It is the measure's (chance, or 0 for a gain), or what the best trivial answer scores.
        """
        measure = question.measure
        best = measure.chance_level
        for reference in self.references:
            value = self._value_of(reference, task, question)
            if not reference.trivial or value is None:
                continue
            is_better = best is None or value > best.value
            if best is not None and measure.lower_is_better:
                is_better = value < best.value
            if is_better:
                best = Chance(value, measure.unit, f"the score of {reference.label}")
        return best

    def baseline(self, task: str, question: Question) -> float | None:
        """Return the value of :meth:`chance_level`; None if none is known."""
        level = self.chance_level(task, question)
        return None if level is None else level.value

    def chance(self, task: str, question: Question) -> float | None:
        """Return what guessing scores; None where nothing is known but the worst legal value.

        It is the chance that the card gives; or 0 for a gain and for a change of error; or what the
        best trivial answer scores.
        """
        measure = question.measure
        # Published values are of whole questions.
        baseline = measure.baseline if question.by else self.baseline(task, question)
        return None if baseline == measure.worst else baseline

    def _value_of(self, reference: Reference, task: str, question: Question) -> float | None:
        """Return the value that a reference has for a question without parts."""
        if task not in reference.tasks:
            return None
        for key, value in reference.figures.items():
            published = self._published_question(reference, key)
            same_measure = published.measure == question.measure
            if same_measure and published.filter == question.filter:
                return value
        return None

    def _published_question(self, reference: Reference, key: str) -> Question:
        """Return the question that one published value answers."""
        base = self.question_of(reference.metric or key)
        where = {**base.where, **reference.where}
        if reference.by:
            where[reference.by] = (key,)
        return Question(base.measure, where)


def card_in(config: TaskFileContent) -> Card:
    """Return the card in a task file that does not ship (:mod:`lm_eval_ext.harness.task_files`).

    Raises:
        DataError: There is none, or it is malformed, or its name is that of another that ships, or
            it has more than :data:`MAX_METRICS`.
    """
    task = config["task"]
    try:
        card = Card.model_validate_json(json.dumps(_card_content(config)))
    except ValidationError as error:
        raise DataError(f"the card of {task}: {first_problem(error)}") from None
    if cards().get(card.name, card) != card:
        raise DataError(f"the card of {task}: {card.name} is a benchmark that ships; rename yours")
    if len(card.metrics) > MAX_METRICS:
        raise DataError(
            f"the card of {task}: {len(card.metrics)} metrics, and lm-eval's results may have "
            f"{MAX_METRICS} of a task; name the most important ones under metrics (all measures "
            "stay in the table of scores)"
        )
    return card


def _card_content(config: TaskFileContent) -> dict[str, Any]:
    """Return a file's card with the facts of its tasks, and with metrics if it names none."""
    card = config["card"] or {}
    tasks = config.get("tasks") or {config["task"]: config}
    facts = {}
    for name, task in tasks.items():
        facts[name] = (task or {}).get("about") or {}
    measure_names = sorted(card.get("measures") or {})
    default_metrics: dict[str, object] = {name: {} for name in measure_names}
    return {"metrics": default_metrics, **card, "tasks": facts}


@cache
def cards() -> Mapping[str, Card]:
    """Return the cards of all benchmarks that ship, by name, in alphabetical order.

    Raises:
        DataError: A card is malformed; file and key are named.
    """
    model = TypeAdapter(Card)
    return {
        name: read_yaml(BENCHMARKS[name].task_file, model, _card_content)
        for name in sorted(BENCHMARKS)
    }


def our_tasks() -> list[str]:
    """Return the tasks of all benchmarks that ship, in the order of their cards."""
    return list(chain.from_iterable(card.tasks for card in cards().values()))


def card_of(task: str) -> Card | None:
    """Return the card of the benchmark that a task belongs to; None if the task is not ours."""
    for card in cards().values():
        if task in card.tasks:
            return card.for_task(task)
    return None
