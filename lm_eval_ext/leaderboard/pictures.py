"""The plots of the page: drawn once, with what makes them interactive in files beside it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import reading
from lm_eval_ext.errors import OptionError
from lm_eval_ext.leaderboard.board import Board
from lm_eval_ext.leaderboard.matrix import Matrix
from lm_eval_ext.leaderboard.tables import PERCENT
from lm_eval_ext.plots.content import Content
from lm_eval_ext.plots.declared import OWN_TITLE, Declared
from lm_eval_ext.plots.drawing import Size, javascript, svg, themed
from lm_eval_ext.plots.figures import Figure, figures
from lm_eval_ext.plots.points import Point
from lm_eval_ext.plots.theme import css

FOLDER = "plots"

_TAG = re.compile(r"<[a-z/][^<>]*>")
_INVISIBLE = re.compile(r'<path [^<>]*(?: d=""|d="M0,0h0v0h0Z")[^<>]*/>')
_NEEDLESS = re.compile(
    # The whole is one image with one text; its parts are none of their own.
    r' (?:role="graphics-[a-z]+"|aria-(?:roledescription|label)="[^"]*"|aria-hidden="true"'
    # Defaults, and what the page's style says.
    r'|class="[^"]*"|pointer-events="none"|(?:stroke-|fill-)?opacity="1"|stroke-width="1"'
    r'|font-family="[^"]*"|font-weight="normal")'
)
_DIGITS = re.compile(r"(?<=\.\d\d)\d+")

_SIZE = Size(width=12, font_size=12)
_PAGE = "page"
_SIZES = "all-size"
_LEAST = 2
"""Models whose sizes are known, below which scores are not drawn against them."""


@dataclass(frozen=True)
class Picture:
    """A plot: its drawing as SVG, and its Vega-Lite specification as JSON."""

    name: str
    title: str
    caption: str
    svg: str
    spec: str


@dataclass(frozen=True)
class Drawn:
    """All plots.

    Attributes:
        benchmarks: By benchmark.
        sizes: Scores against the number of parameters, if two models state it.
        style: What the drawings take their colours from.
        script: What makes them interactive.
        missing: Why there are none.
    """

    benchmarks: Mapping[str, tuple[Picture, ...]] = field(default_factory=dict)
    sizes: Picture | None = None
    style: str = ""
    script: str = ""
    missing: str = ""


def draw_all(
    models: Sequence[reading.Model],
    board: Board,
    best: Matrix,
    more: Mapping[str, tuple[Figure, str]] | None = None,
) -> Drawn:
    """Draws the papers' figures of the models that have results here, and scores against sizes.

    ``more`` are figures of other parts of the page with their captions, by the part's name.
    """
    found: dict[str, list[Picture]] = {}
    try:
        for name, (figure, caption) in (more or {}).items():
            found[name] = [_picture(figure, caption)]
        for figure in figures(models):
            found.setdefault(figure.benchmark, []).append(_picture(figure, figure.caption))
        sizes = _sizes(board, best)
        script = javascript() if found or sizes else ""
    except OptionError as error:
        return Drawn(missing=str(error))
    benchmarks = {name: tuple(pictures) for name, pictures in found.items()}
    return Drawn(benchmarks, sizes, css(), script)


def write(drawn: Drawn, site: Path) -> None:
    """Writes the specifications, and the script that draws them again, interactively."""
    pictures = [one for of_benchmark in drawn.benchmarks.values() for one in of_benchmark]
    texts = {
        one.name: f"board.receive({json.dumps(f'{FOLDER}/{one.name}')}, {one.spec});\n"
        for one in [*pictures, *([drawn.sizes] if drawn.sizes else [])]
    }
    if texts:
        # Within a function, so that its names do not meet those of the page.
        texts["vega"] = f'(() => {{{drawn.script}\n}})();\nboard.receive("{FOLDER}/vega", true);\n'
        (site / FOLDER).mkdir(exist_ok=True)
    for name, text in texts.items():
        with atomic_text(site / FOLDER / f"{name}.js") as out:
            out.write(text)


def _picture(figure: Figure, caption: str) -> Picture:
    spec = themed(figure, _PAGE, size=_SIZE)
    text = json.dumps(spec, ensure_ascii=True, separators=(",", ":"))
    caption = caption.removeprefix(f"{figure.title}.").strip()
    return Picture(figure.name, figure.title, caption, _slim(svg(figure, spec)), text)


def _slim(drawing: str) -> str:
    """The same drawing with half the characters; texts stay as they are."""

    def slim(tag: re.Match[str]) -> str:
        if tag[0].startswith("<svg"):
            return tag[0]
        return _DIGITS.sub("", _NEEDLESS.sub("", tag[0]))

    return _TAG.sub(slim, _INVISIBLE.sub("", drawing))


def _sizes(board: Board, best: Matrix) -> Picture | None:
    """The columns of the first table against the number of parameters."""
    about = {model.label: model.about for model in board.models}
    points = []
    for row in best.table.rows:
        known = about[row.label]
        for title, column, cell in zip(best.titles, best.table.columns, row.cells, strict=True):
            if known.size is None or cell.value is None:
                continue
            unit = PERCENT if column.ends[1] >= PERCENT else 1.0
            low, high = (None if one is None else one / unit for one in (cell.low, cell.high))
            points.append(
                Point((title, OWN_TITLE, OWN_TITLE), row.label, cell.value / unit, low, high,
                      x=known.size, group=known.family or row.label)
            )  # fmt: skip
    if len({point.x for point in points}) < _LEAST:
        return None
    titles = {point.place[0]: "" for point in points}
    declared = Declared(
        name=_SIZES, title="Score against size", kind="curve", x="size",
        x_title="parameters", axis="score", panels=titles, order="size",
    )  # fmt: skip
    labels = tuple(dict.fromkeys(point.model for point in points))
    caption = (
        "The scores of the first table by number of parameters (logarithmic), percentages as "
        "shares; lines join the models of a family. Bars: 95 % intervals. Models of unknown size "
        "are left out."
    )
    return _picture(Figure("", Content(declared, tuple(points), labels, {})), caption)
