"""``lm-eval-ext show``."""

from pathlib import Path
from typing import Annotated

import typer


def show(
    path: Annotated[
        Path, typer.Argument(help="A results_*.json or a folder given as --output_path.")
    ],
    tasks: Annotated[
        str, typer.Option(help="Only these: names or patterns with *, separated by commas.")
    ] = "",
    every_metric: Annotated[bool, typer.Option("--all", help="Show every metric.")] = False,
) -> None:
    """Show the results that lm_eval wrote as readable tables, each with its signature."""
    from rich.console import Console
    from rich.text import Text

    from lm_eval_ext.errors import OptionError
    from lm_eval_ext.report.show import tables
    from lm_eval_ext.results.files import find

    console = Console()
    only = [name.strip() for name in tasks.split(",") if name.strip()]
    found = find(path)
    shown = 0
    for results in found:
        for table in tables(results, every_metric=every_metric, only=only):
            shown += 1
            # A signature stays one line, to be copied whole, however narrow the terminal.
            console.print(table, soft_wrap=isinstance(table, Text))
    if not shown:
        there = ", ".join(dict.fromkeys(task for results in found for task in results.tasks))
        raise OptionError(f"--tasks {tasks}: not in these results; there is {there}")
