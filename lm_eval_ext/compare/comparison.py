"""The comparison itself: models on each task, two tasks within each model, or models over seeds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from operator import attrgetter
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.align import RefusedError, align, align_tasks
from lm_eval_ext.results.ask import Asked, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, having
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import DOCUMENT, Measure, Question
from lm_eval_ext.stats.paired import letters
from lm_eval_ext.stats.statistics import (
    NONE,
    Figure,
    Pair,
    adjusted,
    best,
    document_values,
    figure,
    pairs,
    parts,
    shared_documents,
)
from lm_eval_ext.text import counted

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

Row: TypeAlias = dict[str, Any]

POOLED = "all models"

MEANS = ("mean", "contrast")
"""Statistics of which documents have a value."""


@dataclass
class Table:
    """What several systems have for one question, on the documents that all have a value for.

    Attributes:
        task: Its name; of two tasks both.
        model: Where two tasks are compared.
        title: Of the question.
        part: Values of the facets of ``--by``.
        metric: The measure.
        unit: Of values.
        lower_is_better: Of the measure.
        documents: That were compared.
        total: Documents of the task, where that is a trial.
        clusters: Of the documents.
        cluster: What a cluster is.
        figures: By system, the best first.
        pairs: Differences and tests of every two.
        best: The systems that nobody is significantly better than.
        groups: By system, letters: two that share one are not significantly different. Empty
            without tests.
        published: Values, by who published them.
        note: Why there is no value, test or interval.
    """

    task: str
    model: str
    title: str
    part: str
    metric: str
    unit: str
    lower_is_better: bool
    documents: int
    total: int | None
    clusters: int
    cluster: str
    figures: dict[str, Figure]
    pairs: list[Pair]
    best: list[str]
    groups: dict[str, str]
    published: dict[str, float]
    note: str

    @property
    def count(self) -> str:
        """Documents and, unless each is one, clusters."""
        total = "" if self.total is None else f"/{self.total:,}"
        told = f"{self.documents:,}{total} documents"
        same = self.clusters in (0, self.documents)
        return told if same else f"{told}, {counted(self.clusters, self.cluster)}"


@dataclass
class Report:
    """The results of a comparison.

    Attributes:
        systems: In the order in which they were named.
        tables: One for each question about each task, and part.
        refused: Why a task could not be compared, with the signatures of the runs.
        signatures: Of each task.
    """

    systems: Sequence[str]
    tables: list[Table] = field(default_factory=list)
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)


def compare(
    models: Sequence[Model],
    tasks: Sequence[str],
    asked: Asked,
    *,
    across_settings: bool = False,
    within: bool = False,
) -> Report:
    """Compares models on every task; or ``within`` each model that has both, two tasks.

    Of two tasks there is one more comparison, over all models together, in which a document's value
    is the mean of the models' values. Only items are resampled, since the models are the same in
    both tasks and not a sample of models. Holm's method adjusts for all models of a question, and
    leaves that one comparison as it is.

    Raises:
        OptionError: No task has the metric or the facet, or no model has both tasks.
        DataError: Samples are missing or cannot be read.
    """
    cases: list[tuple[str, str, dict[str, tuple[str, ResultsFile]]]] = [
        (task, "", {name: (task, run) for name, run in having(models, task).items()})
        for task in tasks
    ]
    if within:
        cases = [
            (", ".join(tasks), model.label, {task: (task, model.runs[task]) for task in tasks})
            for model in models
            if set(tasks) <= model.runs.keys()
        ]
    if not cases:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no model has results on {' and '.join(tasks)}; there is {there}")
    report = Report(tasks if within else [model.label for model in models])
    wrong: OptionError | None = None
    aligned: list[Mapping[str, DataFrame]] = []
    for name, model, runs in cases:
        (task, first), *_ = runs.values()
        try:
            wanted = asked.questions(task, first)
            systems = align_tasks(*runs.values()) if within else align(
                task, {label: run for label, (_, run) in runs.items()},
                across_settings=across_settings,
            )  # fmt: skip
        except RefusedError as error:
            report.refused[str(error)] = error.signatures
            continue
        except OptionError as error:  # of many tasks only some have the metric or the facet
            wrong = error
            continue
        aligned.append(systems)
        for own, run in runs.values():
            report.signatures.setdefault(own, run.signature(own))
        counts = [run.documents(own) for own, run in runs.values()]
        total = max(of for _, of in counts) if any(s < of for s, of in counts) else None
        for title, question in wanted:
            known = all(
                recomputes(run, own, systems[n], question) for n, (own, run) in runs.items()
            )
            same = {"task": name, "model": model, "title": title, "total": total}
            report.tables += _tables(same, question, systems, first.card(task), known=known)
    if wrong and not report.tables and not report.refused:
        raise wrong
    if within:
        _together(report, aligned, wanted, first.card(task))
    return report


def _together(
    report: Report,
    aligned: "Sequence[Mapping[str, DataFrame]]",
    wanted: Sequence[tuple[str, Question]],
    card: Card | None,
) -> None:
    """Adjusts the p-values of two tasks for all models, and adds the models' mean."""
    part = attrgetter("title", "part")
    for _, own in groupby(sorted(report.tables, key=part), key=part):
        tested = [one for one in own if one.pairs]
        for one, pair in zip(tested, adjusted([one.pairs[0] for one in tested]), strict=True):
            one.pairs = [pair]
    for title, question in wanted:
        if len(aligned) > 1 and not question.by and question.measure.statistic in MEANS:
            same = {"task": report.tables[0].task, "model": POOLED, "title": title, "total": None}
            means = {task: pooled([one[task] for one in aligned], question) for task in aligned[0]}
            report.tables += _tables(same, plain(question), means, card, known=True)
    for one in report.tables:  # letters would be of one table, and p-values are of several
        one.best, one.groups, one.published = [], {}, {}


