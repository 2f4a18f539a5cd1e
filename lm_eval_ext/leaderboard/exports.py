"""The tables as files for papers and spreadsheets."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.leaderboard.tables import Cell, Column, Table

if TYPE_CHECKING:
    import pandas as pd

_PERCENT = 1.5
"""Figures above it have one decimal, others three."""


def write(tables: Sequence[Table], site: Path) -> list[Path]:
    """Writes all tables as CSV, Markdown and LaTeX into ``tables/`` below the page.

    CSV is for programs: a figure per line. The others are for papers: a model per line.
    """
    texts = {
        "csv": csv(tables),
        "md": "\n".join(markdown(table) for table in tables),
        "tex": "\n".join(latex(table) for table in tables),
    }
    folder = site / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for ending, text in texts.items():
        files.append(folder / f"leaderboard.{ending}")
        with atomic_text(files[-1]) as out:
            out.write(text)
    return files


def csv(tables: Sequence[Table]) -> str:
    """All figures, one per line, with all their digits."""
    import pandas as pd

    lines = [
        {
            "table": table.title,
            "model": row.label,
            "published": row.published,
            "column": heading(column),
            "value": cell.value,
            "low": cell.low,
            "high": cell.high,
            "rank": cell.rank.best if cell.rank else None,
            "note": cell.note,
        }
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.value is not None
    ]
    return str(pd.DataFrame(lines).to_csv(index=False, lineterminator="\n"))


def markdown(table: Table) -> str:
    """A table under its title."""
    from pytablewriter import MarkdownTableWriter

    frame = _frame(table)
    writer = MarkdownTableWriter(
        table_name=table.title, headers=list(frame.columns), value_matrix=frame.values.tolist()
    )
    return str(writer.dumps())


def latex(table: Table) -> str:
    """A table with booktabs' rules and its title as a comment; special characters are escaped."""
    return f"% {table.title}\n{_frame(table).to_latex(index=False, escape=True)}"


def _frame(table: Table) -> "pd.DataFrame":
    import pandas as pd

    lines = [
        [row.label + (" (published)" if row.published else ""), *map(figure, row.cells)]
        for row in table.rows
    ]
    return pd.DataFrame(lines, columns=["model", *map(heading, table.columns)])


def heading(column: Column) -> str:
    """A column's name on one line."""
    return f"{column.group}/{column.label}".strip("/")


def figure(cell: Cell) -> str:
    """A figure with its interval, as a person reads it; "" where there is none."""
    if cell.value is None:
        return ""
    digits = 1 if abs(cell.value) > _PERCENT else 3
    text = f"{cell.value:.{digits}f}"
    if cell.low is not None and cell.high is not None:
        text += f" [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"
    return text
