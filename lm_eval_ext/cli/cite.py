"""``lm-eval-ext cite``."""

from typing import Annotated

import typer


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TASK",
            help="Tasks, groups or benchmarks, such as lieder; or a task file of your own.",
        ),
    ] = None,
) -> None:
    """Print BibTeX of benchmarks, their data, lm-eval and this project."""
    from lm_eval_ext.citations import bibtex

    typer.echo(bibtex(names or []), nl=False)
