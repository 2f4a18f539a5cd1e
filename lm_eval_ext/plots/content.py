"""What a figure shows, and the rows of data that its marks are drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.plots.declared import OWN_TITLE, Declared
from lm_eval_ext.plots.points import SERIES, Place, Point

Spec = dict[str, Any]
"""Vega-Lite, or a part of it."""

PUBLISHED, MEASURED, LINE, CHANCE, ZERO, JOIN, ARROW, NOTHING = (
    "published", "measured", "line", "chance", "zero", "joined", "arrow", "nothing"
)  # fmt: skip
"""Kinds of rows."""

MOST_LANES = 6
"""Beside a panel; more groups of models that cannot be told apart are not drawn."""


@dataclass(frozen=True)
class Content:
    """What a figure shows.

    Attributes:
        declared: Which figure it is.
        points: All values.
        models: The labels in the order of the axis or legend, published ones too.
        joins: By place, the groups of models that cannot be told apart.
        chance: A line that all panels have.
    """

    declared: Declared
    points: tuple[Point, ...]
    models: tuple[str, ...]
    joins: dict[Place, list[list[str]]]
    chance: float | None = None

    def headings(self, part: int) -> list[str]:
        """The headings of panels (0), rows (1) or series (2) that have a value."""
        seen = {point.place[part] for point in self.points}
        declared = (self.declared.panels, self.declared.rows, self.declared.series)[part]
        return [heading for heading in declared if heading in seen]

    @property
    def by_row(self) -> bool:
        """Whether rows are the lines of a panel, and models its marks."""
        return self.declared.lines == "row"

    def panels(self) -> list[tuple[str, str]]:
        """Every pair of headings of a panel and a row; the row is "" if rows are lines."""
        rows = [OWN_TITLE] if self.by_row else self.headings(1)
        return [(panel, row) for row in rows for panel in self.headings(0)]

    def lanes(self) -> int:
        """The most groups that are joined beside a line of dots."""
        beside: dict[tuple[str, str], int] = {}
        for (panel, row, _), groups in self.joins.items():
            beside[panel, row] = beside.get((panel, row), 0) + len(groups)
        return max(beside.values(), default=0)

    def joined(self) -> bool:
        """Whether the groups are drawn."""
        return 0 < self.lanes() <= MOST_LANES


def rows_of(content: Content) -> list[Spec]:
    """A row for each value, line, arrow and join; the field ``kind`` tells which.

    Every panel has a row, also the empty ones: Vega would move the others into their place.
    """
    figure = content.declared
    found = [{"kind": NOTHING, **_cell(panel, row)} for panel, row in content.panels()]
    for name, value in ((CHANCE, content.chance), (ZERO, 0.0 if figure.zero else None)):
        if value is not None:
            found += [
                {"kind": name, **_cell(panel, row), "value": value}
                for panel, row in content.panels()
            ]
    found += [_value(content, point) for point in content.points]
    if figure.kind == "arrows":
        found += _arrows(content)
    if content.joined():
        found += _joins(content)
    return found


def _cell(panel: str, row: str) -> Spec:
    return {"panel": panel, "row": row}


def _value(content: Content, point: Point) -> Spec:
    panel, row, series = point.place
    kind = PUBLISHED if point.published else MEASURED
    if point.model == content.declared.line:
        kind = LINE
    given: Spec = {"low": point.low, "high": point.high, "x": point.x, "group": point.group or None}
    if content.declared.x == SERIES:
        given["step"] = series
    if content.by_row:
        given |= {"line": row, "mark": point.model}
        row = ""
    else:
        given |= {"line": point.model, "mark": series}
    return {
        "kind": kind, **_cell(panel, row), "model": point.model, "value": point.value,
        **{key: value for key, value in given.items() if value is not None},
    }  # fmt: skip


def _joins(content: Content) -> list[Spec]:
    lanes: dict[tuple[str, str], int] = {}
    found = []
    for (panel, row, series), groups in content.joins.items():
        for group in groups:
            lane = lanes.get((panel, row), 0)
            lanes[panel, row] = lane + 1
            same: Spec = {"kind": JOIN, "lane": lane, "group": ", ".join(group)}
            found += [
                {**same, **_cell(panel, ""), "line": row, "mark": name} if content.by_row
                else {**same, **_cell(panel, row), "line": name, "mark": series}
                for name in group
            ]  # fmt: skip
    return found


def _arrows(content: Content) -> list[Spec]:
    """From the first series' value to the second's."""
    first, second = content.declared.series
    ends: dict[tuple[str, str, str, bool], dict[str, float]] = {}
    for point in content.points:
        panel, row, series = point.place
        ends.setdefault((panel, row, point.model, point.published), {})[series] = point.value
    return [
        {"kind": ARROW, **_cell(panel, row), "line": model, "mark": second,
         "value": both[first], "to": both[second],
         "published": published, "angle": 90 if both[second] >= both[first] else -90}
        for (panel, row, model, published), both in ends.items() if {first, second} <= both.keys()
    ]  # fmt: skip


def bounds(content: Content) -> list[float]:
    """The ends of the axis of values: the declared ones, or beyond them."""
    found = [
        bound
        for point in content.points
        for bound in (point.value, point.low, point.high)
        if bound is not None
    ]
    low, high = content.declared.ends
    return [min([low, *found]), max([high, *found])]


def groups_of(points: Sequence[Point]) -> list[str]:
    """What the points of a curve are joined by."""
    return list(dict.fromkeys(point.group for point in points))
