"""The papers' figures with one's own models in them, for notebooks."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.api.frames import Place

if TYPE_CHECKING:
    from lm_eval_ext.plots.drawing import Size
    from lm_eval_ext.plots.figures import Figure


@dataclass(frozen=True)
class Plot:
    """A figure; a notebook shows it.

    Attributes:
        figure: With ``caption``, ``alt`` (what it says, in words) and ``spec`` (Vega-Lite).
        size: Of the drawing.
        theme: ``light`` or ``dark``.
    """

    figure: "Figure"
    size: "Size"
    theme: str = "light"

    @property
    def name(self) -> str:
        """Such as ``lieder-1``."""
        return self.figure.name

    @property
    def title(self) -> str:
        """One line."""
        return self.figure.title

    def save(self, path: Place) -> Path:
        """Draws into a file: .svg, .pdf, .png, .html (interactive) or .json (Vega-Lite).

        Raises:
            OptionError: The ending is none of these, or the extra ``plot`` is not installed.
        """
        from lm_eval_ext.plots.drawing import save

        file = Path(path).expanduser()
        save(self.figure, file, self.size, theme=self.theme)
        return file

    def _repr_svg_(self) -> str:
        from lm_eval_ext.plots.drawing import draw

        return draw(self.figure, "svg", theme=self.theme, size=self.size).decode()


def plot(
    paths: Place | Iterable[Place],
    names: Sequence[str] = (),
    *,
    theme: str = "light",
    **size: Any,
) -> list[Plot]:
    """The figures that results have the values for, as ``lm-eval-ext plot`` draws them.

    Args:
        paths: As for :func:`~lm_eval_ext.api.frames.load_results`.
        names: Of figures, such as ``lieder-1`` (``lm-eval-ext plot --list`` names them); all if
            empty.
        theme: ``light`` or ``dark``.
        size: ``width`` in inches, ``font``, ``font_size`` in points, ``ppi``.

    Raises:
        OptionError: There are no results, or they lack a figure that is named.
        DataError: A file cannot be read.
    """
    from lm_eval_ext.plots.drawing import Size
    from lm_eval_ext.plots.figures import figure_of, figures
    from lm_eval_ext.results.models import read_models

    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    models = read_models([Path(path).expanduser() for path in several])
    found = [figure_of(name, models) for name in names] or figures(models)
    return [Plot(figure, Size(**size), theme) for figure in found]
