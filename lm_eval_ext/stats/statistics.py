"""Statistics over the long table of scores (docs/statistics.md): estimates, differences, tests.

A table has a row for each thing that was scored of a document. Columns are ``document``,
``cluster`` (and ``cluster_1``, ... for finer clusters, used where all documents are in one coarser
cluster), facets (text) and values (numbers; NaN where a row has none). A :class:`Measure` says how
rows become a value, and a :class:`Question` which rows are asked about.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from lm_eval_ext.stats.intervals import (
    interval,
    jackknife,
    level_of,
    mean_estimate,
    probability_of,
)
from lm_eval_ext.stats.measures import CLUSTER, DOCUMENT, ID, Filter, Measure, Question
from lm_eval_ext.stats.paired import (
    Difference,
    difference_limits,
    holm,
    paired_difference,
    paired_statistic,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from lm_eval_ext.stats.intervals import Array, Statistic

SystemName = TypeVar("SystemName")

PAPER_SAMPLES = 100
"""Documents of a draw of the bootstrap in the conceptual few-shot paper (figures 2 to 4)."""

PAPER_REPEATS = 200
"""Draws of the same bootstrap."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None stands for what could not be computed.

    Attributes:
        value: The value.
        stderr: The standard error, clustered.
        documents: The number of documents.
        clusters: The number of clusters that the documents come from.
        level: The level of these clusters; 0 is the coarsest.
        low: The lower end of the 95 % interval.
        high: The upper end.
        method: How the interval was made.
        unused_clusters: How many clusters relative performance leaves out; the interval does not
            count them.
    """

    value: float | None
    stderr: float | None = None
    documents: int = 0
    clusters: int = 0
    level: int = 0
    low: float | None = None
    high: float | None = None
    method: str | None = None
    unused_clusters: int = 0

    @property
    def used_clusters(self) -> int:
        """The number of clusters that the value stands on."""
        return self.clusters - self.unused_clusters


@dataclass
class Pair(Difference):
    """The difference of two systems, with the p-value that is adjusted for all pairs."""

    first: str = ""
    second: str = ""
    p_holm: float | None = None


# Rows.


def matching_rows(rows: "DataFrame", where: Filter, shared: Mapping[str, str] = {}) -> "DataFrame":
    """Return the rows that have these values, or the ``shared`` one of a facet."""
    for facet, values in where.items():
        if facet not in rows:
            return rows.iloc[:0]
        accepted = set(values)
        if facet in shared:
            accepted.add(shared[facet])
        rows = rows[rows[facet].isin(accepted)]
    return rows


def split_question(
    rows: "DataFrame", question: Question
) -> "Iterator[tuple[dict[str, str], Question]]":
    """Yield each part, its values by facet, and the question about it, in the order of the rows."""
    if not question.by:
        yield {}, question
        return
    measure = question.measure
    rows = matching_rows(rows, question.filter)
    facets = rows[_has_value(rows, measure)].reindex(columns=list(question.by))
    for values in facets.dropna().drop_duplicates().itertuples(index=False, name=None):
        facet_values = dict(zip(question.by, map(str, values), strict=True))
        if facet_values.items() & measure.shared.items():
            continue
        conditions = {facet: (value,) for facet, value in facet_values.items()}
        yield facet_values, Question(measure, {**question.filter, **conditions})


def _has_value(rows: "DataFrame", measure: Measure) -> "Series":
    return rows.reindex(columns=list(measure.value)).notna().all(axis=1)


def _rows_of(rows: "DataFrame", question: Question) -> "DataFrame":
    """Return the rows that a question without parts is about."""
    measure = question.measure
    rows = matching_rows(rows, _with_best_part(rows, question), measure.shared)
    rows = rows[_has_value(rows, measure)]
    if not len(rows):
        return rows
    if measure.statistic == "micro_f1":  # what has no component on either side changes nothing
        rows = rows[rows[list(measure.value[1:])].any(axis=1)]
    if measure.weights:
        # A contrast needs every weighted value: documents that lack one are left out.
        rows = rows[rows[measure.facet].isin(measure.weights)]
        counts = rows.groupby(DOCUMENT)[measure.facet].transform("nunique")
        rows = rows[counts == len(measure.weights)]
    return rows


def _with_best_part(rows: "DataFrame", question: Question) -> Filter:
    """Return the filter of a question, with the part of the highest mean if it is about that."""
    where, best = question.filter, question.measure.best_of
    if best is None or best.facet in where or best.facet not in rows:
        return where
    deciding = matching_rows(rows, {**where, **best.where}).dropna(subset=[best.value])
    values = deciding.groupby(best.facet, sort=False)[best.value]
    means = values.agg(math.fsum) / values.count()  # exact: ties stay ties in any order
    if len(means) < 2:  # noqa: PLR2004
        return where
    return {**where, best.facet: (str(means.idxmax()),)}


def _levels(rows: "DataFrame") -> tuple[int, "Series"]:
    """Return the level of the clusters that an estimate is clustered by, and each row's cluster."""
    finer = sorted(name for name in rows if str(name).startswith(f"{CLUSTER}_"))
    if not finer or not len(rows):
        return 0, rows[CLUSTER]
    names = [CLUSTER, *finer]
    per_document = rows.drop_duplicates(DOCUMENT)
    level = level_of([per_document[name].tolist() for name in names])
    return level, rows[names[level]]


