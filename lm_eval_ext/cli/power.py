"""``lm-eval-ext power``: how many items show a difference of two models."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from lm_eval_ext.cli.shared_options import AcrossSettingsOption, JsonOption

if TYPE_CHECKING:
    from lm_eval_ext.compare.power import PowerEstimate


DifferenceOption = Annotated[
    float | None,
    typer.Option(help="The difference to detect, in the metric's unit, such as 0.05."),
]
ItemsOption = Annotated[
    int | None,
    typer.Option(
        help="Say which difference so many items (clusters) show. Default: as many as the task "
        "has, so power TASK PATH needs neither option."
    ),
]
RateOption = Annotated[
    float | None, typer.Option(help="Without a pilot: the mean of the two models' rates.")
]
CorrelationOption = Annotated[
    float | None, typer.Option(help="With --rate: intra-cluster correlation; default: 0.")
]
ClusterSizeOption = Annotated[
    float | None,
    typer.Option(help="With --rate: documents per cluster (in lieder_base 3 per item)."),
]
ModelsOption = Annotated[
    int,
    typer.Option(help="Number of models compared; the level is divided by the number of pairs."),
]


def power(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task.")],
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Results files or folders of a pilot run."),
    ] = None,
    *,
    difference: DifferenceOption = None,
    items: ItemsOption = None,
    metric: Annotated[str, typer.Option(help="A metric of the pilot; default: the headline.")] = "",
    rate: RateOption = None,
    icc: CorrelationOption = None,
    per_cluster: ClusterSizeOption = None,
    power: Annotated[float, typer.Option(help="Probability that the difference is found.")] = 0.8,
    models: ModelsOption = 2,
    across_settings: AcrossSettingsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate how many items show a difference between two models, and what items show."""
    from lm_eval_ext.compare.power import needed

    options: dict[str, object] = {
        "task": task, "difference": difference, "items": items, "metric": metric, "power": power,
        "models": models, "rate": rate, "icc": icc, "per_cluster": per_cluster,
        "across_settings": across_settings,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    estimate = needed(results or [], **options)
    if as_json:
        typer.echo(json.dumps({**options, **asdict(estimate)}, indent=2))
        return
    settings = f"power {power:g}, level 0.05, {models} models"
    for line in _report(task, estimate, difference, settings):
        typer.echo(line)


def _report(
    task: str, estimate: "PowerEstimate", difference: float | None, settings: str
) -> Iterator[str]:
    """Yield the lines about an estimate: what shows the difference, and what the task shows."""
    from lm_eval_ext.results.grid import WIDTH
    from lm_eval_ext.text import counted

    subject = f"{task}, {estimate.metric}" if estimate.metric else task
    if difference is None:
        yield f"{subject}: {settings}"
    else:
        yield f"{subject}: two models that differ by {difference:g}"
        can_grow = "fresh" in task
        yield f"{_needed_items(estimate, can_grow=can_grow)}; {settings}"
    if estimate.available is not None:
        yield f"the task has: {counted(estimate.available, estimate.unit)}"
    if estimate.shows is not None and estimate.items is not None:
        size = counted(estimate.items, estimate.unit)
        yield f"{size} show: a difference of {estimate.shows:.3g} or more"
    spread = f"spread: {estimate.spread:.3g} per {estimate.unit}; {estimate.source}"
    yield fill(spread, WIDTH, subsequent_indent="  ", break_long_words=False)


def _needed_items(estimate: "PowerEstimate", *, can_grow: bool) -> str:
    """Return how many items show the difference, or that the task has too few.

    Args:
        estimate: The estimate.
        can_grow: Whether the task draws as many items as are needed.
    """
    from lm_eval_ext.text import counted

    units = counted(0, estimate.unit).removeprefix("0 ")
    if not estimate.is_enough and not can_grow:
        return f"this task cannot show it: it has too few {units}"
    count = f"more than a billion {units}"
    if estimate.clusters is not None:
        count = counted(estimate.clusters, estimate.unit)
    if estimate.documents is not None:
        count += f", {estimate.documents:,} documents"
    return f"needed: {count}"
