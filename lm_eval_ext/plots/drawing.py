"""Draws figures with vl-convert: Vega-Lite without a browser or a network."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.figures import Figure, attempts, figure_of, figures
from lm_eval_ext.plots.theme import THEMES
from lm_eval_ext.results.models import Model

FORMATS = ("svg", "pdf", "png", "html", "json")

VERSION = "6.4"
"""Of Vega-Lite."""

POINTS_PER_INCH = 72

_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
"""Vega's, of groups without a name: the whole has one."""
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


_PAGE = Size()


def draw(
    figure: Figure, format_: str, *, theme: str = "light", size: Size = _PAGE, titled: bool = True
) -> bytes:  # fmt: skip
    """Draws a figure.

    Args:
        figure: From :func:`~lm_eval_ext.plots.figures.figures`.
        format_: One of :data:`FORMATS`; ``html`` is interactive, ``json`` Vega-Lite.
        theme: ``light``, ``dark``, or ``page`` (SVG only), with the colours of
            :func:`~lm_eval_ext.plots.theme.css`.
        size: Of the drawing.
        titled: Whether the title stands above it.

    Raises:
        OptionError: Altair or vl-convert is not installed.
    """
    vl_convert, spec = _converter(), themed(figure, theme, size=size, titled=titled)
    if format_ == "json":
        return json.dumps(spec, ensure_ascii=False, indent=1).encode()
    if format_ == "html":
        return str(vl_convert.vegalite_to_html(spec, vl_version=VERSION, bundle=True)).encode()
    label = escape(figure.alt, quote=True)
    drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=VERSION)
    drawn = _ROLES.sub("", drawn).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    if format_ == "pdf":
        return bytes(vl_convert.svg_to_pdf(drawn))
    return bytes(vl_convert.svg_to_png(drawn, ppi=size.ppi)) if format_ == "png" else drawn.encode()


def themed(
    figure: Figure, theme: str = "light", *, size: Size = _PAGE, titled: bool = True
) -> dict[str, Any]:
    """The figure as Vega-Lite that fits a width: panels are measured with their labels."""
    colours = replace(THEMES[theme], font=size.font) if size.font else THEMES[theme]
    wanted = size.width * POINTS_PER_INCH
    inner = wanted
    for _ in range(3):
        chart: Any = figure.chart(colours, width=inner, font=size.font_size)
        spec: dict[str, Any] = chart.to_dict()
        (measured, *_) = _WIDTH.findall(_converter().vegalite_to_svg(spec, vl_version=VERSION))
        extra = wanted - float(measured)
        if abs(extra) < 1 or inner + extra < size.font_size * 3:
            break
        inner += extra
    return {**spec, **({"title": figure.title} if titled else {}), "description": figure.alt}


def _converter() -> Any:
    try:
        import altair  # noqa: F401
        import vl_convert
    except ImportError:
        raise OptionError(
            'drawing needs Altair and vl-convert: pip install "lm-eval-ext[plot]"'
        ) from None
    return vl_convert


def listed(models: Sequence[Model]) -> list[tuple[str, str]]:
    """Each figure's name and title, with what is missing in the results of these models."""
    return [
        (one.name, one.title + (f" ({why})" if why else "")) for one, _, why in attempts(models)
    ]


def write(
    models: Sequence[Model],
    names: Sequence[str],
    output: Path | None,
    size: Size,
    *,
    theme: str = "light",
    titled: bool = True,
) -> Iterator[Path]:
    """Draws figures into files and yields their paths.

    Args:
        models: From :func:`~lm_eval_ext.results.models.read_models`.
        names: Of figures; all if empty.
        output: A file for one figure, or a folder.
        size: Of the drawings.
        theme: ``light`` or ``dark``.
        titled: Whether each has its title above it.

    Raises:
        OptionError: An option is illegal, results lack a figure, or a file cannot be written.
    """
    if theme not in ("light", "dark"):
        raise OptionError(f"--theme is {theme!r}; use light or dark")
    if output is None:
        raise OptionError("name a file or a folder to draw into with -o, or use --list")
    if output.suffix and len(names) != 1:
        raise OptionError(f"-o {output}: name one --figure, or a folder without a suffix")
    found = [figure_of(name, models) for name in names] or figures(models)
    if not found:
        raise OptionError("these results have no figure; --list says what figures need")
    for figure in found:
        path = output if output.suffix else output / f"{figure.name}.svg"
        save(figure, path, size, theme=theme, titled=titled)
        yield path


def save(
    figure: Figure,
    path: Path,
    size: Size = _PAGE,
    *,
    theme: str = "light",
    titled: bool = True,
) -> None:
    """Draws into a file, in the format of its suffix.

    Raises:
        OptionError: The suffix is none of :data:`FORMATS`, or the file cannot be written.
    """
    format_ = path.suffix.removeprefix(".").casefold()
    if format_ not in FORMATS:
        raise OptionError(f"{path}: use .{', .'.join(FORMATS)}")
    drawn = draw(figure, format_, theme=theme, size=size, titled=titled)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part:
            part.write_bytes(drawn)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}") from None
