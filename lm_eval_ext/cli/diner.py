"""``lm-eval-ext diner``: building the dataset."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """DiNeR: build its dataset from a corpus of recipes."""


@app.command("build")
def build(
    *,
    corpus: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Recipes, one JSON object per line; may be gzipped."),
    ],
    out: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="New folder for dataset and report."),
    ],
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Words and their classes; default: the published file."),
    ] = None,
    divergence: Annotated[
        float,
        typer.Option(help="Target divergence of the TMCD split; the paper has 0.98, 0.8 and 0.6."),
    ] = 0.98,
    compounds: Annotated[
        str,
        typer.Option(
            help="Compounds that the divergence counts: whole (component sets) or subsets."
        ),
    ] = "whole",
    seed: Annotated[int, typer.Option(help="Random seed for the splits.")] = 0,
) -> None:
    """Build the dataset and its TMCD and random splits."""
    from pandas import DataFrame

    from lm_eval_ext.benchmarks.diner.build import REPORT, Options
    from lm_eval_ext.benchmarks.diner.build import build as build_dataset
    from lm_eval_ext.reading import checked

    values = {"divergence": divergence, "compounds": compounds, "seed": seed}
    options = checked(Options, values, "diner build")
    report = build_dataset(corpus, out, glossary, options)
    typer.echo(DataFrame(report["figures"]).map("{:,.6g}".format).to_string())
    divergences = report["course"]
    typer.echo(
        f"Divergence {divergences[-1]:.4f} after {len(divergences) - 1} exchanges; asked for "
        f"{divergence}, and names divided at random have {divergences[0]:.4f}. See {out / REPORT}"
    )
