"""Relative performance: execution accuracy on novel examples relative to base ones.

Paper, section 4: min(EX_novel / EX_base, 1) x 100 for each interpretation, averaged over the
interpretations whose EX_base is at least 5 % (its footnote 8).
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_ext.stats import Spread, cluster_bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_BASE_ACCURACY = 0.05
"""Below it an interpretation tells nothing and is left out."""

BASE = "base"


class Outcome(float):
    """1.0 where an example was answered correctly, else 0.0, with what it is grouped by.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    interpretation: str
    form: str
    cluster: str

    def __new__(
        cls,
        correct: bool,  # noqa: FBT001
        interpretation: str,
        form: str,
        cluster: str,
    ) -> "Outcome":
        """Args: the verdict; names of the interpretation, of the form, of the database."""
        self = super().__new__(cls, correct)
        self.interpretation, self.form, self.cluster = interpretation, form, cluster
        return self

    def __reduce__(self) -> tuple[type["Outcome"], tuple[bool, str, str, str]]:
        """For pickling: ranks send their outcomes to each other."""
        return (Outcome, (bool(self), self.interpretation, self.form, self.cluster))


def relative_performance(outcomes: Iterable[Outcome]) -> float | None:
    """The mean over pairs of an interpretation and a novel form, in percent.

    With one form it is the paper's figure; over several forms, their mean, since they share
    their interpretations. None where the model answers too few base examples of all of them.
    """
    table, _ = tabulate(outcomes)
    ratios = [
        min(novel_right / novel / (base_right / base), 1.0)
        for base_right, base, novel_right, novel in table
        if base and novel and base_right / base >= LEAST_BASE_ACCURACY
    ]
    return 100 * math.fsum(ratios) / len(ratios) if ratios else None


def spread(outcomes: Iterable[Outcome]) -> Spread | None:
    """Error and interval of :func:`relative_performance`, databases resampled.

    None where there is none: fewer than two databases, or a figure that is mostly undefined.
    """
    import numpy as np

    _, by_cluster = tabulate(outcomes)
    totals = {name: np.array(table, dtype=np.float64) for name, table in by_cluster.items()}
    return cluster_bootstrap(totals, relative_of)


def relative_of(sums: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The figure for sums of shape (resample, pair, 4); NaN where no pair counts."""
    import numpy as np

    base_right, base, novel_right, novel = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        base_accuracy = base_right / base
        ratios = np.minimum(novel_right / novel / base_accuracy, 1.0)
        counted = (base > 0) & (novel > 0) & (base_accuracy >= LEAST_BASE_ACCURACY)
        total = np.where(counted, ratios, 0.0).sum(axis=-1)
        values: Any = 100 * total / counted.sum(axis=-1)
    return values  # type: ignore[no-any-return]


_Counts = Sequence[int]


def tabulate(outcomes: Iterable[Outcome]) -> tuple[list[_Counts], dict[str, list[_Counts]]]:
    """Counts correct and all answers, of base and novel examples, for each pair.

    Returns:
        The table (base correct, base, novel correct, novel) by pair, sorted; the same for each
        cluster alone.
    """
    scored = list(outcomes)
    pairs = sorted({(o.interpretation, o.form) for o in scored if o.form != BASE})
    places: dict[str, list[tuple[int, int]]] = {}
    for place, (interpretation, form) in enumerate(pairs):
        places.setdefault(f"{interpretation}\n{form}", []).append((place, 2))
        places.setdefault(f"{interpretation}\n{BASE}", []).append((place, 0))
    total = [[0, 0, 0, 0] for _ in pairs]
    by_cluster: dict[str, list[list[int]]] = {}
    for outcome in scored:
        own = by_cluster.setdefault(outcome.cluster, [[0, 0, 0, 0] for _ in pairs])
        for place, column in places.get(f"{outcome.interpretation}\n{outcome.form}", ()):
            for table in (total, own):
                table[place][column] += int(outcome)
                table[place][column + 1] += 1
    return list(total), {name: list(table) for name, table in by_cluster.items()}
