"""Questions to the table of scores: estimates of a run, and what they can be asked about."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import UNIT
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.table import NoSamplesError, rows
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import Chance, Filter, Measure, Question, Unit
from lm_eval_ext.stats.statistics import (
    NONE,
    Estimate,
    estimate,
    shared_documents,
    split_question,
    values_by_document,
)
from lm_eval_ext.text import counted, names_in, typeable, value_typed

if TYPE_CHECKING:
    from pandas import DataFrame

_LISTED_METRICS = 16
"""Metrics that an error names."""


@dataclass(frozen=True)
class ScoreQuery:
    """A question about tasks, as a command's options ask it.

    Attributes:
        metrics: Metrics or measures; without any a task's headline.
        value: Another column of values; "" for the measure's.
        where: Conditions, each ``FACET=VALUE`` or ``FACET=VALUE,VALUE``.
        by: Facets, separated by commas; "" for none.
    """

    metrics: tuple[str, ...] = ()
    value: str = ""
    where: tuple[str, ...] = ()
    by: str = ""

    @property
    def is_question(self) -> bool:
        """Whether something else than the tasks' headlines is asked."""
        return self != ScoreQuery()

    @cached_property
    def filter(self) -> Filter:
        """The conditions of ``where``: by facet, the values that rows may have.

        Raises:
            OptionError: A condition cannot be read.
        """
        conditions: dict[str, tuple[str, ...]] = {}
        for condition in self.where:
            facet, _, values = condition.partition("=")
            if not values or "=" in values or facet in conditions:
                raise OptionError(
                    f"--where {condition}: give each facet once, as FACET=VALUE or "
                    "FACET=VALUE,VALUE, such as form=foreign"
                )
            conditions[facet] = tuple(values.split(","))
        return conditions

    @property
    def facets(self) -> tuple[str, ...]:
        """The facets of ``by``."""
        return tuple(names_in(self.by))

    def questions(self, run: Run) -> list[tuple[str, Question]]:
        """Return the questions about a task, each with its title.

        Raises:
            OptionError: An option cannot be read, or the task has no such metric or facet.
        """
        _check_facets(run.card, (*self.filter, *self.facets))
        conditions = []
        for values in self._filter_of(run.card).values():
            words = [run.card.word(value) if run.card else value for value in values]
            conditions.append(", ".join(words))
        questions = []
        for metric in self.metrics or (run.headline,):
            words = [run.title(metric), self.value, *conditions]
            title = ", ".join(word for word in words if word)
            questions.append((title, self._question(run, metric)))
        return questions

    def _question(self, run: Run, metric: str) -> Question:
        """Return the question about one metric of a task."""
        base = question_of(run, metric)
        measure = base.measure
        repeated = [facet for facet in base.where if facet in self.filter]
        if repeated:
            raise OptionError(
                f"{metric} is about one {', '.join(repeated)} already; give --metric "
                f"{measure.name}, or leave out --where"
            )
        if measure.weights and measure.facet in self.facets:
            raise OptionError(
                f"{metric} compares {measure.facet}, so --by {measure.facet} leaves nothing to "
                "compare; give another --metric"
            )
        if self.value:
            measure = measure.model_copy(update={"value": (self.value,)})
        return Question(measure, {**base.where, **self._filter_of(run.card)}, self.facets)

    def _filter_of(self, card: Card | None) -> Filter:
        """Return the conditions with the values as the samples have them."""
        if card is None:
            return self.filter
        conditions = {}
        for facet, values in self.filter.items():
            conditions[facet] = tuple(map(card.facet_value, values))
        return conditions


def _check_facets(card: Card | None, facets: Sequence[str]) -> None:
    """Check that a benchmark has these facets."""
    for facet in facets:
        if card is None:
            raise OptionError(f"no facet {facet}: only tasks of ours have facets")
        if facet not in card.facets:
            available = ", ".join(card.facets) or "none"
            raise OptionError(f"{card.name} has no facet {facet}; available: {available}")


def question_of(run: Run, metric: str = "") -> Question:
    """Return the question behind a task's metric or measure; without one, behind its headline.

    In tasks that aren't ours, and in older files, a metric is the mean of documents' values.

    Raises:
        OptionError: The task has no such metric or measure.
    """
    name = metric or run.headline
    card = run.card if run.is_current or not run.scores else None
    if card and (name in card.metrics or name in card.measures):
        return card.question_of(name)
    if name not in run.scores:
        measures = card.measures if card else ()
        available = list(dict.fromkeys([*measures, *run.scores]))[:_LISTED_METRICS]
        raise OptionError(
            f"{run.task} has no metric {name}; available: {', '.join(available) or 'none'}"
        )
    return _mean_of_documents(run, name)


