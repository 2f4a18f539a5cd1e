"""The comparison itself: from runs to values, differences, tests and groups.

Several models are compared on each task, or two tasks of one benchmark within each model.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.align import Aligned, RefusedError, align, align_tasks, clusters_of
from lm_eval_ext.compare.metrics import Metric, choose_metrics, how_to_recompute
from lm_eval_ext.compare.reading import Model
from lm_eval_ext.compare.report import Pair, Refusal, Report, Settings, Table
from lm_eval_ext.compare.systems import Systems, adjusted, lacking
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.samples import Sample, SampleStatistic
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.paired import letters
from lm_eval_ext.text import several


def compare(models: Sequence[Model], tasks: Sequence[str], settings: Settings) -> Report:
    """Compares models on every task.

    Raises:
        OptionError: If a metric's name matches none.
        DataError: If samples are missing or cannot be read.
    """
    tables: list[Table] = []
    refused = []
    signatures = {}
    for task in tasks:
        runs = {model.label: model.runs[task] for model in models if task in model.runs}
        try:
            aligned = align(task, runs, across_settings=settings.across_settings)
        except RefusedError as error:
            refused.append(Refusal(task, str(error), error.signatures))
            continue
        signatures[task] = next(iter(runs.values())).signature(task)
        tables += tables_of(task, runs, aligned, settings)
    return Report(tables, refused, signatures, settings)


def tables_of(
    task: str, runs: Mapping[str, ResultsFile], aligned: Aligned, settings: Settings
) -> list[Table]:
    """One table per metric of a task."""
    some = next(iter(aligned.samples.values()))
    results = next(iter(runs.values()))
    found = []
    for metric in choose_metrics(task, results, list(some), settings.metrics):
        everything = {name: aligned.everything[name][metric.filter] for name in runs}
        how = how_to_recompute(task, runs, everything, metric)
        samples = {name: aligned.samples[name][metric.filter] for name in runs}
        table = table_of(task, metric, samples, how, settings)
        found.append(_described(table, task, results, metric))
    return found


def _described(table: Table, task: str, results: ResultsFile, metric: Metric) -> Table:
    """The table with what the card and the results file say about the metric."""
    every = results.scores(task)
    card = card_of(task)
    without = [name for name, value in table.values.items() if value is None]
    if card and without and table.clusters:
        aggregation = str(results.entry(task, metric.key).get("aggregation"))
        why = card.undefined.get(aggregation, "it is not defined")
        table = replace(table, note=f"{', '.join(without)}: {NONE}, since {why}")
    published = card.published(task, every) if card else {}
    return replace(
        table,
        percent=results.is_percent(task, metric.key),
        headline=card is not None and metric.name == card.headline_of(every),
        lower=not metric.higher_is_better,
        published={
            label: own[metric.name] for label, own in published.items() if metric.name in own
        },
    )


def table_of(
    task: str,
    metric: Metric,
    samples: Mapping[str, Sequence[Sample]],
    how: SampleStatistic | str | None,
    settings: Settings,
) -> Table:
    """Compares systems on one metric, on the documents that all of them have a score for.

    ``how`` is from :func:`~lm_eval_ext.compare.metrics.how_to_recompute`.
    """
    rows = _scored(metric, samples)
    systems = systems_of(task, metric, samples, how, settings.seed)
    names = list(samples)
    if isinstance(systems, str):
        empty = dict.fromkeys(names)
        return Table(task, metric.name, len(rows), 0, "", empty, {}, [], systems)
    unit, clusters = clusters_of(task, [row[0] for row in rows])
    values = {name: systems.value(name) for name in names}
    ranked = sorted(names, key=lambda name: _order(values[name], metric))
    pairs = _adjusted(
        [Pair(a, b, systems.difference(a, b, settings.alpha)) for a, b in systems.pairs()]
    )
    return Table(
        task=task,
        metric=metric.name,
        documents=len(rows),
        clusters=len(set(clusters)),
        unit=unit,
        values={name: values[name] for name in ranked},
        groups=_groups(ranked, pairs, settings.alpha),
        pairs=pairs,
        note=_few(len(set(clusters)), unit),
        intervals={name: systems.interval(name, settings.alpha) for name in ranked},
    )


def systems_of(
    task: str,
    metric: Metric,
    samples: Mapping[str, Sequence[Sample]],
    how: SampleStatistic | str | None,
    seed: int = 0,
) -> Systems | str:
    """The systems on the documents that all of them have a score for, or why there is no test.

    ``how`` is from :func:`~lm_eval_ext.compare.metrics.how_to_recompute`.
    """
    if isinstance(how, str):
        return how
    rows = _scored(metric, samples)
    if not rows:
        return "no document has a score in all runs"
    if missing := lacking(how, metric.key, [sample for row in rows for sample in row]):
        return f"no test: the samples lack {', '.join(missing)}; run again to log it"
    _, clusters = clusters_of(task, [row[0] for row in rows])
    by_name = dict(zip(samples, zip(*rows, strict=True), strict=True))
    return Systems(metric.key, by_name, clusters, how, metric.limits, seed)


def _scored(metric: Metric, samples: Mapping[str, Sequence[Sample]]) -> list[tuple[Sample, ...]]:
    return [
        row
        for row in zip(*samples.values(), strict=True)
        if all(sample.scores.get(metric.key) is not None for sample in row)
    ]


def _adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with p-values that Holm's method adjusts for all of them."""
    found = adjusted([pair.difference.p for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, found, strict=True)]


