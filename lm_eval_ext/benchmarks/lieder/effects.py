"""The paper's tests of an effect on accuracy: VERSION (section 6.2) and DISTANCE (section 5.1.1).

An effect sets pairs of comparisons against each other: the same item, family and kind of
comparison under two conditions. The paper fits a linear mixed model with the condition and the
kind of comparison as fixed effects and the item as a random one, over all models together. (The
authors' script fits a logistic one, which statsmodels does not have by maximum likelihood.) Beside
it stands a test that assumes neither normal intercepts nor independent verdicts within an item: the
sign-flip test on the items' sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.intervals import DIFFERENCE
from lm_eval_ext.stats.mixed import mixed_linear
from lm_eval_ext.stats.paired import paired_difference

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = "all"
"""Instead of a family: the three together, as in appendix B.2."""

POOLED = "all models"

Cell = tuple[str, str]
"""A task and a comparison."""


@dataclass(frozen=True)
class Effect:
    """Pairs of cells: the first is expected to be right more often.

    Attributes:
        name: As in the paper.
        meaning: The two conditions, for people.
        pairs: By kind of comparison.
    """

    name: str
    meaning: str
    pairs: Mapping[str, tuple[Cell, Cell]]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that a model must have answered."""
        return tuple(dict.fromkeys(task for pair in self.pairs.values() for task, _ in pair))


_NOVEL = ("pos_neg_s>pos_pos_s", "neg_pos_s>pos_pos_s")
_WORSE = ("pos_pos_s", "neg_neg_s")

EFFECTS = {
    "version": Effect(
        "VERSION",
        "explicit minus implicit novelty",
        {name: (("lieder_diff", name), ("lieder_base", name)) for name in _NOVEL},
    ),
    # The paper fits DISTANCE to another dataset (Schuster and Linzen's); this is the same model on
    # LIEDER's singular comparisons (figure 1), which differ only in where the entity is introduced.
    "distance": Effect(
        "DISTANCE",
        "entity in the second minus in the first clause",
        {
            worse: (
                ("lieder_base", f"neg_pos_s>{worse}"),
                ("lieder_base", f"pos_neg_s>{worse}"),
            )
            for worse in _WORSE
        },
    ),
}
"""By the name that the command takes."""


def on_fresh_items(effect: Effect) -> Effect:
    """The same effect between the tasks that draw their items."""

    def fresh(cell: Cell) -> Cell:
        return cell[0].replace("lieder_", "lieder_fresh_"), cell[1]

    pairs = {kind: (fresh(one), fresh(two)) for kind, (one, two) in effect.pairs.items()}
    return replace(effect, name=f"{effect.name} on fresh items", pairs=pairs)


@dataclass(frozen=True)
class Finding:
    """One test of one effect.

    Attributes:
        effect: Its name in the paper.
        model: Whose verdicts; ``POOLED`` for all.
        test: ``sign-flip`` or ``linear mixed``.
        estimate: The first condition's accuracy minus the second's; None if there is none.
        low: Of the interval.
        high: Of the interval.
        p: Two-sided.
        items: Number of items.
        models: Number of models.
        pairs: Number of pairs of verdicts.
    """

    effect: str
    model: str
    test: str
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    items: int
    models: int
    pairs: int


@dataclass(frozen=True)
class _Pair:
    model: str
    item: str
    kind: str
    first: float
    second: float


Runs: TypeAlias = "Mapping[str, Mapping[str, DataFrame]]"
"""By model, then by task: the long table of scores."""


def analyse(
    effect: Effect, runs: Runs, *, family: str, metric: str, alpha: float = 0.05, seed: int = 0
) -> list[Finding]:
    """Tests an effect for each model by the sign-flip test, then for all together in three ways.

    Args:
        effect: One of ``EFFECTS``.
        runs: Of models that have all of the effect's tasks.
        family: A sentence family, or ``ALL``.
        metric: ``direct`` or ``relative``.
        alpha: Intervals have the level 1 - alpha.
        seed: Of the sign-flip test, where it draws.

    Raises:
        OptionError: If no sample has the family, or statsmodels is not installed.
    """
    by_model = {model: _pairs(effect, model, runs[model], family, metric) for model in runs}
    pairs = [pair for own in by_model.values() for pair in own]
    if not pairs:
        raise OptionError(f"{effect.name}: the samples hold no {metric} scores of {family}")
    return [
        *(_sign_flip(effect, model, own, alpha, seed) for model, own in by_model.items() if own),
        *([_sign_flip(effect, POOLED, pairs, alpha, seed)] if len(by_model) > 1 else []),
        _mixed(effect, pairs, alpha),
    ]


def _pairs(
    effect: Effect, model: str, tasks: "Mapping[str, DataFrame]", family: str, metric: str
) -> list[_Pair]:
    verdicts: dict[tuple[str, str], dict[Cell, float]] = {}
    for task in effect.tasks:
        asked = tasks[task].query("metric == @metric")
        columns = asked[["cluster", "family", "comparison", "correct"]]
        for item, of_family, comparison, right in columns.itertuples(index=False):
            if family in (ALL, of_family):
                verdicts.setdefault((item, of_family), {})[task, comparison] = right
    return [
        _Pair(model, item, kind, of_item[first], of_item[second])
        for (item, _), of_item in sorted(verdicts.items())
        for kind, (first, second) in effect.pairs.items()
        if first in of_item and second in of_item
    ]


def _sign_flip(
    effect: Effect, model: str, pairs: Sequence[_Pair], alpha: float, seed: int
) -> Finding:
    found = paired_difference(
        [pair.first for pair in pairs],
        [pair.second for pair in pairs],
        [pair.item for pair in pairs],
        limits=DIFFERENCE,
        alpha=alpha,
        seed=seed,
    )
    numbers = (found.value, found.low, found.high, found.p)
    return _tested(effect, model, found.test or "sign-flip", numbers, pairs)


def _mixed(effect: Effect, pairs: Sequence[_Pair], alpha: float) -> Finding:
    kinds = list(effect.pairs)
    rows = [
        (score, (condition, *(float(pair.kind == kind) for kind in kinds[1:])), pair.item)
        for pair in pairs
        for condition, score in ((1.0, pair.first), (0.0, pair.second))
    ]
    outcomes, predictors, items = zip(*rows, strict=True)
    models = {pair.model for pair in pairs}
    of = POOLED if len(models) > 1 else next(iter(models))
    found = mixed_linear(outcomes, predictors, items, alpha=alpha)
    numbers = (found.value, found.low, found.high, found.p) if found else (None,) * 4
    return _tested(effect, of, "linear mixed", numbers, pairs)


_Numbers = tuple[float | None, float | None, float | None, float | None]


def _tested(
    effect: Effect, model: str, test: str, numbers: _Numbers, pairs: Sequence[_Pair]
) -> Finding:
    items, models = ({getattr(pair, key) for pair in pairs} for key in ("item", "model"))
    return Finding(effect.name, model, test, *numbers, len(items), len(models), len(pairs))