def _mean_of_documents(run: Run, metric: str) -> Question:
    """Return the question behind a metric that no card describes."""
    column, _, filter_name = metric.partition(",")
    units = {entry.get("metric"): entry.get(UNIT) for entry in run.config.get("metric_list") or ()}
    unit: Unit = units.get(column) or "number"
    directions = run.file.content.get("higher_is_better", {}).get(run.task) or {}
    measure = Measure(
        name=metric,
        title=metric,
        value=(column,),
        unit=unit,
        lower_is_better=directions.get(column) is False,
    )
    where = {"filter": (filter_name,)} if filter_name else {}
    return Question(measure, where)


def chance_level_of(run: Run, question: Question) -> Chance | None:
    """Return what a model has to exceed on a question about a task; None if nothing is known."""
    if run.card is None or question.by:  # what trivial answers score is of whole questions
        return question.measure.chance_level
    return run.card.chance_level(run.task, question)


def chance_of(run: Run, question: Question) -> float | None:
    """Return what guessing scores on a question about a task; None if no card says it."""
    if run.card is None or not run.is_current:
        return None
    return run.card.chance(run.task, question)


def estimates(
    run: Run, question: Question, named_facets: Collection[str] = ()
) -> list[tuple[dict[str, str], Estimate]]:
    """Return each part that a question is about, with its estimate.

    A question that lm-eval has as a metric needs no samples; nor does one that names its parts,
    if each of them is a metric.

    Args:
        run: A task's results.
        question: A question about the task.
        named_facets: Facets whose values a user names; every value must exist.

    Raises:
        OptionError: The samples lack the values or parts that are asked for.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    estimate_in_file = _estimate_in_file(run, question)
    if estimate_in_file is not None:
        return [({}, shown_estimate(question.measure, estimate_in_file))]
    try:
        table = rows(run)
    except NoSamplesError:
        parts_in_file = _parts_in_file(run, question)
        if not parts_in_file:
            raise
        return parts_in_file
    question = checked_question(run.task, table, question, named_facets)
    estimated_parts = []
    for facet_values, part_question in split_question(table, question):
        part_estimate = shown_estimate(question.measure, estimate(table, part_question))
        estimated_parts.append((facet_values, part_estimate))
    return estimated_parts


def shown_estimate(measure: Measure, estimate: Estimate) -> Estimate:
    """Return an estimate as it is shown: that of a diagnostic has no interval."""
    if measure.diagnostic:
        return replace(estimate, low=None, high=None)
    return estimate


def _estimate_in_file(run: Run, question: Question) -> Estimate | None:
    """Return the estimate that the results file has for a question; None if it has none."""
    if question.by:
        return None
    for metric, metric_estimate in run.scores.items():
        metric_question = question_of(run, metric)
        same_measure = metric_question.measure == question.measure
        if same_measure and metric_question.filter == question.filter:
            return metric_estimate
    return None


def _parts_in_file(run: Run, question: Question) -> list[tuple[dict[str, str], Estimate]]:
    """Return the parts that a question names, as the results file has them.

    Returns:
        Each part with its estimate; [] if the question names no parts, or the file lacks one.
    """
    if len(question.by) != 1:
        return []
    (facet,) = question.by
    parts = []
    for value in question.where.get(facet, ()):
        part_question = Question(question.measure, {**question.where, facet: (value,)})
        part_estimate = _estimate_in_file(run, part_question)
        if part_estimate is None:
            return []
        parts.append(({facet: value}, shown_estimate(question.measure, part_estimate)))
    return parts


@dataclass(frozen=True)
class QueryRow:
    """An estimate of a run: of one of its metrics, or of a part that a question is about.

    Attributes:
        run: The results that it is from.
        metric: The metric or measure.
        title: The metric in words, with the conditions of the question.
        part: The part's values by facet; {} without ``by``.
        question: The question that it answers.
        estimate: The value with its interval.
    """

    run: Run
    metric: str
    title: str
    part: Mapping[str, str]
    question: Question
    estimate: Estimate


def query_rows(run: Run, query: ScoreQuery) -> Iterator[QueryRow]:
    """Yield the estimates that are asked for; without a question those of all metrics.

    Raises:
        OptionError: As :meth:`ScoreQuery.questions` and :func:`estimates`.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    if not query.is_question:
        for metric, metric_estimate in run.scores.items():
            question = question_of(run, metric)
            shown = shown_estimate(question.measure, metric_estimate)
            yield QueryRow(run, metric, run.title(metric), {}, question, shown)
        return
    for title, question in query.questions(run):
        for facet_values, part_estimate in estimates(run, question, query.filter):
            metric = question.measure.name
            yield QueryRow(run, metric, title, facet_values, question, part_estimate)


