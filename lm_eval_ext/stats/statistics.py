"""Statistics over the long table of scores (docs/statistics.md): figures, differences, the best.

A table has a row for each thing that was scored of a document. Columns are ``document``,
``cluster`` (and ``cluster_1``, ... for finer clusters, used where all documents are in one coarser
cluster), facets (text) and values (numbers; NaN where a row has none). A :class:`Measure` says how
rows become a figure, and a :class:`Question` which rows are asked about.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from operator import and_
from typing import TYPE_CHECKING, Any

from lm_eval_ext.stats.intervals import (
    ALPHA,
    Estimate,
    interval,
    jackknife,
    level_of,
    mean_estimate,
)
from lm_eval_ext.stats.measures import CLUSTER, DOCUMENT, ID, Filter, Measure, Question
from lm_eval_ext.stats.paired import (
    Difference,
    difference_limits,
    holm,
    paired_difference,
    paired_statistic,
)
from lm_eval_ext.stats.sums import SUMS, after_and_before, change_of_sums, means_by_facet

if TYPE_CHECKING:
    from pandas import DataFrame, Series

PAPER_SAMPLES, PAPER_REPEATS = 100, 200
"""Of the bootstrap in the conceptual few-shot paper (captions of its figures 2 to 4)."""


@dataclass(frozen=True)
class Figure:
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


@dataclass(frozen=True)
class Pair(Difference):
    """The difference of two systems, with the p-value that is adjusted for all pairs."""

    first: str = ""
    second: str = ""
    p_holm: float | None = None

    @property
    def differ(self) -> bool:
        """Whether one is significantly better."""
        return self.p_holm is not None and self.p_holm < ALPHA


# Rows.


def select(
    rows: "DataFrame", where: Filter, shared: Mapping[str, str] | None = None
) -> "DataFrame":
    """The rows with these values; those with a ``shared`` one belong to every part."""
    for facet, values in where.items():
        if facet not in rows:
            return rows.iloc[:0]
        kept = (*values, shared[facet]) if shared and facet in shared else values
        rows = rows[rows[facet].isin(kept)]
    return rows


def parts(rows: "DataFrame", question: Question) -> "Iterator[tuple[dict[str, str], Question]]":
    """The question about each part, in the order in which the table has the parts."""
    if not question.by:
        yield {}, question
        return
    measure = question.measure
    asked = select(rows, question.filter)
    if any(facet not in asked for facet in question.by):
        return
    asked = asked[_has_value(asked, measure)].dropna(subset=list(question.by))
    for values in asked[list(question.by)].drop_duplicates().itertuples(index=False, name=None):
        part = dict(zip(question.by, map(str, values), strict=True))
        if not any(measure.shared.get(facet) == one for facet, one in part.items()):
            only = {facet: (one,) for facet, one in part.items()}
            yield part, Question(measure, {**question.filter, **only})


def _has_value(rows: "DataFrame", measure: Measure) -> "Series":
    import pandas as pd

    if any(column not in rows for column in measure.value):
        return pd.Series([False] * len(rows), index=rows.index, dtype=bool)
    return reduce(and_, (rows[column].notna() for column in measure.value))


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
        _, predicted, gold = measure.value
        rows = rows[(rows[predicted] > 0) | (rows[gold] > 0)]
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


def figure(rows: "DataFrame", question: Question) -> Figure:
    """The figure of one run's rows of a task; ``question.by`` is left aside."""
    measure = question.measure
    rows = _asked(rows, question)
    documents = rows[DOCUMENT].nunique()
    level, clusters = _levels(rows)
    rows = rows.assign(**{CLUSTER: clusters})
    counted = (documents, rows[CLUSTER].nunique(), level)
    if not documents:
        return Figure(None)
    if measure.statistic == "bootstrap":
        return _drawn(rows, measure, counted)
    value, estimate = _estimate(rows, measure)
    found = interval(estimate, measure.limits)
    own = vars(found) if found else {}
    return Figure(value, estimate.stderr if estimate else None, *counted, **own)


def _estimate(rows: "DataFrame", measure: Measure) -> tuple[float | None, Estimate | None]:
    if sums := SUMS.get(measure.statistic):
        totals = sums.totals(rows, measure)
        found = jackknife(totals, sums.statistic, sizes(rows))
        (value,) = sums.statistic(sum(totals.values())[None]) if totals else (math.nan,)  # type: ignore[index]
        return (None if math.isnan(value) else float(value)), found
    scores = document_values(rows, measure)
    value = math.fsum(scores[measure.name]) / len(scores)
    return value, mean_estimate(zip(scores[measure.name], scores[CLUSTER], strict=True))


def sizes(rows: "DataFrame") -> dict[str, int]:
    """By cluster, the number of documents."""
    return dict(Counter(rows.drop_duplicates(DOCUMENT)[CLUSTER]))


def document_values(rows: "DataFrame", measure: Measure) -> "DataFrame":
    """By document, its cluster and its value of a mean or a contrast, in the measure's column."""
    import pandas as pd

    (column,) = measure.value
    first = rows[~rows[DOCUMENT].duplicated()]
    index = pd.Index(first[DOCUMENT])
    if measure.weights:
        # A weight belongs to all rows of a document with its value of the facet.
        means = means_by_facet(rows, measure)
        parts = [weight * means[name] for name, weight in measure.weights.items()]
        of_document = pd.Series(
            [math.fsum(one) for one in zip(*parts, strict=True)], index=means.index
        )
    elif len(first) == len(rows):
        of_document = pd.Series(first[column].to_numpy(), index)
    else:
        of_document = rows.groupby(DOCUMENT, sort=False)[column].mean()
    clusters = pd.Series(first[CLUSTER].to_numpy(), index)
    return pd.DataFrame({measure.name: of_document, CLUSTER: clusters})


