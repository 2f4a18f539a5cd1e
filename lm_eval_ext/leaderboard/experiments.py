"""Experiments on the page: the table of conditions and its figure, beside the paper's values."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lm_eval_ext.experiments import report
from lm_eval_ext.experiments import table as experiment
from lm_eval_ext.experiments.picture import CAPTION, figure_of
from lm_eval_ext.leaderboard.page import Section
from lm_eval_ext.leaderboard.pictures import Drawn
from lm_eval_ext.leaderboard.tables import Cell, Column, Row, Table
from lm_eval_ext.plots.figures import Figure


def tables(paths: Sequence[Path]) -> dict[str, experiment.Table]:
    """The experiments among paths, of which some may be folders of ``lm-eval-ext experiment``.

    Returns:
        By the name of their part of the page.

    Raises:
        DataError: One is broken.
    """
    files = [path / report.RECORD for path in paths if (path / report.RECORD).is_file()]
    return {f"experiment-{number}": report.read(file) for number, file in enumerate(files, start=1)}


def figures(found: Mapping[str, experiment.Table]) -> dict[str, tuple[Figure, str]]:
    """The figures that they have, with captions."""
    drawn = {name: figure_of(table, name) for name, table in found.items()}
    return {name: (figure, CAPTION) for name, figure in drawn.items() if figure is not None}


def sections(found: Mapping[str, experiment.Table], drawn: Drawn) -> Iterator[Section]:
    """Their parts of the page."""
    for name, table in found.items():
        pictures = drawn.benchmarks.get(name, ())
        yield Section(name, table.about.title, tables=(_table(table),), pictures=pictures)


def _table(found: experiment.Table) -> Table:
    names = found.about.headings
    rows = [
        Row(
            f"{row.name} ({row.learned} of {row.seeds} seeds learned)",
            tuple(_cell(row.values.get(name)) for name in names),
            model=False,
        )
        for row in found.rows
    ]
    rows += [
        Row(one.name, tuple(Cell(one.values.get(name)) for name in names), published=True)
        for one in found.published
    ]
    gap = (-1.0, 1.0)
    columns = [Column(one, ends=gap if one in found.about.gaps else (0.0, 1.0)) for one in names]
    return Table("Means over seeds, with 95 % intervals", tuple(columns), tuple(rows))


def _cell(value: experiment.Value | None) -> Cell:
    if value is None:
        return Cell()
    seeds = len(value.seeds)
    spread = "one seed" if value.sd is None else f"± {value.sd:.3f} over {seeds} seeds"
    return Cell(value.mean, value.low, value.high, note=spread)
