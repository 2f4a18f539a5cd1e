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
        float, typer.Option(help="The difference to detect, in the metric's unit, such as 0.05.")
    ],
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
    """Estimate how many items are needed to show a difference between two models."""
    from lm_eval_ext.compare.power import needed
    from lm_eval_ext.results.grid import WIDTH
    from lm_eval_ext.text import counted

    asked = {
        "task": task, "difference": difference, "metric": metric, "power": power,
        "models": models, "rate": rate, "icc": icc, "per_cluster": per_cluster,
    }  # fmt: skip
    asked = {name: one for name, one in asked.items() if one is not None}
    answer = needed(results or [], **asked)
    if as_json:
        typer.echo(json.dumps({**asked, **asdict(answer)}, indent=2))
        return
    what = f"{task}, {answer.metric}" if answer.metric else task
    typer.echo(f"{what}: two models that differ by {difference:g}")
    unit = answer.unit
    count = counted(answer.clusters, unit) if answer.clusters else f"more than a billion {unit}s"
    documents = f", {answer.documents:,} documents" if answer.documents else ""
    typer.echo(f"needed: {count}{documents}; power {power:g}, level 0.05, {models} models")
    spread = f"spread: {answer.spread:.3g} per {unit}; {answer.source}"
    typer.echo(fill(spread, WIDTH, subsequent_indent="  ", break_long_words=False))
