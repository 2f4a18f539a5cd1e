"""The comparison itself: models on each task, two tasks within each model, or models over seeds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.results.align import align, align_tasks, settings_remark
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, count_models, runs_by_model
from lm_eval_ext.results.query import ScoreQuery, checked_question, is_recomputable, reference_run
from lm_eval_ext.results.show import library_notes
from lm_eval_ext.results.table import NoSamplesError
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS, Interval, interval, mean_estimate
from lm_eval_ext.stats.marks import ColumnTests, Standing, column_tests, standings
from lm_eval_ext.stats.measures import CLUSTER, DOCUMENT, Chance, Question
from lm_eval_ext.stats.statistics import (
    NONE,
    Estimate,
    Pair,
    adjust,
    document_values,
    estimate,
    pairs,
    shared_documents,
    split_question,
)
from lm_eval_ext.text import counted, named_briefly

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass
class Table:
    """The values of several systems for one question, on the documents that all have a value for.

    Attributes:
        task: The task's name; of two tasks both.
        model: Where two tasks are compared, the model; where seeds are, the name they share.
        title: The question's title.
        part: The values of the facets of ``--by``.
        words: ``part`` in the card's words.
        metric: The measure's name.
        unit: The unit of the values.
        lower_is_better: Whether lower values are better.
        documents: The number of documents that were compared.
        total: The number of documents of the task, where that is a trial and all of its documents
            count; of a part it is not known.
        clusters: The number of clusters of the compared documents.
        cluster: The word for a cluster.
        figures: The estimates by system, the best first (JSON has this key).
        pairs: Differences and tests of every two.
        published: Published values, by who published them.
        note: Why there is no value, test or interval.
        pooled: The interval of the mean over all systems, which are a group of seeds.
        tests: The tests of the systems against the baseline and each other.
        chance: What a system has to exceed to show anything; None where it is not known.
        best: The systems that are marked as best.
        standings: By system, how it stands (:mod:`lm_eval_ext.stats.marks`).
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
    chance: Chance | None = None
    best: list[str] = field(default_factory=list)
    standings: dict[str, Standing] = field(default_factory=dict)

    @property
    def count(self) -> str:
        """The number of documents and, unless each document is one, of clusters."""
        total = "" if self.total is None else f"/{self.total:,}"
        documents = f"{self.documents:,}{total} documents"
        if self.clusters in (0, self.documents):
            return documents
        return f"{documents}, {counted(self.clusters, self.cluster)}"


