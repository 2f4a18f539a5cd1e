"""Measures, and questions to the long table of scores or to parts of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from lm_eval_ext.reading import Strict
from lm_eval_ext.stats.intervals import DIFFERENCE, NO_LIMITS, UNIT, Limits

DOCUMENT = "document"
CLUSTER = "cluster"
ID = "id"

Unit = Literal["share", "percent", "points", "change", "count", "number"]
"""What values are: 0 to 1, 0 to 100, a difference of shares, a relative change, 0 upwards, any."""

LIMITS: Mapping[str, Limits] = {
    "share": UNIT,
    "percent": (0.0, 100.0),
    "points": DIFFERENCE,
    "change": (-1.0, None),
    "count": (0.0, None),
    "number": NO_LIMITS,
}

Filter = Mapping[str, tuple[str, ...]]
"""By facet, the values that rows may have."""


@dataclass(frozen=True)
class Chance:
    """What a model has to exceed to show anything.

    Attributes:
        value: The value.
        unit: The unit of the value.
        meaning: What has this value, to follow "chance is".
    """

    value: float
    unit: Unit
    meaning: str


class BestOf(Strict):
    """The one part with the highest mean, whose rows count: the best of prompt templates.

    Attributes:
        facet: The facet that has the parts.
        value: The column of values that decides.
        where: The rows that decide.
    """

    facet: str
    value: str
    where: dict[str, tuple[str, ...]] = {}


class Measure(Strict):
    """How rows become a value.

    Attributes:
        name: The name by which users ask for it.
        title: The same in words.
        statistic: ``mean`` of documents' values; ``contrast``, the mean of documents' weighted
            sums; ``change`` of what is missing to 1, after against before; ``bootstrap``, the
            median of the paper's draws; ``mean_of_groups``; ``relative`` performance in percent;
            ``micro_f1``.
        value: The column of values; for micro F1, the columns of hits, predicted and gold.
        where: The rows it is about, unless a question says something else about these facets.
        weights: The weights of a contrast, by the values of ``facet``.
        facet: What a contrast weights, or over which performance is relative.
        groups: Facets whose parts count the same, however many documents they have.
        shared: By facet, the value whose rows belong to every part.
        best_of: The part that counts, where only the best one does.
        seeds: The seeds of the bootstrap, by value of ``facet``; without any the same documents are
            drawn for all of its values.
        unit: What its values are.
        lower_is_better: Whether lower values are better.
        of_sample: A sample's own score in words, where the value is no mean of these.
        diagnostic: Whether it checks a run, by counting what no model should do: such a count is
            that of these answers, and shown without an interval.
        chance: The value of guessing, where it is known and not the worst legal one.
        undefined: When there is no value, to follow "N/A, since".
    """

    name: str = ""
    title: str
    statistic: Literal[
        "mean", "contrast", "change", "bootstrap", "mean_of_groups", "relative", "micro_f1"
    ] = "mean"
    value: tuple[str, ...] = Field(min_length=1)
    where: dict[str, tuple[str, ...]] = {}
    weights: dict[str, float] = {}
    facet: str = ""
    groups: tuple[str, ...] = ()
    shared: dict[str, str] = {}
    best_of: BestOf | None = None
    seeds: dict[str, int] = {}
    unit: Unit = "share"
    lower_is_better: bool = False
    diagnostic: bool = False
    chance: float | None = None
    of_sample: str = ""
    undefined: str = "it is not defined"

    @property
    def limits(self) -> Limits:
        """The least and the largest legal value."""
        return LIMITS[self.unit]

    @property
    def worst(self) -> float | None:
        """The worst legal value; None where there is none."""
        low, high = self.limits
        return high if self.lower_is_better else low

    @property
    def chance_level(self) -> Chance | None:
        """What a model has to exceed to show anything; None where nothing is known.

        It is chance; or 0 for a gain and for a change of error; or the worst legal value. There
        is none for a difference that should be small: a model without a right answer has the
        smallest, so a small one shows nothing.
        """
        if self.chance is not None:
            return Chance(self.chance, self.unit, "the score of guessing")
        if self.unit == "points":
            return None if self.lower_is_better else Chance(0.0, self.unit, "no gain")
        if self.unit == "change":
            return Chance(0.0, self.unit, "no change")
        if self.worst is None:
            return None
        return Chance(self.worst, self.unit, "the worst possible value")

    @property
    def baseline(self) -> float | None:
        """The value of :attr:`chance_level`; None where none is known."""
        return None if self.chance_level is None else self.chance_level.value


@dataclass(frozen=True)
class Question:
    """A measure of some rows, for each of their parts.

    Attributes:
        measure: The measure.
        where: The rows that count; a facet's values replace those that the measure says.
        by: Facets; every combination of their values is a part. They also replace.
    """

    measure: Measure
    where: Filter = field(default_factory=dict)
    by: tuple[str, ...] = ()

    @property
    def filter(self) -> Filter:
        """The rows that count: by facet, the values that they may have."""
        conditions = dict(self.measure.where)
        for facet in self.by:
            conditions.pop(facet, None)
        return {**conditions, **self.where}