def _few(clusters: int, unit: str) -> str:
    if clusters < 2:  # noqa: PLR2004
        return f"no test from documents of one {unit}"
    if clusters < LEAST_CLUSTERS:
        return (
            f"no interval from {clusters} {several(unit)}, fewer than {LEAST_CLUSTERS}, whose p is "
            "never below 0.05"
        )
    return ""


def _order(value: float | None, metric: Metric) -> tuple[bool, float]:
    """Undefined values last."""
    if value is None:
        return (True, 0.0)
    return (False, -value if metric.higher_is_better else value)


def _groups(ranked: Sequence[str], pairs: Sequence[Pair], alpha: float) -> dict[str, str]:
    """Letters, or none at all where a pair could not be tested."""
    if any(pair.p_holm is None for pair in pairs):
        return {}
    place = {name: number for number, name in enumerate(ranked)}
    different = {
        (place[pair.first], place[pair.second])
        for pair in pairs
        if pair.p_holm is not None and pair.p_holm < alpha
    }
    return dict(zip(ranked, letters(len(ranked), different), strict=True))


POOLED = "all models"


def compare_tasks(models: Sequence[Model], first: str, second: str, settings: Settings) -> Report:
    """Compares two tasks within each model that has both, and over all these models together.

    In the comparison over all models a document's score is the mean of the models' scores. Only
    items are resampled, since the models are the same in both tasks and not a sample of models.
    Holm's method adjusts for all models of a metric, and leaves that one comparison as it is.

    Raises:
        OptionError: If no model has both tasks, or a metric's name matches none.
        DataError: If samples are missing or cannot be read.
    """
    both = [model for model in models if first in model.runs and second in model.runs]
    if not both:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no model has results on both {first} and {second}; there is {there}")
    aligned: dict[str, Aligned] = {}
    refused = []
    for model in both:
        try:
            aligned[model.label] = align_tasks(
                (first, model.runs[first]), (second, model.runs[second])
            )
        except RefusedError as error:
            refused.append(Refusal(f"{first}, {second}", str(error), error.signatures))
    kept = [model for model in both if model.label in aligned]
    tables = [
        table
        for metric in _shared_metrics(kept, aligned, (first, second), settings)
        for table in _tables(kept, aligned, metric, (first, second), settings)
    ]
    signatures = {task: kept[0].runs[task].signature(task) for task in (first, second) if kept}
    return Report(tables, refused, signatures, settings)


def _shared_metrics(
    models: Sequence[Model],
    aligned: Mapping[str, Aligned],
    tasks: tuple[str, str],
    settings: Settings,
) -> list[Metric]:
    if not models:
        return []
    runs = models[0].runs
    one, two = (
        choose_metrics(
            task, runs[task], list(aligned[models[0].label].samples[task]), settings.metrics
        )
        for task in tasks
    )
    return [metric for metric in one if metric.name in {other.name for other in two}]


def _tables(
    models: Sequence[Model],
    aligned: Mapping[str, Aligned],
    metric: Metric,
    tasks: tuple[str, str],
    settings: Settings,
) -> list[Table]:
    found = []
    means = True
    for model in models:
        of_model = aligned[model.label]
        ways = [
            how_to_recompute(
                task,
                {task: model.runs[task]},
                {task: of_model.everything[task][metric.filter]},
                metric,
            )
            for task in tasks
        ]
        how = next((one for one in ways if isinstance(one, str)), ways[0])
        means = means and how is None
        samples = {task: of_model.samples[task][metric.filter] for task in tasks}
        table = table_of(tasks[0], metric, samples, how, settings)
        table = _described(table, tasks[0], model.runs[tasks[0]], metric)
        named = f"{tasks[0]}, {tasks[1]} · {model.label}"
        found.append(replace(table, task=named, published={}))
    pairs = iter(_adjusted([pair for table in found for pair in table.pairs]))
    # Letters belong to the systems of one table, and here p-values are adjusted over several.
    found = [replace(table, pairs=[next(pairs) for _ in table.pairs], groups={}) for table in found]
    if means and len(models) > 1:
        pooled = {task: _pooled(models, aligned, task, metric) for task in tasks}
        table = table_of(tasks[0], metric, pooled, None, settings)
        table = _described(table, tasks[0], models[0].runs[tasks[0]], metric)
        named = f"{tasks[0]}, {tasks[1]} · {POOLED}"
        found.append(replace(table, task=named, groups={}, published={}))
    return found


def _pooled(
    models: Sequence[Model], aligned: Mapping[str, Aligned], task: str, metric: Metric
) -> list[Sample]:
    """The mean of several models on each document that all of them have."""
    runs = [aligned[model.label].samples[task][metric.filter] for model in models]
    by_key = [{sample.key: sample for sample in run} for run in runs]
    found = []
    for key, sample in by_key[0].items():
        scores = [run[key].scores.get(metric.key) for run in by_key if key in run]
        known = [score for score in scores if score is not None]
        if len(scores) == len(runs):
            value = math.fsum(known) / len(runs) if len(known) == len(runs) else None
            found.append(replace(sample, scores={metric.key: value}))
    return found
