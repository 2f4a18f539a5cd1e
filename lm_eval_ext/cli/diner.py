"""``lm-eval-ext diner``."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="DiNeR: its dataset from a corpus of recipes.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """DiNeR: its dataset from a corpus of recipes."""


@app.command("build")
def build(
    *,
    corpus: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Recipes, one JSON object a line; may be gzipped."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where dataset and report go.")],
    glossary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Words and classes: glossary.json.")
    ] = None,
    derive_glossary: Annotated[
        bool, typer.Option("--derive-glossary", help="Make the glossary from the corpus.")
    ] = False,
    divergence: Annotated[
        float, typer.Option(help="Where the TMCD split stops; the paper's: 0.98, 0.8, 0.6.")
    ] = 0.98,
    proportion: Annotated[float, typer.Option(help="Of the training recipes: 0.2 to 1.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the splits.")] = 0,
    memory: Annotated[float, typer.Option(help="GiB before the database writes to disk.")] = 4.0,
) -> None:
    """Build the dataset and its TMCD and random splits."""
    from lm_eval_ext.benchmarks.diner.build import Options, build_dataset
    from lm_eval_ext.errors import OptionError

    if (glossary is None) != derive_glossary:
        raise OptionError("name one of --glossary FILE and --derive-glossary")
    options = Options(divergence, proportion, seed, memory)
    report = build_dataset(corpus, out, glossary, options)
    typer.echo(
        f"{out}: {report['kept']['recipes']:,} recipes of {report['kept']['dishes']:,} dishes, "
        f"divergence {report['splits']['tmcd']['divergence']:.4f}; see {out / 'report.md'}"
    )