# Estimates.


def estimate(rows: "DataFrame", question: Question) -> Estimate:
    """Return the estimate of one run's rows of a task; ``question.by`` is left aside."""
    measure = question.measure
    rows = _rows_of(rows, question)
    if rows.empty:
        return Estimate(None)
    level, clusters = _levels(rows)
    rows = rows.assign(**{CLUSTER: clusters})
    counts = Estimate(
        None,
        documents=rows[DOCUMENT].nunique(),
        clusters=rows[CLUSTER].nunique(),
        level=level,
    )
    if measure.statistic == "bootstrap":
        return _bootstrap(rows, measure, counts)
    statistic = STATISTICS.get(measure.statistic)
    if statistic:
        sums = cluster_sums(rows, measure)
        value = float(statistic(sums.sum(axis=0)[None])[0])
        clustered = jackknife(
            sums, statistic, cluster_sizes(rows), counting_clusters(sums, measure)
        )
        if clustered is not None:
            counts = replace(counts, unused_clusters=counts.clusters - clustered.clusters)
    else:
        scores = document_values(rows, measure)
        value = math.fsum(scores[measure.name]) / len(scores)
        clustered = mean_estimate(scores[measure.name], scores[CLUSTER])
    ends = interval(clustered, measure.limits)
    return replace(
        counts,
        value=None if math.isnan(value) else value,
        stderr=clustered.stderr if clustered else None,
        low=ends.low,
        high=ends.high,
        method=ends.method,
    )


def better_than(rows: "DataFrame", question: Question, baseline: float) -> float | None:
    """Test whether the value of a run's rows is better than a fixed one, such as chance.

    The p-value of a mean is the larger one of two tests: by the interval, and by turning the
    distances from the baseline around in some clusters (:func:`~.paired.swap_test`), which needs
    six clusters with a distance. The p-value of any other statistic is that of the interval.

    Args:
        rows: The long table of a run.
        question: The question; its ``by`` is left aside.
        baseline: The fixed value.

    Returns:
        A two-sided p-value; 1 if the value is not better; None if there is nothing to test it by:
        no value, no interval, or a bootstrap of the paper.
    """
    measure = question.measure
    rows = _rows_of(rows, question)
    if rows.empty or measure.statistic == "bootstrap":
        return None
    _, clusters = _levels(rows)
    rows = rows.assign(**{CLUSTER: clusters})
    p_flipped: float | None = 0.0
    statistic = STATISTICS.get(measure.statistic)
    if statistic:
        sums = cluster_sums(rows, measure)
        clustered = jackknife(
            sums, statistic, cluster_sizes(rows), counting_clusters(sums, measure)
        )
    else:
        scores = document_values(rows, measure)
        values = scores[measure.name].tolist()
        clustered = mean_estimate(values, scores[CLUSTER])
        constant = [baseline] * len(values)
        p_flipped = paired_difference(values, constant, scores[CLUSTER].tolist()).p
    p = probability_of(clustered, baseline, measure.limits)
    if clustered is None or p is None or p_flipped is None:
        return None
    gain = clustered.value - baseline
    is_better = gain < 0 if measure.lower_is_better else gain > 0
    return max(p, p_flipped) if is_better else 1.0


