"""The comparison itself: models on each task, or two tasks within each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.align import RefusedError, align, align_tasks
from lm_eval_ext.results.ask import asked, question_of, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import CLUSTER, DOCUMENT, ID, Measure, Question
from lm_eval_ext.stats.paired import holm, letters
from lm_eval_ext.stats.statistics import (
    NONE,
    Figure,
    Pair,
    best,
    document_values,
    figure,
    pairs,
    parts,
    shared_documents,
)
from lm_eval_ext.text import several

if TYPE_CHECKING:
    from pandas import DataFrame

POOLED = "all models"


@dataclass(frozen=True)
class Settings:
    """What to compare, as ``show`` asks it, and how; intervals have the level 1 - alpha."""

    metrics: tuple[str, ...] = ()
    value: str = ""
    where: tuple[str, ...] = ()
    by: str = ""
    alpha: float = 0.05
    seed: int = 0
    across_settings: bool = False


@dataclass(frozen=True)
class Table:
    """One question about one task.

    Attributes:
        task: Its name, or the names of two that are compared.
        part: Values of the facets of ``--by``; "" without.
        title: The measure in words.
        measure: With the unit of all values.
        figures: By system, the best first, on the documents that all systems have a value for.
        unit: What a cluster is.
        pairs: All of them, in the order in which the systems were named.
        best: The systems that no other one beats significantly.
        letters: By system: two that share one are not significantly different; {} without tests.
        note: Why there is no test or no interval, or no value.
        published: Published values, by label.
    """

    task: str
    part: str
    title: str
    measure: Measure
    figures: Mapping[str, Figure]
    unit: str
    pairs: Sequence[Pair] = ()
    best: frozenset[str] = frozenset()
    letters: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The measure's name."""
        return self.measure.name

    @property
    def counts(self) -> tuple[int, int]:
        """The number of documents, and of clusters."""
        first = next(iter(self.figures.values()))
        return first.documents, first.clusters


@dataclass(frozen=True)
class Refusal:
    """A task that could not be compared: why, and the signatures of the runs."""

    task: str
    reason: str
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """The results of a comparison, and the signature of each task."""

    tables: Sequence[Table]
    refused: Sequence[Refusal]
    signatures: Mapping[str, str]
    settings: Settings


def compare(models: Sequence[Model], tasks: Sequence[str], settings: Settings) -> Report:
    """Compares models on every task.

    Raises:
        OptionError: No task has the metric or the facet.
        DataError: Samples are missing or cannot be read.
    """
    tables: list[Table] = []
    refused: list[Refusal] = []
    signatures: dict[str, str] = {}
    wrong: OptionError | None = None
    for task in tasks:
        runs = {model.label: model.runs[task] for model in models if task in model.runs}
        try:
            wanted = questions(task, next(iter(runs.values())), settings)
            aligned = align(task, runs, across_settings=settings.across_settings)
        except RefusedError as error:
            refused.append(Refusal(task, str(error), error.signatures))
            continue
        except OptionError as error:  # of many tasks only some have the metric or the facet
            wrong = error
            continue
        first = next(iter(runs.values()))
        signatures[task] = first.signature(task)
        for title, question in wanted:
            query = _Query(task, title, question, first.card(task), settings)
            known = all(recomputes(runs[one], task, own, question) for one, own in aligned.items())
            tables += _tables(query, aligned, known=known)
    if not tables and not refused and wrong:
        raise wrong
    return Report(tables, refused, signatures, settings)


def questions(task: str, run: ResultsFile, settings: Settings) -> list[tuple[str, Question]]:
    """What the settings ask about a task, each question with its title.

    Raises:
        OptionError: The task has no such metric or facet.
    """
    found = []
    for metric in settings.metrics or ("",):
        question = question_of(run, task, metric)
        card, name = run.card(task), metric or run.headline(task)
        own = asked(question, settings.where, settings.by, settings.value, card)
        title = card.title_of(name) if card and run.is_current(task) else name
        where = own.filter if settings.where else {}
        said = [", ".join(values) for facet, values in where.items() if facet in _facets(settings)]
        found.append((" · ".join([title, *filter(None, [settings.value, *said])]), own))
    return found


def _facets(settings: Settings) -> set[str]:
    return {one.partition("=")[0] for one in settings.where}


@dataclass(frozen=True)
class _Query:
    """A question about a task, or two, and how to answer it."""

    task: str
    title: str
    question: Question
    card: Card | None
    settings: Settings


def _tables(query: _Query, aligned: "Mapping[str, DataFrame]", *, known: bool) -> list[Table]:
    """A table for each part; ``known``: samples give the values of the results files."""
    import pandas as pd

    card = query.card
    some = next(iter(aligned.values()))
    every = pd.concat(list(aligned.values())) if query.question.by else some
    found = []
    for part, question in parts(every, query.question):
        shown = ", ".join(card.words.get(one, one) if card else one for one in part.values())
        table = _table(replace(query, question=question), shown, aligned, known=known)
        published = card.published(query.task, question) if card else {}
        found.append(replace(table, published=published))
    return found


