"""The values of a figure: models' with their intervals, and published ones."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lm_eval_ext.cards import Card
from lm_eval_ext.compare.align import parts_of, usual
from lm_eval_ext.compare.reading import Model
from lm_eval_ext.plots.declared import Declared
from lm_eval_ext.results.files import ResultsFile, Score, model_file
from lm_eval_ext.results.published import PAPER, plain_name, published_value
from lm_eval_ext.text import one_line, quantity

SERIES = "series"
"""As ``x`` of a curve: its steps are the series."""

Place = tuple[str, str, str]
"""The headings of a panel, a row and a series."""


@dataclass(frozen=True)
class Point:
    """A value of a model, or a published one.

    Attributes:
        place: Where it stands.
        model: The label of its model, with a dagger if it was measured differently from most.
        value: In the metric's unit.
        low: Of the 95 % interval, as ``high``; None where there is none.
        high: See ``low``.
        published: Whether a paper says so.
        x: On the axis of a curve.
        group: Of a curve: points of one group are joined.
        source: The task and metric that it is of.
    """

    place: Place
    model: str
    value: float
    low: float | None = None
    high: float | None = None
    published: bool = False
    x: float | None = None
    group: str = ""
    source: tuple[str, str] = ("", "")


class Results:
    """The models' results, with scores read once."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = models
        self._scores: dict[tuple[str, str], Mapping[str, Score]] = {}
        self._usual: dict[str, frozenset[str]] = {}

    def runs(self, task: str) -> dict[str, ResultsFile]:
        """By the model's label."""
        return {model.label: model.runs[task] for model in self.models if task in model.runs}

    def scores(self, task: str) -> dict[str, Mapping[str, Score]]:
        """By the model's label."""
        for label, run in self.runs(task).items():
            if (task, label) not in self._scores:
                self._scores[task, label] = run.scores(task)
        return {label: self._scores[task, label] for label in self.runs(task)}

    def usual(self, task: str) -> frozenset[str]:
        """The models that were measured as most were."""
        if task not in self._usual:
            self._usual[task] = usual(task, self.runs(task))
        return self._usual[task]


DAGGER = "†"
"""Marks models that were measured differently from most, as their signatures tell."""


def points(figure: Declared, card: Card, results: Results) -> list[Point]:
    """All values of a figure; none if no model has any."""
    own = _own(figure, results)
    if figure.x not in ("", SERIES):
        own = [point for point in own if point.x is not None]
    if not own:
        return []
    published = _published(figure, card, results, own)
    if figure.x not in ("", SERIES):
        published = [point for point in published if point.x is not None]
    return own + published


def _own(figure: Declared, results: Results) -> list[Point]:
    found = []
    for place, task, metric in figure.cells():
        runs, alike = results.runs(task), results.usual(task)
        for label, scores in results.scores(task).items():
            point = _point(place, label, scores.get(metric), (task, metric))
            if point is None:
                continue
            x, group = _of_curve(figure, runs[label], task, label)
            shown = label if label in alike or figure.group_part else f"{label} {DAGGER}"
            found.append(replace(point, model=shown, x=x, group=group))
    return found


def _point(place: Place, label: str, score: Score | None, source: tuple[str, str]) -> Point | None:
    if score is None or score.value is None or not math.isfinite(score.value):
        return None
    low, high = score.interval or (None, None)
    return Point(place, label, score.value, low, high, source=source)


def _of_curve(
    figure: Declared, run: ResultsFile, task: str, label: str
) -> tuple[float | None, str]:
    """A model's place on the x axis, and what it is joined by."""
    if not figure.x:
        return None, ""
    if figure.x == SERIES:
        return None, label
    about, parts = model_file(run), parts_of(run.signature(task))
    group = one_line(str(about.get("family") or label))
    if figure.group_part in parts:
        group += f", {figure.group_part} {parts[figure.group_part]}"
    if figure.x == "size":
        return size_of(label, about), group
    return quantity(about.get(figure.x, parts.get(figure.x_part))), group


def _published(figure: Declared, card: Card, results: Results, own: Sequence[Point]) -> list[Point]:
    metrics = {task: next(iter(results.scores(task).values()), {}) for task in figure.tasks()}
    same = {plain_name(point.model.rstrip(f" {DAGGER}")): point.model for point in own}
    found = []
    for place, task, metric in figure.cells():
        for reference in card.references:
            value = published_value(reference, task, metric, metrics[task] or (metric,))
            if value is None or reference.label not in (figure.published or (reference.label,)):
                continue
            label = reference.label
            x = figure.published_x.get(label)
            if label != figure.line:
                by_itself = label if "(" in label else f"{label} {PAPER}"
                label = same.get(plain_name(label), by_itself)
            group = f"{reference.label.partition(',')[0]} {PAPER}" if figure.x else ""
            found.append(
                Point(place, label, value, published=True, x=x, group=group, source=(task, metric))
            )
    return found


_IN_NAME = re.compile(r"(?<![a-z0-9.])[0-9]+(?:\.[0-9]+)?[mbt](?![a-z0-9])", re.IGNORECASE)


def size_of(label: str, about: Mapping[str, Any]) -> float | None:
    """A model's number of parameters: the key ``size`` of its file, or else as its name has it."""
    if (size := quantity(about.get("size"))) is not None:
        return size
    found = _IN_NAME.search(label)
    return quantity(found[0]) if found else None