def _tables(
    same: Row,
    question: Question,
    systems: "Mapping[str, DataFrame]",
    card: Card | None,
    *,
    known: bool,
) -> Iterator[Table]:
    """One for each part; ``known``: samples give the values of the results files."""
    import pandas as pd

    for part, own in parts(pd.concat(list(systems.values())), question):
        measure = own.measure
        common = set(next(iter(shared_documents(systems, own).values()))[DOCUMENT])
        kept = {name: rows[rows[DOCUMENT].isin(common)] for name, rows in systems.items()}
        found = {name: figure(rows, own) for name, rows in kept.items()}
        values = {name: one.value for name, one in found.items()}
        sign = 1 if measure.lower_is_better else -1
        ranked = sorted(found, key=lambda name: (values[name] is None, sign * (values[name] or 0)))
        tested = pairs(kept, own) if known else []
        groups: dict[str, str] = {}
        if tested and all(one.p is not None for one in tested):
            both = (
                (ranked.index(one.first), ranked.index(one.second)) for one in tested if one.differ
            )
            groups = dict(zip(ranked, letters(len(ranked), list(both)), strict=True))
        some = found[ranked[0]]
        unit = card.cluster.unit_at(some.level) if card else DOCUMENT
        yield Table(
            **same,
            part=", ".join(map(card.word, part.values())) if card else "",
            metric=measure.name,
            unit=measure.unit,
            lower_is_better=measure.lower_is_better,
            documents=some.documents,
            clusters=some.clusters,
            cluster=unit,
            figures={name: found[name] for name in ranked},
            pairs=tested,
            best=[name for name in ranked if name in best(values, tested, measure)],
            groups=groups,
            published=card.published(same["task"], own) if card else {},
            note=_note(found, measure, unit, known=known),
        )


def _note(found: Mapping[str, Figure], measure: Measure, unit: str, *, known: bool) -> str:
    some = next(iter(found.values()))
    if not some.documents:
        return "no document has a value in all runs"
    if without := [name for name, one in found.items() if one.value is None]:
        return f"{', '.join(without)}: {NONE}, since {measure.undefined}"
    if not known:
        return "no test: the results file has another value than the mean of its samples"
    if measure.statistic == "bootstrap":
        return "no test: the paper draws documents, with replacement"
    if some.clusters < LEAST_CLUSTERS:
        many = counted(some.clusters, unit)
        return f"no interval from {many}, fewer than {LEAST_CLUSTERS}; p is never below 0.05"
    return ""


def pooled(systems: "Sequence[DataFrame]", question: Question) -> "DataFrame":
    """Each document's mean over the systems that all have it; for the :func:`plain` question."""
    name = question.measure.name
    kept = shared_documents({str(n): rows for n, rows in enumerate(systems)}, question).values()
    own = [document_values(rows, question.measure) for rows in kept]
    return own[0].assign(**{name: sum(one[name] for one in own) / len(own)}).reset_index()


def plain(question: Question) -> Question:
    """The mean of values that documents have already."""
    measure = question.measure
    changed: Row = {"statistic": "mean", "value": (measure.name,), "where": {}, "weights": {},
                    "best_of": None}  # fmt: skip
    return Question(measure.model_copy(update=changed))


_SEED = re.compile(r"[\s,·_-]*\(?seed[\s_=:-]*(\d+)\)?$", re.IGNORECASE)


def by_seed(models: Sequence[Model], tasks: Sequence[str], asked: Asked) -> list[Row]:
    """Mean and spread of models whose names differ in a seed: these are one condition.

    Returns:
        Rows with ``task``, ``title``, ``part``, ``unit``, ``condition``, ``seeds`` (how many),
        ``mean``, ``sd`` (n - 1 below; None for one seed), and ``low`` and ``high``, the interval of
        the mean: documents are averaged over seeds and clustered as the task's. None where there
        is none, as for what is no mean of the same documents.

    Raises:
        OptionError: No two models differ in their seed alone.
        DataError: Samples are missing or cannot be read.
    """
    import pandas as pd

    conditions: dict[str, list[Model]] = {}
    for model in models:
        conditions.setdefault(_SEED.sub("", model.label), []).append(model)
    if len(conditions) == len(models):
        names = ", ".join(model.label for model in models)
        raise OptionError(f'--by-seed: no two names differ only in "seed N" at the end: {names}')
    found: dict[tuple[str, ...], list[Row]] = {}
    for task, (condition, seeds) in product(tasks, conditions.items()):
        runs = having(seeds, task)
        try:
            aligned = align(task, runs) if runs else {}
        except RefusedError as error:
            _log.warning("left out: %s", error)
            continue
        tables = list(aligned.values())
        first = next(iter(runs.values()), None)
        card = first.card(task) if first else None
        for title, question in asked.questions(task, first) if first else ():
            if not all(recomputes(runs[one], task, own, question) for one, own in aligned.items()):
                _log.warning("left out: %s, %s: its samples have other values", task, title)
                continue
            for part, own in parts(pd.concat(tables), question):
                each = [figure(table, own).value for table in tables]
                values = [one for one in each if one is not None]
                mean = Figure(None)
                if own.measure.statistic in MEANS:
                    mean = figure(pooled(tables, own), plain(own))
                words = ", ".join(map(card.word, part.values())) if card else ""
                found.setdefault((task, title, words), []).append(
                    {"task": task, "title": title, "part": words, "unit": own.measure.unit,
                     "condition": condition, "seeds": len(values),
                     "mean": fmean(values) if values else None,
                     "sd": stdev(values) if len(values) > 1 else None,
                     "low": mean.low, "high": mean.high}
                )  # fmt: skip
    return [row for rows in found.values() for row in rows]
