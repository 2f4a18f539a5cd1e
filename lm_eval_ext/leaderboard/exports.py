"""The tables as files for papers and spreadsheets."""

import re
from collections.abc import Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare.report import escaped, guarded, markdown_line
from lm_eval_ext.leaderboard.tables import Cell, Column, Table, number


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
    """All figures, one per line, with all their digits; no text is a spreadsheet's formula."""
    import pandas as pd

    lines = [
        {
            "table": guarded(table.title),
            "model": guarded(row.label),
            "published": row.published,
            "column": guarded(heading(column)),
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
    """A table under its title; names are text, whatever signs they hold."""
    columns, lines = _lines(table)
    rule = f"|---|{'---:|' * len(table.columns)}"
    # The brackets of an interval are no link; escaped they would be hard to read as they stand.
    body = [f"| {escaped(name)} | {' | '.join(figures)} |" for name, *figures in lines]
    rows = [markdown_line(columns), rule, *body]
    return "\n".join([f"# {escaped(table.title)}", "", *rows, ""])


def latex(table: Table) -> str:
    """A table with booktabs' rules and its title as a comment; special characters are escaped."""
    import pandas as pd

    columns, lines = _lines(table)
    text = pd.DataFrame(lines, columns=columns).to_latex(index=False, escape=True)
    # After a line's end a bracket or an asterisk would be an argument of the end.
    text = re.sub(r"^(?=[\[*])", "{}", text, flags=re.MULTILINE)
    return f"% {table.title}\n{text}"


def _lines(table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings, and a line per model."""
    lines = [
        [row.label + (" (published)" if row.published else ""), *map(figure, row.cells)]
        for row in table.rows
    ]
    return ["model", *map(heading, table.columns)], lines


def heading(column: Column) -> str:
    """A column's name on one line."""
    return f"{column.group}/{column.label}".strip("/")


def figure(cell: Cell) -> str:
    """A figure with its interval, as a person reads it; "" where there is none."""
    if cell.value is None:
        return ""
    text = number(cell.value)
    if cell.low is not None and cell.high is not None:
        text += f" [{number(cell.low, like=cell.value)}, {number(cell.high, like=cell.value)}]"
    return text
