"""``lm-eval-ext plot``."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.grid import WIDTH
from lm_eval_ext.text import counted

if TYPE_CHECKING:
    from lm_eval_ext.plots.figures import FigureList

_NAME_WIDTH = 33
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
        for line in _list_lines(listed(models), has_results=bool(results)):
            typer.echo(line)
        return
    if not results:
        raise OptionError("name results files or folders; --list says which figures there are")
    for path in write(models, figure or [], output):
        typer.echo(path)


def _list_lines(figures: "FigureList", *, has_results: bool) -> Iterator[str]:
    """Yield the figures that can be drawn, then the others.

    What several lack stands once, above them; what a single one lacks, behind its title.

    Args:
        figures: The figures.
        has_results: Whether results were named, from which some can be drawn.
    """
    if has_results:
        yield f"{counted(len(figures.drawable), 'figure')} can be drawn from these results"
    for name, title in figures.drawable.items():
        yield _list_entry(name, title)
    shared = {reason: titles for reason, titles in figures.absent.items() if len(titles) > 1}
    if has_results and len(shared) < len(figures.absent):
        yield ""
        yield "These lack results:"
    for reason, titles in figures.absent.items():
        if reason not in shared:
            for name, title in titles.items():
                yield _list_entry(name, f"{title}: {reason}")
    for reason, titles in shared.items():
        yield ""
        yield fill(f"{counted(len(titles), 'figure')}: {reason}", WIDTH)
        for name, title in titles.items():
            yield _list_entry(name, title)


def _list_entry(name: str, title: str) -> str:
    return fill(
        title,
        WIDTH,
        initial_indent=f"{name:{_NAME_WIDTH}} ",
        subsequent_indent=" " * (_NAME_WIDTH + 1),
        break_on_hyphens=False,
    )
