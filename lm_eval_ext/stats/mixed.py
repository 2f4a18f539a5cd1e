"""A linear mixed model with a random intercept per cluster: statsmodels' ``MixedLM``."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_ext.errors import require_extra

MAX_EFFECT = 20.0
"""A larger effect on outcomes of 0 and 1, or standard error, says that nothing was estimated."""


@dataclass(frozen=True)
class Coefficient:
    """A fixed effect with its Wald interval and two-sided p-value."""

    value: float
    low: float
    high: float
    p: float


def mixed_linear(
    outcomes: Sequence[float],
    predictors: Sequence[Sequence[float]],
    clusters: Sequence[str],
) -> Coefficient | None:
    """Return the first predictor's effect on the mean, with a normal intercept per cluster (REML).

    Args:
        outcomes: n numbers.
        predictors: n rows of the same length; an intercept is added.
        clusters: n names.

    Returns:
        None if it cannot be estimated, for instance where all outcomes are the same.

    Raises:
        OptionError: The package statsmodels is not installed.
    """
    import numpy as np

    require_extra("lieder", "a mixed model", "statsmodels")
    import statsmodels.api as models

    rows = np.array([(1.0, *row) for row in predictors])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what they warn of is checked below
        try:
            fit = models.MixedLM(np.array(outcomes), rows, groups=np.array(clusters)).fit(reml=True)
        except (np.linalg.LinAlgError, ValueError):
            return None
        # The intercept is the first effect; the first predictor's is the second.
        value, stderr, p = float(fit.params[1]), float(fit.bse[1]), float(fit.pvalues[1])
        low, high = map(float, fit.conf_int()[1])
    if not (np.isfinite(value) and 0 < stderr < MAX_EFFECT):
        return None
    return Coefficient(value, low, high, p)
