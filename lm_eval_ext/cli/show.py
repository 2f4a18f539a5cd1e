"""``lm-eval-ext show``."""

from pathlib import Path
from typing import Annotated

import typer


def show(
    path: Annotated[
        Path, typer.Argument(help="A results_*.json or a folder given as --output_path.")
    ],
    every_metric: Annotated[bool, typer.Option("--all", help="Show every metric.")] = False,
) -> None:
    """Show the results that lm_eval wrote as readable tables, each with its signature."""
    from rich.console import Console
    from rich.text import Text

    from lm_eval_ext.report.show import tables
    from lm_eval_ext.results.files import find

    console = Console()
    for results in find(path):
        for table in tables(results, every_metric=every_metric):
            # A signature stays one line, to be copied whole, however narrow the terminal.
            console.print(table, soft_wrap=isinstance(table, Text))
