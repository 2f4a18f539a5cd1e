"""Charts of Altair: values with their intervals, in panels, lines and colours."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.plots.declarations import Declared
from lm_eval_ext.stats.measures import Measure

if TYPE_CHECKING:
    import altair as alt
    from pandas import DataFrame

    AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart

PLACES = ["task", "line", "metric", "part"]
"""The columns that say where a value stands."""

NUMBERS = ("value", "low", "high", "documents")
"""The columns with numbers; published values have no interval and no number of documents."""

COLUMNS = ("model", *PLACES, *NUMBERS, "published")
"""The columns of a figure's values."""

FONT_SIZE = 12
"""Points of letters."""

_MIN_PANEL = 150
"""Points of width that a panel has at least."""

_MAX_PHONE = 400
"""Points of width up to which the key of a drawing has one column."""

_LABEL_WIDTH = 216
"""Points that the names of lines have at most."""

_KEY_WIDTH = 240
"""Points that a name in the key has at most."""

_TALL_LINES = 30
"""Lines of text from which a panel is tall: its axis is above it, where a reader starts."""

INK = "#1a1a1a"
"""The colour of text."""

MUTED = "#5f5f5f"
"""The colour of chance and axes."""

GRID = "#e4e4e4"
"""The colour of the lines behind marks."""

PAPER = "#ffffff"
"""The colour of the inside of hollow marks, and of the background."""

PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#882255", "#3292a6", "#801500", "#4662eb", "#0000eb",
)  # fmt: skip
"""Colours of series. The first three are of Okabe and Ito (2008); all have a contrast of 3 with the
paper, and differ by 20 in CIELAB also for people who see no red or no green."""

_SMALL_TEXT = {"fill": INK, "fontSize": 11, "fontWeight": "normal"}

