"""``lm-eval-ext plot``: lists figures, and writes them to files."""

import difflib
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.compare.reading import Model, read_models
from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.declared import declared
from lm_eval_ext.plots.drawing import FORMATS, Size, draw
from lm_eval_ext.plots.figures import Figure, figures, needed

THEMES = ("light", "dark")

_NARROWEST = 30
"""Columns of a terminal that a text gets at least."""

LIMITS = {"width": (1.0, 60.0), "font_size": (3.0, 60.0), "ppi": (36.0, 1200.0)}


def listed(paths: Sequence[Path]) -> str:
    """The figures that the results have, and for the others the tasks they need.

    Lines are as wide as the terminal.

    Args:
        paths: Of results; without any, all figures are listed with what they need.

    Raises:
        OptionError: There are no results in the paths.
        DataError: A file cannot be read.
    """
    models = read_models(paths) if paths else []
    there = figures(models, lambda *_: frozenset())
    others = needed(there)
    lines = []
    if paths:
        lines.append("Figures of these results:" if there else "These results have no figure.")
    lines += _aligned({figure.name: figure.title for figure in there})
    if others:
        titles = {one.name: one.title for group in declared().values() for one in group}
        needs = {name: f"{titles[name]} (needs {need})" for name, need in others.items()}
        lines += ["With more results:" if paths else "Figures:", *_aligned(needs)]
    return "\n".join(lines)


def _aligned(texts: Mapping[str, str]) -> Iterator[str]:
    """Names and texts in two columns."""
    start = 4 + max(map(len, texts), default=0)
    width = max(shutil.get_terminal_size().columns, start + _NARROWEST)
    for name, text in texts.items():
        first = f"  {name}".ljust(start)
        yield textwrap.fill(
            text, width, initial_indent=first, subsequent_indent=" " * start,
            break_on_hyphens=False,
        )  # fmt: skip


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
            raise OptionError(f"these results lack {name}; it needs {needed(found)[name]}")
    if not found:
        raise OptionError("these results have no figure; --list says what figures need")
    return found
