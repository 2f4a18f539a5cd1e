"""Questions to the table of scores: figures of a run, runs side by side, models by benchmarks."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import UNIT
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import Filter, Measure, Question
from lm_eval_ext.stats.statistics import (
    NONE,
    Estimate,
    estimate,
    of_documents,
    parts,
    shared_documents,
)
from lm_eval_ext.text import counted, names_in

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class ScoreQuery:
    """A question to tasks, as a command's options give it.

    Attributes:
        metrics: Metrics or measures; without any a task's headline.
        value: Another column of values; "" for the measure's.
        where: Each ``FACET=VALUE`` or ``FACET=VALUE,VALUE``.
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
        """``where`` by facet.

        Raises:
            OptionError: It cannot be read.
        """
        found: dict[str, tuple[str, ...]] = {}
        for one in self.where:
            facet, _, values = one.partition("=")
            if not values or "=" in values or facet in found:
                raise OptionError(
                    f"--where {one}: give each facet once, as FACET=VALUE or FACET=VALUE,VALUE, "
                    "such as form=foreign"
                )
            found[facet] = tuple(values.split(","))
        return found

    def questions(self, run: Run) -> list[tuple[str, Question]]:
        """The questions about a task, each with its title.

        Raises:
            OptionError: An option cannot be read, or the task has no such metric or facet.
        """
        card = run.card
        where, by = self.filter, tuple(names_in(self.by))
        for name in (*where, *by):
            if card is None:
                raise OptionError(f"no facet {name}: only tasks of ours have facets")
            if name not in card.facets:
                there = ", ".join(card.facets) or "none"
                raise OptionError(f"{card.name} has no facet {name}; it has {there}")
        found = []
        words = [", ".join(values).replace("_", " ") for values in where.values()]
        for metric in self.metrics or (run.headline,):
            own = question_of(run, metric)
            measure = own.measure
            if taken := own.where.keys() & where.keys():
                raise OptionError(
                    f"{metric} is about one {', '.join(taken)} already; give --metric "
                    f"{measure.name}, or leave out --where"
                )
            if measure.weights and measure.facet in by:
                raise OptionError(
                    f"{metric} compares {measure.facet}, so --by {measure.facet} leaves nothing to "
                    "compare; give another --metric"
                )
            if self.value:
                measure = measure.model_copy(update={"value": (self.value,)})
            title = ", ".join(filter(None, [run.title(metric), self.value, *words]))
            found.append((title, Question(measure, {**own.where, **where}, by)))
        return found


def question_of(run: Run, metric: str = "") -> Question:
    """The question behind a task's metric or measure; without one, its headline.

    Of tasks that aren't ours, and of older files, a metric is the mean of documents' values.

    Raises:
        OptionError: The task has neither.
    """
    name, scores = metric or run.headline, run.scores
    own = run.card if run.is_current or not scores else None
    if own and (name in own.metrics or name in own.measures):
        return own.question_of(name)
    if name not in scores:
        there = ", ".join(list(dict.fromkeys([*(own.measures if own else ()), *scores]))[:16])
        raise OptionError(f"{run.task} has no metric {name}; it has {there}")
    column, _, filter_name = name.partition(",")
    listed = run.config.get("metric_list") or ()
    unit: Any = {one.get("metric"): one.get(UNIT) for one in listed}.get(column) or "number"
    lower = (run.file.content.get("higher_is_better", {}).get(run.task) or {}).get(column) is False
    measure = Measure(name=name, title=name, value=(column,), unit=unit, lower_is_better=lower)
    return Question(measure, {"filter": (filter_name,)} if filter_name else {})


