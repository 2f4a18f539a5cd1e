"""Scores of single samples: what is behind a task's metrics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.query import ScoreQuery, checked_question, question_of
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.statistics import values_by_document

if TYPE_CHECKING:
    from pandas import DataFrame

Kind = Literal["more", "less", "gain", "loss"]
"""``more`` where 1 is right, ``less`` where 0 is, ``gain`` and ``loss`` for differences where less
or more than 0 is wrong."""

Outcome = Literal[
    "right", "wrong", "partly", "won", "lost", "no gain", "no difference", "not scored"
]
"""A difference is won or lost, or it is none."""

_NEARLY = 1e-9
"""Values this close to an end of the range are at it, but for rounding."""


@dataclass(frozen=True)
class SampleScore:
    """A score of samples.

    Attributes:
        metrics: The metrics of the task that it is behind.
        title: The score in words: for relative performance it is the execution accuracy.
        kind: Which values are right.
    """

    metrics: list[str]
    title: str
    kind: Kind

    @property
    def is_difference(self) -> bool:
        """Whether a value is a difference, which is won or lost, or neither."""
        return self.kind in ("gain", "loss")

    def outcome(self, value: float | None) -> Outcome:
        """Return whether a sample with this value is right; of a difference, whether it is won."""
        if value is None or math.isnan(value):
            return "not scored"
        if self.is_difference:
            return self._outcome_of_difference(value)
        share = 1 - value if self.kind == "less" else value
        if share >= 1 - _NEARLY:
            return "right"
        return "wrong" if share <= _NEARLY else "partly"

    def _outcome_of_difference(self, value: float) -> Outcome:
        if abs(value) <= _NEARLY:
            return "no gain" if self.kind == "gain" else "no difference"
        is_won = value > 0 if self.kind == "gain" else value < 0
        return "won" if is_won else "lost"

    def is_wrong(self, value: float | None) -> bool:
        """Return whether a sample is not entirely right; of a difference, whether it is lost."""
        return self.outcome(value) in ("wrong", "partly", "lost")


def kind_of(measure: Measure) -> Kind:
    """Return which values of a measure's samples are right."""
    if any(weight < 0 for weight in measure.weights.values()):
        return "loss" if measure.lower_is_better else "gain"
    return "less" if measure.lower_is_better else "more"


def scores_of(run: Run) -> list[SampleScore]:
    """Return a task's scores; metrics that say the same of a sample share one."""
    scores: dict[tuple[tuple[str, ...], str, str], SampleScore] = {}
    for metric in run.scores:
        question = question_of(run, metric)
        measure = question.measure
        key = (measure.value, str(question.filter), str(measure.weights))
        title = run.title(metric).replace(measure.title, measure.of_sample or measure.title)
        score = scores.setdefault(key, SampleScore([], title, kind_of(measure)))
        score.metrics.append(metric)
    return list(scores.values())


@dataclass(frozen=True)
class SampleQuestion:
    """The question that samples are judged by.

    Attributes:
        metric: The metric or measure.
        title: The question in words.
        question: The question.
        remark: Why it is not about the headline; "" if it is, or if a user named the metric.
    """

    metric: str
    title: str
    question: Question
    remark: str = ""


def question_about_samples(run: Run, joint_table: "DataFrame", query: ScoreQuery) -> SampleQuestion:
    """Return the question about the first metric that is asked for, or about the headline.

    If the headline has no value under the query's conditions, the measure is taken that says of
    single samples what the headline says of all. Relative performance, for example, compares novel
    words with existing ones, so it has none for novel words alone; the execution accuracy has.

    Raises:
        OptionError: The task has no such metric or facet, or no sample answers the question.
    """
    if query.metrics:
        return _checked_question(run, joint_table, query, query.metrics[0])
    headline = run.headline
    try:
        return _checked_question(run, joint_table, query, headline)
    except OptionError:
        for metric in _measures_behind(run, headline):
            try:
                chosen = _checked_question(run, joint_table, query, metric)
            except OptionError:
                continue
            remark = f"score: --metric {metric}, because {headline} has no value for such samples"
            return replace(chosen, remark=remark)
        raise


def _checked_question(
    run: Run, joint_table: "DataFrame", query: ScoreQuery, metric: str
) -> SampleQuestion:
    """Return a query's question about one metric, which the samples can answer."""
    title, question = replace(query, metrics=(metric,)).questions(run)[0]
    question = checked_question(run.task, joint_table, question, query.filter)
    return SampleQuestion(metric, title, question)


def _measures_behind(run: Run, metric: str) -> list[str]:
    """Return the measures that are means of the values that a metric is made of."""
    if run.card is None or not run.is_current:
        return []
    values = question_of(run, metric).measure.value
    names = []
    for name, measure in run.card.measures.items():
        if measure.statistic == "mean" and measure.value == values:
            names.append(name)
    return names


def values_of(run: Run, table: "DataFrame", metric: str) -> Mapping[str, float]:
    """Return a metric's value of each document; {} where the samples have no such values."""
    try:
        return values_for(table, question_of(run, metric))
    except (OptionError, KeyError):
        return {}


def values_for(table: "DataFrame", question: Question) -> Mapping[str, float]:
    """Return the value of each document for a question, with three decimals."""
    return dict(values_by_document(table, question).dropna().round(3))


def hint_for_differences(run: Run) -> str:
    """Return what to ask instead where a score is a difference, of which few samples are lost."""
    hint = "; this score is a difference, which is wrong only where it is lost"
    for score in scores_of(run):
        if not score.is_difference:
            return f"{hint}: --metric {score.metrics[0]} --wrong shows wrong answers"
    return hint
