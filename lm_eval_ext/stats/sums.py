"""Statistics of sums over clusters: a change, F1, means of groups, relative performance.

Each has a function that makes sums of rows, by cluster, and one from sums to values, with any
number of axes in front (NaN: undefined). Jackknife and exchanges need no more.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.stats.measures import CLUSTER, DOCUMENT, Measure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame

    Array: TypeAlias = NDArray[np.float64]
    Totals: TypeAlias = dict[str, Array]

LEAST_BASE = 0.05
"""Relative performance leaves out groups whose base score is lower (MAGNIFICo, footnote 8)."""


@dataclass(frozen=True)
class Sums:
    """A statistic of sums over clusters, with the function that makes the sums of rows."""

    totals: "Callable[[DataFrame, Measure], Totals]"
    statistic: "Callable[[Array], Array]"


# Sums are exact, so that the order of documents, which varies between ranks, changes no digit.


def _change_totals(rows: "DataFrame", measure: Measure) -> "Totals":
    """By cluster, what is missing to 1 after and before."""
    clusters = rows.drop_duplicates(DOCUMENT).set_index(DOCUMENT)[CLUSTER]
    missing = 1 - means_by_facet(rows, measure)[after_and_before(measure)]
    return _by_cluster(missing.groupby(clusters).agg(math.fsum))


def means_by_facet(rows: "DataFrame", measure: Measure) -> "DataFrame":
    """By document, the mean value for each value of the measure's facet."""
    (column,) = measure.value
    return rows.groupby([DOCUMENT, measure.facet], sort=False)[column].mean().unstack()


def after_and_before(measure: Measure) -> list[str]:
    """The values of the facet that a change is between: the weight above 0 is after."""
    return sorted(measure.weights, key=lambda name: -measure.weights[name])


def _f1_totals(rows: "DataFrame", measure: Measure) -> "Totals":
    return _by_cluster(rows.groupby(CLUSTER)[list(measure.value)].agg(math.fsum))


def _group_totals(rows: "DataFrame", measure: Measure) -> "Totals":
    """By cluster, sum and number of values in each group."""
    return _tabulate(rows, measure, list(measure.groups))[1]


def _relative_totals(rows: "DataFrame", measure: Measure) -> "Totals":
    """By cluster, for each group and each novel value of the facet: right and all, base and novel.

    Base rows alone make no pair.
    """
    import numpy as np

    base = measure.shared[measure.facet]
    cells, tables = _tabulate(rows, measure, [*measure.groups, measure.facet])
    place = {cell: number for number, cell in enumerate(cells)}
    novel = [cell for cell in cells if cell[-1] != base]
    of_base = [place.get((*cell[:-1], base), len(cells)) for cell in novel]
    of_novel = [place[cell] for cell in novel]
    return {
        name: np.concatenate([padded[of_base], padded[of_novel]], axis=1)
        for name, table in tables.items()
        for padded in [np.vstack([table, [0.0, 0.0]])]
    }


def _tabulate(
    rows: "DataFrame", measure: Measure, keys: list[str]
) -> "tuple[list[tuple[str, ...]], Totals]":
    """The cells of the keys, and by cluster sum and number of the values in each."""
    (column,) = measure.value
    summed = rows.groupby([*keys, CLUSTER])[column].agg(["sum", "count"]).unstack(fill_value=0)
    cells = list(summed.index.to_frame().itertuples(index=False, name=None))
    names = sorted(set(rows[CLUSTER]))
    return cells, {one: summed.xs(one, axis=1, level=CLUSTER).to_numpy(float) for one in names}


def _by_cluster(table: "DataFrame") -> "Totals":
    return dict(zip(map(str, table.index), table.to_numpy(dtype=float), strict=True))


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


def mean_of_sums(sums: "Array") -> "Array":
    """From sum and number in each group; groups without values do not count."""
    import numpy as np

    found: Array = np.nansum(_ratio(sums[..., 0], sums[..., 1]), axis=-1)
    return _ratio(found, (sums[..., 1] > 0).sum(axis=-1))


def relative_of_sums(sums: "Array") -> "Array":
    """min(novel / base, 1) x 100, averaged over the pairs with a base score of 5 % or more."""
    import numpy as np

    base = _ratio(sums[..., 0], sums[..., 1])
    novel = _ratio(sums[..., 2], sums[..., 3])
    counted = (base >= LEAST_BASE) & ~np.isnan(novel)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(counted, np.minimum(novel / base, 1.0), 0.0)
    return _ratio(100 * ratios.sum(axis=-1), counted.sum(axis=-1))


SUMS: Mapping[str, Sums] = {
    "change": Sums(_change_totals, change_of_sums),
    "micro_f1": Sums(_f1_totals, f1_of_sums),
    "mean_of_groups": Sums(_group_totals, mean_of_sums),
    "relative": Sums(_relative_totals, relative_of_sums),
}
