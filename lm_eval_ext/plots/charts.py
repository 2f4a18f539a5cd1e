"""Figures as Vega-Lite: one data set, and a panel for every pair of headings."""

import re
from dataclasses import dataclass

from lm_eval_ext.plots.content import Content, Spec, rows_of
from lm_eval_ext.plots.declared import OWN_TITLE
from lm_eval_ext.plots.marks import LANE, LETTER, Marks
from lm_eval_ext.plots.theme import Theme

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_LONGEST_LABEL, _ROW_HEADING = 34, 13
"""In letters; more of a model's name is cut off, a row's heading is broken."""

_LEAST_PANEL = 9.0
"""Its width, in font sizes."""

_CURVE = 13.0
"""The height of its panels, in font sizes."""


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


def chart(content: Content, theme: Theme, layout: Layout) -> Spec:
    """The figure as a Vega-Lite specification."""
    font, curve = layout.font, content.declared.kind == "curve"
    panels, rows = (list(dict.fromkeys(part)) for part in zip(*content.panels(), strict=True))
    count = len(panels) * len(rows)
    named = content.headings(1) if content.by_row else content.models
    letters = 7 if curve else min(max(map(len, named)), _LONGEST_LABEL)
    margin = font * (2 + LANE * (content.lanes() if content.joined() else 0))
    room = layout.width - font * (LETTER * letters + 2)
    if rows != [OWN_TITLE]:
        room -= font * LETTER * _ROW_HEADING
    fit = max(1, int(room // (_LEAST_PANEL * font + margin)))
    grid = rows != [OWN_TITLE] and len(panels) <= fit
    columns = len(panels) if grid else min(fit, count)
    if not grid and rows != [OWN_TITLE]:  # panels of one heading below each other
        columns = max(one for one in range(1, columns + 1) if len(panels) % one == 0)
    elif not grid:  # as many in every row
        columns = -(-count // -(-count // columns))
    width = layout.panel or max(room / columns - margin, 4 * font)
    marks = Marks(content, theme, font, width, layout.width)
    line = font * (0.7 + 0.85 * len(marks.names) if len(marks.names) > 1 else 1.6)
    if content.declared.kind == "arrows":
        line = font * 1.8
    unit: Spec = {
        "width": round(width, 2),
        "height": round(font * _CURVE if curve else line * len(marks.lines), 2),
        "layer": marks.curve() if curve else marks.dots(),
    }
    faceted = _facets(content, grid, columns, int((width + margin) / font / LETTER), font)
    spacing = {"column": round(margin, 2), "row": round(font * 1.4, 2)}
    return {
        "$schema": SCHEMA, **faceted, "spacing": spacing, "spec": unit,
        "config": theme.config(font),
    }  # fmt: skip


def _facets(content: Content, grid: bool, columns: int, chars: int, font: float) -> Spec:  # noqa: FBT001
    """The data and their division into panels; headings are broken into lines."""

    def heading(panel: str, row: str) -> str:
        parts = [part for part in ("" if grid else row, panel) if part]
        return "\n".join(line for part in parts for line in wrapped(part, max(chars, 6)))

    def row_heading(row: str) -> str:
        return "\n".join(wrapped(row, _ROW_HEADING))

    values = [
        {**one, "heading": heading(one["panel"], one["row"]), "row": row_heading(one["row"])}
        for one in rows_of(content)
    ]
    order = list(dict.fromkeys(heading(panel, row) for panel, row in content.panels()))
    header: Spec = {"title": None, "labelExpr": "split(datum.value, '\\n')", "labelLimit": 0,
                    "labelLineHeight": round(font * 1.2, 2)}  # fmt: skip
    column: Spec = {"field": "heading", "type": "nominal", "sort": order, "header": header}
    facet: Spec = {**column, "header": None} if order == [""] else column
    if not grid:
        return {"data": {"values": values}, "facet": facet, "columns": columns}
    rows = list(dict.fromkeys(row_heading(row) for _, row in content.panels()))
    beside = {**header, "labelAngle": 0, "labelAlign": "left", "labelFontStyle": "italic"}
    by_row = {"field": "row", "type": "nominal", "sort": rows, "header": beside}
    return {"data": {"values": values}, "facet": {"column": column, "row": by_row}}


def wrapped(text: str, chars: int) -> list[str]:
    """Lines of at most so many letters, if possible; names longer than that break after "_"."""
    lines = [""]
    for word in re.findall(r"[^ ]* ?", text):
        for piece in re.findall("[^_]*_?", word) if len(word) > chars else [word]:
            if lines[-1] and len(lines[-1] + piece.rstrip()) > chars:
                lines.append("")
            lines[-1] += piece
    return [line.strip() for line in lines]