def figures(
    run: Run, question: Question, wanted: Collection[str] = ()
) -> list[tuple[dict[str, str], Estimate]]:
    """The figure of each part; one without parts that lm-eval has as a metric needs no samples.

    Args:
        run: Of a task.
        question: About the task.
        wanted: Facets whose values a user names; every one must exist.

    Raises:
        OptionError: The samples lack the values or parts that are asked for.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    if (known := _noted(run, question)) is not None:
        return [({}, known)]
    table = rows(run)
    check(run.task, table, question, wanted)
    return [(part, estimate(table, own)) for part, own in parts(table, question)]


class Answer(NamedTuple):
    """A figure of a run: of one of its metrics, or of a part that a question is about.

    ``name`` is the metric's, ``title`` the same in words, with the conditions of the question.
    """

    run: Run
    name: str
    title: str
    part: Mapping[str, str]
    question: Question
    figure: Estimate


def answers(run: Run, asked: ScoreQuery) -> Iterator[Answer]:
    """The figures that are asked for; without a question all metrics.

    Raises:
        OptionError: As :meth:`ScoreQuery.questions` and :func:`figures`.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    if not asked.is_question:
        for name, one in run.scores.items():
            yield Answer(run, name, run.title(name), {}, question_of(run, name), one)
        return
    for title, question in asked.questions(run):
        for part, one in figures(run, question, asked.filter):
            yield Answer(run, question.measure.name, title, part, question, one)


def _noted(run: Run, question: Question) -> Estimate | None:
    asked = question.measure, question.filter
    for name, one in run.scores.items() if not question.by else ():
        own = question_of(run, name)
        if (own.measure, own.filter) == asked:
            return one
    return None


def check(task: str, table: "DataFrame", question: Question, wanted: Collection[str]) -> None:
    """Checks that a table answers a question.

    Raises:
        OptionError: It lacks a value that is wanted, or all that is asked for.
    """
    if table.empty:
        raise OptionError(f"{task}: no document was scored")
    if missing := [name for name in question.measure.value if name not in table]:
        numbers = [str(name) for name in table if table[name].dtype == "float64"]
        raise OptionError(f"{task}: no values {', '.join(missing)}; there are {', '.join(numbers)}")
    for facet in (*question.filter, *question.by):
        if facet not in table:
            raise OptionError(f"{task}: its samples have no {facet}")
        there, asked = set(table[facet].dropna()), question.filter.get(facet, ())
        unknown = [one for one in asked if one not in there]
        if unknown and (facet in wanted or len(unknown) == len(asked)):
            raise OptionError(
                f"{task}: no {facet} {', '.join(unknown)}; there is {', '.join(sorted(there))}"
            )
    found = [shared_documents({"": table}, own)[""] for _, own in parts(table, question)]
    if all(one.empty for one in found):
        raise OptionError(f"{task}: no document has all that is asked for")
    for facet, base in question.measure.shared.items():
        if not any(base in (left := set(one[facet])) and len(left) > 1 for one in found):
            raise OptionError(
                f"{task}: {question.measure.name} compares {facet} {base} with others, and no part "
                "has both; change --where or --by"
            )


def recomputes(run: Run, table: "DataFrame", question: Question) -> bool:
    """Whether the samples give the value in the results file.

    Those of ours do. A metric of other tasks, or of an older version, is taken for the mean of
    documents' values, and need not be.
    """
    if run.is_current:
        return True
    reported = run.scores.get(question.measure.name)
    if reported is None or reported.value is None or question.measure.value[0] not in table:
        return False
    found = of_documents(table, question)
    return math.isclose(found.mean(), reported.value, rel_tol=1e-9, abs_tol=1e-9)


def reason_for(run: Run, measure: Measure, found: Estimate) -> str:
    """Why a figure has no value or no interval; "" if it has."""
    card = run.card
    if card is None or not run.is_current or found.low is not None:
        return ""
    if found.value is None:
        text = measure.undefined if found.documents else "no document has a value"
        return f"{NONE}, since {text}"
    unit = card.cluster.unit_at(found.level)
    if found.clusters >= LEAST_CLUSTERS:
        return f"no interval, since it hangs on one {unit}"
    return f"no interval from {counted(found.clusters, unit)}, fewer than {LEAST_CLUSTERS}"


def reference_run(runs: Mapping[str, Run]) -> Run:
    """The run whose metrics a report has: the first with the headline that most runs have.

    Files of older versions have other metrics, so they decide only where there are no others.
    """
    current = [run for run in runs.values() if run.is_current] or [*runs.values()]
    ((metric, _),) = Counter(run.headline for run in current).most_common(1)
    return next(run for run in current if run.headline == metric)
