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

# Help need not say that a path is a <list[Path]>.
TyperArgument.display_type_rich = lambda *_, **__: None  # type: ignore[method-assign]

app = typer.Typer(
    name="lm-eval-ext",
    help="Benchmarks of learning new words, concepts and combinations, for lm-evaluation-harness. "
    "To evaluate one model, run lm_eval itself (lm_eval --tasks lieder_mini --model hf ...); "
    "to evaluate several, lm-eval-ext run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lm-eval-ext {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Takes the options before a command."""


for panel, commands in {
    "Evaluate": (results.tasks, runs.run, sql_score.sql_score),
    "Report": (
        results.show, results.samples, runs.compare, runs.leaderboard, plots.plot, power.power,
        cite.cite,
    ),
    "Train": (train.train,),
}.items():  # fmt: skip
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(sql.app, name="sql", rich_help_panel="Evaluate")
app.add_typer(data.app, name="data", rich_help_panel="Data")
for name, group in {"cogs": cogs, "diner": diner, "lieder": lieder, "magnifico": magnifico}.items():
    app.add_typer(group.app, name=name, rich_help_panel="Advanced")
