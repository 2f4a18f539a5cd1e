"""Getting a verified file: from the local copy, the cache, or a download into the cache."""

from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.data.folders import data_folder
from lm_eval_ext.data.inspection import Finding, has_declared_size, inspect_file
from lm_eval_ext.data.sources import find_file, find_source
from lm_eval_ext.data.transfer import (
    cannot_write,
    lock_of,
    locked,
    refuse_if_not_fetchable,
    remove_broken,
    show_terms,
    transfer,
)


@dataclass(frozen=True)
class DataFile:
    """A verified local file and what to say about it."""

    path: Path
    source: str
    name: str
    revision: str
    sha256: str
    size: int
    licence: str
    citation: str
    homepage: str


def describe_file(source: str, file: str) -> DataFile:
    """Returns what is declared of a file, and where it lies or would lie.

    Raises:
        DataError: The source or the file is not declared.
    """
    declared, spec = find_source(source), find_file(source, file)
    return DataFile(
        data_folder() / spec.path, source, file, declared.revision, spec.sha256, spec.size,
        declared.licence, declared.citation, declared.homepage,
    )  # fmt: skip


def path_of(source: str, file: str) -> Path:
    """Returns where a file lies, or would lie.

    Raises:
        DataError: The source or the file is not declared.
    """
    return data_folder() / find_file(source, file).path


def at_hand(source: str) -> bool:
    """Returns whether every file of a source lies there with its declared size.

    Cheap: no network, no hashing. :func:`require` is what verifies.

    Raises:
        DataError: The source is not declared.
    """
    files, folder = find_source(source).files.values(), data_folder()
    return all(has_declared_size(folder / spec.path, spec) for spec in files)


def inspect(source: str, file: str) -> Finding:
    """Compares a local file with its declaration; touches no network.

    Raises:
        DataError: The source or the file is not declared.
    """
    return inspect_file(path_of(source, file), find_file(source, file))


def require(source: str, file: str) -> DataFile:
    """Returns a verified local file and fetches it if need be.

    Raises:
        DataError: The name is not declared, or the file is not to be had; the message says
            what happened and what to do.
    """
    return fetch(source, file)[0]


def fetch(source: str, file: str, *, progress: bool | None = None) -> tuple[DataFile, bool]:
    """Does the work of :func:`require` and also returns whether the file was downloaded.

    Args:
        source: Name of a declared source.
        file: Short name of one of its files.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        DataError: As :func:`require`.
        OptionError: An environment variable has no legal value.
    """
    declared, spec = find_source(source), find_file(source, file)
    found = describe_file(source, file)
    label, path = f"{source}/{file}", found.path
    finding = inspect_file(path, spec)
    if finding.ok:
        return found, False
    refuse_if_not_fetchable(source, label, path, finding)
    try:
        with locked(lock_of(declared, spec)):
            finding = inspect_file(path, spec)
            if finding.ok:  # another process has fetched it while we waited
                return found, False
            show_terms(source)
            remove_broken(label, path, finding)
            transfer(source, file, path, progress=progress)
    except (OSError, NotImplementedError) as error:
        raise cannot_write(label, path, spec.size, error) from error
    return found, True
