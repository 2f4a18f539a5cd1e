"""``lm-eval-ext compare``."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Results files or folders, of two models or more."),
    ],
    *,
    tasks: Annotated[
        str, typer.Option(help="Tasks, groups or patterns, separated by commas; all if empty.")
    ] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(help="A metric or a pattern such as 'direct/*'; may be repeated."),
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(metavar="TASK,TASK", help="Compare two tasks, within each model."),
    ] = None,
    across_settings: Annotated[
        bool,
        typer.Option("--across-settings", help="Allow different chat templates and settings."),
    ] = False,
    format_: Annotated[str, typer.Option("--format", help="text, markdown, csv or json.")] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file, not to stdout.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of tests; intervals have 1 - alpha.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of resampling.")] = 0,
) -> None:
    """Say which model is better, on the documents that all have, and whether it is real."""
    from lm_eval_ext.compare.command import run
    from lm_eval_ext.compare.report import Settings
    from lm_eval_ext.errors import DataError

    settings = Settings(tuple(metric or ()), alpha, seed, across_settings)
    text, refused = run(paths, settings, tasks=tasks, between=between, format_=format_, out=out)
    typer.echo(text, nl=False)
    if refused:
        raise DataError(refused)
