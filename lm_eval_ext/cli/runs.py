"""``lm-eval-ext run``.

``lm-eval-ext compare``.

``lm-eval-ext leaderboard``.
"""

from pathlib import Path
from typing import Annotated

import typer


def run(
    models: Annotated[
        list[Path],
        typer.Option("--models", help="A YAML file per model, or a folder; may be repeated."),
    ],
    tasks: Annotated[
        str, typer.Option(help="Tasks, groups or patterns, as lm_eval takes them, with commas.")
    ],
    output: Annotated[Path, typer.Option(help="Folder of the results.")],
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="More models' files.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option(help="Documents per task, or a share of them below 1.")
    ] = None,
) -> None:
    """Evaluate models on tasks: what is missing, each model in a process of its own."""
    from rich.console import Console
    from rich.text import Text

    from lm_eval_ext.runs.run import Screen
    from lm_eval_ext.runs.run import run as run_models

    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    status = console.status("")
    try:
        with status:
            run_models(
                [*models, *(more or [])],
                tasks,
                output,
                limit,
                Screen(say=console.print, tell=lambda line: status.update(Text(line))),
            )
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on where this one ended", err=True)
        raise typer.Exit(130) from None


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


def leaderboard(
    results: Annotated[
        list[Path], typer.Argument(help="Results files, or folders given as --output_path.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page.")],
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Leaderboard",
    samples: Annotated[bool, typer.Option(help="Put the samples beside the page.")] = True,
) -> None:
    """Make one page of many models: tables, published figures, samples."""
    from lm_eval_ext.leaderboard.site import build

    print(build(results, output, title=title, with_samples=samples))
