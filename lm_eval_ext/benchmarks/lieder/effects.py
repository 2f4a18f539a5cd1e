"""The paper's tests of an effect on accuracy: VERSION (section 6.2) and DISTANCE (section 5.1.1).

An effect sets pairs of comparisons against each other: the same item, family and kind of
comparison under two conditions. The paper fits a linear mixed model with the condition and the
kind of comparison as fixed effects and the item as a random one, over all models together. (The
authors' script fits a logistic one, which statsmodels does not have by maximum likelihood.) Beside
it stands a test that assumes neither normal intercepts nor independent verdicts within an item: the
sign-flip test on the items' sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

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
        low: The interval's lower end.
        high: The interval's upper end.
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


Runs: TypeAlias = "Mapping[str, Mapping[str, DataFrame]]"
"""By model, then by task: the long table of scores."""


def analyse(effect: Effect, runs: Runs, *, family: str, metric: str) -> list[Finding]:
    """Tests an effect for each model by the sign-flip test, then for all together in three ways.

    Args:
        effect: One of ``EFFECTS``.
        runs: The runs of models that have all of the effect's tasks.
        family: A sentence family, or ``ALL``.
        metric: ``direct`` or ``relative``.

    Raises:
        OptionError: If no sample has the family, or statsmodels is not installed.
    """
    import pandas as pd

    pairs = pd.concat([_pairs(effect, model, runs[model], family, metric) for model in runs])
    if pairs.empty:
        raise OptionError(f"{effect.name}: the samples hold no {metric} scores of {family}")
    tested = [own for _, own in pairs.groupby("model", sort=False)]
    if len(tested) > 1:
        tested.append(pairs)
    return [*(_sign_flip(effect, some) for some in tested), _mixed(effect, pairs)]


def _pairs(
    effect: Effect, model: str, tasks: "Mapping[str, DataFrame]", family: str, metric: str
) -> "DataFrame":
    """By item, family and kind of comparison the two verdicts, ``first`` and ``second``."""
    import pandas as pd

    asked = pd.concat([tasks[task].assign(task=task) for task in effect.tasks])
    chosen = asked[(asked["metric"] == metric) & ((asked["family"] == family) | (family == ALL))]
    index = ["cluster", "family"]
    wide = chosen.pivot(index=index, columns=["task", "comparison"], values="correct")
    found = [
        pd.DataFrame({"first": wide[first], "second": wide[second], "model": model, "kind": kind})
        for kind, (first, second) in effect.pairs.items()
        if {first, second} <= set(wide.columns)
    ]
    if not found:
        return pd.DataFrame()
    return pd.concat(found).dropna().sort_index(kind="stable").reset_index()


def _sign_flip(effect: Effect, pairs: "DataFrame") -> Finding:
    found = paired_difference(
        *(list(pairs[column]) for column in ("first", "second", "cluster")),
        limits=DIFFERENCE,
    )
    return _finding(effect, found.test or "sign-flip", found, pairs)


def _mixed(effect: Effect, pairs: "DataFrame") -> Finding:
    """Condition and kind of comparison are predictors, the first kind being the baseline."""
    _, *kinds = effect.pairs
    rows = [
        (score, (condition, *(float(kind == one) for one in kinds)), item)
        for first, second, kind, item in pairs[["first", "second", "kind", "cluster"]].to_numpy()
        for condition, score in ((1.0, first), (0.0, second))
    ]
    found = mixed_linear(*zip(*rows, strict=True))
    return _finding(effect, "linear mixed", found, pairs)


def _finding(effect: Effect, test: str, found: Any, pairs: "DataFrame") -> Finding:
    """``found`` has ``value``, ``low``, ``high`` and ``p``, or is None."""
    value, low, high, p = (getattr(found, name, None) for name in ("value", "low", "high", "p"))
    models = list(pairs["model"].unique())
    of = POOLED if len(models) > 1 else models[0]
    items = pairs["cluster"].nunique()
    return Finding(effect.name, of, test, value, low, high, p, items, len(models), len(pairs))
