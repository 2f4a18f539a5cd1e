"""The figure of an experiment with a trend: means against its number, beside the paper's."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import OptionError
from lm_eval_ext.experiments.plan import Experiment
from lm_eval_ext.experiments.table import Row, Table
from lm_eval_ext.plots.content import Content
from lm_eval_ext.plots.declared import OWN_TITLE, Declared
from lm_eval_ext.plots.drawing import FORMATS, draw
from lm_eval_ext.plots.figures import Figure
from lm_eval_ext.plots.points import Point
from lm_eval_ext.results.published import PAPER

CAPTION = (
    "Means over the seeds that passed their gates; bars: one standard deviation. Hollow marks: the "
    "paper's models."
)


def figure_of(table: Table, name: str) -> Figure | None:
    """A curve for each line, with a panel for each score; None without a trend, or its numbers."""
    trend = table.about.trend
    points = [*_own(table.rows)]
    if trend is None or not points:
        return None
    points += [
        Point(
            _place(heading), f"{one.name} {PAPER}", value, published=True, x=one.x,
            group=f"{one.group} {PAPER}",
        )
        for one in table.published
        if one.x is not None
        for heading, value in one.values.items()
    ]  # fmt: skip
    shown = dict.fromkeys(point.place[0] for point in points)
    declared = Declared(
        name=name, title=table.about.title, kind="curve", x=trend.x, x_title=trend.title,
        axis="score", panels={heading: "" for heading in table.about.headings if heading in shown},
    )  # fmt: skip
    labels = tuple(dict.fromkeys(point.model for point in points))
    return Figure("", Content(declared, tuple(points), labels, {}))


def check_figure(about: Experiment, file: Path) -> str:
    """The format of a figure's file.

    Raises:
        OptionError: There is none with this ending, or the experiment has no figure.
    """
    if about.trend is None:
        raise OptionError("--plot: a figure needs a trend, and the experiment's file has none")
    format_ = file.suffix.removeprefix(".").casefold()
    if format_ not in FORMATS:
        raise OptionError(f"--plot {file}: use .{', .'.join(FORMATS)}")
    return format_


def write_figure(table: Table, file: Path) -> None:
    """Draws the figure into a file.

    Raises:
        OptionError: As :func:`check_figure`; or there is no value yet, or the file cannot be
            written.
    """
    format_, figure = check_figure(table.about, file), figure_of(table, "experiment-figure")
    if figure is None:
        raise OptionError("--plot: there is nothing to draw yet")
    try:
        with atomic_path(file) as part:
            part.write_bytes(draw(figure, format_))
    except OSError as error:
        raise OptionError(f"cannot write {file}: {error.strerror}") from None


def _own(rows: Sequence[Row]) -> Iterator[Point]:
    for row in rows:
        if row.x is None:
            continue
        line = row.line or "these models"
        for heading, value in row.values.items():
            sd = value.sd or 0.0
            yield Point(
                _place(heading), line, value.mean, value.mean - sd, value.mean + sd,
                x=row.x, group=line,
            )  # fmt: skip


def _place(heading: str) -> tuple[str, str, str]:
    return heading, OWN_TITLE, OWN_TITLE
