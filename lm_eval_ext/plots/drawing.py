"""Draws figures with vl-convert: Vega-Lite without a browser or a network."""

import json
import re
from dataclasses import dataclass, replace
from html import escape
from types import ModuleType
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.charts import Layout
from lm_eval_ext.plots.content import Spec
from lm_eval_ext.plots.figures import Figure
from lm_eval_ext.plots.theme import THEMES

FORMATS = ("svg", "pdf", "png", "html", "json")

VERSION = "6.4"
"""Of Vega-Lite."""

POINTS_PER_INCH = 72

_WIDTH = re.compile(r'<svg[^>]*? width="([0-9.]+)"')


@dataclass(frozen=True)
class Size:
    """The size of a drawing.

    Attributes:
        width: Of the whole, in inches.
        font_size: Of letters, in points; titles are a little larger.
        font: The name of a font family; "" for the theme's.
        ppi: Of PNG: pixels per inch.
    """

    width: float = 10.0
    font_size: float = 11.0
    font: str = ""
    ppi: float = 144.0


def draw(
    figure: Figure, format_: str, *, theme: str = "light", size: Size | None = None,
    titled: bool | None = None,
) -> bytes:  # fmt: skip
    """Draws a figure.

    Args:
        figure: From :func:`~lm_eval_ext.plots.figures.figures`.
        format_: One of :data:`FORMATS`; ``html`` is interactive, ``json`` Vega-Lite.
        theme: ``light``, ``dark``, or ``page`` (SVG only), with the colours of
            :func:`~lm_eval_ext.plots.theme.css`.
        size: None: that of a page.
        titled: Whether the title stands above it; None: except on a page.

    Raises:
        OptionError: vl-convert is not installed.
    """
    size = size or Size()
    spec = themed(figure, theme, size=size, titled=titled)
    if format_ == "json":
        return json.dumps(spec, ensure_ascii=False, indent=1).encode()
    if format_ == "html":
        return str(_converter().vegalite_to_html(spec, vl_version=VERSION, bundle=True)).encode()
    if format_ == "pdf":
        return bytes(_converter().svg_to_pdf(svg(figure, spec)))
    if format_ == "png":
        return bytes(_converter().svg_to_png(svg(figure, spec), ppi=size.ppi))
    return svg(figure, spec).encode()


def themed(
    figure: Figure, theme: str, *, size: Size | None = None, titled: bool | None = None
) -> Spec:
    """The figure as Vega-Lite that fits a width: panels are measured with their labels."""
    size = size or Size()
    colors = THEMES[theme]
    if size.font:
        colors = replace(colors, font=size.font)
    wanted = size.width * POINTS_PER_INCH
    layout = Layout(wanted, size.font_size)
    spec = figure.chart(colors, layout)
    for _ in range(2):
        extra = wanted - _width(spec)
        inner = spec["spec"]["width"] + extra / _columns(spec)
        if abs(extra) < 1 or inner < size.font_size * 3:
            break
        spec = figure.chart(colors, replace(layout, panel=inner))
    if titled or (titled is None and theme != "page"):
        spec["title"] = figure.title
    return {**spec, "description": figure.alt}


def javascript() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which needs no network.

    It defines ``vegaEmbed``.

    Raises:
        OptionError: vl-convert is not installed.
    """
    code = "window.vegaEmbed = vegaEmbed;"
    return str(_converter().javascript_bundle(code, vl_version=VERSION))


def _columns(spec: Spec) -> int:
    if "columns" in spec:
        return int(spec["columns"])
    return len(spec["facet"]["column"]["sort"])


def _width(spec: Spec) -> float:
    found = _WIDTH.search(_converter().vegalite_to_svg(spec, vl_version=VERSION))
    return float(found[1]) if found else 0.0


def svg(figure: Figure, spec: Spec) -> str:
    """Draws what :func:`themed` returned, with the alternative text for screen readers."""
    text: str = _converter().vegalite_to_svg(spec, vl_version=VERSION)
    label = escape(figure.alt, quote=True)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise OptionError(
            'drawing needs vl-convert, which is not installed: pip install "lm-eval-ext[plot]"'
        ) from None
    module: Any = vl_convert
    return module  # type: ignore[no-any-return]
