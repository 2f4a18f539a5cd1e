"""The figure of an experiment with a trend: means against its number, beside the paper's."""

from pathlib import Path

from lm_eval_ext.errors import OptionError
from lm_eval_ext.experiments.plan import Experiment
from lm_eval_ext.experiments.table import Table
from lm_eval_ext.plots.drawing import FORMATS, save
from lm_eval_ext.plots.figures import PUBLISHED, Declared, Figure, frame_of

CAPTION = (
    "Means over the seeds that passed their gates; bars: one standard deviation. Hollow marks: the "
    "paper's models."
)


def figure_of(table: Table, name: str) -> Figure | None:
    """A curve for each line, with a panel for each score; None without a trend, or its numbers."""
    trend = table.about.trend
    rows = [
        {"line": row.line or "these models", "model": row.name, "metric": heading,
         "value": value.mean, "low": value.mean - (value.sd or 0.0),
         "high": value.mean + (value.sd or 0.0), "published": False, "x": row.x}
        for row in table.rows if row.x is not None
        for heading, value in row.values.items()
    ]  # fmt: skip
    if trend is None or not rows:
        return None
    there = {str(row["metric"]) for row in rows}
    rows += [
        {"line": one.group + PUBLISHED, "model": one.name + PUBLISHED, "metric": heading,
         "value": value, "published": True, "x": one.x}
        for one in table.published if one.x is not None
        for heading, value in one.values.items() if heading in there
    ]  # fmt: skip
    declared = Declared(name=name, title=table.about.title, tasks={}, panels="metric", x=trend.x)
    return Figure(declared, frame_of([{"task": "", "part": "", **row} for row in rows]), "share",
                  "score", CAPTION)  # fmt: skip


def check_figure(about: Experiment, file: Path) -> None:
    """Before anything is trained.

    Raises:
        OptionError: There is no format with this ending, or the experiment has no figure.
    """
    if about.trend is None:
        raise OptionError("--plot: a figure needs a trend, and the experiment's file has none")
    if file.suffix.removeprefix(".").casefold() not in FORMATS:
        raise OptionError(f"--plot {file}: use .{', .'.join(FORMATS)}")


def write_figure(table: Table, file: Path) -> None:
    """Draws the figure into a file.

    Raises:
        OptionError: As :func:`check_figure`; or there is no value yet, or the file cannot be
            written.
    """
    check_figure(table.about, file)
    figure = figure_of(table, "experiment-figure")
    if figure is None:
        raise OptionError("--plot: there is nothing to draw yet")
    save(figure, file)