def document_values(rows: "DataFrame", measure: Measure) -> "DataFrame":
    """Return each document's value of a mean or a contrast, in the measure's column, and cluster.

    Rows are by document.
    """
    import pandas as pd

    documents = rows.groupby(DOCUMENT, sort=False)
    values = documents[list(measure.value)].mean().set_axis([measure.name], axis=1)
    if measure.weights:
        # A weight belongs to all rows of a document with its value of the facet.
        weighted = means_by_facet(rows, measure) * pd.Series(measure.weights)
        values[measure.name] = weighted.sum(axis=1)
    return values.assign(**{CLUSTER: documents[CLUSTER].first()})


def values_by_document(rows: "DataFrame", question: Question) -> "Series":
    """Return each document's own value, whatever the statistic: a mean, a contrast, or its F1."""
    measure = question.measure
    without_shared = measure.model_copy(update={"shared": {}})
    rows = _rows_of(rows, Question(without_shared, question.where))
    if measure.statistic == "micro_f1":
        sums = rows.groupby(DOCUMENT, sort=False)[list(measure.value)].sum()
        hits, predicted, gold = (sums[name] for name in measure.value)
        return 2 * hits / (predicted + gold)
    return document_values(rows, measure)[measure.name]


def _bootstrap(rows: "DataFrame", measure: Measure, counts: Estimate) -> Estimate:
    """Return the paper's bootstrap: 200 times, the value of 100 documents drawn with replacement.

    Each value of the facet is weighted as in a contrast. Without ``seeds``, the same documents are
    drawn for all values of the facet; with seeds, other ones for each, as in the authors' code, so
    that a gain varies with the documents, too. If the unit is ``change``, the value is the relative
    change of 1 minus the mean.
    """
    import numpy as np

    means = means_by_facet(rows, measure)
    # Sorted, so that the draw does not depend on the order of lm-eval's processes.
    ids = rows.drop_duplicates(DOCUMENT).set_index(DOCUMENT)[ID]
    means = means.loc[ids.sort_values(kind="stable").index]

    def draw(name: str) -> "Array":
        rng = np.random.default_rng(measure.seeds.get(name, 0))
        positions = rng.integers(len(means), size=(PAPER_REPEATS, PAPER_SAMPLES))
        drawn: Array = means[name].to_numpy()[positions]
        return drawn

    if measure.unit == "change":
        missing = [(1 - draw(name)).sum(axis=1) for name in after_and_before(measure)]
        values = change_of_sums(np.stack(missing, axis=1))
    else:
        weighted = [weight * draw(name).mean(axis=1) for name, weight in measure.weights.items()]
        values = np.sum(weighted, axis=0)
    values = values[~np.isnan(values)]
    if len(values) < 2 or len(means) < 2:  # noqa: PLR2004
        return counts
    low, median, high = map(float, np.quantile(values, (0.025, 0.5, 0.975)))
    stderr = float(values.std(ddof=1))
    return replace(counts, value=median, stderr=stderr, low=low, high=high, method="own")


# Statistics of sums over clusters: a change, F1, means of groups, relative performance.
# `cluster_sums` makes sums of rows, by cluster; each statistic leads from sums to values, with any
# number of axes in front (NaN: undefined). Jackknife and exchanges need no more.

MIN_BASE = 0.05
"""Relative performance leaves out groups whose base score is lower (MAGNIFICo, footnote 8)."""