VEGA_CONFIG: Mapping[str, Any] = {
    "font": "sans-serif", "background": "transparent", "aria": False,
    "axis": {"gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED},
    "style": {"guide-label": _SMALL_TEXT, "guide-title": _SMALL_TEXT},
    "title": {"color": INK, "fontSize": 14, "anchor": "start", "offset": FONT_SIZE,
              "subtitleColor": INK, "subtitleFontSize": 11},
}  # fmt: skip
"""The configuration of Vega-Lite."""


@dataclass(frozen=True)
class Plot:
    """Values, and how they are drawn.

    Attributes:
        declared: Which figure it is.
        values: A row for each mark, with the columns ``COLUMNS``.
        measure: What all values are of.
    """

    declared: Declared
    values: "DataFrame"
    measure: Measure

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis: those of the unit, or around the values where it has none."""
        low, high = self.measure.limits
        if self.measure.unit in ("share", "percent") and low is not None and high is not None:
            return low, high
        numbers = self.values[["value", "low", "high"]].stack()
        return min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))

    def order(self) -> list[str]:
        """Return the models, the best first by the mean of the panels that all own models have.

        What a model lacks neither helps nor hurts it.
        """
        own_values = self.values[~self.values["published"]]
        by_panel = own_values.pivot_table("value", "model", PLACES)
        means = by_panel.dropna(axis=1).mean(axis=1)
        best = means.sort_values(ascending=self.measure.lower_is_better, kind="stable")
        return list(dict.fromkeys([*best.index, *self.values["model"]]))

    def chart(self, width: float) -> "AnyChart":
        """Return the figure as an Altair chart; ``width`` is that of all panels, in points."""
        import altair as alt

        panels = self._names(self.declared.panels)
        columns = max(1, min(len(panels), int(width // _MIN_PANEL)))
        rows = math.ceil(len(panels) / columns)
        columns = math.ceil(len(panels) / rows)
        panel_width = int(width / columns - FONT_SIZE)
        height = self._panel_height()
        is_tall = height > _TALL_LINES * FONT_SIZE
        layers = self._layers(width, is_tall=is_tall)
        # Vega reads dots and brackets in names of fields only: data may have any text.
        data = self.values.assign(chance=self.measure.chance)
        chart: AnyChart = alt.layer(*layers, data=data).properties(
            width=panel_width, height=round(height, 2)
        )
        if panels != [""]:
            # What is compared stands on two lines.
            label = "split(replace(datum.label, ' > ', '\\n> '), '\\n')"
            header = alt.Header(title=None, labelLimit=panel_width, labelExpr=label)
            facet = alt.Facet(f"{self.declared.panels}:N", sort=panels, header=header)
            chart = chart.facet(facet=facet, columns=columns)
            if rows > 1 or is_tall:
                # A shared axis would be far from most panels, below the gap that the last row may
                # have; above panels, their names would overlap it.
                chart = chart.resolve_axis(x="independent")
        configured: AnyChart = chart.configure(**VEGA_CONFIG)
        return configured

    def _names(self, dimension: str) -> list[str]:
        """Return what stands for something in a dimension, in the order of the values."""
        return list(self.values[dimension].unique())

    def _panel_height(self) -> float:
        colours = 1
        if self.declared.colours and not self.declared.joined:
            colours = self.values[self.declared.colours].nunique()
        lines = self.values[self.declared.lines].nunique()
        return float(lines * FONT_SIZE * (0.8 + 0.9 * colours))

    def _layers(self, width: float, *, is_tall: bool) -> Iterator["alt.Chart"]:
        """Yield what lies above each other in a panel, the lowest first."""
        import altair as alt

        if self.measure.chance is not None:
            rule = alt.Chart().mark_rule(strokeDash=[2, 3], color=MUTED)
            yield rule.encode(x="chance:Q")
        low, high = self.ends
        if low < 0:
            yield alt.Chart().mark_rule(color=MUTED).encode(x=alt.datum(0))
        lines = self.declared.lines
        sort = self.order() if lines == "model" else self._names(lines)
        axis = alt.Axis(labelLimit=_LABEL_WIDTH, title=None, ticks=False)
        base = alt.Chart().encode(y=alt.Y(f"{lines}:N", sort=sort, axis=axis))
        if self.declared.joined:
            joined = base.mark_line(color=MUTED)
            yield joined.encode(x="value:Q", detail=f"{lines}:N")
        base = self._coloured(base, width)
        intervals = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
        yield intervals.encode(x="low:Q", x2="high:Q")
        marks = self._shaped(base, width).encode(
            x=alt.X(
                "value:Q",
                title=self.declared.axis or self.measure.title,
                scale=alt.Scale(domain=[low, high]),
                axis=alt.Axis(tickCount=5, orient="top" if is_tall else "bottom"),
            ),
            tooltip=[name for name in COLUMNS if name != "published"],
        )
        size = FONT_SIZE * 5
        own_marks = marks.transform_filter("!datum.published")
        yield own_marks.mark_point(filled=True, size=size, opacity=1)
        published_marks = marks.transform_filter("datum.published")
        yield published_marks.mark_point(fill=PAPER, size=size, opacity=1)

    def _coloured(self, layer: "alt.Chart", width: float) -> "alt.Chart":
        """Return a layer with a colour, and its own place in the line, for each series."""
        import altair as alt

        if not self.declared.colours:
            uncoloured: alt.Chart = layer.encode(color=alt.value(PALETTE[0]))
            return uncoloured
        names = self._names(self.declared.colours)
        field = f"{self.declared.colours}:N"
        if not self.declared.joined:
            layer = layer.encode(yOffset=alt.YOffset(field, sort=names))
        scale = alt.Scale(domain=names, range=list(PALETTE))
        colour = alt.Color(field, scale=scale, legend=_legend(names, width))
        coloured: alt.Chart = layer.encode(color=colour)
        return coloured

    def _shaped(self, layer: "alt.Chart", width: float) -> "alt.Chart":
        """Return a layer with a shape for each series."""
        import altair as alt

        if not self.declared.colours:
            return layer
        names = self._names(self.declared.colours)
        field = f"{self.declared.colours}:N"
        scale = alt.Scale(domain=names)
        shape = alt.Shape(field, scale=scale, legend=_legend(names, width))
        shaped: alt.Chart = layer.encode(shape=shape)
        return shaped


def _legend(names: Sequence[str], width: float) -> "alt.Legend | None":
    """Return the key of colours and shapes; None for a single one."""
    import altair as alt

    if len(names) == 1:
        return None
    columns = 3 if width > _MAX_PHONE else 1
    return alt.Legend(title=None, orient="top", columns=columns, labelLimit=_KEY_WIDTH)
