"""The page itself: one HTML file that needs no network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

from lm_eval_ext.leaderboard.board import Board
from lm_eval_ext.leaderboard.digits import number
from lm_eval_ext.leaderboard.samples import CHUNK, SampleFiles
from lm_eval_ext.leaderboard.tables import Table


@dataclass(frozen=True)
class Section:
    """A benchmark's part of the page.

    Attributes:
        title: Its heading.
        paper: Authors and venue.
        url: Of the paper.
        tables: What it shows.
        open: How many tables are unfolded at first.
    """

    title: str
    paper: str = ""
    url: str = ""
    tables: tuple[Table, ...] = ()
    open: int = 1


def render(
    board: Board,
    overview: Table,
    sections: Sequence[Section],
    samples: Sequence[tuple[str, SampleFiles]],
    title: str,
) -> str:
    """Writes the page.

    Text from elsewhere is escaped by the template; the data for the script lie in a block that
    no text can end.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(_asset("page.html"))
    content: Mapping[str, Any] = {
        "chunk": CHUNK,
        "samples": [
            {
                "name": name,
                "folder": one.folder,
                "metrics": one.metrics,
                "kinds": one.kinds,
                "models": one.models,
            }
            for name, one in samples
        ],
    }
    encoded = json.dumps(content, ensure_ascii=True).replace("<", "\\u003c")
    return template.render(
        title=title,
        board=board,
        overview=overview,
        sections=sections,
        samples=samples,
        groups=list(dict.fromkeys(column.group for column in overview.columns)),
        content=Markup(encoded),
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        number=number,
        signed=partial(number, sign=True),
        x=position,
    )


def position(value: float, ends: tuple[float, float]) -> str:
    """Where on an axis a figure lies, in hundredths of its length; never outside."""
    start, end = ends
    return f"{100 * min(max((value - start) / (end - start), 0.0), 1.0):.1f}"


def _asset(name: str) -> str:
    return (files("lm_eval_ext.leaderboard") / "assets" / name).read_text(encoding="utf-8")
