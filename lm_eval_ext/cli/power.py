"""``lm-eval-ext power``: how many items show a difference of two models."""

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from lm_eval_ext.cli.questions import Json


def power(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task.")],
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Results files or folders of a pilot run."),
    ] = None,
    *,
    difference: Annotated[
        float | None,
        typer.Option(help="The difference to detect, in the metric's unit, such as 0.05."),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(help="What so many items (clusters) show; default: as many as the task has."),
    ] = None,
    metric: Annotated[str, typer.Option(help="A metric of the pilot; default: the headline.")] = "",
    rate: Annotated[
        float | None, typer.Option(help="Without a pilot: the mean of the two models' rates.")
    ] = None,
    icc: Annotated[
        float | None, typer.Option(help="With --rate: intra-cluster correlation; default: 0.")
    ] = None,
    per_cluster: Annotated[
        float | None,
        typer.Option(help="With --rate: documents per cluster (in lieder_base 3 per item)."),
    ] = None,
    power: Annotated[float, typer.Option(help="Probability that the difference is found.")] = 0.8,
    models: Annotated[
        int,
        typer.Option(
            help="Number of models compared; the level is divided by the number of pairs."
        ),
    ] = 2,
    as_json: Json = False,
) -> None:
    """Estimate how many items show a difference between two models, and what items show."""
    from lm_eval_ext.compare.power import needed
    from lm_eval_ext.results.grid import WIDTH
    from lm_eval_ext.text import counted

    options = {
        "task": task, "difference": difference, "items": items, "metric": metric, "power": power,
        "models": models, "rate": rate, "icc": icc, "per_cluster": per_cluster,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    estimate = needed(results or [], **options)
    if as_json:
        typer.echo(json.dumps({**options, **asdict(estimate)}, indent=2))
        return
    what = f"{task}, {estimate.metric}" if estimate.metric else task
    unit = estimate.unit
    units = counted(0, unit).removeprefix("0 ")
    settings = f"power {power:g}, level 0.05, {models} models"
    can_grow = "fresh" in task
    if difference is not None:
        typer.echo(f"{what}: two models that differ by {difference:g}")
        count = f"more than a billion {units}"
        if estimate.clusters is not None:
            count = counted(estimate.clusters, unit)
        if estimate.documents is not None:
            count += f", {estimate.documents:,} documents"
        if estimate.is_enough or can_grow:
            typer.echo(f"needed: {count}; {settings}")
        else:
            typer.echo(f"this task cannot show it: it has too few {units}; {settings}")
    else:
        typer.echo(f"{what}: {settings}")
    if estimate.available is not None:
        typer.echo(f"the task has: {counted(estimate.available, unit)}")
    if estimate.shows is not None and estimate.items is not None:
        size = counted(estimate.items, unit)
        typer.echo(f"{size} show: a difference of {estimate.shows:.3g} or more")
    spread = f"spread: {estimate.spread:.3g} per {unit}; {estimate.source}"
    typer.echo(fill(spread, WIDTH, subsequent_indent="  ", break_long_words=False))
