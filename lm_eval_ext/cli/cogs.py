"""``lm-eval-ext cogs``."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="COGS: putting unseen words in the place of the key words.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Keeps ``substitute`` a subcommand while it is the only one."""


@app.command("substitute")
def substitute(
    source: Annotated[Path, typer.Argument(metavar="IN", help="An unmodified COGS file.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where the variant goes.")],
    lexicon: Annotated[str, typer.Option(help="Name of the lexicon.")],
    seed: Annotated[
        int | None, typer.Option(help="Another seed than the published one, for string lexicons.")
    ] = None,
    leading_space: Annotated[
        bool,
        typer.Option("--leading-space", help="A space before texts that start with a new word."),
    ] = False,
) -> None:
    """Replace the 21 context-controlled items of a COGS file."""
    from lm_eval_ext.benchmarks.cogs.lexicons import replacements
    from lm_eval_ext.benchmarks.cogs.substitute import substitute_file

    words = replacements(lexicon, seed=seed)
    count = substitute_file(source, target, words, leading_space=leading_space)
    typer.echo(f"{target}: {count:,} lines, lexicon {lexicon}")
