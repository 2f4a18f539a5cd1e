"""``lm-eval-ext tasks``."""

import json
from typing import Annotated

import typer


def tasks(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    where: Annotated[
        bool,
        typer.Option("--where", help="Print the folder of the task files, for --include_path."),
    ] = False,
) -> None:
    """List every task and group: what it asks, how much, and whether its data are at hand."""
    from lm_eval_ext._autoload import is_active, tasks_folder
    from lm_eval_ext.data import local_copy
    from lm_eval_ext.report.tasks import task_rows

    if where:
        typer.echo(tasks_folder())
        return
    rows = task_rows()
    if as_json:
        typer.echo(json.dumps([row.as_dict() for row in rows], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("task", "documents", "requests", "data", "description")
    for row in rows:
        counts = [f"{count:,}" if count else "" for count in (row.documents, row.requests)]
        table.add_row(row.task, *counts, row.data, row.description)
    Console().print(table)
    if any(row.data == "to fetch" for row in rows):
        if (copy := local_copy()) is not None:
            typer.echo(f"LM_EVAL_EXT_DATA is {copy}, where some data are missing or differ in size")
        else:
            typer.echo("Data to fetch come at the first run, or with: lm-eval-ext data fetch")
    if not is_active():
        typer.echo(
            "Plain lm_eval does not see them here: run python -m lm_eval_ext in its place, or add "
            f"--include_path {tasks_folder()}"
        )
