"""The plots of the page: drawn once, with what makes them interactive in files beside it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import reading
from lm_eval_ext.leaderboard.board import Board
from lm_eval_ext.leaderboard.matrix import Matrix


@dataclass(frozen=True)
class Picture:
    """A plot: its drawing as SVG, and the specification that it was drawn from."""

    name: str
    title: str
    caption: str
    svg: str
    spec: Mapping[str, object]


@dataclass(frozen=True)
class Drawn:
    """All plots.

    Attributes:
        benchmarks: By benchmark.
        sizes: Scores against the number of parameters, if two models state it.
        style: What the drawings take their colours from.
        missing: Why there are none.
    """

    benchmarks: Mapping[str, tuple[Picture, ...]] = field(default_factory=dict)
    sizes: Picture | None = None
    style: str = ""
    missing: str = ""


def draw_all(models: Sequence[reading.Model], board: Board, best: Matrix) -> Drawn:
    return Drawn()


def write(drawn: Drawn, site: Path) -> None:
    pass
