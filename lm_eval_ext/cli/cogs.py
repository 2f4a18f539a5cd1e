"""``lm-eval-ext cogs``: files and tokens for the COGS tasks."""

from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.errors import OptionError

app = typer.Typer(
    help="COGS: replace key words by unseen words in data files, and add novel tokens to models.",
    no_args_is_help=True,
)


# Backslashes, since brackets are markup in help texts.
@app.command("substitute")
def substitute(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="IN", help="An unmodified COGS file; default: all of cogs_mini."),
    ] = None,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The file to write; for cogs_mini, a new or empty folder."
        ),
    ],
    lexicon: Annotated[
        str,
        typer.Option(
            help="Words in place of key words: unmodified, random_long, random_short, cvcv_long, "
            r"cvcv_short, tokens (\[w_0] to \[w_20]) or fresh."
        ),
    ] = "unmodified",
    seed: Annotated[
        int | None, typer.Option(help="Seed of the words of the lexicon fresh.")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            help="Shape of the words of the lexicon fresh: random_long, random_short, cvcv_long or "
            "cvcv_short."
        ),
    ] = None,
) -> None:
    """Replace the key words in a COGS file, or in all of cogs_mini's."""
    from lm_eval_ext.benchmarks.cogs import load

    style = load.Style(corpus="cogs" if source else "mini", lexicon=lexicon, seed=seed, shape=shape)
    if source:
        load.write_rows(output, load.read_rows(source), style)
    else:
        load.write_mini(output, style)
    typer.echo(f"{output}: lexicon {lexicon}")


@app.command("add-tokens")
def add_tokens(
    model: Annotated[
        Path, typer.Argument(help="Folder of a T5-, GPT-2- or Llama-style model.", metavar="MODEL")
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The new folder; must be absent or empty."),
    ] = None,
    init: Annotated[
        str, typer.Option(help="Initial embeddings of the new tokens: random, average or unused.")
    ] = "random",
    seed: Annotated[
        int, typer.Option(help="Random seed for random embeddings and the noise of average.")
    ] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Only check a model that has the tokens already.")
    ] = False,
) -> None:
    r"""Add the novel tokens \[w_0] to \[w_20] to a model, and check that decoding restores text."""
    from lm_eval_ext.benchmarks.cogs import tokens

    if check == bool(output):
        raise OptionError("add-tokens: give --output, or --check, which writes nothing")
    if output:
        ids = tokens.add_tokens(model, output, init=init, seed=seed)
        typer.echo(
            f"{output}: [w_0] to [w_20] have the ids {ids[0]} to {ids[-1]}, {init} embeddings"
        )
    else:
        tokens.check_tokens(model)
    typer.echo(f"each novel token is one token, and {len(tokens.NOTATION)} texts came back exactly")
