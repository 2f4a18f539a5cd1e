"""Questions to the table of scores: from a command's options to figures of models."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.statistics import Figure, figure, of_documents, parts

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Asked:
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
        return bool(self.metrics or self.value or self.where or self.by)

    def questions(self, task: str, run: ResultsFile) -> list[tuple[str, Question]]:
        """The questions about a task, each with its title.

        Raises:
            OptionError: An option cannot be read, or the task has no such metric or facet.
        """
        card = run.card(task)
        where: dict[str, tuple[str, ...]] = {}
        for one in self.where:
            facet, _, values = one.partition("=")
            if not values:
                raise OptionError(f"--where {one}: write FACET=VALUE, such as form=foreign")
            where[facet] = tuple(values.split(","))
        by = tuple(filter(None, map(str.strip, self.by.split(","))))
        for name in (*where, *by):
            if card is None:
                raise OptionError(f"no facet {name}: only tasks of ours have facets")
            if name not in card.facets:
                there = ", ".join(card.facets)
                raise OptionError(f"{card.name} has no facet {name}; it has {there}")
        found = []
        words = (one.partition("=")[2].replace("_", " ") for one in self.where)
        about = list(filter(None, [self.value, *words]))
        for metric in self.metrics or (run.headline(task),):
            own = question_of(run, task, metric)
            measure = own.measure
            if self.value:
                measure = measure.model_copy(update={"value": (self.value,)})
            title = ", ".join([run.title(task, metric), *about])
            found.append((title, Question(measure, {**own.where, **where}, by)))
        return found


def question_of(run: ResultsFile, task: str, metric: str = "") -> Question:
    """The question behind a task's metric or measure; without one, its headline.

    Of tasks that aren't ours, and of older files, a metric is the mean of documents' values.

    Raises:
        OptionError: The task has neither.
    """
    card, scores = run.card(task), run.scores(task)
    name = metric or run.headline(task)
    own = card if run.is_current(task) or not scores else None
    if own and (name in own.metrics or name in own.measures):
        return own.question_of(name)
    if name not in scores:
        there = ", ".join(list(dict.fromkeys([*(own.measures if own else ()), *scores]))[:16])
        raise OptionError(f"{task} has no metric {name}; it has {there}")
    unit: Any = run.unit(task, name) or "number"
    lower = run.lower_is_better(task, name)
    column, _, filter_name = name.partition(",")
    measure = Measure(name=name, title=name, value=(column,), unit=unit, lower_is_better=lower)
    return Question(measure, {"filter": (filter_name,)} if filter_name else {})


def figures(run: ResultsFile, task: str, question: Question) -> list[tuple[dict[str, str], Figure]]:
    """The figure of each part; one without parts that lm-eval has as a metric needs no samples.

    Raises:
        OptionError: The samples hold no part, or none of the values asked for.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    if (known := _noted(run, task, question)) is not None:
        return [({}, known)]
    table = rows(run, task)
    found = [(part, figure(table, own)) for part, own in parts(table, question)]
    if not any(one.documents for _, one in found):
        raise OptionError(f"{task}: {_nothing(table, question)}")
    return found


def _noted(run: ResultsFile, task: str, question: Question) -> Figure | None:
    card, scores = run.card(task), run.scores(task)
    if question.by:
        return None
    if card is None or not run.is_current(task):
        return scores.get(question.measure.name)
    for name, one in scores.items():
        plain = name.partition(",")[0]
        if plain in card.metrics:
            own = card.question_of(plain)
            if own.measure == question.measure and own.filter == question.filter:
                return one
    return None


def _nothing(table: "DataFrame", question: Question) -> str:
    """Why there is nothing to show."""
    if missing := [name for name in question.measure.value if name not in table]:
        numbers = [str(name) for name in table if table[name].dtype == "float64"]
        return f"no values {', '.join(missing)}; there are {', '.join(numbers)}"
    for facet in (*question.filter, *question.by):
        if facet not in table:
            return f"its samples have no {facet}"
        wanted = question.filter.get(facet)
        there = sorted(set(table[facet].dropna()))
        if wanted and not set(wanted) & set(there):
            return f"no {facet} {', '.join(wanted)}; there is {', '.join(there)}"
    return "no document has all that is asked for"


def recomputes(run: ResultsFile, task: str, table: "DataFrame", question: Question) -> bool:
    """Whether the samples give the value in the results file.

    Those of ours do. A metric of other tasks, or of an older version, is taken for the mean of
    documents' values, and need not be.
    """
    if run.is_current(task):
        return True
    reported = run.scores(task).get(question.measure.name)
    if reported is None or reported.value is None or question.measure.value[0] not in table:
        return False
    found = of_documents(table, question)
    return math.isclose(found.mean(), reported.value, rel_tol=1e-9, abs_tol=1e-9)
