"""Colours and letters of figures: light, dark, or those of a page's style sheet."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Theme:
    """The colours of a figure.

    Attributes:
        ink: Of text and marks without a series.
        muted: Of chance, arrows and axes.
        grid: Of the lines behind marks.
        paper: The background, and the inside of hollow marks.
        palette: Of series. The first three are of Okabe and Ito (2008); all have a contrast of 3
            with the paper, and differ by 20 in CIELAB also for people who see no red or no green.
    """

    ink: str
    muted: str
    grid: str
    paper: str
    palette: tuple[str, ...]

    def config(self, size: float) -> dict[str, Any]:
        """Vega-Lite's ``config``, with letters of a size in pixels."""
        small = {"fill": self.ink, "fontSize": round(size * 0.92, 2)}
        lines = {"gridColor": self.grid, "domainColor": self.muted, "tickColor": self.muted}
        return {
            "font": "sans-serif", "background": self.paper, "aria": False, "axis": lines,
            "view": {"stroke": self.grid}, "legend": {"symbolSize": size * 6},
            "style": {"guide-label": small, "guide-title": {**small, "fontWeight": "normal"}},
            "title": {"color": self.ink, "fontSize": size * 1.15, "anchor": "start",
                      "offset": size, "subtitleColor": self.ink,
                      "subtitleFontSize": small["fontSize"]},
        }  # fmt: skip


LIGHT = Theme(
    "#1a1a1a", "#5f5f5f", "#e4e4e4", "#ffffff",
    ("#0072b2", "#d55e00", "#009e73", "#882255", "#3292a6", "#801500", "#4662eb", "#0000eb"),
)  # fmt: skip
DARK = Theme(
    "#ececec", "#a6a6a6", "#3d3d3d", "#1b1b1b",
    ("#56b4e9", "#e69f00", "#2ec4a0", "#cc2200", "#ccbd70", "#4d4dff", "#3d6dcc", "#267180"),
)  # fmt: skip
_NAMES = ("ink", "muted", "grid", "paper")
PAGE = Theme(
    **{name: f"var(--plot-{name})" for name in _NAMES},
    palette=tuple(f"var(--plot-{place})" for place in range(1, len(LIGHT.palette) + 1)),
)

THEMES = {"light": LIGHT, "dark": DARK, "page": PAGE}


def css() -> str:
    """The custom properties that ``page`` refers to; the browser chooses light or dark."""
    themes = [[*(getattr(one, name) for name in _NAMES), *one.palette] for one in THEMES.values()]
    both = "".join(
        f"{name[4:-1]}:light-dark({light},{dark});"
        for light, dark, name in zip(*themes, strict=True)
    )
    return f":root{{{both}}}"
