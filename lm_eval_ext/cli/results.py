"""``lm-eval-ext show`` and ``tasks``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.cli.questions import By, Value, Where


def show(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Files results_*.json, or folders given as --output_path."
        ),
    ],
    *,
    tasks: Annotated[
        str,
        typer.Option(help="The tables of these tasks: names or patterns, separated by commas."),
    ] = "",
    metric: Annotated[str, typer.Option(help="A metric or a measure; default: the headline.")] = "",
    by: By = "",
    where: Where = None,
    value: Value = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Every task's table, with all published values.")
    ] = False,
    signatures: Annotated[
        bool, typer.Option("--signatures", help="A line for each score that says what it is of.")
    ] = False,
) -> None:
    """Show results: models by benchmarks, a task's metrics, or a question to its samples."""
    from rich.console import Console
    from rich.text import Text

    from lm_eval_ext.results.models import read_joined
    from lm_eval_ext.results.show import Asked, tables

    console = Console()
    only = [name.strip() for name in tasks.split(",") if name.strip()]
    asked = Asked(only, metric, value, where or (), by, everything, signatures)
    for table in tables(read_joined(paths), asked, console.width):
        console.print(table, soft_wrap=isinstance(table, Text) and bool(table.no_wrap))


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
    folder: Annotated[
        bool,
        typer.Option("--folder", help="Print the folder of the task files, for --include_path."),
    ] = False,
) -> None:
    """List groups, or the tasks of one: what they ask, their size, whether data are there."""
    from lm_eval_ext._autoload import is_active, tasks_folder
    from lm_eval_ext.cli.task_list import lines, matching
    from lm_eval_ext.data import local_copy

    if folder:
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
