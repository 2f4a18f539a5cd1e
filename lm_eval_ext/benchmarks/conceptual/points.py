"""A document's values: under each selection, in each view, for each template."""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from lm_eval_ext.benchmarks.conceptual.fewshot import CONCEPT, RANDOM, SAME_LABELS

GAIN, ERROR_CHANGE = "gain", "error_change"
LABEL_GAIN, CONCEPT_GAIN = "gain_from_labels", "gain_from_concept"

VIEWS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        RANDOM: {RANDOM: 1},
        CONCEPT: {CONCEPT: 1},
        GAIN: {CONCEPT: 1, RANDOM: -1},
        # Not a mean over documents: the aggregation uses the scores behind the value.
        ERROR_CHANGE: {RANDOM: 1, CONCEPT: -1},
        SAME_LABELS: {SAME_LABELS: 1},
        LABEL_GAIN: {SAME_LABELS: 1, RANDOM: -1},
        CONCEPT_GAIN: {CONCEPT: 1, SAME_LABELS: -1},
    }
)
"""How a score is reported, as weights of the selections: under each, the gain and its parts, and
the relative change of error (the paper's figure 2)."""

OF_CONTROL = frozenset((SAME_LABELS, LABEL_GAIN, CONCEPT_GAIN))
"""Views that need the control."""


class Point(float):
    """A document's value in one view, with what it comes from.

    Attributes:
        scores: By selection.
        view: One of :data:`VIEWS`.
        sample: The document's id.
        cluster: For standard errors.
    """

    scores: Mapping[str, float]
    view: str
    sample: str
    cluster: str

    def __new__(cls, scores: Mapping[str, float], view: str, sample: str, cluster: str) -> "Point":
        """The value follows from the scores and the view."""
        weights = VIEWS[view].items()
        self = super().__new__(cls, math.fsum(weight * scores[name] for name, weight in weights))
        self.scores, self.view, self.sample, self.cluster = scores, view, sample, cluster
        return self

    def __reduce__(self) -> tuple[type["Point"], tuple[Mapping[str, float], str, str, str]]:
        # lm-eval's processes pickle their values to send them to each other.
        return (Point, (self.scores, self.view, self.sample, self.cluster))


def points(
    scores: Mapping[str, float], sample: str, cluster: str, views: Iterable[str]
) -> dict[str, Point | None]:
    """A document's values by view; None where it lacks a selection."""
    return {
        view: Point(scores, view, sample, cluster) if VIEWS[view].keys() <= scores.keys() else None
        for view in views
    }


class ByTemplate(dict[str, float]):
    """A document's value under each template, before it is known which template is the best.

    lm-eval logs it as an object. A template that is missing has no value in this document.

    Attributes:
        deciding: By template, the document's score that decides which one is the best.
        asked: The template that the metric is about, if it is about a single one.
    """

    def __init__(
        self, values: Mapping[str, float], deciding: Mapping[str, float], asked: str = ""
    ) -> None:
        super().__init__(values)
        self.deciding, self.asked = deciding, asked

    def __reduce__(
        self,
    ) -> tuple[type["ByTemplate"], tuple[dict[str, float], Mapping[str, float], str]]:
        return (ByTemplate, (dict(self), self.deciding, self.asked))


def best_template(values: Sequence[ByTemplate]) -> str:
    """The template with the highest mean of the deciding score; of equals, the first."""
    means = {
        name: math.fsum(value.deciding[name] for value in values) for name in values[0].deciding
    }
    return max(means, key=means.__getitem__)


def of_best(values: Sequence[ByTemplate]) -> list[float]:
    """The values under the best template."""
    best = best_template(values) if values else ""
    return [value[best] for value in values if best in value]
