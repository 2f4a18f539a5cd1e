"""Mixed models with a random intercept per cluster, for outcomes of 0 and 1.

The linear one is statsmodels' ``MixedLM``. The logistic one is fitted here by maximum likelihood.
statsmodels has a Bayesian one only: on LIEDER's data its variational standard errors are a third
too small, and its posterior mode often has no variance between clusters at all. GPBoost has one and
gives the same estimates, but it is a boosting library with a compiled core, and its standard errors
take the variance as known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NODES = 100
"""Of the quadrature: twice as many change nothing in the first five digits."""


@dataclass(frozen=True)
class Coefficient:
    """A fixed effect with its standard error, Wald interval and two-sided p-value."""

    value: float
    stderr: float
    low: float
    high: float
    p: float


def mixed_linear(
    outcomes: Sequence[float],
    predictors: Sequence[Sequence[float]],
    clusters: Sequence[str],
    *,
    alpha: float = 0.05,
) -> Coefficient | None:
    """The first predictor's effect on the mean, with a normal intercept per cluster (REML).

    Args:
        outcomes: n numbers.
        predictors: n rows of the same length; an intercept is added.
        clusters: n names.
        alpha: The interval has the level 1 - alpha.

    Returns:
        None if it cannot be estimated, for instance where all outcomes are the same.

    Raises:
        OptionError: If statsmodels is not installed.
    """
    import numpy as np

    models = _statsmodels()
    y, x = _arrays(outcomes, predictors)

    def fit() -> tuple[float, float]:
        found = models.MixedLM(y, x, groups=np.asarray(clusters)).fit(reml=True)
        return float(found.params[1]), float(found.bse[1])

    return _wald(fit, alpha)


def mixed_logistic(
    outcomes: Sequence[float],
    predictors: Sequence[Sequence[float]],
    clusters: Sequence[str],
    *,
    alpha: float = 0.05,
) -> Coefficient | None:
    """The first predictor's effect on the log-odds, with a normal intercept per cluster.

    Maximum likelihood; the intercepts are integrated out by Gauss-Hermite quadrature, where
    ``lme4::glmer`` uses Laplace's approximation. Arguments and result are those of
    :func:`mixed_linear`. It cannot be estimated where the predictors separate right from wrong.

    Raises:
        OptionError: If statsmodels is not installed.
    """
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    _statsmodels()
    from statsmodels.tools.numdiff import approx_hess

    y, x = _arrays(outcomes, predictors)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    log_weights = np.log(weights / np.sqrt(2 * np.pi))
    # Rows that agree in cluster and predictors are counted, not repeated.
    names, codes = np.unique(np.asarray(clusters), return_inverse=True)
    cells, cell_of = np.unique(np.column_stack([codes, x]), axis=0, return_inverse=True)
    right, all_rows = np.bincount(cell_of, weights=y), np.bincount(cell_of)
    members = (cells[:, 0] == np.arange(len(names))[:, None]).astype(np.float64)

    def loss(parameters: "NDArray[np.float64]") -> float:
        """Minus the log-likelihood; the last parameter is the intercepts' deviation."""
        log_odds = (cells[:, 1:] @ parameters[:-1])[:, None] + parameters[-1] * nodes
        likelihoods = right[:, None] * log_odds - all_rows[:, None] * np.logaddexp(0, log_odds)
        return -float(np.sum(logsumexp(members @ likelihoods + log_weights, axis=1)))

    def fit() -> tuple[float, float]:
        start = np.append(np.zeros(x.shape[1]), 1.0)
        found = minimize(loss, start, method="BFGS")
        covariance = np.linalg.inv(approx_hess(found.x, loss))
        return float(found.x[1]), float(np.sqrt(covariance[1, 1]))

    return _wald(fit, alpha)


LARGEST = 20.0
"""A larger log-odds ratio, or one with such a standard error, says that there is no maximum."""


def _wald(fit: Callable[[], tuple[float, float]], alpha: float) -> Coefficient | None:
    import warnings

    import numpy as np
    from scipy import stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what they warn of is checked below
        try:
            value, stderr = fit()
        except (np.linalg.LinAlgError, ValueError):
            return None
    if not (np.isfinite(value) and 0 < stderr < LARGEST and abs(value) < LARGEST):
        return None
    reach = float(stats.norm.ppf(1 - alpha / 2)) * stderr
    p = float(2 * stats.norm.sf(abs(value) / stderr))
    return Coefficient(value, stderr, value - reach, value + reach, p)


def _arrays(
    outcomes: Sequence[float], predictors: Sequence[Sequence[float]]
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    import numpy as np

    rows = [(1.0, *row) for row in predictors]
    return np.asarray(outcomes, dtype=np.float64), np.asarray(rows, dtype=np.float64)


def _statsmodels() -> Any:
    try:
        import statsmodels.api as models
    except ImportError:
        raise OptionError(
            "mixed models need statsmodels: pip install 'lm-eval-ext[lieder]'"
        ) from None
    return models
