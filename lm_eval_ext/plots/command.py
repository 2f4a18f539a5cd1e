"""``lm-eval-ext plot``: lists figures, and writes them to files."""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.compare.reading import Model, read_models
from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.declared import declared
from lm_eval_ext.plots.drawing import FORMATS, Size, draw
from lm_eval_ext.plots.figures import Figure, figures, needed

THEMES = ("light", "dark")

LIMITS = {"width": (1.0, 60.0), "font_size": (3.0, 60.0), "ppi": (36.0, 1200.0)}


def listed(paths: Sequence[Path]) -> str:
    """A line for each figure that the results have, and for the others the tasks they need.

    Raises:
        OptionError: There are no results.
        DataError: A file cannot be read.
    """
    models = read_models(paths)
    there = figures(models, lambda *_: frozenset())
    width = max((len(figure.name) for figure in there), default=0)
    lines = ["Figures of these results:" if there else "These results have no figure."]
    lines += [f"  {figure.name:<{width}}  {figure.title}" for figure in there]
    others = needed(models, there)
    width = max(map(len, others), default=0)
    lines += ["With results of any of these tasks, also:"] * bool(others)
    lines += [f"  {name:<{width}}  {needs}" for name, needs in others.items()]
    return "\n".join(lines)


def write(
    paths: Sequence[Path],
    names: Sequence[str],
    output: Path | None,
    size: Size,
    *,
    theme: str = "light",
    titled: bool = True,
) -> Iterator[Path]:
    """Draws figures into files and yields their paths.

    Args:
        paths: Of results.
        names: Of figures; all if empty.
        output: A file for one figure, or a folder.
        size: Of the drawings.
        theme: ``light`` or ``dark``.
        titled: Whether each has its title above it.

    Raises:
        OptionError: An option is illegal, results lack a figure, a file cannot be written, or
            vl-convert is not installed.
        DataError: A file cannot be read.
    """
    if theme not in THEMES:
        raise OptionError(f"--theme is {theme!r}; use {' or '.join(THEMES)}")
    for option, (low, high) in LIMITS.items():
        if not low <= (given := getattr(size, option)) <= high:
            name = option.replace("_", "-")
            raise OptionError(f"--{name} is {given:g}; use a number from {low:g} to {high:g}")
    if output is None:
        raise OptionError("name a file or a folder to draw into with -o, or use --list")
    format_ = output.suffix.removeprefix(".").casefold()
    if format_ and format_ not in FORMATS:
        raise OptionError(f"-o {output}: use .{', .'.join(FORMATS)}, or a folder without a suffix")
    if format_ and len(names) != 1:
        raise OptionError(
            f"-o {output} is one file: name one --figure, or a folder without a suffix"
        )
    for figure in _chosen(read_models(paths), names):
        path = output if format_ else output / f"{figure.name}.svg"
        drawn = draw(figure, format_ or "svg", theme=theme, size=size, titled=titled)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(path) as part:
                part.write_bytes(drawn)
        except OSError as error:
            raise OptionError(f"cannot write {path}: {error.strerror}") from None
        yield path


def _chosen(models: Sequence[Model], names: Sequence[str]) -> list[Figure]:
    known = [one.name for group in declared().values() for one in group]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known
            raise OptionError(f"there is no figure {name!r}; is it one of {', '.join(close)}?")
    found = figures(models, only=names)
    there = {figure.name for figure in found}
    for name in names:
        if name not in there:
            raise OptionError(f"these results lack {name}; it needs {needed(models, found)[name]}")
    if not found:
        raise OptionError("these results have no figure; --list says what figures need")
    return found
