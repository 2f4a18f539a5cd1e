"""Which values of a table are marked as best, and how the others stand (docs/statistics.md).

A value is *best* if it is significantly better than its baseline (chance, 0 for a gain, or what a
trivial answer scores), and no other model is significantly better. Where a better value could not
be tested against the baseline, no lower one is called best: it counts as untested, too. A table of
many models and columns has many chances to mark something by accident. So the tests against the
baseline are adjusted twice: over the models of a column by Holm's method, and over the columns of
the table as Benjamini and Bogomolov (2014) propose: columns are selected by the method of Benjamini
and Hochberg (1995), and tested at the level 0.05 times the selected share of all columns. If no
model of a table is better than its baselines, at most 5 % of such tables have a mark.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from lm_eval_ext.stats.intervals import ALPHA
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.paired import holm
from lm_eval_ext.stats.statistics import Pair, better_than

if TYPE_CHECKING:
    from pandas import DataFrame

Standing = Literal["best", "unproven", "beaten", "untested", "alone", ""]
"""How a value stands in its table; ``alone`` in a column without a competitor, "" where there is no
value."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class ColumnTests:
    """The tests of the models of one column.

    Attributes:
        values: The models' values; None where there is none.
        p_values: By model, the probability of a value as far above the baseline as this one if the
            model is no better, adjusted over the models; only of those that can be tested.
        beaten: The models that another one is significantly better than.
        compared: The models that were compared with each other.
        without_interval: The models whose value is refused an interval.
        lower_is_better: Whether lower values are better.
    """

    values: Mapping[str, float | None]
    p_values: Mapping[str, float]
    beaten: frozenset[str]
    compared: frozenset[str]
    without_interval: frozenset[str] = frozenset()
    lower_is_better: bool = False

    @property
    def p_of_column(self) -> float:
        """The p-value of "no model of this column is better than its baseline"."""
        return min(self.p_values.values(), default=1.0)

    def untested_betters(self, model: str) -> list[str]:
        """Return the compared models with a better value that has no test against the baseline."""
        value = self.values.get(model)
        betters: list[str] = []
        if value is None:
            return betters
        for other in self.compared - self.p_values.keys():
            other_value = self.values.get(other)
            if other_value is None or other_value == value:
                continue
            is_lower = other_value < value
            if is_lower == self.lower_is_better:
                betters.append(other)
        return sorted(betters)

    def standing(self, model: str, level: float) -> Standing:
        """Return how a model stands if its test against the baseline has this level."""
        if self.values.get(model) is None:
            return ""
        if len(self.values) == 1:
            return "untested" if model in self.without_interval else "alone"
        if model in self.beaten:
            return "beaten"
        if model not in self.compared or model not in self.p_values:
            return "untested"
        if self.p_values[model] > level:
            return "unproven"
        return "untested" if self.untested_betters(model) else "best"


def column_tests(
    values: Mapping[str, float | None],
    tables: "Mapping[str, DataFrame]",
    question: Question,
    pairs: Sequence[Pair],
    baseline: float | None,
    *,
    without_interval: Collection[str] = (),
) -> ColumnTests:
    """Test the models of a column against the baseline and against each other.

    Args:
        values: By model, what the column shows.
        tables: The long tables of the models that can be compared.
        question: What the column is about.
        pairs: The comparisons of every two of these models; none if there is no test.
        baseline: What a model has to exceed; None if it is not known.
        without_interval: The models whose value is refused an interval.
    """
    compared = set()
    beaten = set()
    for pair in pairs:
        if pair.p_holm is None:
            continue
        compared |= {pair.first, pair.second}
        if pair.p_holm < ALPHA:
            beaten.add(_loser(pair, lower_is_better=question.measure.lower_is_better))
    p_values: dict[str, float] = {}
    for name in tables:
        p = None
        if name in compared and baseline is not None:
            p = better_than(tables[name], question, baseline)
        if p is not None:
            p_values[name] = p
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return ColumnTests(
        values,
        adjusted,
        frozenset(beaten),
        frozenset(compared),
        frozenset(without_interval),
        question.measure.lower_is_better,
    )


def standings(columns: Mapping[_Key, ColumnTests]) -> dict[_Key, dict[str, Standing]]:
    """Return how every value of a table stands, by column and model."""
    level = _level([column.p_of_column for column in columns.values()])
    standings_by_key = {}
    for key, column in columns.items():
        standings_by_key[key] = {model: column.standing(model, level) for model in column.values}
    return standings_by_key


def _level(p_values: Sequence[float]) -> float:
    """Return the level of the tests within columns: 0.05 times the selected share of columns."""
    total = len(p_values)
    selected = 0
    for rank, p in enumerate(sorted(p_values), start=1):
        if p <= ALPHA * rank / total:
            selected = rank
    return ALPHA * selected / total if total else 0.0


def _loser(pair: Pair, *, lower_is_better: bool) -> str:
    first_is_higher = (pair.value or 0.0) > 0
    return pair.first if first_is_higher == lower_is_better else pair.second