def of_documents(rows: "DataFrame", question: Question) -> "Series":
    """By document its own value, whatever the statistic: a mean, a contrast, or its F1."""
    measure = question.measure
    rows = _asked(rows, Question(measure.model_copy(update={"shared": {}}), question.where))
    if measure.statistic == "micro_f1":
        sums = rows.groupby(DOCUMENT, sort=False)[list(measure.value)].sum()
        hits, predicted, gold = (sums[name] for name in measure.value)
        return 2 * hits / (predicted + gold)
    return document_values(rows, measure)[measure.name]


def _drawn(rows: "DataFrame", measure: Measure, counted: tuple[int, int, int]) -> Figure:
    """The paper's bootstrap: 200 times, the figure of 100 documents drawn with replacement.

    Under ``paired`` the same documents are drawn for every weight; ``independent`` draws others,
    as the authors' code does, so that a gain varies with the documents, too. Weights that sum to
    2 or less than 0 do not occur: one is a mean, two a contrast, and a unit of ``change`` makes it
    the change of what is missing to 1.
    """
    import numpy as np

    means = means_by_facet(rows, measure)
    # Sorted, so that the draw does not depend on the order of lm-eval's processes.
    ids = rows.drop_duplicates(DOCUMENT).set_index(DOCUMENT)[ID]
    means = means.loc[ids.sort_values(kind="stable").index]

    def drawn(name: str) -> Any:
        rng = np.random.default_rng(_SEEDS[name] if measure.draws == "independent" else 0)
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
        return Figure(None, None, *counted)
    middle, low, high = (float(np.quantile(figures, share)) for share in (0.5, 0.025, 0.975))
    return Figure(middle, float(figures.std(ddof=1)), *counted, low, high, "own")


_SEEDS = {"random": 0, "concept": 1, "same_labels": 2}


# Systems on the same documents.


def pairs(
    systems: "Mapping[str, DataFrame]", question: Question, *, intervals: bool = True
) -> list[Pair]:
    """Compares every two systems on the documents that all of them have a value for.

    P-values are adjusted for all pairs by Holm's method. ``question.by`` is left aside. Of many
    systems, errors and ``intervals`` take most of the time.
    """
    measure = question.measure
    limits = difference_limits(measure.limits) if intervals else None
    asked = shared_documents(systems, question)
    if not any(map(len, asked.values())) or measure.statistic == "bootstrap":
        return []
    first = next(iter(asked.values())).drop_duplicates(DOCUMENT).set_index(DOCUMENT)[CLUSTER]
    clusters = first.tolist()
    compared: Callable[[str, str], Difference]
    if sums := SUMS.get(measure.statistic):
        totals = {name: sums.totals(rows, measure) for name, rows in asked.items()}

        def compared(first: str, second: str) -> Difference:
            both = totals[first], totals[second]
            return paired_statistic(*both, sums.statistic, clusters, limits=limits)

    else:
        values = {
            name: document_values(rows, measure).loc[first.index, measure.name].to_numpy()
            for name, rows in asked.items()
        }

        def compared(first: str, second: str) -> Difference:
            return paired_difference(values[first], values[second], clusters, limits=limits)

    return adjusted(
        [
            Pair(**vars(compared(one, two)), first=one, second=two)
            for one, two in combinations(asked, 2)
        ]
    )


def adjusted(found: Sequence[Pair]) -> list[Pair]:
    """With p-values for all of these pairs."""
    known = iter(holm([one.p for one in found if one.p is not None]))
    return [one if one.p is None else replace(one, p_holm=next(known)) for one in found]


def shared_documents(
    systems: "Mapping[str, DataFrame]", question: Question
) -> "dict[str, DataFrame]":
    """The rows asked about, of the documents that all systems have; clustered alike."""
    asked = {name: _asked(rows, question) for name, rows in systems.items()}
    common = set.intersection(*(set(rows[DOCUMENT]) for rows in asked.values()))
    kept = {name: rows[rows[DOCUMENT].isin(common)] for name, rows in asked.items()}
    return {name: rows.assign(**{CLUSTER: _levels(rows)[1]}) for name, rows in kept.items()}


def best(
    values: Mapping[str, float | None], found: Sequence[Pair], measure: Measure
) -> frozenset[str]:
    """The systems that no other one beats significantly: what is bold, shaded or marked.

    None of fewer than two systems, without tests, or at the worst legal value.
    """
    if all(one.p_holm is None for one in found):
        return frozenset()
    sign = -1 if measure.lower_is_better else 1
    worst = measure.limits[measure.lower_is_better]
    beaten = {
        one.second if sign * (one.value or 0) > 0 else one.first for one in found if one.differ
    }
    return frozenset(
        name
        for name, value in values.items()
        if value is not None and value != worst and name not in beaten
    )


NONE = "N/A"


def number(value: float | None, unit: str = "share", *, signed: bool = False) -> str:
    """A value as text: percentages with one decimal, counts with two, all others with three."""
    if value is None or math.isnan(value):
        return NONE
    decimals = {"percent": 1, "count": 2}.get(unit, 3)
    shown = round(value, decimals) + 0.0  # no -0.0
    return f"{shown:{'+' if signed else ''}.{decimals}f}"
