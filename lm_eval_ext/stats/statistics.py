"""Statistics over the long table of scores (docs/statistics.md): figures, differences, tests.

A table has a row for each thing that was scored of a document. Columns are ``document``,
``cluster`` (and ``cluster_1``, ... for finer clusters, used where all documents are in one coarser
cluster), facets (text) and values (numbers; NaN where a row has none). A :class:`Measure` says how
rows become a figure, and a :class:`Question` which rows are asked about.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

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
    from pandas import DataFrame, Series

    from lm_eval_ext.stats.intervals import Array, Statistic

PAPER_SAMPLES, PAPER_REPEATS = 100, 200
"""Of the bootstrap in the conceptual few-shot paper (captions of its figures 2 to 4)."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None for what there is none of.

    ``level`` is that of the clusters that its error is clustered by, ``method`` the interval's.
    """

    value: float | None
    stderr: float | None = None
    documents: int = 0
    clusters: int = 0
    level: int = 0
    low: float | None = None
    high: float | None = None
    method: str | None = None


@dataclass
class Pair(Difference):
    """The difference of two systems, with the p-value that is adjusted for all pairs."""

    first: str = ""
    second: str = ""
    p_holm: float | None = None


# Rows.


def select(rows: "DataFrame", where: Filter, shared: Mapping[str, str] = {}) -> "DataFrame":
    """The rows with these values; those with a ``shared`` one belong to every part."""
    for facet, values in where.items():
        if facet not in rows:
            return rows.iloc[:0]
        rows = rows[rows[facet].isin({*values, shared.get(facet, values[0])})]
    return rows


def parts(rows: "DataFrame", question: Question) -> "Iterator[tuple[dict[str, str], Question]]":
    """The question about each part, in the order in which the table has the parts."""
    if not question.by:
        yield {}, question
        return
    measure = question.measure
    asked = select(rows, question.filter)
    asked = asked[_has_value(asked, measure)].reindex(columns=list(question.by)).dropna()
    for values in asked.drop_duplicates().itertuples(index=False, name=None):
        part = dict(zip(question.by, map(str, values), strict=True))
        if not any(measure.shared.get(facet) == one for facet, one in part.items()):
            only = {facet: (one,) for facet, one in part.items()}
            yield part, Question(measure, {**question.filter, **only})


def _has_value(rows: "DataFrame", measure: Measure) -> "Series":
    return rows.reindex(columns=list(measure.value)).notna().all(axis=1)


def _asked(rows: "DataFrame", question: Question) -> "DataFrame":
    measure, where = question.measure, question.filter
    best = measure.best_of
    if best is not None and best.facet not in where and best.facet in rows:
        deciding = select(rows, {**where, **best.where}).dropna(subset=[best.value])
        values = deciding.groupby(best.facet, sort=False)[best.value]
        means = values.agg(math.fsum) / values.count()  # exact: ties stay ties in any order
        if len(means) > 1:
            where = {**where, best.facet: (str(means.idxmax()),)}
    rows = select(rows, where, measure.shared)
    rows = rows[_has_value(rows, measure)]
    if not len(rows):
        return rows
    if measure.statistic == "micro_f1":  # what has no component on either side changes nothing
        rows = rows[rows[list(measure.value[1:])].any(axis=1)]
    if measure.weights:
        own = rows[rows[measure.facet].isin(measure.weights)]
        count = own.groupby(DOCUMENT)[measure.facet].transform("nunique")
        rows = own[count == len(measure.weights)]
    return rows


def _levels(rows: "DataFrame") -> tuple[int, "Series"]:
    """What a figure of these rows is clustered by: the level, and the cluster of each row."""
    names = [CLUSTER, *sorted(name for name in rows if str(name).startswith(f"{CLUSTER}_"))]
    if len(names) == 1 or not len(rows):
        return 0, rows[CLUSTER]
    per_document = rows.drop_duplicates(DOCUMENT)
    level = level_of([per_document[name].tolist() for name in names])
    return level, rows[names[level]]


# Figures.


def estimate(rows: "DataFrame", question: Question) -> Estimate:
    """The figure of one run's rows of a task; ``question.by`` is left aside."""
    measure = question.measure
    rows = _asked(rows, question)
    documents = rows[DOCUMENT].nunique()
    level, clusters = _levels(rows)
    rows = rows.assign(**{CLUSTER: clusters})
    counted = (documents, rows[CLUSTER].nunique(), level)
    if not documents:
        return Estimate(None)
    if measure.statistic == "bootstrap":
        return _drawn(rows, measure, counted)
    if statistic := STATISTICS.get(measure.statistic):
        sums = totals(rows, measure)
        (value,) = statistic(sums.sum(axis=0)[None])
        estimate = jackknife(sums, statistic, sizes(rows))
    else:
        scores = document_values(rows, measure)
        value = math.fsum(scores[measure.name]) / len(scores)
        estimate = mean_estimate(scores[measure.name], scores[CLUSTER])
    return Estimate(
        None if math.isnan(value) else float(value),
        estimate.stderr if estimate else None,
        *counted,
        *interval(estimate, measure.limits),
    )


