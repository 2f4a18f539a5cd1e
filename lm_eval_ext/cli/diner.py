"""``lm-eval-ext diner``: building the dataset."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="DiNeR: build its dataset from a corpus of recipes.",
    no_args_is_help=True,
)


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
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the dataset and a report."),
    ],
    glossary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="glossary.json: words and their classes.")
    ] = None,
    derive_glossary: Annotated[
        bool, typer.Option("--derive-glossary", help="Make a glossary from the corpus instead.")
    ] = False,
    divergence: Annotated[
        float,
        typer.Option(help="Target divergence of the TMCD split; the paper has 0.98, 0.8 and 0.6."),
    ] = 0.98,
    compounds: Annotated[
        str,
        typer.Option(help="What the divergence counts: whole (component sets), pairs or subsets."),
    ] = "whole",
    proportion: Annotated[
        float, typer.Option(help="Share of the training recipes to keep, above 0, up to 1.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Random seed for the splits.")] = 0,
    memory: Annotated[
        float, typer.Option(help="GiB of memory, beyond which the database uses the disk.")
    ] = 4.0,
) -> None:
    """Build the dataset and its TMCD and random splits."""
    from lm_eval_ext.benchmarks.diner.build import Options, build_dataset
    from lm_eval_ext.benchmarks.diner.build.report import verdict
    from lm_eval_ext.errors import OptionError

    if (glossary is None) != derive_glossary:
        raise OptionError("name one of --glossary FILE and --derive-glossary")
    options = Options(divergence, proportion, seed, memory, compounds)
    report = build_dataset(corpus, out, glossary, options)
    typer.echo(
        f"{out}: {report['kept']['recipes']:,} recipes of {report['kept']['dishes']:,} dishes. "
        f"{verdict(report['options'], report['course'])} See {out / 'report.md'}"
    )
