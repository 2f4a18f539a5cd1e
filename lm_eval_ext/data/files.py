"""Local files of the declared sources: where they lie, and whether they are as declared.

``LM_EVAL_EXT_DATA`` names a local copy: files come from there only, never from the network.
Otherwise they come from the cache (``LM_EVAL_EXT_CACHE``, else the user's cache folder). A variable
that is set to nothing counts as not set. Every function raises a ``DataError`` for a source or file
that is not declared.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.data.sources import FileSpec, find_file, find_source

_HASH_DIGITS_SHOWN = 12


@dataclass(frozen=True)
class DataFile:
    """A verified local file and its provenance."""

    path: Path
    source: str
    name: str
    revision: str
    sha256: str
    size: int
    licence: str
    citation: str
    homepage: str


@dataclass(frozen=True)
class DataFolder:
    """Verified local files of one source.

    Attributes:
        path: The folder that holds them all.
        files: In the order of their declaration.
        sha256: Over all files: of the lines that ``sha256sum`` prints for them, run in the
            data folder and sorted by path.
        fetched: How many of them had to be downloaded.
    """

    path: Path
    files: tuple[DataFile, ...]
    sha256: str
    fetched: int


@dataclass(frozen=True)
class Finding:
    """The result of checking a file; ``detail`` is empty where the state says everything."""

    state: Literal["ok", "missing", "wrong size", "wrong checksum", "unreadable"]
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the file is exactly the declared one."""
        return self.state == "ok"

    def __str__(self) -> str:
        return f"{self.state}: {self.detail}" if self.detail else self.state


def local_copy() -> Path | None:
    """Returns the folder that ``LM_EVAL_EXT_DATA`` names, or None; it need not exist."""
    value = os.environ.get("LM_EVAL_EXT_DATA")
    return Path(value).expanduser().absolute() if value else None


def cache_dir() -> Path:
    """Returns the cache folder, whether it exists or not; data files are in its ``data/``."""
    if value := os.environ.get("LM_EVAL_EXT_CACHE"):
        return Path(value).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lm-eval-ext", appauthor=False))


def data_folder() -> Path:
    """Returns the folder that files are read from: the local copy, or the cache's data."""
    return local_copy() or cache_dir() / "data"


def describe_file(source: str, file: str) -> DataFile:
    """Returns a file's declaration and its local path, whether it exists or not."""
    declared, spec = find_source(source), find_file(source, file)
    return DataFile(
        data_folder() / spec.path, source, file, declared.revision, spec.sha256, spec.size,
        declared.licence, declared.citation, declared.homepage,
    )  # fmt: skip


def folder_of(source: str) -> Path:
    """Returns the folder of all files of a source, whether it exists or not."""
    declared = find_source(source)
    parents = [str(Path(spec.path).parent) for spec in declared.files.values()]
    return data_folder() / (declared.folder or os.path.commonpath(parents))


def available(source: str) -> bool:
    """Returns whether every file of a source is available locally with its declared size.

    Cheap: no network, no hashing. :func:`~lm_eval_ext.data.require` verifies the content.
    """
    files, folder = find_source(source).files.values(), data_folder()
    return all(_inspect_file(folder / spec.path, spec, content=False).ok for spec in files)


def inspect(source: str, names: Iterable[str] | None = None) -> dict[str, Finding]:
    """Compares local files of a source with their declarations; uses no network.

    Args:
        source: Name of a declared source.
        names: Short names of its files; None: all.

    Returns:
        The results, by short name.
    """
    files, folder = find_source(source).files, data_folder()
    specs = {name: find_file(source, name) for name in (files if names is None else names)}
    return {name: _inspect_file(folder / spec.path, spec) for name, spec in specs.items()}


def _inspect_file(path: Path, spec: FileSpec, *, content: bool = True) -> Finding:
    """Compares a file with its declaration: existence, size, then SHA-256.

    The complete file is read each time, a second per some 500 MB, so that no broken or edited
    file ever enters an evaluation.
    """
    try:
        size = path.stat().st_size if path.is_file() else None
        digest = sha256_of(path) if content and size == spec.size else spec.sha256
    except OSError as error:
        return Finding("unreadable", error.strerror or "")
    if size is None:
        return Finding("unreadable", "not a file") if path.exists() else Finding("missing")
    if size != spec.size:
        return Finding("wrong size", f"{size:,} bytes instead of {spec.size:,}")
    if digest != spec.sha256:
        got, expected = digest[:_HASH_DIGITS_SHOWN], spec.sha256[:_HASH_DIGITS_SHOWN]
        return Finding("wrong checksum", f"got {got}… expected {expected}…")
    return Finding("ok")
