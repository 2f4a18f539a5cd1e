"""Colours and letters of figures: light, dark, or those of a page's style sheet."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
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
        font: The name of a font family.
    """

    ink: str
    muted: str
    grid: str
    paper: str
    palette: tuple[str, ...]
    font: str = "sans-serif"

    def config(self, size: float) -> dict[str, Any]:
        """Vega-Lite's ``config``, with letters of a size in pixels."""
        small = round(size * 0.92, 2)
        axis = {
            "labelColor": self.ink, "titleColor": self.ink, "labelFontSize": small,
            "titleFontSize": small, "titleFontWeight": "normal", "gridColor": self.grid,
            "domainColor": self.muted, "tickColor": self.muted, "tickSize": size * 0.3,
        }  # fmt: skip
        return {
            "font": self.font, "background": self.paper, "aria": False,
            "axis": axis, "view": {"stroke": self.grid},
            "header": {"labelColor": self.ink, "labelFontSize": small, "labelPadding": size * 0.4},
            "legend": {"labelColor": self.ink, "labelFontSize": small, "symbolSize": size * 6},
            "title": {"color": self.ink, "fontSize": size * 1.15, "subtitleColor": self.muted,
                      "subtitleFontSize": small, "anchor": "start", "offset": size},
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

THEMES: Mapping[str, Theme] = MappingProxyType({"light": LIGHT, "dark": DARK, "page": PAGE})


def css() -> str:
    """The custom properties that ``page`` refers to, for a style sheet with ``data-theme``."""

    def properties(theme: Theme) -> str:
        named = {name: getattr(theme, name) for name in _NAMES}
        named |= {str(place): color for place, color in enumerate(theme.palette, start=1)}
        return "".join(f"--plot-{name}:{color};" for name, color in named.items())

    dark = properties(DARK)
    return (
        f":root{{{properties(LIGHT)}}}"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}"
    )
