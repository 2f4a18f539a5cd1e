"""Writes a manifest (see :mod:`lm_eval_ext.data.sources`) of files that you trust.

``python -m lm_eval_ext.data.manifest FOLDER [PATTERN ...] > manifests/NAME.tsv``, with patterns as
:meth:`pathlib.Path.glob` takes them; all files if there are none.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.data.sources import HEADER


def manifest_lines(folder: Path, patterns: Sequence[str] = ()) -> Iterator[str]:
    """Yields the lines of a manifest of the files below a folder."""
    yield "\t".join(HEADER)
    found = {path for pattern in patterns or ["**/*"] for path in folder.glob(pattern)}
    for path in sorted(found):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            yield f"{name}\t{path.stat().st_size}\t{sha256_of(path)}"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    for line in manifest_lines(Path(sys.argv[1]), sys.argv[2:]):
        sys.stdout.write(f"{line}\n")
