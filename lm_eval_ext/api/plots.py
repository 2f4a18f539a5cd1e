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
        from lm_eval_ext.atomic import atomic_path
        from lm_eval_ext.errors import OptionError
        from lm_eval_ext.plots.drawing import FORMATS, draw

        file = Path(path).expanduser()
        kind = file.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise OptionError(f"{file}: use .{', .'.join(FORMATS)}")
        drawn = draw(self.figure, kind, theme=self.theme, size=self.size)
        with atomic_path(file) as part:
            part.write_bytes(drawn)
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
    from lm_eval_ext.compare.reading import read_models
    from lm_eval_ext.errors import OptionError
    from lm_eval_ext.plots.drawing import Size
    from lm_eval_ext.plots.figures import figures

    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    models = read_models([Path(path).expanduser() for path in several])
    found = {figure.name: figure for figure in figures(models, only=names)}
    if missing := [name for name in names if name not in found]:
        raise OptionError(
            f"these results have no figure {', '.join(missing)}; lm-eval-ext plot --list says what "
            "figures need"
        )
    return [Plot(figure, Size(**size), theme) for figure in found.values()]