def checked_question(
    task: str, table: "DataFrame", question: Question, named_facets: Collection[str]
) -> Question:
    """Return a question with values as the table has them, after a check that it answers it.

    A user may type a value in the form in which errors list it. The card knows only some values.

    Raises:
        OptionError: It lacks a value that a user named, or all that is asked for.
    """
    if table.empty:
        raise OptionError(f"{task}: no document was scored")
    measure = question.measure
    missing = [column for column in measure.value if column not in table]
    if missing:
        numbers = [str(column) for column in table if table[column].dtype == "float64"]
        raise OptionError(
            f"{task}: no values {', '.join(missing)}; available: {', '.join(numbers)}"
        )
    needed = [*question.filter, *question.by, *measure.groups]
    if measure.facet:
        needed.append(measure.facet)
    for facet in needed:
        if facet not in table:
            raise OptionError(f"{task}: its samples have no {facet}")
    question = _with_values_of(table, question)
    for facet in needed:
        _check_facet_values(task, table, question, facet, is_named=facet in named_facets)
    _check_parts(task, table, question)
    return question


def _with_values_of(table: "DataFrame", question: Question) -> Question:
    """Return a question whose conditions have the values of a table, not their typed forms."""
    where = {}
    for facet, typed_values in question.where.items():
        known = table[facet].dropna().unique()
        where[facet] = tuple(value_typed(typed, known) for typed in typed_values)
    return replace(question, where=where)


def _check_facet_values(
    task: str, table: "DataFrame", question: Question, facet: str, *, is_named: bool
) -> None:
    """Check that a table has one of the values that are asked for; all, if a user named them."""
    available = set(table[facet].dropna())
    required = question.filter.get(facet, ())
    unknown = [value for value in required if value not in available]
    if unknown and (is_named or len(unknown) == len(required)):
        names = ", ".join(map(typeable, sorted(available)))
        raise OptionError(f"{task}: no {facet} {', '.join(unknown)}; available: {names}")


def _check_parts(task: str, table: "DataFrame", question: Question) -> None:
    """Check that a document has all that is asked for, and a part what it is compared with."""
    tables = []
    for _, part_question in split_question(table, question):
        tables.append(shared_documents({"": table}, part_question)[""])
    if all(part_table.empty for part_table in tables):
        raise OptionError(f"{task}: no document has all that is asked for")
    for facet, base in question.measure.shared.items():
        values_by_part = [set(part_table[facet]) for part_table in tables]
        if not any(base in values and len(values) > 1 for values in values_by_part):
            raise OptionError(
                f"{task}: {question.measure.name} compares {facet} {base} with others, and no part "
                "has both; change --where or --by, or name another --metric"
            )


def is_recomputable(run: Run, table: "DataFrame", question: Question) -> bool:
    """Return whether the samples give the value in the results file.

    Samples of our tasks do. A metric of other tasks, or of an older version, is taken for the mean
    of documents' values, but need not be that.
    """
    if run.is_current:
        return True
    reported = run.scores.get(question.measure.name)
    if reported is None or reported.value is None or question.measure.value[0] not in table:
        return False
    values = values_by_document(table, question)
    return math.isclose(values.mean(), reported.value, rel_tol=1e-9, abs_tol=1e-9)


def reason_for(run: Run, measure: Measure, estimate: Estimate) -> str:
    """Return why an estimate has no value or no interval; "" if it has one."""
    card = run.card
    if card is None or not run.is_current or estimate.low is not None:
        return ""
    remedy = "" if run.is_whole else "; more documents may give one (--limit)"
    if estimate.value is None:
        reason = measure.undefined if estimate.documents else "no document has a value"
        return f"{NONE}, since {reason}{remedy}"
    if measure.diagnostic:
        return ""
    unit = card.cluster.unit_at(estimate.level)
    if estimate.used_clusters >= LEAST_CLUSTERS:
        return f"no interval, since it hangs on one {unit}"
    clusters = counted(estimate.used_clusters, unit)
    return f"no interval from {clusters}, fewer than {LEAST_CLUSTERS}{remedy}"


def reference_run(runs: Mapping[str, Run]) -> Run:
    """Return the run whose metrics a report has: the first with the headline that most runs have.

    Files of older versions have other metrics, so they decide only where there are no others.
    """
    current = [run for run in runs.values() if run.is_current] or list(runs.values())
    counts = Counter(run.headline for run in current)
    headline, _ = counts.most_common(1)[0]
    return next(run for run in current if run.headline == headline)
