"""Reading manifests: the files of a source that has too many of them for ``sources.yaml``.

A manifest is a table in ``manifests/`` with a header and the columns path, size (bytes) and
SHA-256, separated by tabs and sorted by path. A path is relative to the source's ``url`` and,
in every copy of the data, to its ``folder``. :mod:`lm_eval_ext.data.manifest` writes them.
"""

from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter

from lm_eval_ext.data.declared import FileSpec

HEADER = "path\tsize\tsha256"
_COLUMNS = 3
_SCHEMA = TypeAdapter(dict[str, FileSpec])


def read_manifest(path: Path, folder: str) -> dict[str, FileSpec]:
    """Reads a manifest; a file's name is its path below the folder.

    Args:
        path: The manifest.
        folder: What stands before each path in a copy of the data, such as ``mine/texts/``.

    Raises:
        ValueError: It is no table of this kind; the message names the line. A value that
            breaks a rule of :class:`FileSpec` is a ``pydantic.ValidationError``.
        OSError: It cannot be read.
    """
    header, *lines = path.read_bytes().decode("utf-8").split("\n")
    if header != HEADER:
        raise ValueError("line 1 is not the header 'path size sha256', with tabs between")
    if len(lines) < 2 or lines.pop() != "":  # noqa: PLR2004
        raise ValueError("no files, or the last line is not ended")
    rows: dict[str, dict[str, object]] = {}
    before = ""
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != _COLUMNS:
            raise ValueError(f"line {number} has {len(cells)} columns instead of {_COLUMNS}")
        name, size, sha256 = cells
        if name <= before:
            raise ValueError(f"line {number}: {name!r} stands twice or is not in sorted order")
        if not (size.isascii() and size.isdigit()) or str(int(size)) != size:
            raise ValueError(f"line {number}: the size is {size!r}")
        rows[name] = {
            "path": f"{folder}{name}", "url": quote(name), "size": int(size), "sha256": sha256,
        }  # fmt: skip
        before = name
    return _SCHEMA.validate_python(rows)
