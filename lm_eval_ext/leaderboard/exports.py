"""The tables of the page as CSV, Markdown and LaTeX."""

from collections.abc import Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import latex as paper
from lm_eval_ext.compare.latex import Paper, render
from lm_eval_ext.compare.report import escaped, guarded, markdown_line
from lm_eval_ext.leaderboard.tables import Cell, Column, Table, number


def write(tables: Sequence[Table], site: Path) -> list[Path]:
    """Writes all tables into ``tables/`` below the page.

    CSV has a value per line, for programs; the others have a model per line, for papers.
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
    """All values, one per line, with all digits; no text is a spreadsheet's formula."""
    import pandas as pd

    lines = [
        {
            "table": guarded(table.title),
            "model": guarded(row.label),
            "published": row.published,
            "column": guarded(_heading(column)),
            "value": cell.value,
            "low": cell.low,
            "high": cell.high,
            "method": cell.method,
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
    """A table under its title; names are escaped."""
    columns, lines = _lines(table)
    rule = f"|---|{'---:|' * len(table.columns)}"
    # The brackets of intervals stay unescaped, to be readable in the file; they make no link.
    body = [f"| {escaped(name)} | {' | '.join(cells)} |" for name, *cells in lines]
    rows = [markdown_line(columns), rule, *body]
    return "\n".join([f"# {escaped(table.title)}", "", *rows, ""])


def latex(table: Table) -> str:
    """A table with booktabs; the best and all that are not significantly different are bold."""
    sections = [
        [(row.label, [_paper_cell(cell) for cell in row.cells]) for row in rows]
        for rows in (
            [row for row in table.rows if not row.published],
            [row for row in table.rows if row.published],
        )
    ]
    notes = "Brackets: 95 % intervals. Last rows: published values." if sections[1] else ""
    columns = [(column.group, column.label) for column in table.columns]
    return render(Paper(table.title, f"{table.title}. {notes}".strip(), columns, sections))


def _paper_cell(cell: Cell) -> paper.Cell:
    value, _, interval = cell_text(cell).partition(" ")
    return paper.Cell(value, interval, bold=cell.rank is not None and cell.rank.best == 1)


def _lines(table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings, and a line per model."""
    lines = [
        [row.label + (" (published)" if row.published else ""), *map(cell_text, row.cells)]
        for row in table.rows
    ]
    return ["model", *map(_heading, table.columns)], lines


def _heading(column: Column) -> str:
    label = f"{column.label} · {column.metric}" if column.metric else column.label
    return f"{column.group}/{label}".strip("/")


def cell_text(cell: Cell) -> str:
    """A value with its interval; "" where there is none."""
    if cell.value is None:
        return ""
    text = number(cell.value)
    if cell.low is not None and cell.high is not None:
        text += f" [{number(cell.low, like=cell.value)}, {number(cell.high, like=cell.value)}]"
    return text
