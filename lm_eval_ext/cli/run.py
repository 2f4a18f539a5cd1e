"""``lm-eval-ext run``."""

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

    from lm_eval_ext.suites.job import Screen
    from lm_eval_ext.suites.run import run as run_models

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