def cluster_sums(rows: "DataFrame", measure: Measure) -> "Array":
    """Return by cluster, in the order of their names, the sums that the statistic needs.

    For a change, these are what is missing to 1, after and before; for F1, hits, predicted and
    gold; for others, sum and number of the values in each group, for each value of the facet (the
    base first). Sums are exact where it matters, so that the order of documents changes no digit.
    """
    import pandas as pd

    values = list(measure.value)
    if measure.statistic == "micro_f1":
        return _array(rows.groupby(CLUSTER)[values].agg(math.fsum))
    if measure.statistic == "change":
        clusters = rows.drop_duplicates(DOCUMENT).set_index(DOCUMENT)[CLUSTER]
        missing = 1 - means_by_facet(rows, measure)[after_and_before(measure)]
        return _array(missing.groupby(clusters).agg(math.fsum))
    keys = [CLUSTER, *measure.groups]
    if measure.facet:
        keys.append(measure.facet)
    sums = rows.groupby(keys)[values[0]].agg(["sum", "count"])
    levels = [list(level) for level in sums.index.levels]
    if measure.facet:
        base = measure.shared[measure.facet]
        levels[-1] = list(dict.fromkeys([base, *levels[-1]]))
    complete = sums.reindex(pd.MultiIndex.from_product(levels), fill_value=0)
    return _array(complete).reshape(len(levels[0]), -1, len(levels[-1]), 2)


def counting_clusters(sums: "Array", measure: Measure) -> "NDArray[np.bool_]":
    """Return by cluster whether it has documents that the statistic uses.

    Relative performance leaves out groups that have hardly a base question right. If 100 % come
    from two of 16 interpretations, the other 14 say nothing about it.

    Args:
        sums: By cluster, as :func:`cluster_sums` returns them.
        measure: Its statistic decides.
    """
    import numpy as np

    if measure.statistic != "relative":
        return np.ones(len(sums), dtype=bool)
    total = sums.sum(axis=0)
    base_scores = _ratio(total[:, 0, 0], total[:, 0, 1])
    used_groups = base_scores >= MIN_BASE
    counts = sums[..., 1]
    uses: NDArray[np.bool_] = counts[:, used_groups].sum(axis=(1, 2)) > 0
    return uses


def cluster_sizes(rows: "DataFrame") -> "Array":
    """Return by cluster, in the order of their names, the number of documents."""
    return _array(rows.groupby(CLUSTER)[DOCUMENT].nunique())


def _array(numbers: "DataFrame | Series") -> "Array":
    array: Array = numbers.to_numpy(float)
    return array


def means_by_facet(rows: "DataFrame", measure: Measure) -> "DataFrame":
    """Return by document the mean value for each value of the measure's facet."""
    (column,) = measure.value
    return rows.groupby([DOCUMENT, measure.facet], sort=False)[column].mean().unstack()


def after_and_before(measure: Measure) -> list[str]:
    """Return the values of the facet that a change is between: the weight above 0 is after."""
    return sorted(measure.weights, key=lambda name: -measure.weights[name])


def change_of_sums(sums: "Array") -> "Array":
    """Return the relative change of what is missing, given after and before."""
    return _ratio(sums[..., 0], sums[..., 1]) - 1