def better_than(rows: "DataFrame", question: Question, baseline: float) -> float | None:
    """Test whether the value of a run's rows is better than a fixed one, such as chance.

    Of a mean the p-value is the larger one of two tests: by the interval, and by turning the
    distances from the baseline around in some clusters (:func:`~.paired.swap_test`), which needs
    six clusters with a distance. Of other statistics it is that of the interval.

    Args:
        rows: The long table of a run.
        question: Its ``by`` is left aside.
        baseline: The fixed value.

    Returns:
        A two-sided p-value; 1 if the value is not better; None if there is nothing to test it by:
        no value, no interval, or a bootstrap of the paper.
    """
    measure = question.measure
    rows = _asked(rows, question)
    if rows.empty or measure.statistic == "bootstrap":
        return None
    _, clusters = _levels(rows)
    rows = rows.assign(**{CLUSTER: clusters})
    flipped: float | None = 0.0
    if statistic := STATISTICS.get(measure.statistic):
        found = jackknife(totals(rows, measure), statistic, sizes(rows))
    else:
        scores = document_values(rows, measure)
        values = scores[measure.name].tolist()
        found = mean_estimate(values, scores[CLUSTER])
        constant = [baseline] * len(values)
        flipped = paired_difference(values, constant, scores[CLUSTER].tolist()).p
    p = probability_of(found, baseline, measure.limits)
    if found is None or p is None or flipped is None:
        return None
    sign = -1 if measure.lower_is_better else 1
    if sign * (found.value - baseline) <= 0:
        return 1.0
    return max(p, flipped)


def document_values(rows: "DataFrame", measure: Measure) -> "DataFrame":
    """By document, its cluster and its value of a mean or a contrast, in the measure's column."""
    import pandas as pd

    documents = rows.groupby(DOCUMENT, sort=False)
    found = documents[list(measure.value)].mean().set_axis([measure.name], axis=1)
    if measure.weights:
        # A weight belongs to all rows of a document with its value of the facet.
        weighted = means_by_facet(rows, measure) * pd.Series(measure.weights)
        found[measure.name] = weighted.sum(axis=1)
    return found.assign(**{CLUSTER: documents[CLUSTER].first()})


def of_documents(rows: "DataFrame", question: Question) -> "Series":
    """By document its own value, whatever the statistic: a mean, a contrast, or its F1."""
    measure = question.measure
    rows = _asked(rows, Question(measure.model_copy(update={"shared": {}}), question.where))
    if measure.statistic == "micro_f1":
        sums = rows.groupby(DOCUMENT, sort=False)[list(measure.value)].sum()
        hits, predicted, gold = (sums[name] for name in measure.value)
        return 2 * hits / (predicted + gold)
    return document_values(rows, measure)[measure.name]


