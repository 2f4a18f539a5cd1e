"""Figures as Vega-Lite: one data set, and a panel for every pair of headings."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lm_eval_ext.plots.declared import OWN_TITLE, Declared
from lm_eval_ext.plots.points import SERIES, Place, Point
from lm_eval_ext.plots.theme import Theme

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

PUBLISHED, MEASURED, LINE, CHANCE, JOIN = "published", "measured", "line", "chance", "joined"

MOST_LANES = 6
"""Beside a panel; more groups of models that cannot be told apart are not drawn."""

_LANE = 0.5
"""Between them, in font sizes."""

_LETTER = 0.58
"""The width of a letter, in font sizes: about that of a sans serif."""

_ROW_HEADING = 13
"""Letters in a line of a row's heading."""

_LEAST_PANEL = 9.0
"""Its width, in font sizes."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross",
          "triangle-right", "triangle-left")  # fmt: skip


@dataclass(frozen=True)
class Content:
    """What a figure shows.

    Attributes:
        points: All values.
        models: The labels in the order of the axis, published ones too.
        joins: By place, the groups of models that cannot be told apart.
        chance: A line that all panels have.
    """

    points: tuple[Point, ...]
    models: tuple[str, ...]
    joins: dict[Place, list[list[str]]]
    chance: float | None = None

    def lanes(self) -> int:
        """The most groups that any panel has."""
        panels: dict[tuple[str, str], int] = {}
        for (panel, row, _), groups in self.joins.items():
            panels[panel, row] = panels.get((panel, row), 0) + len(groups)
        return max(panels.values(), default=0)


@dataclass(frozen=True)
class Layout:
    """Sizes in pixels, which are points in a PDF.

    Attributes:
        width: Of the whole figure, about.
        font: The size of letters.
        panel: The width of a panel; None: what the width leaves for it.
    """

    width: float = 720
    font: float = 11
    panel: float | None = None


def chart(figure: Declared, content: Content, theme: Theme, layout: Layout) -> Spec:
    """The figure as a Vega-Lite specification."""
    panels, rows = _there(content, 0, figure.panels), _there(content, 1, figure.rows)
    series = _there(content, 2, figure.series)
    curve = figure.kind == "curve"
    letters = 7.0 if curve else max(map(len, content.models))
    labels = layout.font * (_LETTER * min(letters, 34) + 2)
    margin = layout.font * (2 + _LANE * (content.lanes() if content.lanes() <= MOST_LANES else 0))
    room = layout.width - labels - (layout.font * _LETTER * _ROW_HEADING if rows != [OWN_TITLE] else 0)
    fit = max(1, int(room // (_LEAST_PANEL * layout.font + margin)))
    grid = rows != [OWN_TITLE] and len(panels) <= fit
    columns = len(panels) if grid else min(fit, len(panels) * len(rows))
    width = layout.panel or max(room / columns - margin, 4 * layout.font)
    step = layout.font * (1.6 if len(series) == 1 else 0.4 + 0.85 * len(series))
    parts = _Parts(figure, content, theme, layout, series, width)
    unit: Spec = {
        "width": round(width, 2),
        "height": round(layout.font * 13 if curve else step * len(content.models), 2),
        "layer": parts.curve() if curve else parts.dots(),
    }
    chars = max(int((width + margin) / layout.font / _LETTER), 6)
    header = {"labelExpr": "split(datum.value, '\\n')", "title": None, "labelLimit": 0,
              "labelLineHeight": round(layout.font * 1.2, 2)}  # fmt: skip
    heading = {
        (panel, row): "\n".join(_wrapped(
            panel if grid else " · ".join(part for part in (row, panel) if part), chars
        ))
        for panel in panels for row in rows
    }  # fmt: skip
    values = [{**one, "heading": heading[one["panel"], one["row"]]} for one in parts.values()]
    spacing = {"column": round(margin, 2), "row": round(layout.font * (1.2 if grid else 1.6), 2)}
    order = list(dict.fromkeys(heading[panel, row] for row in rows for panel in panels))
    column: Spec = {"field": "heading", "type": "nominal", "sort": order, "header": header}
    if grid:
        names = {row: "\n".join(_wrapped(row, _ROW_HEADING)) for row in rows}
        values = [{**one, "row": names[one["row"]]} for one in values]
        by_row = {
            "field": "row", "type": "nominal", "sort": list(names.values()),
            "header": {**header, "labelAngle": 0, "labelAlign": "left", "labelFontStyle": "italic"},
        }  # fmt: skip
        faceted: Spec = {"facet": {"column": column, "row": by_row}, "spacing": spacing}
    else:
        faceted = {"facet": column, "columns": columns, "spacing": spacing}
    if order == [" "]:
        faceted = {"facet": {**column, "header": None}, "columns": 1}
    shared: Spec = {"data": {"values": values}, "spec": unit}
    return {"$schema": SCHEMA, **shared, **faceted, "config": theme.config(layout.font)}


def _there(content: Content, part: int, declared: dict[str, str]) -> list[str]:
    """The headings that have a value, in the order of the declaration."""
    seen = {point.place[part] for point in content.points}
    return [heading for heading in declared if heading in seen]


def _wrapped(text: str, chars: int) -> list[str]:
    """Lines of at most so many letters; names break after underscores, too."""
    apart = text.replace("_", "_\u200b")
    lines: list[str] = [""]
    for word in re.split(r"(?<=[ \u200b])", apart):
        if lines[-1] and len(lines[-1] + word.rstrip()) > chars:
            lines.append("")
        lines[-1] += word.replace("\u200b", "")
    return [line.strip() or " " for line in lines]


class _Parts:
    """The layers of a panel, and the rows of data that they draw."""

    def __init__(
        self,
        figure: Declared,
        content: Content,
        theme: Theme,
        layout: Layout,
        series: Sequence[str],
        width: float,
    ) -> None:
        self.figure, self.content, self.theme, self.layout = figure, content, theme, layout
        self.series, self.width = list(series), width
        bounds = [
            bound
            for point in content.points
            for bound in (point.value, point.low, point.high)
            if bound is not None
        ]
        low, high = figure.ends
        self.ends = [min([low, *bounds]), max([high, *bounds])]

    def values(self) -> list[Spec]:
        """A row for each value, line and join; the field ``kind`` tells which."""
        found = []
        for point in self.content.points:
            kind = PUBLISHED if point.published else MEASURED
            if point.model == self.figure.line:
                kind = LINE
            found.append(self._row(point, kind))
        if self.content.lanes() <= MOST_LANES:
            found += self._joins()
        if self.figure.kind == "arrows":
            found += self._arrows()
        if self.content.chance is not None:
            cells = dict.fromkeys(point.place[:2] for point in self.content.points)
            for panel, row in cells:
                found.append(
                    {"kind": CHANCE, "panel": panel, "row": row, "value": self.content.chance}
                )
        return found

    def _row(self, point: Point, kind: str) -> Spec:
        panel, row, series = point.place
        kept = {
            key: value
            for key, value in asdict(point).items()
            if key in ("model", "value", "low", "high", "x", "group") and value not in (None, "")
        }
        step = {"step": series} if self.figure.x == SERIES else {}
        return {"kind": kind, "panel": panel, "row": row, "series": series, **step, **kept}

    def _joins(self) -> list[Spec]:
        lanes: dict[tuple[str, str], int] = {}
        found = []
        for (panel, row, series), groups in self.content.joins.items():
            for group in groups:
                lane = lanes.get((panel, row), 0)
                lanes[panel, row] = lane + 1
                place = {"kind": JOIN, "panel": panel, "row": row, "series": series, "lane": lane}
                found += [{**place, "model": name, "group": ", ".join(group)} for name in group]
        return found

    def _arrows(self) -> list[Spec]:
        """From the first series' value to the second's."""
        first, second = self.figure.series
        ends: dict[tuple[str, str, str, bool], dict[str, float]] = {}
        for point in self.content.points:
            panel, row, series = point.place
            ends.setdefault((panel, row, point.model, point.published), {})[series] = point.value
        return [
            {"kind": "arrow", "panel": panel, "row": row, "model": model,
             "value": both[first], "to": both[second], "series": second,
             "way": "up" if both[second] >= both[first] else "down"}
            for (panel, row, model, _), both in ends.items() if len(both) == 2  # noqa: PLR2004
        ]  # fmt: skip

    def dots(self) -> list[Spec]:
        """A line for each model, a dot for each series."""
        font = self.layout.font
        x = {
            "field": "value", "type": "quantitative",
            "scale": {"domain": self.ends, "nice": False, "zero": False},
            "axis": {"title": self.figure.axis, "tickCount": 4, "labelFlush": False, "titleLimit": round(self.width * 1.2)},
        }  # fmt: skip
        y: Spec = {
            "field": "model", "type": "nominal", "sort": list(self.content.models),
            "scale": {"type": "band"},
            "axis": {"title": None, "labelLimit": round(font * 22), "ticks": False, "domain": False},
        }  # fmt: skip
        place: Spec = {"y": y}
        if len(self.series) > 1 and self.figure.kind == "dots":
            place["yOffset"] = {
                "field": "series", "type": "nominal", "sort": self.series,
                "scale": {"domain": self.series},
            }  # fmt: skip
        whole = {**place, "x": x, **self._tooltip()}
        hover = {
            "name": "model", "select": {
                "type": "point", "fields": ["model"], "on": "pointerover", "clear": "pointerout",
            },
        }  # fmt: skip
        color = self._color()
        edge = round(self.width + font * 0.7, 2)
        lanes = {"x": {"value": {"expr": f"{edge} + {font * _LANE} * datum.lane"}}}
        return [
            self._rule(CHANCE, [2, 3], self.theme.muted),
            self._rule(LINE, [6, 3], self.theme.ink),
            *([self._zero()] if self.figure.zero else []),
            self._layer(
                MEASURED, {"type": "rule", "strokeWidth": font * 0.13},
                {**place, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": color},
                "isValid(datum.low)",
            ),
            *(self._heads(y, x) if self.figure.kind == "arrows" else []),
            {
                **self._layer(
                    MEASURED, {"type": "point", "filled": True, "size": font * 3.8, "opacity": 1},
                    {**whole, "color": color, "shape": self._shape()},
                ),
                "params": [hover],
            },
            self._layer(
                PUBLISHED, {"type": "point", "filled": False, "size": font * 3.8,
                            "strokeWidth": font * 0.13, "fill": self.theme.paper},
                {**whole, "color": color, "shape": self._shape()},
            ),
            self._layer(
                JOIN, {"type": "line", "strokeWidth": font * 0.11},
                {"y": y, **lanes, "color": color, "detail": [{"field": "lane"}],
                 "order": {"field": "lane"}},
            ),
            self._layer(
                JOIN, {"type": "point", "filled": True, "size": font * 0.9, "opacity": 1},
                {"y": y, **lanes, "color": color,
                 "tooltip": {"field": "group", "title": "not significantly different"}},
            ),
        ]  # fmt: skip

    def _heads(self, y: Spec, x: Spec) -> list[Spec]:
        font = self.layout.font
        shaft = {"y": y, "x": x, "x2": {"field": "to"}}
        head = {
            "y": y, "x": {**x, "field": "to"},
            "angle": {"value": {"expr": "datum.way == 'up' ? 90 : -90"}},
        }  # fmt: skip
        ink = {"color": {"value": self.theme.muted}}
        return [
            self._layer("arrow", {"type": "rule", "strokeWidth": font * 0.13}, {**shaft, **ink}),
            self._layer(
                "arrow", {"type": "point", "shape": "triangle", "filled": True, "size": font * 3},
                {**head, **ink},
            ),
        ]  # fmt: skip

    def curve(self) -> list[Spec]:
        """A line for each group of models."""
        font = self.layout.font
        steps = self.figure.x == SERIES
        if steps:
            x: Spec = {"field": "step", "type": "ordinal", "sort": self.series}
        else:
            x = {"field": "x", "type": "quantitative", "scale": self._x_scale()}
        x["axis"] = {"title": self.figure.x_title, "labelAngle": 0, "tickCount": 5,
                     "format": "~s", "titleLimit": round(self.width * 1.2)}  # fmt: skip
        if steps:
            del x["axis"]["format"]
        y = {
            "field": "value", "type": "quantitative",
            "scale": {"domain": self.ends, "nice": False, "zero": False},
            "axis": {"title": self.figure.axis, "tickCount": 5},
        }  # fmt: skip
        groups = list(dict.fromkeys(point.group for point in self.content.points))
        colors = self.theme.series(len(groups))
        legend = {"title": None, "orient": "bottom", "labelLimit": 0}
        color = {"field": "group", "type": "nominal",
                 "scale": {"domain": groups, "range": colors}, "legend": legend}  # fmt: skip
        shape = {"field": "group", "type": "nominal", "legend": legend, "scale": {
            "domain": groups, "range": [SHAPES[n % len(SHAPES)] for n in range(len(groups))],
        }}  # fmt: skip
        both = {"x": x, "y": y, "color": color}
        chosen = {"name": "group", "select": {"type": "point", "fields": ["group"]},
                  "bind": "legend"}  # fmt: skip
        seen = {"opacity": {"condition": {"param": "group", "value": 1}, "value": 0.15}}
        band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": color, **seen}
        marks = [
            self._layer(MEASURED, {"type": "line", "strokeWidth": font * 0.13}, {**both, **seen}),
            self._layer(
                PUBLISHED, {"type": "line", "strokeWidth": font * 0.1, "strokeDash": [3, 2]},
                {**both, **seen},
            ),
            self._layer(MEASURED, {"type": "rule", "strokeWidth": font * 0.13}, band,
                        "isValid(datum.low)"),
            {
                **self._layer(
                    MEASURED, {"type": "point", "filled": True, "size": font * 3.8},
                    {**both, "shape": shape, **seen, **self._tooltip()},
                ),
                "params": [chosen],
            },
            self._layer(
                PUBLISHED, {"type": "point", "filled": False, "size": font * 3.8,
                            "strokeWidth": font * 0.13, "fill": self.theme.paper},
                {**both, "shape": shape, **seen, **self._tooltip()},
            ),
        ]  # fmt: skip
        return marks

    def _x_scale(self) -> Spec:
        """Logarithmic for sizes, with a place for 0; as it is for shares."""
        xs = [point.x for point in self.content.points if point.x is not None]
        if max(xs, default=0) <= 1:
            return {"domain": [0, 1]}
        positive = [x for x in xs if x > 0]
        return {"type": "symlog", "constant": min(positive), "nice": False}

    def _color(self) -> Spec:
        colors = self.theme.series(len(self.series))
        legend = {"title": None, "orient": "top", "labelLimit": 0}
        return {
            "field": "series", "type": "nominal",
            "scale": {"domain": self.series, "range": colors},
            "legend": legend if len(self.series) > 1 else None,
        }  # fmt: skip

    def _shape(self) -> Spec:
        return {**self._color(), "scale": {
            "domain": self.series, "range": list(SHAPES[: len(self.series)]),
        }}  # fmt: skip

    def _tooltip(self) -> Spec:
        number = ".1f" if self.figure.percent else ".3f"
        shown = [("model", "model"), ("series", ""), ("kind", "")]
        return {
            "tooltip": [
                *({"field": field, "title": title or field} for field, title in shown
                  if field != "series" or len(self.series) > 1),
                *({"field": field, "title": title, "format": number, "type": "quantitative"}
                  for field, title in (("value", self.figure.axis), ("low", "from (95 %)"),
                                       ("high", "to (95 %)"))),
            ]
        }  # fmt: skip

    def _rule(self, kind: str, dash: list[int], color: str) -> Spec:
        x = {"field": "value", "type": "quantitative"}
        mark = {"type": "rule", "strokeDash": dash, "color": color}
        return self._layer(kind, mark, {"x": x})

    def _zero(self) -> Spec:
        return {
            "transform": [{"filter": f"datum.kind == '{MEASURED}'"}],
            "mark": {"type": "rule", "color": self.theme.muted},
            "encoding": {"x": {"datum": 0, "type": "quantitative"}},
        }

    @staticmethod
    def _layer(kind: str, mark: Spec, encoding: Spec, where: str = "") -> Spec:
        test = f"datum.kind == '{kind}'" + (f" && {where}" if where else "")
        return {"transform": [{"filter": test}], "mark": mark, "encoding": encoding}
