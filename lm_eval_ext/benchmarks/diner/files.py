"""JSON files that people may have edited."""

import codecs
import json
from pathlib import Path

REPORT = "report.json"
"""Of a split that was built, with options and counts. A folder without it is incomplete."""


def read_json(path: Path) -> object:
    """The content of a file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no JSON in UTF-8, begins with a byte order mark, or has an object with
            two equal keys, of which ``json`` would silently keep the last.
        RecursionError: It is nested too deeply.
    """
    raw = path.read_bytes()
    if raw.startswith(codecs.BOM_UTF8):
        raise ValueError("it begins with a byte order mark: save it as UTF-8 without one")
    return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in an object: remove one of them")
    return found
