"""``lm-eval-ext experiment``: recipes x settings x seeds x tasks as one table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lm_eval_ext.errors import OptionError

if TYPE_CHECKING:
    from lm_eval_ext.experiments.plan import Plan
    from lm_eval_ext.runs.run import FailedError


def experiment(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="An experiment's file, or the name of one that ships."),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for models, results and table.")],
    seeds: Annotated[str, typer.Option(help="Instead of the file's: 0-4, or 0,2,7.")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of every recipe."),
    ] = None,
    only: Annotated[
        str, typer.Option(help="Only models whose names fit a pattern, such as '*-seed-0'.")
    ] = "",
    json_: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the figure: .svg, .pdf, .png, .html or .json.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is missing, and do nothing.")
    ] = False,
    list_: Annotated[
        bool,
        typer.Option("--list", help="The same as JSON lines, each with the command for one model."),
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the table of what there is, and do nothing.")
    ] = False,
) -> None:
    """Train and evaluate all models of an experiment that are not there yet; print its table."""
    from lm_eval_ext.experiments import report
    from lm_eval_ext.experiments.picture import check_figure, write_figure
    from lm_eval_ext.experiments.plan import read_plan
    from lm_eval_ext.experiments.table import table_of
    from lm_eval_ext.training.options import parse_settings

    out = out.expanduser().absolute()
    plan = read_plan(file, seeds=seeds, settings=parse_settings(set_ or []))
    if dry_run or list_:
        from lm_eval_ext.runs.experiment import missing

        again = ["lm-eval-ext", "experiment", file, "--out", str(out)]
        again += ["--seeds", seeds] if seeds else []
        again += [word for pair in set_ or [] for word in ("--set", pair)]
        found = missing(plan, out, only=only)
        for one in found:
            if list_:
                command = [*again, "--only", one["model"]]
                typer.echo(json.dumps({**one, "command": command}, ensure_ascii=False))
            else:
                typer.echo(f"{one['model']}: {one['missing']}")
        if not list_:
            typer.echo(f"{len(found)} models to do" if found else "nothing to do")
        return
    if json_ and markdown:
        raise OptionError("--json and --markdown are two forms of one table; choose one")
    if plot is not None:
        check_figure(plan.about, plot)
    failed = None if show else _run(plan, out, only)
    table = table_of(plan, out)
    if not show:
        report.write(table, out)
    if plot is not None:
        write_figure(table, plot)
    if json_:
        typer.echo(json.dumps(report.as_json(table), ensure_ascii=False, indent=1))
    else:
        typer.echo(report.as_markdown(table) if markdown else report.as_text(table))
    if failed is not None:
        raise failed


def _run(plan: "Plan", out: Path, only: str) -> "FailedError | None":
    """Does what is missing; returns what could not be evaluated."""
    from lm_eval_ext.cli import resumable
    from lm_eval_ext.cli.runs import reporting
    from lm_eval_ext.cli.train import check_extra
    from lm_eval_ext.runs.experiment import Steps, check_tasks
    from lm_eval_ext.runs.experiment import experiment as run_here
    from lm_eval_ext.runs.run import FailedError, Work, run
    from lm_eval_ext.training.command import train

    def evaluate(work: Work) -> None:
        with reporting() as reporter:
            run(work, reporter)

    check_extra()
    check_tasks(plan)
    steps = Steps(train, evaluate, lambda line: typer.echo(line, err=True))
    with resumable():
        try:
            run_here(plan, out, steps, only=only)
        except FailedError as error:
            return error
    return None
