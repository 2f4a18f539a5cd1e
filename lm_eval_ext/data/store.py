"""Getting a verified file: from the local copy, the cache, or a download into the cache."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.data.download import download
from lm_eval_ext.data.failures import TransferError
from lm_eval_ext.data.folders import data_folder, local_copy, mirror_url
from lm_eval_ext.data.inspection import Finding, has_declared_size, inspect_file
from lm_eval_ext.data.messages import fetch_remedy, shown_url
from lm_eval_ext.data.sources import Source, find_file, find_source
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_SILENT_WAIT_S = 1.0
"""How long another process may hold a lock before a log line says that we wait."""


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
    files = find_source(source).files.values()
    return all(has_declared_size(data_folder() / spec.path, spec) for spec in files)


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
    label, path = f"{source}/{file}", path_of(source, file)
    found = DataFile(
        path, source, file, declared.revision, spec.sha256, spec.size,
        declared.licence, declared.citation, declared.homepage,
    )  # fmt: skip
    finding = inspect_file(path, spec)
    if finding.ok:
        return found, False
    if (copy := local_copy()) is not None:
        raise DataError(one_line(_local_problem(label, path, copy, finding)))
    try:
        with _locked(path):
            finding = inspect_file(path, spec)
            if finding.ok:  # another process has fetched it while we waited
                return found, False
            if finding.state != "missing":
                _log.warning("%s", one_line(f"{label}: {path}: {finding}; fetching it again"))
                path.unlink()
            _download(source, file, path, progress=progress)
    except (OSError, NotImplementedError) as error:
        # Some releases of filelock meet a file system without locks with NotImplementedError.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(
            one_line(
                f"{label}: cannot write {path}: {reason}. Set LM_EVAL_EXT_CACHE to a writable "
                f"folder with {spec.size:,} bytes free, or LM_EVAL_EXT_DATA to a local copy."
            )
        ) from error
    return found, True


def _local_problem(label: str, path: Path, copy: Path, finding: Finding) -> str:
    if not copy.is_dir():
        problem = f"the folder {copy} that LM_EVAL_EXT_DATA names does not exist"
    else:
        problem = f"{path}: {finding} (LM_EVAL_EXT_DATA is {copy})"
    return (
        f"{label}: {problem}. Put the right file there, set LM_EVAL_EXT_DATA to a whole local "
        "copy, or unset it so that files are downloaded."
    )


def _download(source: str, file: str, path: Path, *, progress: bool | None) -> None:
    declared, spec = find_source(source), find_file(source, file)
    url = declared.url_of(spec, mirror_url())
    _show_terms(source, declared)
    _log.info("%s/%s: fetching %s", source, file, one_line(shown_url(url)))
    try:
        download(url, path, spec, progress=progress)
    except TransferError as error:
        message = f"{source}/{file}: {shown_url(url)}: {error}. {fetch_remedy(source)}"
        raise DataError(one_line(message)) from error


def _show_terms(source: str, declared: Source) -> None:
    """Prints a source's terms before its first file arrives."""
    first = not any((data_folder() / spec.path).exists() for spec in declared.files.values())
    if declared.terms and first:
        # Not a log message: a log level must not hide terms.
        sys.stderr.write(f"{source}: {declared.title}\n{declared.terms.rstrip()}\n")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock of one file, so that two processes do not download it at once."""
    import filelock

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        lock.acquire(timeout=_SILENT_WAIT_S)
    except filelock.Timeout:
        _log.info("%s: waiting for another process that fetches it", path.name)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