def f1_of_sums(sums: "Array") -> "Array":
    """Return F1 = 2 hits / (predicted + gold), given hits, predicted and gold."""
    return _ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def _ratio(numerator: "Array", denominator: "Array") -> "Array":
    """Return the ratio; NaN where the denominator is 0."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.where(denominator > 0, numerator / denominator, np.nan)
    return ratio


def _mean(values: "Array") -> "Array":
    """Return the mean over groups and values of the facet; NaN does not count."""
    import numpy as np

    return _ratio(np.nansum(values, axis=(-2, -1)), np.isfinite(values).sum(axis=(-2, -1)))


def mean_of_sums(sums: "Array") -> "Array":
    """Return the mean of groups, given sum and number in each; empty groups do not count."""
    return _mean(_ratio(sums[..., 0], sums[..., 1]))


def relative_of_sums(sums: "Array") -> "Array":
    """Return min(novel / base, 1) x 100, averaged over pairs with a base score of 5 % or more."""
    import numpy as np

    scores = _ratio(sums[..., 0], sums[..., 1])
    base, novel = scores[..., :1], scores[..., 1:]
    shares = np.minimum(_ratio(novel, base), 1)
    return 100 * _mean(np.where(base >= MIN_BASE, shares, np.nan))


STATISTICS: "Mapping[str, Statistic]" = {
    "change": change_of_sums,
    "micro_f1": f1_of_sums,
    "mean_of_groups": mean_of_sums,
    "relative": relative_of_sums,
}


# Systems on the same documents.


def pairs(systems: "Mapping[str, DataFrame]", question: Question) -> list[Pair]:
    """Compare every two systems on the documents that all of them have a value for.

    P-values are adjusted for all pairs by Holm's method. ``question.by`` is ignored.
    """
    shared = shared_documents(systems, question)
    if next(iter(shared.values())).empty or question.measure.statistic == "bootstrap":
        return []
    compare = _comparer(shared, question.measure)
    compared = []
    for name_a, name_b in combinations(shared, 2):
        difference = compare(name_a, name_b)
        compared.append(Pair(**vars(difference), first=name_a, second=name_b))
    adjust(compared)
    return compared


def _comparer(
    systems: "Mapping[str, DataFrame]", measure: Measure
) -> Callable[[str, str], Difference]:
    """Return what compares two systems by name; what it needs is computed once for each."""
    limits = difference_limits(measure.limits)
    statistic = STATISTICS.get(measure.statistic)
    if statistic:
        sums = {name: cluster_sums(rows, measure) for name, rows in systems.items()}
        counting = {name: counting_clusters(sums[name], measure) for name in systems}
        sizes = cluster_sizes(next(iter(systems.values())))
        compare_sums = partial(paired_statistic, statistic=statistic, sizes=sizes, limits=limits)

        def compare_by_sums(name_a: str, name_b: str) -> Difference:
            used_by_either = counting[name_a] | counting[name_b]
            return compare_sums(sums[name_a], sums[name_b], counting=used_by_either)

        return compare_by_sums
    tables = {name: document_values(rows, measure) for name, rows in systems.items()}
    clusters = next(iter(tables.values()))[CLUSTER]
    values = {name: table[measure.name].loc[clusters.index] for name, table in tables.items()}
    compare_values = partial(paired_difference, clusters=clusters.tolist(), limits=limits)
    return lambda name_a, name_b: compare_values(values[name_a], values[name_b])


def adjust(compared: Sequence[Pair]) -> None:
    """Adjust the p-values for all of these pairs, by Holm's method."""
    tested = [pair for pair in compared if pair.p is not None]
    p_values = [pair.p for pair in tested if pair.p is not None]
    for pair, p in zip(tested, holm(p_values), strict=True):
        pair.p_holm = p


def shared_documents(
    systems: "Mapping[SystemName, DataFrame]", question: Question
) -> "dict[SystemName, DataFrame]":
    """Return the rows of a question, of the documents that all systems have; clustered alike."""
    rows_of_systems = {name: _rows_of(rows, question) for name, rows in systems.items()}
    documents = set.intersection(*[set(rows[DOCUMENT]) for rows in rows_of_systems.values()])
    shared = {}
    for name, rows in rows_of_systems.items():
        shared_rows = rows[rows[DOCUMENT].isin(documents)]
        _, clusters = _levels(shared_rows)
        shared[name] = shared_rows.assign(**{CLUSTER: clusters})
    return shared


# Text.

NONE = "N/A"

_DECIMALS = {"percent": 1, "count": 2}
"""Decimals by unit; all others have three."""

_SMALLEST_P = 0.001
"""A smaller p-value is not shown with its digits."""


def number(value: float | None, unit: str = "share", *, signed: bool = False) -> str:
    """Return a value as text: percentages with one decimal, counts with two, others with three."""
    if value is None or math.isnan(value):
        return NONE
    decimals = _DECIMALS.get(unit, 3)
    rounded = round(value, decimals) + 0.0  # no -0.0
    return f"{rounded:+.{decimals}f}" if signed else f"{rounded:.{decimals}f}"


def probability(p: float | None) -> str:
    """Return a p-value as text."""
    return "<0.001" if p is not None and p < _SMALLEST_P else number(p)
