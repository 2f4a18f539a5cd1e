"""``lm-eval-ext cogs add-tokens`` and ``check-tokens``."""

from pathlib import Path
from typing import Annotated

import typer


def add_tokens(
    model: Annotated[Path, typer.Option(help="Folder of a T5-, GPT-2- or Llama-style model.")],
    out: Annotated[Path, typer.Option(help="The new folder; must be absent or empty.")],
    init: Annotated[
        str, typer.Option(help="What the embeddings start from: random, average or unused.")
    ],
    seed: Annotated[int, typer.Option(help="Seeds random embeddings and the average's noise.")] = 0,
) -> None:
    """Add the novel tokens [w_0] to [w_20] to a model, and check that text comes back exactly."""
    from lm_eval_ext.benchmarks.cogs import tokens

    added = tokens.add_tokens(model, out, init=init, seed=seed)
    before, after = added.rows
    typer.echo(
        f"{out}: [w_0] to [w_20] have the ids {added.ids[0]} to {added.ids[-1]}; {init} embeddings "
        f"(seed {seed}, {'tied' if added.tied else 'not tied'}), {before:,} rows before and "
        f"{after:,} now; {added.texts} texts came back exactly"
    )
    for note in added.notes:
        typer.echo(f"  {note}")


def check_tokens(
    model: Annotated[Path, typer.Option(help="Folder of a model or a tokenizer.")],
    file: Annotated[
        Path | None, typer.Option(help="A COGS file whose sentences and forms are tried too.")
    ] = None,
) -> None:
    """Check that a tokenizer reads each novel token as one token and gives text back exactly."""
    from lm_eval_ext.benchmarks.cogs import tokens

    count = tokens.check_tokens(model, file)
    typer.echo(f"{model}: each novel token is one token, and {count:,} texts came back exactly")
