"""The layers of a panel in Vega-Lite: lines of dots, and curves."""

from dataclasses import dataclass

from lm_eval_ext.plots.content import (
    ARROW,
    CHANCE,
    JOIN,
    LINE,
    MEASURED,
    PUBLISHED,
    ZERO,
    Content,
    Spec,
    bounds,
    groups_of,
)  # fmt: skip
from lm_eval_ext.plots.points import SERIES
from lm_eval_ext.plots.theme import Theme

LANE = 0.5
"""Between groups of models that cannot be told apart, in font sizes."""

LETTER = 0.58
"""The width of a letter, in font sizes: about that of a sans serif."""

_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross",
           "triangle-right", "triangle-left")  # fmt: skip

_DOT, _STROKE, _THIN = 3.8, 0.13, 0.1
"""The area of a dot and widths of lines, in font sizes."""

_APART = {"paddingInner": 0.15, "paddingOuter": 0.075}
"""Of lines with several dots, in lines."""

_MANY_LETTERS = 34
"""Of a name in a legend; more is cut off."""


@dataclass(frozen=True)
class Marks:
    """Makes the layers of every panel.

    Attributes:
        content: What they show.
        theme: Their colours.
        font: The size of letters in pixels, which all other sizes follow.
        width: Of a panel, in pixels.
        whole: The width of the whole figure, in pixels.
    """

    content: Content
    theme: Theme
    font: float
    width: float
    whole: float

    @property
    def names(self) -> list[str]:
        """What colours and shapes tell apart: series, models or groups."""
        if self.content.declared.kind == "curve":
            return groups_of(self.content.points)
        return list(self.content.models) if self.content.by_row else self.content.headings(2)

    @property
    def lines(self) -> list[str]:
        """What a panel of dots has a line for: models, or rows."""
        return self.content.headings(1) if self.content.by_row else list(self.content.models)

    def dots(self) -> list[Spec]:
        """A line for each model or row, a dot for each series or model."""
        figure, arrows = self.content.declared, self.content.declared.kind == "arrows"
        several = len(self.names) > 1 and not arrows
        y: Spec = {
            "field": "line", "type": "nominal", "sort": self.lines,
            "scale": {"type": "band", "domain": self.lines, **(_APART if several else {})},
            "axis": {"title": None, "labelLimit": round(self.font * 22), "ticks": False,
                     "domain": False, "grid": several,
                     "tickBand": "extent"},
        }  # fmt: skip
        at: Spec = {"y": y}
        if several:
            at["yOffset"] = {"field": "mark", "type": "nominal", "sort": self.names,
                             "scale": {"domain": self.names}}  # fmt: skip
        x = self._values(tickCount=4, labelFlush=False)
        dot = {**at, "x": x, "color": self._color("mark"), "shape": self._shape("mark")}
        told = {**dot, **self._tooltip()}
        layers = [
            self._rule(ZERO, [], self.theme.muted),
            self._rule(CHANCE, [2, 3], self.theme.muted),
            self._rule(LINE, [6, 3], self.theme.ink),
            *self._intervals(at, x, arrows=arrows),
        ]
        # The end of an arrow is its head.
        where = f"datum.mark == '{self.names[0]}'" if arrows else "true"
        measured = self._layer(MEASURED, self._dot(), told, where)
        hover = {"type": "point", "fields": ["model"], "on": "pointerover", "clear": "pointerout"}
        measured["params"] = [{"name": "model", "select": hover}]
        layers += [measured, self._layer(PUBLISHED, self._hollow(), told, where)]
        layers += self._arrows(y, x) if arrows else []
        return layers + (self._joins(at) if self.content.joined() and figure.join else [])

    def _intervals(self, at: Spec, x: Spec, *, arrows: bool) -> list[Spec]:
        """For arrows, whose ends are on one line, a little above and below it."""
        encoding = {
            **at, "x": {**x, "field": "low"}, "x2": {"field": "high"},
            "color": self._color("mark"),
        }  # fmt: skip
        mark = {"type": "rule", "strokeWidth": self.font * _STROKE}
        if not arrows:
            return [self._layer(MEASURED, mark, encoding, "isValid(datum.low)")]
        return [
            self._layer(MEASURED, {**mark, "yOffset": self.font * way}, encoding,
                        f"isValid(datum.low) && datum.mark == '{name}'")
            for name, way in zip(self.names, (-0.35, 0.35), strict=True)
        ]  # fmt: skip

    def _arrows(self, y: Spec, x: Spec) -> list[Spec]:
        shaft = {"y": y, "x": x, "x2": {"field": "to"}, "color": {"value": self.theme.muted}}
        head = {
            "y": y, "x": {**x, "field": "to"}, "color": self._color("mark"),
            "angle": {"field": "angle", "type": "quantitative", "scale": None},
        }  # fmt: skip
        mark = {"type": "rule", "strokeWidth": self.font * _STROKE}
        filled, hollow = ({**one, "shape": "triangle"} for one in (self._dot(), self._hollow()))
        return [
            self._layer(ARROW, mark, shaft),
            self._layer(ARROW, filled, head, "!datum.published"),
            self._layer(ARROW, hollow, head, "datum.published"),
        ]

    def _joins(self, at: Spec) -> list[Spec]:
        edge = round(self.width + self.font * 0.7, 2)
        x = {"value": {"expr": f"{edge} + {self.font * LANE} * datum.lane"}}
        by_row = self.content.by_row
        color: Spec = {"value": self.theme.muted} if by_row else self._color("mark")
        place = {**(at if by_row else {"y": at["y"]}), "x": x, "color": color}
        text = {"field": "group", "title": "not significantly different"}
        detail = [{"field": "lane"}, *([{"field": "line"}] if by_row else [])]
        line = {"type": "line", "strokeWidth": self.font * _THIN}
        dot = {"type": "point", "filled": True, "size": self.font * 0.9, "opacity": 1}
        return [
            self._layer(JOIN, line, {**place, "detail": detail, "order": {"field": "lane"}}),
            self._layer(JOIN, dot, {**place, "tooltip": text}),
        ]

    def curve(self) -> list[Spec]:
        """A line for each group of models."""
        figure, font = self.content.declared, self.font
        title = {"title": figure.x_title, "titleLimit": round(self.width * 1.2), "labelAngle": 0}
        x: Spec = {"field": "step", "type": "ordinal", "sort": self.content.headings(2),
                   "axis": title}  # fmt: skip
        if figure.x != SERIES:
            x = {"field": "x", "type": "quantitative", **self._x_scale(title)}
        y = self._values(tickCount=5)
        seen = {"opacity": {"condition": {"param": "group", "value": 1}, "value": 0.15}}
        both = {"x": x, "y": y, "color": self._color("group"), **seen}
        dashes = {"field": "group", "type": "nominal", "legend": self._legend(), "scale": {
            "domain": self.names, "range": [self._dash(name) for name in self.names],
        }}  # fmt: skip
        line = {"type": "line", "strokeWidth": font * _STROKE}
        interval = {**both, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        told = {**both, "shape": self._shape("group"), **self._tooltip()}
        measured = self._layer(MEASURED, self._dot(), told)
        measured["params"] = [
            {"name": "group", "select": {"type": "point", "fields": ["group"]}, "bind": "legend"}
        ]
        return [
            self._layer(MEASURED, line, {**both, "strokeDash": dashes}),
            self._layer(PUBLISHED, line, {**both, "strokeDash": dashes}),
            self._layer(MEASURED, {"type": "rule", "strokeWidth": font * _STROKE}, interval,
                        "isValid(datum.low)"),
            measured,
            self._layer(PUBLISHED, self._hollow(), told),
        ]  # fmt: skip

    def _dash(self, name: str) -> list[int]:
        own = {point.group for point in self.content.points if not point.published}
        return [1, 0] if name in own else [4, 3]

    def _x_scale(self, axis: Spec) -> Spec:
        """Logarithmic for sizes, with a place for 0; as it is for shares."""
        xs = [point.x for point in self.content.points if point.x is not None]
        if max(xs, default=0) <= 1:
            return {"scale": {"domain": [0, 1]}, "axis": {**axis, "tickCount": 5}}
        positive = [x for x in xs if x > 0]
        powers = [10.0**power for power in range(15) if min(positive) <= 10**power <= max(positive)]
        labels = "replace(format(datum.value, '~s'), 'G', 'B')"
        ticks = {"values": [0.0] * (0 in xs) + powers, "labelExpr": labels, "labelOverlap": True,
                 "labelFlush": False, "labelSeparation": self.font * 0.5}  # fmt: skip
        scale = {"type": "symlog", "constant": min(positive), "domain": [min(xs), max(xs)]}
        return {"scale": scale, "axis": {**axis, **ticks}}

    def _values(self, **axis: float | bool) -> Spec:
        return {
            "field": "value", "type": "quantitative",
            "scale": {"domain": bounds(self.content), "nice": False, "zero": False},
            "axis": {"title": self.content.declared.axis, "titleLimit": round(self.width * 1.2),
                     **axis},
        }  # fmt: skip

    def _legend(self) -> Spec | None:
        """As many columns as the figure has room for."""
        needless = self.content.declared.kind != "curve" and not self.content.by_row
        if needless and len(self.names) == 1:
            return None
        longest = min(max(map(len, self.names)), _MANY_LETTERS)
        columns = max(1, int(self.whole // (self.font * (LETTER * longest + 3))))
        return {"title": None, "orient": "top", "labelLimit": round(self.font * _MANY_LETTERS),
                "columns": columns, "symbolStrokeWidth": self.font * _STROKE}  # fmt: skip

    def _color(self, field: str) -> Spec:
        scale = {"domain": self.names, "range": self.theme.series(len(self.names))}
        return {"field": field, "type": "nominal", "scale": scale, "legend": self._legend()}

    def _shape(self, field: str) -> Spec:
        if self.content.declared.kind == "arrows":
            shapes = ["circle", "triangle-right"]
        else:
            # Colours repeat after the palette; then the shape differs.
            most = len(self.theme.palette)
            places = range(len(self.names))
            shapes = [_SHAPES[(n + n // most) % len(_SHAPES)] for n in places]
        scale = {"domain": self.names, "range": shapes}
        return {"field": field, "type": "nominal", "scale": scale, "legend": self._legend()}

    def _tooltip(self) -> Spec:
        figure = self.content.declared
        number = {"type": "quantitative", "format": ".1f" if figure.percent else ".3f"}
        texts = [
            ("model", "model"),
            ("kind", "value is"),
            *([("line", "of")] * self.content.by_row),
        ]
        if len(self.content.headings(2)) > 1:
            texts.append(("step" if figure.x == SERIES else "mark", "with"))
        numbers = [("value", figure.axis), ("low", "interval from"), ("high", "to")]
        return {
            "tooltip": [
                *({"field": field, "title": title} for field, title in texts),
                *({"field": field, "title": title, **number} for field, title in numbers),
            ]
        }

    def _dot(self) -> Spec:
        return {"type": "point", "filled": True, "size": self.font * _DOT, "opacity": 1}

    def _hollow(self) -> Spec:
        return {"type": "point", "filled": False, "size": self.font * _DOT, "opacity": 1,
                "strokeWidth": self.font * _STROKE, "fill": self.theme.paper}  # fmt: skip

    def _rule(self, kind: str, dash: list[int], color: str) -> Spec:
        mark: Spec = {"type": "rule", "strokeDash": dash, "color": color}
        return self._layer(kind, mark, {"x": {"field": "value", "type": "quantitative"}})

    @staticmethod
    def _layer(kind: str, mark: Spec, encoding: Spec, where: str = "true") -> Spec:
        test = f"datum.kind == '{kind}' && {where}"
        return {"transform": [{"filter": test}], "mark": mark, "encoding": encoding}
