"""Comparing two tasks of one benchmark: what the same models do under two conditions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_ext.compare.aligning import Aligned, RefusedError, align_tasks
from lm_eval_ext.compare.differences import adjusted, table_of
from lm_eval_ext.compare.metrics import Metric, choose_metrics, kind_of
from lm_eval_ext.compare.reading import Model
from lm_eval_ext.compare.report import Refusal, Report, Settings, Table
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.samples import Sample

POOLED = "all models"


def compare_tasks(models: Sequence[Model], first: str, second: str, settings: Settings) -> Report:
    """Compares two tasks within each model, and over all models together.

    Pooled, a document's score is the mean of the models' (the models are the same in both
    tasks, and a few that were chosen, so only items are resampled). Holm's method adjusts for
    all models of a metric; the pooled comparison is one and stays as it is.

    Args:
        models: Those that have both tasks count.
        first: A task.
        second: Another of the same benchmark.
        settings: How to compare.

    Raises:
        OptionError: If no model has both tasks, or a metric's name fits none.
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
        kinds = [
            kind_of(
                task,
                {task: model.runs[task]},
                {task: of_model.everything[task][metric.filter]},
                metric,
            )
            for task in tasks
        ]
        kind = next((one for one in kinds if isinstance(one, str)), kinds[0])
        means = means and kind is None
        samples = {task: of_model.samples[task][metric.filter] for task in tasks}
        table = table_of(tasks[0], metric, samples, kind, settings)
        found.append(replace(table, task=f"{tasks[0]}, {tasks[1]} · {model.label}"))
    pairs = iter(adjusted([pair for table in found for pair in table.pairs]))
    # Letters belong to the systems of one table, and here p-values are adjusted over several.
    found = [replace(table, pairs=[next(pairs) for _ in table.pairs], marks={}) for table in found]
    if means and len(models) > 1:
        pooled = {task: _pooled(models, aligned, task, metric) for task in tasks}
        table = table_of(tasks[0], metric, pooled, None, settings)
        found.append(replace(table, task=f"{tasks[0]}, {tasks[1]} · {POOLED}", marks={}))
    return found


def _pooled(
    models: Sequence[Model], aligned: Mapping[str, Aligned], task: str, metric: Metric
) -> list[Sample]:
    """The mean of several models, document by document (those that all of them have)."""
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
