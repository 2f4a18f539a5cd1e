"""``lm-eval-ext leaderboard``."""

from pathlib import Path
from typing import Annotated

import typer


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