def _drawn(rows: "DataFrame", measure: Measure, counted: tuple[int, int, int]) -> Estimate:
    """The paper's bootstrap: 200 times, the figure of 100 documents drawn with replacement.

    Each value of the facet is weighted as in a contrast. Without ``seeds`` its mean is over the
    same drawn documents as the others'; with them over others, as in the authors' code, so that a
    gain varies with the documents, too. For a unit of ``change`` the figure is the relative change
    of 1 minus the mean.
    """
    import numpy as np

    means = means_by_facet(rows, measure)
    # Sorted, so that the draw does not depend on the order of lm-eval's processes.
    ids = rows.drop_duplicates(DOCUMENT).set_index(DOCUMENT)[ID]
    means = means.loc[ids.sort_values(kind="stable").index]

    def drawn(name: str) -> Any:
        rng = np.random.default_rng(measure.seeds.get(name, 0))
        places = rng.integers(len(means), size=(PAPER_REPEATS, PAPER_SAMPLES))
        return means[name].to_numpy()[places]

    if measure.unit == "change":
        missing = [(1 - drawn(name)).sum(axis=1) for name in after_and_before(measure)]
        figures = change_of_sums(np.stack(missing, axis=1))
    else:
        weights = measure.weights.items()
        figures = np.sum([weight * drawn(name).mean(axis=1) for name, weight in weights], axis=0)
    figures = figures[~np.isnan(figures)]
    if len(figures) < 2 or len(means) < 2:  # noqa: PLR2004
        return Estimate(None, None, *counted)
    middle, low, high = map(float, np.quantile(figures, (0.5, 0.025, 0.975)))
    return Estimate(middle, float(figures.std(ddof=1)), *counted, low, high, "own")


# Statistics of sums over clusters: a change, F1, means of groups, relative performance. `totals`
# makes sums of rows, by cluster; each statistic leads from sums to values, with any number of axes
# in front (NaN: undefined). Jackknife and exchanges need no more.

LEAST_BASE = 0.05
"""Relative performance leaves out groups whose base score is lower (MAGNIFICo, footnote 8)."""


def totals(rows: "DataFrame", measure: Measure) -> "Array":
    """By cluster, in the order of their names, the sums that the measure's statistic needs.

    Of a change what is missing to 1, after and before; of F1 hits, predicted and gold; of others
    sum and number of the values in each group and value of the facet, the one to compare with
    first. Sums are exact where it matters, so that the order of documents changes no digit.
    """
    import pandas as pd

    values = list(measure.value)
    if measure.statistic == "micro_f1":
        return _array(rows.groupby(CLUSTER)[values].agg(math.fsum))
    if measure.statistic == "change":
        clusters = rows.drop_duplicates(DOCUMENT).set_index(DOCUMENT)[CLUSTER]
        missing = 1 - means_by_facet(rows, measure)[after_and_before(measure)]
        return _array(missing.groupby(clusters).agg(math.fsum))
    keys = [CLUSTER, *measure.groups, *filter(None, [measure.facet])]
    found = rows.groupby(keys)[values[0]].agg(["sum", "count"])
    base = [measure.shared[measure.facet]] if measure.facet else []
    *outer, last = map(list, found.index.levels)
    last = list(dict.fromkeys([*base, *last]))
    every = found.reindex(pd.MultiIndex.from_product([*outer, last]), fill_value=0)
    return _array(every).reshape(len(outer[0]), -1, len(last), 2)


def sizes(rows: "DataFrame") -> "Array":
    """By cluster, in the order of their names, the number of documents."""
    return _array(rows.groupby(CLUSTER)[DOCUMENT].nunique())


def _array(found: "DataFrame | Series") -> "Array":
    made: Array = found.to_numpy(float)
    return made


def means_by_facet(rows: "DataFrame", measure: Measure) -> "DataFrame":
    """By document, the mean value for each value of the measure's facet."""
    (column,) = measure.value
    return rows.groupby([DOCUMENT, measure.facet], sort=False)[column].mean().unstack()


def after_and_before(measure: Measure) -> list[str]:
    """The values of the facet that a change is between: the weight above 0 is after."""
    return sorted(measure.weights, key=lambda name: -measure.weights[name])


def change_of_sums(sums: "Array") -> "Array":
    """From what is missing after and before, the relative change."""
    return _ratio(sums[..., 0], sums[..., 1]) - 1


