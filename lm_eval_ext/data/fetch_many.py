"""Getting all files of a source, or a part of them: verified, fetched several at a time."""

import hashlib
import os
import sys
from collections.abc import Collection, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.data.folders import data_folder
from lm_eval_ext.data.inspection import Finding, inspect_file
from lm_eval_ext.data.sources import find_file, find_source
from lm_eval_ext.data.store import DataFile, describe_file
from lm_eval_ext.data.transfer import (
    cannot_write,
    lock_of,
    locked,
    refuse_if_not_fetchable,
    remove_broken,
    show_terms,
    transfer,
)
from lm_eval_ext.data.workers import in_threads
from lm_eval_ext.errors import DataError

_CONNECTIONS = 6
_BIG_BYTES = 10_000_000
"""From here on a file has a bar of its own and is fetched alone."""
_GIVE_UP_AFTER = 3
"""So many failures: no network will not get better with the next hundred files."""


@dataclass(frozen=True)
class DataFolder:
    """Verified local files of one source.

    Attributes:
        path: The folder that holds them all.
        source: Name of the source.
        revision: What it is pinned at.
        files: In the order of their declaration.
        sha256: Over all files: of the lines that ``sha256sum`` prints for them, run in the
            data folder and sorted by path.
        fetched: How many of them had to be downloaded.
    """

    path: Path
    source: str
    revision: str
    files: tuple[DataFile, ...]
    sha256: str
    fetched: int


def folder_of(source: str) -> Path:
    """Returns the folder that holds, or would hold, all files of a source.

    Raises:
        DataError: The source is not declared.
    """
    declared = find_source(source)
    folders = [os.path.dirname(spec.path) for spec in declared.files.values()]  # noqa: PTH120
    return data_folder() / (declared.folder or os.path.commonpath(folders))


def inspect_all(source: str, names: Iterable[str] | None = None) -> dict[str, Finding]:
    """Compares local files of a source with their declarations; touches no network.

    Args:
        source: Name of a declared source.
        names: Short names of its files; None: all.

    Returns:
        What was found, by short name.

    Raises:
        DataError: The source or a file is not declared.
    """
    files, folder = find_source(source).files, data_folder()
    specs = {name: find_file(source, name) for name in (files if names is None else names)}
    return {name: inspect_file(folder / spec.path, spec) for name, spec in specs.items()}


def require_all(
    source: str, under: str | Collection[str] = "", *, progress: bool | None = None
) -> DataFolder:
    """Returns verified local files of a source and fetches those that are missing.

    Each file is written whole or not at all, and what has arrived stays: after an error or
    an interruption the next call goes on from there.

    Args:
        source: Name of a declared source.
        under: Which files: a folder (all whose short name lies below it), a collection of
            short names, or "" for all.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        DataError: A name is not declared, or files are not to be had; the message says how
            many, what happened to the first, and what to do.
        OptionError: An environment variable has no legal value.
    """
    names = _chosen(source, under)
    bad = {name: found for name, found in inspect_all(source, names).items() if not found.ok}
    fetched = 0
    if bad:
        name, finding = next(iter(bad.items()))
        label = f"{source}/{name}"
        if len(bad) > 1:
            label = f"{source}: {len(bad):,} of {len(names):,} files are missing or broken; {name}"
        refuse_if_not_fetchable(source, label, data_folder() / _path(source, name), finding)
        fetched = _fetch(source, tuple(bad), progress=progress)
    files = tuple(describe_file(source, name) for name in names)
    return DataFolder(
        folder_of(source), source, find_source(source).revision, files,
        _combined(source, names), fetched,
    )  # fmt: skip


def _chosen(source: str, under: str | Collection[str]) -> tuple[str, ...]:
    """Returns short names in the order of their declaration."""
    files = find_source(source).files
    if not isinstance(under, str):
        for name in under:
            find_file(source, name)
        wanted = set(under)
        return tuple(name for name in files if name in wanted)
    prefix = f"{under.strip('/')}/" if under else ""
    chosen = tuple(name for name in files if name.startswith(prefix))
    if not chosen:
        raise DataError(f"data source {source!r} has no files below {under!r}")
    return chosen


def _path(source: str, name: str) -> str:
    return find_file(source, name).path


def _combined(source: str, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for spec in sorted((find_file(source, name) for name in names), key=lambda spec: spec.path):
        digest.update(f"{spec.sha256}  {spec.path}\n".encode())
    return digest.hexdigest()


def _fetch(source: str, names: tuple[str, ...], *, progress: bool | None) -> int:
    """Downloads files under their locks; returns how many another process had not brought."""
    declared, folder = find_source(source), data_folder()
    size = sum(declared.files[name].size for name in names)
    # Sorted: two processes that take several locks must take them in the same order.
    locks = sorted({lock_of(declared, declared.files[name]) for name in names})
    try:
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(locked(lock))
            found = inspect_all(source, names)
            bad = {name: finding for name, finding in found.items() if not finding.ok}
            if bad:
                show_terms(source)
            for name, finding in bad.items():
                remove_broken(f"{source}/{name}", folder / declared.files[name].path, finding)
            _download_all(source, tuple(bad), progress=progress)
    except (OSError, NotImplementedError) as error:
        raise cannot_write(source, folder_of(source), size, error) from error
    return len(bad)


def _download_all(source: str, names: tuple[str, ...], *, progress: bool | None) -> None:
    from tqdm import tqdm

    files, folder = find_source(source).files, data_folder()
    big = [name for name in names if files[name].size >= _BIG_BYTES]
    small = [name for name in names if files[name].size < _BIG_BYTES]
    for name in big:
        transfer(source, name, folder / files[name].path, progress=progress)

    def fetch_quietly(name: str) -> None:
        transfer(source, name, folder / files[name].path, progress=False)

    failures: list[DataError] = []
    bar = tqdm(
        total=len(small),
        desc=source,
        unit="file",
        file=sys.stderr,
        disable=not (sys.stderr.isatty() if progress is None else progress) or not small,
    )
    with bar, closing(in_threads(small, fetch_quietly, _CONNECTIONS)) as results:
        for _, error in results:
            if error is None:
                bar.update()
            elif isinstance(error, DataError):
                failures.append(error)
            else:
                raise error
            if len(failures) == _GIVE_UP_AFTER:
                break
    if len(failures) == 1:
        raise failures[0]
    if failures:
        at_least = "at least " if len(failures) == _GIVE_UP_AFTER else ""
        raise DataError(
            f"{source}: {at_least}{len(failures)} files are not to be had; one of them: "
            f"{min(map(str, failures))}"
        )
