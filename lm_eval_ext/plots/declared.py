"""What figures there are: ``plots.yaml`` beside each benchmark's card, read and checked.

So a benchmark's figures need no code, and this package knows no benchmark.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from lm_eval_ext.cards import in_benchmarks

_ARROW = 2
"""An arrow leads from one series to another."""

OWN_TITLE = ""
"""The heading of the only panel, row or series."""


class Declared(BaseModel):
    """A figure: which metric of which task stands where.

    A figure has a panel for each heading of ``panels`` (side by side) and of ``rows`` (one below
    the other), and in each panel a mark for each model and each of ``series``.

    Attributes:
        name: Unique, such as ``lieder-1``; numbers are those of the paper.
        title: What it shows.
        paper: What it is in the paper, for its caption; "" if the paper has none like it.
        kind: ``dots``, a line of dots for each model; ``arrows``, from the first series to the
            second; ``curve``, with ``x`` as axis.
        x: Of a curve: a key of a model's file, or ``series``: the series are steps.
        x_title: Of that axis.
        x_part: A part of signatures that has x where the model's file has not.
        group_part: A part of signatures in which a curve's points may differ; those that do are not
            joined.
        axis: Title of the axis of values.
        ends: Of that axis; widened for values beyond it.
        panels: Heading to code.
        rows: The same.
        series: The same.
        value: ``task metric``, in which {panel}, {row} and {series} are replaced by the codes.
        lines: What a panel has a line for: each ``model``, or each of ``rows``, on which models
            are told apart by colour.
        order: Of models: ``value``, the best mean first, or ``size``.
        line: The label of a published result that is drawn as a line, such as humans.
        zero: A line at 0, for changes.
        chance: Draw the benchmark's chance.
        percent: Values are percentages (for tooltips and texts: one decimal instead of three).
        lower: Lower is better.
        join: Join models that cannot be told apart.
        published: The labels of the published results to show; all if empty.
        sizes: Of published models, where their name does not tell.
        published_x: Of published models on the x axis of a curve.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z]+-[a-z0-9-]+$")]
    title: str
    paper: str = ""
    kind: Literal["dots", "arrows", "curve"] = "dots"
    x: str = ""
    x_title: str = ""
    x_part: str = ""
    group_part: str = ""
    axis: str
    ends: tuple[float, float] = (0.0, 1.0)
    panels: dict[str, str] = {OWN_TITLE: ""}
    rows: dict[str, str] = {OWN_TITLE: ""}
    series: dict[str, str] = {OWN_TITLE: ""}
    value: Annotated[str, Field(pattern=r"^\S+ \S+$|^\{panel\}$")] = "{panel}"
    lines: Literal["model", "row"] = "model"
    order: Literal["value", "size"] = "value"
    line: str = ""
    zero: bool = False
    chance: bool = False
    percent: bool = False
    lower: bool = False
    join: bool = True
    published: tuple[str, ...] = ()
    sizes: dict[str, str] = {}
    published_x: dict[str, float] = {}

    @model_validator(mode="after")
    def _consistent(self) -> "Declared":
        if self.kind == "arrows" and len(self.series) != _ARROW:
            raise ValueError("arrows have two series")
        if (self.kind == "curve") != bool(self.x):
            raise ValueError("x is for curves, which need it")
        if self.lines == "row" and (self.kind != "dots" or len(self.series) > 1):
            raise ValueError("lines: row is for dots with one series")
        return self

    def cells(self) -> Iterator[tuple[tuple[str, str, str], str, str]]:
        """Every place (headings of panel, row and series) with its task and metric."""
        for panel, row, series in product(self.panels, self.rows, self.series):
            codes = {
                "panel": self.panels[panel], "row": self.rows[row], "series": self.series[series]
            }  # fmt: skip
            # Twice: a panel's code may itself be a value with {row} and {series}.
            task, metric = self.value.format(**codes).format(**codes).split()
            yield (panel, row, series), task, metric

    def tasks(self) -> list[str]:
        """The tasks whose results it needs, any of them."""
        return list(dict.fromkeys(task for _, task, _ in self.cells()))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    figures: tuple[Declared, ...]


@cache
def declared() -> Mapping[str, tuple[Declared, ...]]:
    """The figures of every benchmark that has any, in the order of their files.

    Raises:
        DataError: If a file is malformed; file and key are named.
    """
    found = in_benchmarks("plots.yaml", TypeAdapter(_File))
    return {benchmark: file.figures for benchmark, file in found.items()}
