"""Writes a manifest (see :mod:`lm_eval_ext.data.sources`) of files that you trust.

``python -m lm_eval_ext.data.manifest FOLDER [PATTERN ...] > manifests/NAME.tsv``
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
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
    for name in sorted(names):
        path, hidden = folder / name, "/." in f"/{name}"
        if any(fnmatchcase(name, pattern) for pattern in patterns) or not (patterns or hidden):
            yield f"{name}\t{path.stat().st_size}\t{sha256_of(path)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a manifest of the folder that the command line names."""
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
