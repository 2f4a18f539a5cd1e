"""The papers' figures with one's own models in them, for notebooks."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lm_eval_ext.api.frames import Place, places

if TYPE_CHECKING:
    from lm_eval_ext.plots.figures import Figure


def plot(paths: Place | Iterable[Place], names: Sequence[str] = ()) -> "list[Figure]":
    """The figures that results have the values for, as ``lm-eval-ext plot`` draws them.

    A notebook shows them; ``save(path)`` draws one into a file, and ``values`` is a data frame.

    Args:
        paths: As for :func:`~lm_eval_ext.api.frames.load_results`.
        names: Of figures, such as ``lieder-1`` (``lm-eval-ext plot --list`` names them); all if
            empty.

    Raises:
        OptionError: There are no results, or they lack a figure that is named.
        DataError: A file cannot be read.
    """
    from lm_eval_ext.plots.figures import figure_of, figures
    from lm_eval_ext.results.models import read_models

    models = read_models(places(paths))
    return [figure_of(name, models) for name in names] or figures(models)
