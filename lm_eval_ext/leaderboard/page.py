"""The page itself: one HTML file from tables, plots and the names of the files beside it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from lm_eval_ext.leaderboard.board import Board
from lm_eval_ext.leaderboard.changes import Changes
from lm_eval_ext.leaderboard.matrix import Matrix
from lm_eval_ext.leaderboard.pictures import Drawn, Picture
from lm_eval_ext.leaderboard.samples import CHUNK, SampleFiles
from lm_eval_ext.leaderboard.tables import Table, number

STYLES = ("page.css", "samples.css")
SCRIPTS = ("common.js", "tables.js", "pictures.js", "diff.js", "samples.js", "start.js")

_UNITS = {"T": 1e12, "B": 1e9, "M": 1e6, "K": 1e3}
_CENT = 0.01
_ROUNDED = 0.9995
"""What is shown as 1 with three digits."""


@dataclass(frozen=True)
class Section:
    """A benchmark's part of the page: the first of its tables is open."""

    name: str
    title: str
    paper: str = ""
    url: str = ""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Page:
    """All that the page shows."""

    title: str
    board: Board
    matrix: Matrix
    overview: Table
    sections: Sequence[Section]
    changes: Changes | None = None
    drawn: Drawn = field(default_factory=Drawn)
    samples: Sequence[tuple[str, SampleFiles]] = field(default_factory=tuple)


def render(page: Page) -> str:
    """Renders the page.

    The template escapes text from elsewhere. In the data for the script ``<`` is encoded, so
    that no text can end their block.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    def soft(name: str) -> Any:
        """A name that may break into lines between its parts."""
        return Markup(re.sub(r"([_:+>/·])(?=\w)", r"\1<wbr>", str(escape(name))))

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )
    content: Mapping[str, Any] = {
        "chunk": CHUNK,
        "models": {model.label: asdict(model.about) for model in page.board.models},
        "tasks": [task.name for task in page.board.tasks],
        "samples": [{"name": name, **asdict(one)} for name, one in page.samples],
    }
    encoded = json.dumps(content, ensure_ascii=True).replace("<", "\\u003c")
    return environment.get_template("page.html").render(
        page=page,
        about={model.label: model.about for model in page.board.models},
        groups=list(dict.fromkeys(column.group for column in page.overview.columns)),
        content=Markup(encoded),
        style=Markup("".join(map(_asset, STYLES)) + page.drawn.style),
        script=Markup("".join(map(_asset, SCRIPTS))),
        number=number,
        signed=partial(number, sign=True),
        size=size_text,
        money=money,
        soft=soft,
        x=position,
    )


def position(value: float, ends: tuple[float, float]) -> str:
    """The place of a value on an axis, in hundredths of its length; never outside."""
    start, end = ends
    return f"{100 * min(max((value - start) / (end - start), 0.0), 1.0):.1f}"


def size_text(parameters: float) -> str:
    """A number of parameters as people write it, such as 6.74B."""
    for unit, one in _UNITS.items():
        if parameters >= _ROUNDED * one:
            return f"{parameters / one:.3g}{unit}"
    return f"{parameters:.3g}"


def money(amount: float) -> str:
    """An amount with two decimals; what is less than their least says so."""
    return "< 0.01" if 0 < amount < _CENT else f"{amount:,.2f}"


def _asset(name: str) -> str:
    return (files("lm_eval_ext.leaderboard") / "assets" / name).read_text(encoding="utf-8")
