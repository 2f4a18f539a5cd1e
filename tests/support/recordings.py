"""Data of our own in the forms of the authors' files, declared and verified like theirs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REVISION = "0123456789abcdef"


@dataclass(frozen=True)
class DeclaredSource:
    """A source with its files: their names, their paths and their content."""

    folder: str
    files: Mapping[str, tuple[str, str]]
    url: str = ""
    upstream: Mapping[str, str] | None = None
    """The paths below the URL, by name, where they are not those of the copy."""


def declare(sources: Mapping[str, DeclaredSource], file: Path) -> None:
    """Write a file for LM_EVAL_EXT_SOURCES."""
    declared: dict[str, Any] = {}
    for name, source in sources.items():
        files: dict[str, dict[str, Any]] = {}
        for short_name, (path, content) in source.files.items():
            encoded = content.encode()
            spec = {"path": path, "size": len(encoded)}
            spec["sha256"] = hashlib.sha256(encoded).hexdigest()
            if source.upstream:
                spec["url"] = source.upstream[short_name]
            files[short_name] = spec
        declared[name] = {
            "title": "Of our own",
            "homepage": "https://example.org/authors",
            "revision": REVISION,
            "folder": source.folder,
            "licence": "MIT",
            "cite": "nobody",
            "files": files,
        }
        if source.url:
            declared[name]["url"] = source.url
        else:
            declared[name]["unavailable"] = "clone it"
    file.write_text(yaml.safe_dump(declared, sort_keys=False))


def write_copy(sources: Mapping[str, DeclaredSource], folder: Path) -> None:
    """Write all files as a local copy has them."""
    for source in sources.values():
        for path, content in source.files.values():
            file = folder / source.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)


def json_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as JSON in lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)