@dataclass
class Report:
    """The results of a comparison.

    Attributes:
        systems: The systems, in the order in which they were named.
        tables: One for each question about each task, and part.
        refused: Why a task or a run could not be compared.
        signatures: By task, the signatures of its runs, each once: settings may differ.
        without_samples: By model, the tasks whose samples were not logged.
        remarks: What a reader must know of the runs.
    """

    systems: Sequence[str]
    tables: list[Table] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    signatures: dict[str, list[str]] = field(default_factory=dict)
    without_samples: dict[str, list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Options:
    """The options of :func:`compare`."""

    across_settings: bool
    between_tasks: bool
    seeds: bool


@dataclass(frozen=True)
class _Case:
    """Runs that are compared with each other.

    Attributes:
        task: The task's name; of two tasks both.
        model: The model, if the runs are of two tasks; the name of the group, if they are of a
            group of seeds; otherwise "".
        runs: By system, which is a model or a task.
    """

    task: str
    model: str
    runs: Mapping[str, Run]


_SEED = re.compile(r"[\s,·_-]*\(?seed[\s_=:-]*(\d+)\)?$", re.IGNORECASE)


def compare(
    models: Sequence[Model],
    tasks: Sequence[str],
    query: ScoreQuery,
    *,
    across_settings: bool = False,
    between_tasks: bool = False,
    seeds: bool = False,
) -> Report:
    """Compare models on every task, or two tasks within each model.

    With ``between_tasks``, compare two tasks within each model that has both; then p-values are
    adjusted (Holm) over all models, for each part of a question. With ``seeds``, models whose names
    differ in a seed alone are a group; there is a table for each group, without tests, but with the
    interval of all its models together if documents have values.

    Raises:
        OptionError: No task has the metric or the facet, no model has both tasks, or no two models
            differ in their seed alone.
    """
    options = _Options(across_settings, between_tasks, seeds)
    if between_tasks:
        cases = _cases_between(models, tasks)
    else:
        seed_groups = _seed_groups(models) if seeds else {"": models}
        cases = _cases_on(tasks, seed_groups)
    if not cases:
        available = ", ".join(count_models(models))
        task_names = " and ".join(tasks)
        raise OptionError(f"no model has results on {task_names}; available: {available}")
    report = Report(tasks if between_tasks else [model.label for model in models])
    last_error: LmEvalExtError | None = None
    for case in cases:
        try:
            report.tables += list(_compare_case(case, query, options, report))
        except LmEvalExtError as error:
            if isinstance(error, DataError) or not query.is_question:
                report.refused.append(str(error))
            else:  # of many tasks only some have the metric or the facet
                last_error = error
    report.refused += _without_samples(report.without_samples)
    if last_error and not report.tables and not report.refused:
        raise last_error
    if between_tasks:
        _adjust_over_models(report.tables)
    elif not seeds:
        _mark(report.tables)
    return report


def _without_samples(tasks_of: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield that models lack samples, those that lack the same tasks' together.

    Args:
        tasks_of: By model, the tasks without samples.
    """
    models_of: dict[tuple[str, ...], list[str]] = {}
    for model, tasks in tasks_of.items():
        models_of.setdefault(tuple(tasks), []).append(model)
    for missing, models in models_of.items():
        yield f"{named_briefly(models)} ({', '.join(missing)}): {NoSamplesError.reason}"


def _cases_between(models: Sequence[Model], tasks: Sequence[str]) -> list[_Case]:
    """Return a case for each model that has both tasks."""
    cases = []
    for model in models:
        if all(task in model.runs for task in tasks):
            runs = {task: model.runs[task] for task in tasks}
            cases.append(_Case(", ".join(tasks), model.label, runs))
    return cases


def _cases_on(tasks: Sequence[str], seed_groups: Mapping[str, Sequence[Model]]) -> list[_Case]:
    """Return a case for each task and group that has results on it."""
    cases = []
    for task in tasks:
        for group_name, models in seed_groups.items():
            runs = runs_by_model(models, task)
            if runs:
                cases.append(_Case(task, group_name, runs))
    return cases


def _seed_groups(models: Sequence[Model]) -> dict[str, list[Model]]:
    """Return the models in groups that differ in their seed, by their names without the seed."""
    seed_groups: dict[str, list[Model]] = {}
    for model in models:
        seed_groups.setdefault(_SEED.sub("", model.label), []).append(model)
    if len(seed_groups) == len(models):
        names = ", ".join(model.label for model in models)
        raise OptionError(f'--by-seed: no two names differ only in "seed N" at the end: {names}')
    return seed_groups


def _compare_case(
    case: _Case, query: ScoreQuery, options: _Options, report: Report
) -> Iterator[Table]:
    """Yield the tables of a case; runs that are left out are noted in the report."""
    import pandas as pd

    run = next(iter(case.runs.values())) if options.between_tasks else reference_run(case.runs)
    questions = query.questions(run)
    table_by_system = _aligned(case, options, report)
    if not table_by_system:
        return
    joint_table = pd.concat(list(table_by_system.values()))
    counts = [case.runs[system].documents for system in table_by_system]
    total = None
    if any(scored < documents for scored, documents in counts):
        total = max(documents for _, documents in counts)
    if options.across_settings:
        remark = settings_remark(case.runs, table_by_system)
        if remark:
            report.remarks.append(remark)
    report.remarks += library_notes({system: case.runs[system] for system in table_by_system})
    for system in table_by_system:
        task_signatures = report.signatures.setdefault(case.runs[system].task, [])
        if case.runs[system].signature not in task_signatures:
            task_signatures.append(case.runs[system].signature)
    for title, question in questions:
        checked = checked_question(case.task, joint_table, question, query.filter)
        comparison = _Comparison(
            case=case,
            title=title,
            table_by_system=table_by_system,
            card=run.card,
            total=total,
            is_recomputable=all(
                is_recomputable(case.runs[system], table, question)
                for system, table in table_by_system.items()
            ),
            is_by_seed=options.seeds,
        )
        for facet_values, part_question in split_question(joint_table, checked):
            yield comparison.part_table(facet_values, part_question)


def _aligned(case: _Case, options: _Options, report: Report) -> "dict[str, DataFrame]":
    """Return the tables of the runs that can be compared; {} if there are too few."""
    if options.between_tasks:
        return align_tasks(case.runs)
    table_by_system, refused = align(case.runs, across_settings=options.across_settings)
    for label, error in refused.items():
        if isinstance(error, NoSamplesError):
            report.without_samples.setdefault(label, []).append(case.task)
        else:
            report.refused.append(str(error))
    # A case of one run is shown, without a test; a run that is left over from several is not.
    return table_by_system if len(table_by_system) >= min(2, len(case.runs)) else {}


def _adjust_over_models(tables: Sequence[Table]) -> None:
    """Adjust the p-values of comparisons of two tasks for the number of models."""
    pairs_of: dict[tuple[str, str], list[Pair]] = {}
    for table in tables:
        pairs_of.setdefault((table.title, table.part), []).extend(table.pairs)
        table.published = {}  # they are of one task, and the table compares two
    for question_pairs in pairs_of.values():
        adjust(question_pairs)


def _mark(tables: Sequence[Table]) -> None:
    """Let each table say how its systems stand among all values of the report."""
    tests = {number: table.tests for number, table in enumerate(tables) if table.tests}
    standing_in = standings(tests)
    for number, table in enumerate(tables):
        table.standings = standing_in.get(number, {})
        table.best = [name for name in table.figures if table.standings.get(name) == "best"]


@dataclass(frozen=True)
class _Comparison:
    """Systems that are compared on one question.

    Attributes:
        case: The runs.
        title: The question's title.
        table_by_system: The long tables of the systems.
        card: The benchmark's card.
        total: The number of documents of the task, where that is a trial.
        is_recomputable: Whether the samples give the values of the results files.
        is_by_seed: Whether the systems are a group of seeds, which are not tested.
    """

    case: _Case
    title: str
    table_by_system: "Mapping[str, DataFrame]"
    card: Card | None
    total: int | None
    is_recomputable: bool
    is_by_seed: bool

    def part_table(self, facet_values: Mapping[str, str], question: Question) -> Table:
        """Return the table of one part."""
        measure = question.measure
        table_by_system = self._on_shared_documents(question)
        estimates = {name: estimate(table, question) for name, table in table_by_system.items()}
        values = {name: system_estimate.value for name, system_estimate in estimates.items()}
        without_interval = [
            name for name, system_estimate in estimates.items() if system_estimate.low is None
        ]
        ranked = _best_first(values, lower_is_better=measure.lower_is_better)
        tested: list[Pair] = []
        if self.is_recomputable and not self.is_by_seed:
            tested = pairs(table_by_system, question)
        chance = measure.chance_level
        published: dict[str, float] = {}
        words = ""
        cluster_word = DOCUMENT
        best = estimates[ranked[0]]
        if self.card:
            chance = self.card.chance_level(self.case.task, question)
            published = self.card.published(self.case.task, question)
            words = ", ".join(map(self.card.word, facet_values.values()))
            cluster_word = self.card.cluster.unit_at(best.level)
        baseline = None if chance is None else chance.value
        return Table(
            task=self.case.task,
            model=self.case.model,
            title=self.title,
            part=", ".join(facet_values.values()),
            words=words,
            metric=measure.name,
            unit=measure.unit,
            lower_is_better=measure.lower_is_better,
            documents=best.documents,
            total=self.total if best.documents == self._scored_documents else None,
            clusters=best.clusters,
            cluster=cluster_word,
            figures={name: estimates[name] for name in ranked},
            pairs=tested,
            published=published,
            note=self._note(estimates, question, cluster_word, tested, baseline),
            pooled=pooled(table_by_system, question) if self.is_by_seed else None,
            tests=column_tests(
                values,
                table_by_system,
                question,
                tested,
                baseline,
                without_interval=without_interval,
            ),
            chance=chance,
        )

    @cached_property
    def _scored_documents(self) -> int:
        """The number of documents that all systems have answered."""
        documents = [set(table[DOCUMENT]) for table in self.table_by_system.values()]
        return len(set.intersection(*documents))

    def _on_shared_documents(self, question: Question) -> "dict[str, DataFrame]":
        """Return the systems' tables with the documents that all have a value for."""
        shared = shared_documents(self.table_by_system, question)
        documents = set(next(iter(shared.values()))[DOCUMENT])
        tables = {}
        for name, table in self.table_by_system.items():
            tables[name] = table[table[DOCUMENT].isin(documents)]
        return tables

    def _note(
        self,
        estimates: Mapping[str, Estimate],
        question: Question,
        cluster_word: str,
        tested: Sequence[Pair],
        baseline: float | None,
    ) -> str:
        """Say why there is no value, interval, test or mark; "" if there are all."""
        reference = next(iter(estimates.values()))
        without_value = [name for name in estimates if estimates[name].value is None]
        if not reference.documents:
            return "no document has a value in all runs"
        if without_value:
            return f"{', '.join(without_value)}: {NONE}, since {question.measure.undefined}"
        if not self.is_recomputable:
            return "no test: the results file has another value than the mean of its samples"
        if question.measure.statistic == "bootstrap":
            return "no test: the paper draws documents, with replacement"
        note = _few_clusters_note(estimates, cluster_word)
        if note:
            is_any_interval = any(system.low is not None for system in estimates.values())
            return f"{note}; p is never below 0.05" if tested and not is_any_interval else note
        note = f"no mark: no chance level of {question.measure.title} is known"
        return note if tested and baseline is None else ""


def _few_clusters_note(estimates: Mapping[str, Estimate], cluster_word: str) -> str:
    """Say which systems have no interval, since they have too few clusters; "" if none.

    If all of them have the same number, the note names none.
    """
    systems_of: dict[int, list[str]] = {}
    for name, system_estimate in estimates.items():
        if system_estimate.used_clusters < LEAST_CLUSTERS:
            systems_of.setdefault(system_estimate.used_clusters, []).append(name)
    notes = []
    for number, systems in systems_of.items():
        note = f"no interval from {counted(number, cluster_word)}, fewer than {LEAST_CLUSTERS}"
        if len(systems) < len(estimates):
            note = f"{named_briefly(systems)}: {note}"
        notes.append(note)
    return "; ".join(notes)


def _best_first(values: Mapping[str, float | None], *, lower_is_better: bool) -> list[str]:
    """Return the systems from the best to the worst, those without a value last."""

    def rank(name: str) -> tuple[bool, float]:
        value = values[name]
        if value is None:
            return True, 0.0
        return False, value if lower_is_better else -value

    return sorted(values, key=rank)


def pooled(table_by_system: "Mapping[str, DataFrame]", question: Question) -> Interval | None:
    """Return the interval of the mean over documents, whose values are means over the systems.

    It is None for a statistic that is no mean over documents.
    """
    import pandas as pd

    measure = question.measure
    if measure.statistic not in ("mean", "contrast"):
        return None
    tables = shared_documents(table_by_system, question).values()
    values = pd.concat([document_values(table, measure) for table in tables])
    means = values.groupby([DOCUMENT, CLUSTER], sort=False).mean().reset_index()
    return interval(mean_estimate(means[measure.name], means[CLUSTER]), measure.limits)
