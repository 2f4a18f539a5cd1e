"""The comparison itself: models on each task, two tasks within each model, or models over seeds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.results.align import align, align_tasks
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, runs_by_model
from lm_eval_ext.results.query import ScoreQuery, check, is_recomputable, reference_run
from lm_eval_ext.results.show import library_notes
from lm_eval_ext.results.table import NoSamplesError
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS, Interval, interval, mean_estimate
from lm_eval_ext.stats.marks import ColumnTests, Standing, column_tests, standings
from lm_eval_ext.stats.measures import CLUSTER, DOCUMENT, Measure, Question
from lm_eval_ext.stats.statistics import (
    NONE,
    Estimate,
    Pair,
    adjust,
    document_values,
    estimate,
    pairs,
    parts,
    shared_documents,
)
from lm_eval_ext.text import counted

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass
class Table:
    """What several systems have for one question, on the documents that all have a value for.

    Attributes:
        task: Its name; of two tasks both.
        model: Where two tasks are compared; of seeds their condition.
        title: Of the question.
        part: Values of the facets of ``--by``.
        words: The same in words.
        metric: The measure.
        unit: Of values.
        lower_is_better: Of the measure.
        documents: That were compared.
        total: Documents of the task, where that is a trial.
        clusters: Of the documents.
        cluster: What a cluster is.
        figures: By system, the best first.
        pairs: Differences and tests of every two.
        best: The systems that are marked as best.
        standings: By system, how it stands (:mod:`lm_eval_ext.stats.marks`).
        tests: Of the systems against the baseline and each other.
        published: Values, by who published them.
        note: Why there is no value, test or interval.
        pooled: The interval of the mean over all systems, which are seeds of one condition.
    """

    task: str
    model: str
    title: str
    part: str
    words: str
    metric: str
    unit: str
    lower_is_better: bool
    documents: int
    total: int | None
    clusters: int
    cluster: str
    figures: dict[str, Estimate]
    pairs: list[Pair]
    published: dict[str, float]
    note: str
    pooled: Interval | None
    tests: ColumnTests | None = None
    best: list[str] = field(default_factory=list)
    standings: dict[str, Standing] = field(default_factory=dict)

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
        refused: Why a task or a run could not be compared.
        signatures: Of each task.
        without_samples: By model, the tasks whose samples were not logged.
        remarks: What a reader must know of the runs.
    """

    systems: Sequence[str]
    tables: list[Table] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    without_samples: dict[str, list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


_SEED = re.compile(r"[\s,·_-]*\(?seed[\s_=:-]*(\d+)\)?$", re.IGNORECASE)


def compare(
    models: Sequence[Model],
    tasks: Sequence[str],
    asked: ScoreQuery,
    *,
    across_settings: bool = False,
    within: bool = False,
    seeds: bool = False,
) -> Report:
    """Compares models on every task; or ``within`` each model that has both, two tasks.

    Of two tasks Holm's method adjusts for all models of a question. Models whose names differ in a
    seed alone are one condition; with ``seeds`` there is a table for each, without tests, with the
    interval of all its models together where a document has a value.

    Raises:
        OptionError: No task has the metric or the facet, no model has both tasks, or no two models
            differ in their seed alone.
    """
    groups: dict[str, list[Model]] = {}
    for model in models:
        groups.setdefault(_SEED.sub("", model.label) if seeds else "", []).append(model)
    if seeds and len(groups) == len(models):
        names = ", ".join(model.label for model in models)
        raise OptionError(f'--by-seed: no two names differ only in "seed N" at the end: {names}')
    cases = [
        (task, group, own)
        for task, (group, members) in product(tasks, groups.items())
        if (own := runs_by_model(members, task))
    ]
    if within:
        cases = [
            (", ".join(tasks), model.label, {task: model.runs[task] for task in tasks})
            for model in models
            if set(tasks) <= model.runs.keys()
        ]
    if not cases:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no model has results on {' and '.join(tasks)}; available: {there}")
    report = Report(tasks if within else [model.label for model in models])
    wrong: LmEvalExtError | None = None
    for case in cases:
        try:
            report.tables += _compared(
                report, *case, asked, across_settings=across_settings, within=within, seeds=seeds
            )
        except LmEvalExtError as error:
            if isinstance(error, DataError) or not asked.is_question:
                report.refused.append(str(error))
            else:  # of many tasks only some have the metric or the facet
                wrong = error
    for label, missing in report.without_samples.items():
        report.refused.append(f"{label}, {', '.join(missing)}: {NoSamplesError.reason}")
    if wrong and not report.tables and not report.refused:
        raise wrong
    if within:
        _adjust_over_models(report.tables)
    elif not seeds:
        _mark(report.tables)
    return report


def _compared(
    report: Report,
    name: str,
    group: str,
    runs: Mapping[str, Run],
    asked: ScoreQuery,
    *,
    across_settings: bool,
    within: bool,
    seeds: bool,
) -> list[Table]:
    """The tables of a task, or of two tasks within a model; runs that are left out are noted."""
    import pandas as pd

    run = next(iter(runs.values())) if within else reference_run(runs)
    wanted = asked.questions(run)
    if within:
        systems = align_tasks(runs)
    else:
        systems, refused = align(runs, across_settings=across_settings)
        for label, error in refused.items():
            if isinstance(error, NoSamplesError):
                report.without_samples.setdefault(label, []).append(name)
            else:
                report.refused.append(str(error))
        if len(systems) < min(2, len(runs)):
            return []
    together = pd.concat(list(systems.values()))
    counts = [runs[label].documents for label in systems]
    total = max(own for _, own in counts) if any(one < own for one, own in counts) else None
    report.remarks += library_notes({label: runs[label] for label in systems})
    for label in systems:
        report.signatures.setdefault(runs[label].task, runs[label].signature)
    found: list[Table] = []
    for title, question in wanted:
        check(name, together, question, asked.filter)
        known = all(is_recomputable(runs[n], systems[n], question) for n in systems)
        same = {"task": name, "model": group, "title": title, "total": total}
        found += _tables(same, question, systems, run.card, known=known, pool=seeds)
    return found


def _adjust_over_models(tables: Sequence[Table]) -> None:
    """Adjusts the p-values of two tasks for all models."""
    tested: dict[tuple[str, str], list[Pair]] = {}
    for one in tables:
        tested.setdefault((one.title, one.part), []).extend(one.pairs)
        one.published = {}  # of one table, and p-values are of several
    for found in tested.values():
        adjust(found)


def _mark(tables: Sequence[Table]) -> None:
    """Let each table say how its systems stand among all values of the report."""
    tests = {place: table.tests for place, table in enumerate(tables) if table.tests}
    standing_in = standings(tests)
    for place, table in enumerate(tables):
        table.standings = standing_in.get(place, {})
        table.best = [name for name in table.figures if table.standings.get(name) == "best"]


def _tables(
    same: dict[str, Any],
    question: Question,
    systems: "Mapping[str, DataFrame]",
    card: Card | None,
    *,
    known: bool,
    pool: bool,
) -> Iterator[Table]:
    """One for each part; ``known``: samples give the values of the results files."""
    import pandas as pd

    for part, own in parts(pd.concat(list(systems.values())), question):
        measure = own.measure
        common = set(next(iter(shared_documents(systems, own).values()))[DOCUMENT])
        kept = {name: rows[rows[DOCUMENT].isin(common)] for name, rows in systems.items()}
        found = {name: estimate(rows, own) for name, rows in kept.items()}
        values = {name: one.value for name, one in found.items()}
        sign = 1 if measure.lower_is_better else -1
        ranked = sorted(found, key=lambda name: (values[name] is None, sign * (values[name] or 0)))
        tested = pairs(kept, own) if known and not pool else []
        some = found[ranked[0]]
        unit = card.cluster.unit_at(some.level) if card else DOCUMENT
        baseline = card.baseline(same["task"], own) if card else measure.baseline
        yield Table(
            **same,
            part=", ".join(part.values()),
            words=", ".join(map(card.word, part.values())) if card else "",
            metric=measure.name,
            unit=measure.unit,
            lower_is_better=measure.lower_is_better,
            documents=some.documents,
            clusters=some.clusters,
            cluster=unit,
            figures={name: found[name] for name in ranked},
            pairs=tested,
            published=card.published(same["task"], own) if card else {},
            note=_note(
                found,
                measure,
                unit,
                known=known,
                tested=bool(tested),
                has_baseline=baseline is not None,
            ),
            pooled=pooled(kept, own) if pool else None,
            tests=column_tests(values, kept, own, tested, baseline),
        )


def _note(
    found: Mapping[str, Estimate],
    measure: Measure,
    unit: str,
    *,
    known: bool,
    tested: bool,
    has_baseline: bool,
) -> str:
    """Say why there is no value, interval, test or mark; "" if there are."""
    some = next(iter(found.values()))
    without = [name for name, estimate in found.items() if estimate.value is None]
    note = ""
    if not some.documents:
        note = "no document has a value in all runs"
    elif without:
        note = f"{', '.join(without)}: {NONE}, since {measure.undefined}"
    elif not known:
        note = "no test: the results file has another value than the mean of its samples"
    elif measure.statistic == "bootstrap":
        note = "no test: the paper draws documents, with replacement"
    elif some.clusters < LEAST_CLUSTERS:
        note = f"no interval from {counted(some.clusters, unit)}, fewer than {LEAST_CLUSTERS}"
        if tested:
            note += "; p is never below 0.05"
    elif tested and not has_baseline:
        note = f"no mark: no chance level of {measure.title} is known"
    return note


def pooled(systems: "Mapping[str, DataFrame]", question: Question) -> Interval | None:
    """That of the mean over documents, whose values are means over the systems."""
    import pandas as pd

    measure = question.measure
    if measure.statistic not in ("mean", "contrast"):  # documents have no value
        return None
    kept = shared_documents(systems, question).values()
    own = pd.concat([document_values(rows, measure) for rows in kept])
    means = own.groupby([DOCUMENT, CLUSTER], sort=False).mean().reset_index()
    return interval(mean_estimate(means[measure.name], means[CLUSTER]), measure.limits)
