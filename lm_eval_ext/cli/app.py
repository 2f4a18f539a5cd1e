"""The commands of ``lm-eval-ext``, put together."""

from typing import Annotated

import typer

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
    sql_score,
    train,
)

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


EVALUATE, REPORT, DATA, TRAIN, ADVANCED = "Evaluate", "Report", "Data", "Train", "Advanced"

app.command("tasks", rich_help_panel=EVALUATE)(results.tasks)
app.command("run", rich_help_panel=EVALUATE)(runs.run)
app.command("sql-score", rich_help_panel=EVALUATE)(sql_score.sql_score)
app.command("show", rich_help_panel=REPORT)(results.show)
app.command("compare", rich_help_panel=REPORT)(runs.compare)
app.command("leaderboard", rich_help_panel=REPORT)(runs.leaderboard)
app.command("plot", rich_help_panel=REPORT)(plots.plot)
app.command("power", rich_help_panel=REPORT)(power.power)
app.command("cite", rich_help_panel=REPORT)(cite.cite)
app.command("train", rich_help_panel=TRAIN)(train.train)
app.add_typer(data.app, name="data", rich_help_panel=DATA)
app.add_typer(cogs.app, name="cogs", rich_help_panel=ADVANCED)
app.add_typer(diner.app, name="diner", rich_help_panel=ADVANCED)
app.add_typer(lieder.app, name="lieder", rich_help_panel=ADVANCED)
app.add_typer(magnifico.app, name="magnifico", rich_help_panel=ADVANCED)