def _table(query: _Query, part: str, aligned: "Mapping[str, DataFrame]", *, known: bool) -> Table:
    question, settings, measure = query.question, query.settings, query.question.measure
    shared = shared_documents(aligned, question).values()
    common = set(next(iter(shared))[DOCUMENT])
    kept = {name: rows[rows[DOCUMENT].isin(common)] for name, rows in aligned.items()}
    found = {name: figure(rows, question, alpha=settings.alpha) for name, rows in kept.items()}
    ranked = dict(sorted(found.items(), key=lambda one: _order(one[1].value, measure)))
    some = next(iter(found.values()))
    unit = query.card.cluster.unit_at(some.level) if query.card else DOCUMENT
    tested = pairs(kept, question, alpha=settings.alpha, seed=settings.seed) if known else []
    values = {name: one.value for name, one in ranked.items()}
    return Table(
        query.task, part, query.title, measure, ranked, unit, tested,
        best(values, tested, measure, settings.alpha),
        _letters(list(ranked), tested, settings.alpha),
        _note(ranked, measure, unit, "" if known else "not the mean of documents' scores"),
    )  # fmt: skip


def _order(value: float | None, measure: Measure) -> tuple[bool, float]:
    """Undefined values last."""
    return value is None, (value or 0.0) * (1 if measure.lower_is_better else -1)


def _letters(ranked: list[str], tested: Sequence[Pair], alpha: float) -> dict[str, str]:
    """None at all where a pair could not be tested."""
    if not tested or any(pair.p_holm is None for pair in tested):
        return {}
    different = {
        (ranked.index(pair.first), ranked.index(pair.second))
        for pair in tested
        if pair.p_holm is not None and pair.p_holm < alpha
    }
    return dict(zip(ranked, letters(len(ranked), different), strict=True))


def _note(found: Mapping[str, Figure], measure: Measure, unit: str, unknown: str) -> str:
    some = next(iter(found.values()))
    if not some.documents:
        return "no document has a value in all runs"
    if without := [name for name, one in found.items() if one.value is None]:
        return f"{', '.join(without)}: {NONE}, since {measure.undefined}"
    if unknown or measure.statistic == "bootstrap":
        return f"no test: {unknown or 'the paper draws documents, with replacement'}"
    many = f"{some.clusters} {unit if some.clusters == 1 else several(unit)}"
    if some.clusters < LEAST_CLUSTERS:
        return f"no interval from {many}, fewer than {LEAST_CLUSTERS}; p is never below 0.05"
    return ""


def compare_tasks(models: Sequence[Model], first: str, second: str, settings: Settings) -> Report:
    """Compares two tasks within each model that has both, and over all these models together.

    Over all models a document's value is the mean of the models' values. Only items are resampled,
    since the models are the same in both tasks and not a sample of models. Holm's method adjusts
    for all models of a question, and leaves that one comparison as it is.

    Raises:
        OptionError: No model has both tasks, or one has no such metric or facet.
        DataError: Samples are missing or cannot be read.
    """
    both = [model for model in models if first in model.runs and second in model.runs]
    if not both:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no model has results on both {first} and {second}; there is {there}")
    aligned = {}
    refused = []
    for model in both:
        try:
            aligned[model.label] = align_tasks(*((one, model.runs[one]) for one in (first, second)))
        except RefusedError as error:
            refused.append(Refusal(f"{first}, {second}", str(error), error.signatures))
    run = both[0].runs[first]
    found = [
        table
        for title, question in questions(first, run, settings)
        for table in _of_question(
            _Query(f"{first}, {second}", title, question, run.card(first), settings), aligned
        )
    ]
    signatures = {task: both[0].runs[task].signature(task) for task in (first, second)}
    return Report(found, refused, signatures, settings)


def _of_question(query: _Query, aligned: "Mapping[str, Mapping[str, DataFrame]]") -> list[Table]:
    made = [
        table
        for model, systems in aligned.items()
        for table in _tables(replace(query, task=f"{query.task} · {model}"), systems, known=True)
    ]
    found = []
    for part in dict.fromkeys(table.part for table in made):
        own = [table for table in made if table.part == part]
        p_values = [pair.difference.p for one in own for pair in one.pairs]
        adjusted = iter(holm([p for p in p_values if p is not None]))
        for table in own:
            tested = [
                replace(pair, p_holm=None if pair.difference.p is None else next(adjusted))
                for pair in table.pairs
            ]
            found.append(replace(table, pairs=tested))
    if len(aligned) > 1 and not query.question.by and query.question.measure.statistic in MEANS:
        tasks = query.task.split(", ")
        means = {
            task: pooled([one[task] for one in aligned.values()], query.question) for task in tasks
        }
        plain = means[tasks[0]][1]
        every = replace(query, task=f"{query.task} · {POOLED}", question=plain)
        found += _tables(every, {task: rows for task, (rows, _) in means.items()}, known=True)
    # Letters belong to the systems of one table, and p-values are adjusted over several.
    return [replace(table, letters={}, best=frozenset(), published={}) for table in found]


MEANS = ("mean", "contrast")
"""Statistics of which documents have a value."""


def pooled(systems: "Sequence[DataFrame]", question: Question) -> "tuple[DataFrame, Question]":
    """Each document's mean over the systems that all have it, and the question about it."""
    import pandas as pd

    name = question.measure.name
    plain: dict[str, Any] = {
        "statistic": "mean",
        "value": (name,),
        "where": {},
        "weights": {},
        "best_of": None,
    }
    about = Question(question.measure.model_copy(update=plain))
    named = {str(place): rows for place, rows in enumerate(systems)}
    kept = shared_documents(named, question).values()
    own = [document_values(rows, question.measure) for rows in kept]
    mean = sum(one[name] for one in own) / len(own)
    columns = {DOCUMENT: mean.index, ID: mean.index, CLUSTER: own[0][CLUSTER], name: mean}
    return pd.DataFrame({key: list(one) for key, one in columns.items()}), about
