"""Writes a manifest (see :mod:`lm_eval_ext.data.sources`) of files that you trust.

``python -m lm_eval_ext.data.manifest FOLDER [PATTERN ...] > manifests/NAME.tsv``
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.data.sources import HEADER


def manifest_lines(folder: Path, patterns: Sequence[str] = ()) -> Iterator[str]:
    """Yields the lines of a manifest of the files below a folder.

    Args:
        folder: What the paths are relative to.
        patterns: Which files, as shell patterns of the path; ``*`` also matches ``/``. All
            files but hidden ones if there are none.
    """
    yield HEADER
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for name in sorted(_chosen(names, patterns)):
        path = folder / name
        yield f"{name}\t{path.stat().st_size}\t{sha256_of(path)}"


def _chosen(names: Iterable[str], patterns: Sequence[str]) -> Iterator[str]:
    for name in names:
        hidden = any(part.startswith(".") for part in name.split("/"))
        if any(fnmatchcase(name, pattern) for pattern in patterns) or not (patterns or hidden):
            yield name


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a manifest."""
    parser = argparse.ArgumentParser(
        prog="python -m lm_eval_ext.data.manifest", description="Print the manifest of a folder."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="*", help="which files; * also matches /")
    chosen = parser.parse_args(arguments)
    # UTF-8 and LF on every system: the reader accepts nothing else.
    for line in manifest_lines(chosen.folder, chosen.pattern):
        sys.stdout.buffer.write(f"{line}\n".encode())


if __name__ == "__main__":
    main()
