"""What figures there are: ``plots.yaml`` beside each benchmark's card declares them."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from lm_eval_ext.reading import Strict, read_yaml
from lm_eval_ext.registry import BENCHMARKS

Dimension = Literal["model", "task", "line", "metric", "part"]
"""What panels, lines and colours may stand for; of a task's heading ``A / B`` B is the line."""


class Declared(Strict):
    """A figure: which questions about which tasks stand where.

    Attributes:
        name: A unique name, such as ``lieder-1``; numbers are those of the paper.
        title: What the figure shows.
        reading: How to read it, in one sentence.
        remark: What must be known of the values, as a sentence; also below the title of a file.
        paper: What it is in the paper; "" if the paper has none like it.
        tasks: Tasks by heading.
        mini: The same of embedded tasks, drawn of results that have none of ``tasks``.
        metrics: Metrics by heading; "" is the headline.
        where: The rows that count, as in a question.
        by: The facet that has the parts; "" for none.
        values: The values of this facet, in their order; all if empty.
        published: Labels of published values; all if empty.
        panels: What has a panel each.
        lines: What has a line each.
        colours: What has a colour and a shape each.
        joined: Whether the marks of a line are joined, from one colour to the next.
        axis: The title of the axis of values; "" for the measure's.
    """

    name: Annotated[str, Field(pattern=r"^[a-z_]+-[a-z0-9-]+$")]
    title: str
    reading: str = ""
    remark: str = ""
    paper: str = ""
    tasks: dict[str, str]
    mini: dict[str, str] = {}
    metrics: dict[str, str] = {"": ""}
    where: dict[str, tuple[str, ...]] = {}
    by: str = ""
    values: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    panels: Dimension = "part"
    lines: Dimension = "model"
    colours: Dimension | Literal[""] = ""
    joined: bool = False
    axis: str = ""

    @property
    def benchmark(self) -> str:
        """The benchmark's name, with which the figure's starts."""
        return self.name.partition("-")[0]


_FIGURES = TypeAdapter(tuple[Declared, ...])


@cache
def declared() -> Mapping[str, Declared]:
    """Return all figures by name; a benchmark without a file of figures has none.

    Raises:
        DataError: A declaration is malformed; file and key are named.
    """
    figures: dict[str, Declared] = {}
    for benchmark in BENCHMARKS.values():
        if not benchmark.figures_file.exists():
            continue
        for figure in read_yaml(benchmark.figures_file, _FIGURES):
            figures[figure.name] = figure
    return figures
