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
    float | None,
    typer.Option(
        help="Without a pilot: the mean of the two models' rates of right answers, from 0 to 1 "
        "(--metric says of which kind). Without it, too, the spread of published models is used, "
        "where one was measured (LIEDER)."
    ),
]
CorrelationOption = Annotated[
    float | None,
    typer.Option(
        help="With --rate: intra-cluster correlation, which power prints for a pilot; default: "
        "that of real models on the task, where it was measured, and else 0 to 0.3."
    ),
]
ClusterSizeOption = Annotated[
    float | None,
    typer.Option(
        help="With --rate: documents per cluster that you will evaluate; default: as many as the "
        "task has (in lieder_base 3 per item)."
    ),
]
PilotOption = Annotated[
    str,
    typer.Option(
        metavar="TASK",
        help="The pilot's task, if it is another one of the same benchmark, for a TASK that draws "
        "any number of items: --pilot lieder_mini for lieder_fresh_base.",
    ),
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
    metric: Annotated[
        str, typer.Option(help="A metric; default: the headline, or with --rate the first rate.")
    ] = "",
    rate: RateOption = None,
    icc: CorrelationOption = None,
    per_cluster: ClusterSizeOption = None,
    power: Annotated[float, typer.Option(help="Probability that the difference is found.")] = 0.8,
    models: ModelsOption = 2,
    across_settings: AcrossSettingsOption = False,
    pilot: PilotOption = "",
    as_json: JsonOption = False,
) -> None:
    """Estimate how many items show a difference between two models, and what items show.

    The spread comes from a pilot of two models (PATH), from --rate, or from published models.
    """
    from lm_eval_ext.compare.power import needed

    options: dict[str, object] = {
        "task": task, "difference": difference, "items": items, "metric": metric, "power": power,
        "models": models, "rate": rate, "icc": icc, "per_cluster": per_cluster,
        "across_settings": across_settings, "pilot": pilot,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    estimate = needed(results or [], **options)
    if as_json:
        typer.echo(json.dumps({**options, **asdict(estimate)}, indent=2))
        return
    settings = f"power {power:g}, level 0.05, {models} models"
    for line in _report(task, estimate, difference, settings):
        typer.echo(line)
    if difference is not None:
        for line in _advice(task, results or [], estimate, options):
            typer.echo(line)


def _report(
    task: str, estimate: "PowerEstimate", difference: float | None, settings: str
) -> Iterator[str]:
    """Yield the lines about an estimate: what shows the difference, and what the task shows."""
    from lm_eval_ext.text import counted

    subject = f"{task}, {estimate.metric}" if estimate.metric else task
    if difference is None:
        yield f"{subject}: {settings}"
    else:
        yield f"{subject}: two models that differ by {difference:g}"
        yield f"{_needed_items(estimate)}; {settings}"
    if estimate.available is not None:
        yield from _filled(f"the task has: {_task_size(task, estimate)}")
    size = ""
    if estimate.shows is not None and estimate.items is not None:
        size = counted(estimate.items, estimate.unit)
        # More documents of each cluster show a smaller difference.
        condition = " with as many documents each as in this trial" if estimate.is_trial else ""
        yield from _filled(f"{size}{condition} show: a difference of {estimate.shows:.3g} or more")
    units = counted(0, estimate.unit).removeprefix("0 ")
    spread = f"{estimate.spread:.3g}"
    if estimate.least_spread is not None:
        spread = f"{estimate.least_spread:.3g} at best and {spread} at worst"
    if estimate.least_spread is not None and size:
        spread += f" (what {size} show is by the worst)"
    line = f"spread: the mean differences of single {units} have a standard deviation of {spread}"
    yield from _filled(f"{line}; {estimate.source}")
    if estimate.icc is not None:
        yield f"intra-cluster correlation: {estimate.icc:.2f} (for --icc)"


def _filled(line: str) -> Iterator[str]:
    from lm_eval_ext.results.grid import WIDTH

    yield fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _task_size(task: str, estimate: "PowerEstimate") -> str:
    """Return how many clusters and documents a task has, and what a cluster is."""
    from lm_eval_ext.cards import card_of
    from lm_eval_ext.text import counted

    size = counted(estimate.available or 0, estimate.unit)
    card = card_of(task)
    if card is not None and card.cluster.meaning and card.cluster.unit == estimate.unit:
        size += f" (each is {card.cluster.meaning})"
    total, part = estimate.task_documents, estimate.counted_documents
    if total is not None and estimate.unit != "document":
        size += f", {counted(total, 'document')}"
    if total is not None and part is not None and part != total:
        size += f", of which {estimate.metric} counts {part:,}"
    if estimate.items_key:
        size += f", or as many as {estimate.items_key} says"
    return size


def _needed_items(estimate: "PowerEstimate") -> str:
    """Return how many items show the difference, or that the task has too few."""
    from lm_eval_ext.text import counted

    units = counted(0, estimate.unit).removeprefix("0 ")
    if estimate.more_documents_may_help:
        return (
            f"needed: at least {estimate.least_documents:,} of the task's "
            f"{estimate.total_documents:,} documents, in its {estimate.available:,} {units}"
        )
    if not estimate.may_be_enough:
        return f"this task cannot show it: it has too few {units}"
    if not estimate.is_enough and estimate.least_clusters is not None:
        least = counted(estimate.least_clusters, estimate.unit)
        most = f"{estimate.available:,}"
        if estimate.unit != "document" and estimate.least_cluster_documents is not None:
            least += f" ({counted(estimate.least_cluster_documents, 'document')})"
        if estimate.unit != "document" and estimate.task_documents is not None:
            most += f" ({counted(estimate.task_documents, 'document')})"
        return f"this task may show it: needed are from {least} to more than its {most}"
    count = f"more than a billion {units}"
    if estimate.clusters is not None:
        count = counted(estimate.clusters, estimate.unit)
    if estimate.least_clusters is not None:
        count = f"{estimate.least_clusters:,} to {count}"
    if estimate.documents_to_run is not None:
        words = "up to " if estimate.least_clusters is not None else ""
        count += f", {words}{counted(estimate.documents_to_run, 'document')}"
    if estimate.documents is not None and estimate.documents != estimate.documents_to_run:
        count += f" to run, of which {estimate.metric} counts {estimate.documents:,}"
    return f"needed: {count}"


def _advice(
    task: str, paths: list[Path], estimate: "PowerEstimate", options: dict[str, object]
) -> Iterator[str]:
    """Yield what to do next: run so many items, or ask about a task that can have them.

    Args:
        task: The task.
        paths: The pilot's results.
        estimate: The estimate.
        options: The options of the question that were given, by their Python names.
    """
    from lm_eval_ext.cards import card_of
    from lm_eval_ext.compare.power import PILOT_DOCUMENTS, STATED_OPTIONS
    from lm_eval_ext.compare.power_command import power_command
    from lm_eval_ext.compare.task_size import DOCUMENT_UNIT
    from lm_eval_ext.text import counted

    if estimate.items_key and estimate.clusters is not None:
        metadata = json.dumps({estimate.items_key: estimate.clusters})
        yield f"to evaluate a model on {counted(estimate.clusters, estimate.unit)}:"
        yield f"  lm_eval --tasks {task} --metadata '{metadata}' \\"
        yield "    --model hf-prefix --model_args pretrained=MODEL \\"
        yield "    --output_path results/MY_MODEL --log_samples"
    card = card_of(task)
    more_items = card.tasks[task].more_items if card else ""
    units = counted(0, estimate.unit).removeprefix("0 ")
    may_have_more_of_each = estimate.available is None and estimate.unit != DOCUMENT_UNIT
    if paths and may_have_more_of_each and not more_items and not estimate.items_key:
        yield f"if the task has fewer {units}: evaluate more documents of each (a larger --limit),"
        yield "  which makes the spread smaller, and ask again"
    if estimate.is_enough or estimate.available is None:
        return
    if more_items:
        changes: dict[str, object] = {"task": more_items}
        if paths:
            changes["pilot"] = options.get("pilot") or task
        yield f"{more_items} has as many {units} as you want; this tells how many:"
        yield f"  {power_command(paths, {**options, **changes})}"
        return
    if estimate.least_documents is not None:
        yield from _larger_trial(task, estimate)
    if estimate.more_documents_may_help:
        return
    if estimate.may_be_enough:
        yield "a pilot says which spread it is: evaluate two models, and give their results:"
        yield f"  lm_eval --tasks {task} --limit {PILOT_DOCUMENTS} --log_samples \\"
        yield "    --output_path results/NAME ..."
        other_options = {name: options[name] for name in options if name not in STATED_OPTIONS}
        question = {**other_options, "metric": estimate.metric}
        yield f"  {power_command([Path('results')], question)}"
        return
    yield from _advice_for_fixed_clusters(task, paths, estimate, options)


def _advice_for_fixed_clusters(
    task: str, paths: list[Path], estimate: "PowerEstimate", options: dict[str, object]
) -> Iterator[str]:
    """Yield what to do where all clusters of a task are too few; see :func:`_advice`."""
    from lm_eval_ext.cards import card_of
    from lm_eval_ext.compare.power import needed
    from lm_eval_ext.compare.power_command import power_command
    from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
    from lm_eval_ext.text import counted

    units = counted(0, estimate.unit).removeprefix("0 ")
    whole_task = {name: value for name, value in options.items() if name != "per_cluster"}
    # The number of documents that the screen shows is rounded.
    smaller_spread = 0.99 * estimate.spread
    if "per_cluster" in options and needed(paths, **whole_task).spread < smaller_spread:
        yield f"more documents of each make the spread smaller; with all that the {units} have:"
        yield f"  {power_command(paths, whole_task)}"
        return
    yield f"its {units} are fixed, so only a larger difference can be shown"
    card = card_of(task)
    if card is not None and len(card.tasks) > 1:
        yield f"other tasks may have more: lm-eval-ext tasks {card.name}"
    if "items" in options:
        return
    items = max(2 * (estimate.available or 0), LEAST_CLUSTERS)
    yield f"what {counted(items, estimate.unit)} would show, such as in data of your own:"
    yield f"  {power_command(paths, {**options, 'items': items})}"


def _larger_trial(task: str, estimate: "PowerEstimate") -> Iterator[str]:
    """Yield how many documents of the same clusters may show what a trial does not."""
    least, total = estimate.least_documents, estimate.total_documents
    if least is None or total is None:
        return
    if not estimate.more_documents_may_help:
        yield f"all {total:,} documents are too few, too: at least {least:,} would be needed"
        return
    limit = f" --limit {least}" if least < total else ""
    yield f"more documents of each {estimate.unit} make the spread smaller, but nobody knows by how"
    yield "much before they are evaluated. Evaluate so many of both models, and ask again:"
    yield f"  lm_eval --tasks {task}{limit} --log_samples --output_path results/NAME ..."
