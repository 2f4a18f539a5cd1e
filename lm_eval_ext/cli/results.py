"""``lm-eval-ext show``, ``signature`` and ``tasks``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def show(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A results_*.json, or a folder given as --output_path."
        ),
    ],
    tasks: Annotated[
        str,
        typer.Option(help="Only these tasks: names or patterns with *, separated by commas."),
    ] = "",
    every_metric: Annotated[bool, typer.Option("--all", help="Show all metrics.")] = False,
) -> None:
    """Show the results that lm_eval wrote as tables, each with its signature."""
    from rich.console import Console
    from rich.text import Text

    from lm_eval_ext.errors import OptionError
    from lm_eval_ext.results.files import find
    from lm_eval_ext.results.show import tables

    console = Console()
    only = [name.strip() for name in tasks.split(",") if name.strip()]
    found = find(path)
    shown = 0
    for results in found:
        for table in tables(results, every_metric=every_metric, only=only, width=console.width):
            shown += 1
            console.print(table, soft_wrap=isinstance(table, Text) and bool(table.no_wrap))
    if not shown:
        there = ", ".join(dict.fromkeys(task for results in found for task in results.tasks))
        raise OptionError(f"--tasks {tasks}: not in these results; there is {there}")


def signature(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A results_*.json, or a folder given as --output_path."
        ),
    ],
) -> None:
    """Print a line for each task that names everything its scores depend on."""
    from lm_eval_ext.results.files import find

    for results in find(path):
        for task in results.tasks:
            typer.echo(results.signature(task))


def tasks(
    only: Annotated[
        str,
        typer.Argument(
            metavar="[FILTER]",
            help="A benchmark, a group, a task, or a pattern such as '*_mini'; '*' for all.",
        ),
    ] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    where: Annotated[
        bool,
        typer.Option("--where", help="Print the folder of the task files, for --include_path."),
    ] = False,
) -> None:
    """List groups, or the tasks of one: what they ask, their size, whether data are there."""
    from lm_eval_ext._autoload import is_active, tasks_folder
    from lm_eval_ext.cli.task_list import lines, matching
    from lm_eval_ext.data import local_copy

    if where:
        typer.echo(tasks_folder())
        return
    rows = matching(only)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for line in lines(rows, overview=not only):
        typer.echo(line)
    if any(row.data == "to fetch" for row in rows):
        if (copy := local_copy()) is not None:
            typer.echo(f"Some data are missing, or differ in size, in LM_EVAL_EXT_DATA:\n{copy}")
        else:
            typer.echo(
                "Data to fetch are downloaded by the first run, or by: lm-eval-ext data fetch"
            )
    if not is_active():
        typer.echo(
            "Plain lm_eval does not find them here: run python -m lm_eval_ext instead, or add "
            f"--include_path {tasks_folder()}"
        )
