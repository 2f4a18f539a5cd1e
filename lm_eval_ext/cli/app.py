"""The commands of ``lm-eval-ext``, put together."""

from typing import Annotated

import typer
from typer.core import TyperArgument

from lm_eval_ext import __version__
from lm_eval_ext.cli import (
    cite,
    cogs,
    data,
    diner,
    lieder,
    magnifico,
    plots,
    power,
    results,
    runs,
    sql,
    sql_score,
    train,
)
from lm_eval_ext.cli.shared_options import one_spelling

# Help need not say that a path is a <list[Path]>.
TyperArgument.display_type_rich = lambda *_, **__: None  # type: ignore[method-assign]

app = typer.Typer(
    name="lm-eval-ext",
    help="Benchmarks of learning new words, concepts and combinations, for lm-evaluation-harness. "
    "To evaluate one model, run lm_eval itself (lm_eval --tasks lieder_mini --model hf-prefix "
    "...); to evaluate several, lm-eval-ext run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_set: bool) -> None:
    """Print the version and end, if the option is set."""
    if is_set:
        typer.echo(f"lm-eval-ext {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options before a command."""


COMMANDS = {
    "Evaluate": (results.tasks, runs.run, sql_score.sql_score),
    "Report": (
        results.show, results.samples, runs.compare, runs.leaderboard, plots.plot, power.power,
        cite.cite,
    ),
    "Train": (train.train,),
}  # fmt: skip
"""The commands by the panel in which the help shows them."""

_SETTINGS = {"token_normalize_func": one_spelling}

for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel, context_settings=_SETTINGS)(command)
app.add_typer(sql.app, name="sql", rich_help_panel="Evaluate")
app.add_typer(data.app, name="data", rich_help_panel="Data")
for benchmark in (cogs, diner, lieder, magnifico):
    name = benchmark.__name__.rpartition(".")[2]
    app.add_typer(benchmark.app, name=name, rich_help_panel="Advanced")
