"""The comparison itself: from runs to figures, differences, tests and groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from lm_eval_ext.compare.aligning import Aligned, RefusedError, align
from lm_eval_ext.compare.metrics import Metric, choose_metrics, kind_of
from lm_eval_ext.compare.reading import Model
from lm_eval_ext.compare.recipes import Recipe
from lm_eval_ext.compare.report import Pair, Refusal, Report, Settings, Table
from lm_eval_ext.compare.units import clusters_of
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.samples import Sample
from lm_eval_ext.stats.many import holm, letters
from lm_eval_ext.stats.paired import Difference, paired_difference
from lm_eval_ext.stats.paired_bootstrap import paired_cluster_bootstrap


def compare(models: Sequence[Model], tasks: Sequence[str], settings: Settings) -> Report:
    """Compares models on every task.

    Raises:
        OptionError: If a metric's name fits none.
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
        kind = kind_of(task, runs, everything, metric)
        samples = {name: aligned.samples[name][metric.filter] for name in runs}
        found.append(table_of(task, metric, samples, kind, settings))
    return found


def table_of(
    task: str,
    metric: Metric,
    samples: Mapping[str, Sequence[Sample]],
    kind: Recipe | str | None,
    settings: Settings,
) -> Table:
    """Compares systems on one metric, on the documents that all of them have a score for."""
    scored = [
        row
        for row in zip(*samples.values(), strict=True)
        if all(sample.scores.get(metric.key) is not None for sample in row)
    ]
    names = list(samples)
    by_name = dict(zip(names, zip(*scored, strict=True), strict=False)) if scored else {}
    if isinstance(kind, str) or not scored:
        note = kind if isinstance(kind, str) else "no document has a score in all runs"
        empty = dict.fromkeys(names)
        return Table(task, metric.name, len(scored), 0, "", empty, {}, [], note)
    unit, clusters = clusters_of(task, by_name[names[0]])
    contest = _Contest(metric.key, by_name, clusters, kind, settings)
    values = {name: contest.value(name) for name in names}
    ranked = sorted(names, key=lambda name: _order(values[name], metric))
    pairs = adjusted([Pair(a, b, contest.difference(a, b)) for a, b in combinations(names, 2)])
    marks = _marks(ranked, pairs, settings.alpha)
    return Table(
        task=task,
        metric=metric.name,
        documents=len(scored),
        clusters=len(set(clusters)),
        unit=unit,
        values={name: values[name] for name in ranked},
        marks=marks,
        pairs=pairs,
        note="" if len(set(clusters)) > 1 else "no test: fewer than two clusters",
    )


@dataclass(frozen=True)
class _Contest:
    """One metric's samples, of every system."""

    key: str
    samples: Mapping[str, Sequence[Sample]]
    clusters: Sequence[str]
    recipe: Recipe | None
    settings: Settings

    def value(self, name: str) -> float | None:
        if self.recipe is None:
            scores = self._scores(name)
            return math.fsum(scores) / len(scores)
        totals = self.recipe.totals(self.samples[name], self.key, self.clusters)
        (value,) = self.recipe.statistic(sum(totals.values())[None])  # type: ignore[index]
        return None if math.isnan(value) else float(value)

    def difference(self, first: str, second: str) -> Difference:
        if self.recipe is None:
            return paired_difference(
                self._scores(first),
                self._scores(second),
                self.clusters,
                alpha=self.settings.alpha,
                seed=self.settings.seed,
            )
        one, two = (
            self.recipe.totals(self.samples[name], self.key, self.clusters)
            for name in (first, second)
        )
        found = paired_cluster_bootstrap(
            one, two, self.recipe.statistic, alpha=self.settings.alpha, seed=self.settings.seed
        )
        return Difference(math.nan) if found is None else found

    def _scores(self, name: str) -> list[float]:
        found = (sample.scores[self.key] for sample in self.samples[name])
        return [score for score in found if score is not None]


def adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with p-values that Holm's method adjusts for all of them."""
    tested = [pair.difference.p for pair in pairs if pair.difference.p is not None]
    found = iter(holm(tested))
    return [
        pair if pair.difference.p is None else replace(pair, p_holm=next(found)) for pair in pairs
    ]


def _order(value: float | None, metric: Metric) -> tuple[bool, float]:
    """Undefined figures last."""
    if value is None:
        return (True, 0.0)
    return (False, -value if metric.higher_is_better else value)


def _marks(ranked: Sequence[str], pairs: Sequence[Pair], alpha: float) -> dict[str, str]:
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
