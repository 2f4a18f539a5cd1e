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
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.intervals import DIFFERENCE
from lm_eval_ext.stats.mixed import Coefficient, mixed_linear
from lm_eval_ext.stats.paired import Difference, paired_difference

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = "all"
"""What stands for a family if the three are tested together, as in appendix B.2."""

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
        tasks: list[str] = []
        for (expected_higher_task, _), (expected_lower_task, _) in self.pairs.values():
            tasks += [expected_higher_task, expected_lower_task]
        return tuple(dict.fromkeys(tasks))


def _version(comparison: str) -> tuple[Cell, Cell]:
    return ("lieder_diff", comparison), ("lieder_base", comparison)


def _distance(infelicitous: str) -> tuple[Cell, Cell]:
    entity_second = ("lieder_base", f"neg_pos_s>{infelicitous}")
    entity_first = ("lieder_base", f"pos_neg_s>{infelicitous}")
    return entity_second, entity_first


EFFECTS = {
    "version": Effect(
        "VERSION",
        "explicit minus implicit novelty",
        {
            "pos_neg_s>pos_pos_s": _version("pos_neg_s>pos_pos_s"),
            "neg_pos_s>pos_pos_s": _version("neg_pos_s>pos_pos_s"),
        },
    ),
    # The paper fits DISTANCE to another dataset (Schuster and Linzen's); this is the same model on
    # LIEDER's singular comparisons (figure 1), which differ only in where the entity is introduced.
    "distance": Effect(
        "DISTANCE",
        "entity in the second minus in the first clause",
        {"pos_pos_s": _distance("pos_pos_s"), "neg_neg_s": _distance("neg_neg_s")},
    ),
}
"""By the name that the command takes."""


def on_fresh_items(effect: Effect) -> Effect:
    """Return the same effect between the tasks that draw their items."""
    pairs = {}
    for kind, (expected_higher, expected_lower) in effect.pairs.items():
        pairs[kind] = (_on_fresh_items(expected_higher), _on_fresh_items(expected_lower))
    return replace(effect, name=f"{effect.name} on fresh items", pairs=pairs)


def _on_fresh_items(cell: Cell) -> Cell:
    task, comparison = cell
    return task.replace("lieder_", "lieder_fresh_"), comparison


@dataclass(frozen=True)
class Finding:
    """One test of one effect.

    Attributes:
        effect: Its name in the paper.
        model: The model with the verdicts; ``POOLED`` for all models.
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


TablesByModel: TypeAlias = "Mapping[str, Mapping[str, DataFrame]]"
"""By model, then by task: the long table of scores."""


def analyse(effect: Effect, runs: TablesByModel, *, family: str, metric: str) -> list[Finding]:
    """Test an effect for each model by the sign-flip test, and for all together in two ways.

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
    by_model = pairs.groupby("model", sort=False)
    findings = [_sign_flip(effect, pairs_of_model) for _, pairs_of_model in by_model]
    if len(findings) > 1:
        findings.append(_sign_flip(effect, pairs))
    findings.append(_mixed(effect, pairs))
    return findings


def _pairs(
    effect: Effect, model: str, tasks: "Mapping[str, DataFrame]", family: str, metric: str
) -> "DataFrame":
    """Return pairs of verdicts by item, family and kind of comparison.

    The columns ``expected_higher`` and ``expected_lower`` have the verdicts.
    """
    import pandas as pd

    scores = pd.concat([tasks[task].assign(task=task) for task in effect.tasks])
    scores = scores[scores["metric"] == metric]
    if family != ALL:
        scores = scores[scores["family"] == family]
    index = ["cluster", "family"]
    wide = scores.pivot(index=index, columns=["task", "comparison"], values="correct")
    tables = []
    for kind, (expected_higher, expected_lower) in effect.pairs.items():
        if expected_higher in wide.columns and expected_lower in wide.columns:
            verdicts = {
                "expected_higher": wide[expected_higher],
                "expected_lower": wide[expected_lower],
            }
            tables.append(pd.DataFrame({**verdicts, "model": model, "kind": kind}))
    if not tables:
        return pd.DataFrame()
    return pd.concat(tables).dropna().sort_index(kind="stable").reset_index()


def _sign_flip(effect: Effect, pairs: "DataFrame") -> Finding:
    difference = paired_difference(
        list(pairs["expected_higher"]),
        list(pairs["expected_lower"]),
        list(pairs["cluster"]),
        limits=DIFFERENCE,
    )
    return _finding(effect, difference.test or "sign-flip", difference, pairs)


def _mixed(effect: Effect, pairs: "DataFrame") -> Finding:
    """Fit the mixed model.

    The condition and the kind of comparison are the predictors; the first kind is the baseline.
    """
    _, *kinds = effect.pairs
    outcomes: list[float] = []
    predictors: list[list[float]] = []
    items: list[str] = []
    for pair in pairs.itertuples():
        kind_indicators = [float(pair.kind == kind) for kind in kinds]
        outcomes += [pair.expected_higher, pair.expected_lower]
        predictors += [[1.0, *kind_indicators], [0.0, *kind_indicators]]
        items += [pair.cluster, pair.cluster]
    coefficient = mixed_linear(outcomes, predictors, items)
    return _finding(effect, "linear mixed", coefficient, pairs)


def _finding(
    effect: Effect, test: str, result: Difference | Coefficient | None, pairs: "DataFrame"
) -> Finding:
    models = list(pairs["model"].unique())
    finding = Finding(
        effect=effect.name,
        model=POOLED if len(models) > 1 else models[0],
        test=test,
        estimate=None,
        low=None,
        high=None,
        p=None,
        items=pairs["cluster"].nunique(),
        models=len(models),
        pairs=len(pairs),
    )
    if result is None:
        return finding
    return replace(finding, estimate=result.value, low=result.low, high=result.high, p=result.p)
