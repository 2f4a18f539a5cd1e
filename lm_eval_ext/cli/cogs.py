"""``lm-eval-ext cogs``: files and tokens for the COGS tasks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.errors import OptionError

app = typer.Typer(
    help="COGS: replace key words by unseen words in data files, and add novel tokens to models.",
    no_args_is_help=True,
)

# Backslashes, since brackets are markup in help texts.
Lexicon = Annotated[
    str,
    typer.Option(
        help="What key words become: unmodified, random_long, random_short, cvcv_long, "
        r"cvcv_short, tokens (\[w_0] to \[w_20]) or fresh."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Random seed of fresh's words; for a published lexicon, replaces its own."),
]
Shape = Annotated[
    str | None,
    typer.Option(help="Form of fresh's words: random_long, random_short, cvcv_long or cvcv_short."),
]
Fresh = Annotated[int | None, typer.Option(help="Instead of --seed, the seed for all benchmarks.")]
LeadingSpace = Annotated[
    bool,
    typer.Option("--leading-space", help="Put a space before texts that start with a new word."),
]


@app.command("substitute")
def substitute(
    source: Annotated[Path, typer.Argument(metavar="IN", help="An unmodified COGS file.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    *,
    lexicon: Lexicon,
    seed: Seed = None,
    shape: Shape = None,
    fresh: Fresh = None,
    leading_space: LeadingSpace = False,
) -> None:
    """Replace the 21 key words (context-controlled items) in a COGS file."""
    from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, substitute_file

    words = _words(lexicon, seed, shape, fresh, ITEMS)
    _check_space(lexicon, leading_space)
    count = substitute_file(source, target, words, leading_space=leading_space)
    typer.echo(f"{target}: {count:,} lines, lexicon {lexicon}")


@app.command("export-mini")
def export_mini(
    *,
    out: Annotated[Path, typer.Option(help="The new folder; must be absent or empty.")],
    lexicon: Lexicon = "unmodified",
    seed: Seed = None,
    shape: Shape = None,
    fresh: Fresh = None,
    leading_space: LeadingSpace = False,
) -> None:
    """Write cogs_mini as files in COGS's format (train.tsv, dev.tsv, test.tsv, ...)."""
    from lm_eval_ext.benchmarks.cogs import mini
    from lm_eval_ext.benchmarks.cogs.export import export_mini as export

    words = _words(lexicon, seed, shape, fresh, mini.items())
    _check_space(lexicon, leading_space)
    counts = export(out, words, leading_space=leading_space)
    typer.echo(f"{out}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))


@app.command("pair")
def pair(
    without: Annotated[
        Path,
        typer.Argument(metavar="WITHOUT", help="A logged samples_cogs_unmodified_*.jsonl."),
    ],
    with_: Annotated[
        Path,
        typer.Argument(metavar="WITH", help="samples_cogs_<lexicon>_*.jsonl of the same split."),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
) -> None:
    """Combine two logged runs into recorded answers to an overestimation task."""
    from lm_eval_ext.benchmarks.cogs.export import pair as pair_runs

    typer.echo(f"{out}: the answers to {pair_runs(without, with_, out):,} examples, two each")


def _words(
    lexicon: str, seed: int | None, shape: str | None, fresh: int | None, items: Sequence[str]
) -> Mapping[str, str]:
    """The replacements; the default shape of fresh words is that of the tasks."""
    from lm_eval_ext.benchmarks.cogs.lexicons import replacements

    if fresh is not None and (seed is not None or lexicon != "fresh"):
        raise OptionError("--fresh is for the lexicon fresh, and takes the place of --seed")
    if lexicon == "fresh" and shape is None:
        shape = "cvcv_short"
    return replacements(lexicon, seed=seed, shape=shape, items=items, fresh=fresh)


def _check_space(lexicon: str, leading_space: bool) -> None:
    if leading_space and lexicon == "unmodified":
        raise OptionError("--leading-space: the lexicon unmodified has no new words; leave it out")


@app.command("add-tokens")
def add_tokens(
    model: Annotated[Path, typer.Option(help="Folder of a T5-, GPT-2- or Llama-style model.")],
    out: Annotated[Path, typer.Option(help="The new folder; must be absent or empty.")],
    init: Annotated[
        str, typer.Option(help="How to initialise their embeddings: random, average or unused.")
    ],
    seed: Annotated[
        int, typer.Option(help="Random seed for random embeddings and the noise of average.")
    ] = 0,
) -> None:
    r"""Add the novel tokens \[w_0] to \[w_20] to a model, and check that decoding restores text."""
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


@app.command("check-tokens")
def check_tokens(
    model: Annotated[Path, typer.Option(help="Folder of a model or a tokenizer.")],
    file: Annotated[
        Path | None,
        typer.Option(help="A COGS file whose texts to check, too, under every lexicon."),
    ] = None,
) -> None:
    """Check that each novel token is one token, and that decoding restores encoded text."""
    from lm_eval_ext.benchmarks.cogs import tokens

    count = tokens.check_tokens(model, file)
    typer.echo(f"{model}: each novel token is one token, and {count:,} texts came back exactly")