def f1_of_sums(sums: "Array") -> "Array":
    """From hits, predicted and gold, that is F1 = 2 hits / (predicted + gold)."""
    return _ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def _ratio(above: "Array", below: "Array") -> "Array":
    """NaN where the second is 0."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(below > 0, above / below, np.nan)
    return found


def _mean(values: "Array") -> "Array":
    """Over groups and values of the facet; NaN does not count."""
    import numpy as np

    return _ratio(np.nansum(values, axis=(-2, -1)), np.isfinite(values).sum(axis=(-2, -1)))


def mean_of_sums(sums: "Array") -> "Array":
    """From sum and number in each group; groups without values do not count."""
    return _mean(_ratio(sums[..., 0], sums[..., 1]))


def relative_of_sums(sums: "Array") -> "Array":
    """min(novel / base, 1) x 100, averaged over the pairs with a base score of 5 % or more."""
    import numpy as np

    scores = _ratio(sums[..., 0], sums[..., 1])
    base, novel = scores[..., :1], scores[..., 1:]
    shares = np.minimum(_ratio(novel, base), 1)
    return 100 * _mean(np.where(base >= LEAST_BASE, shares, np.nan))


STATISTICS: "Mapping[str, Statistic]" = {
    "change": change_of_sums,
    "micro_f1": f1_of_sums,
    "mean_of_groups": mean_of_sums,
    "relative": relative_of_sums,
}


# Systems on the same documents.


def pairs(systems: "Mapping[str, DataFrame]", question: Question) -> list[Pair]:
    """Compares every two systems on the documents that all of them have a value for.

    P-values are adjusted for all pairs by Holm's method. ``question.by`` is ignored.
    """
    measure = question.measure
    limits = difference_limits(measure.limits)
    asked = shared_documents(systems, question)
    some = next(iter(asked.values()))
    if some.empty or measure.statistic == "bootstrap":
        return []
    compared: Callable[..., Difference]
    if statistic := STATISTICS.get(measure.statistic):
        found: Mapping[str, Any] = {name: totals(rows, measure) for name, rows in asked.items()}
        compared = partial(paired_statistic, statistic=statistic, sizes=sizes(some))
    else:
        values = {name: document_values(rows, measure) for name, rows in asked.items()}
        clusters = next(iter(values.values()))[CLUSTER]
        found = {name: own[measure.name].loc[clusters.index] for name, own in values.items()}
        compared = partial(paired_difference, clusters=clusters.tolist())
    made = [
        Pair(**vars(compared(found[one], found[two], limits=limits)), first=one, second=two)
        for one, two in combinations(asked, 2)
    ]
    adjust(made)
    return made


def adjust(found: Sequence[Pair]) -> None:
    """Adjusts the p-values for all of these pairs."""
    tested = [(one, one.p) for one in found if one.p is not None]
    for (one, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        one.p_holm = p


def shared_documents(
    systems: "Mapping[Any, DataFrame]", question: Question
) -> "dict[Any, DataFrame]":
    """The rows asked about, of the documents that all systems have; clustered alike."""
    asked = {name: _asked(rows, question) for name, rows in systems.items()}
    common = set.intersection(*(set(rows[DOCUMENT]) for rows in asked.values()))
    kept = {name: rows[rows[DOCUMENT].isin(common)] for name, rows in asked.items()}
    return {name: rows.assign(**{CLUSTER: _levels(rows)[1]}) for name, rows in kept.items()}


NONE = "N/A"


def number(value: float | None, unit: str = "share", *, signed: bool = False) -> str:
    """A value as text: percentages with one decimal, counts with two, all others with three."""
    if value is None or math.isnan(value):
        return NONE
    decimals = {"percent": 1, "count": 2}.get(unit, 3)
    shown = round(value, decimals) + 0.0  # no -0.0
    return f"{shown:{'+' if signed else ''}.{decimals}f}"


def probability(p: float | None) -> str:
    """A p-value as text."""
    return "<0.001" if p is not None and p < 0.001 else number(p)  # noqa: PLR2004
