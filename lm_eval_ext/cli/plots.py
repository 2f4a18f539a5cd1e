"""``lm-eval-ext plot``."""

from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from lm_eval_ext.errors import OptionError

_NAME_WIDTH = 25
"""Columns for the name of a figure in the list."""


def plot(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Results files, or folders given as --output_path."),
    ] = None,
    *,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A figure, such as lieder-1; repeatable. Default: all."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="For one figure a file: .svg, .pdf, .png, .html (interactive) or .json "
            "(Vega-Lite). Otherwise a folder, for SVG.",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--list", help="List the figures, and what they need.")
    ] = False,
) -> None:
    """Draw the papers' figures with your models in them."""
    from lm_eval_ext.plots.figures import listed, write
    from lm_eval_ext.results.models import read_models

    models = read_models(results) if results else []
    if show:
        for name, description in listed(models):
            typer.echo(_list_entry(name, description))
        return
    if not results:
        raise OptionError("name results files or folders; --list says which figures there are")
    for path in write(models, figure or [], output):
        typer.echo(path)


def _list_entry(name: str, description: str) -> str:
    from lm_eval_ext.cli.task_list import WIDTH

    return fill(
        description,
        WIDTH,
        initial_indent=f"{name:{_NAME_WIDTH}} ",
        subsequent_indent=" " * (_NAME_WIDTH + 1),
    )
