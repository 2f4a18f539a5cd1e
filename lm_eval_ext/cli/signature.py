"""``lm-eval-ext signature``."""

from pathlib import Path
from typing import Annotated

import typer


def signature(
    path: Annotated[
        Path, typer.Argument(help="A results_*.json or a folder given as --output_path.")
    ],
) -> None:
    """Print the signature of every task's scores: all that they depend on, in one line."""
    from lm_eval_ext.results.files import find

    for results in find(path):
        for task in results.tasks:
            typer.echo(results.signature(task))
