"""What fetching one file and fetching many have in common: locks, terms, errors in one line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lm_eval_ext.data.declared import FileSpec, Source
from lm_eval_ext.data.download import download
from lm_eval_ext.data.failures import TransferError
from lm_eval_ext.data.folders import data_folder, local_copy, mirror_url
from lm_eval_ext.data.inspection import Finding
from lm_eval_ext.data.messages import fetch_remedy, shown_url
from lm_eval_ext.data.sources import find_file, find_source
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_SILENT_WAIT_S = 1.0
"""How long another process may hold a lock before a log line says that we wait."""


def refuse_if_not_fetchable(source: str, label: str, path: Path, finding: Finding) -> None:
    """Ends the way to a missing or broken file where nothing may or can be downloaded.

    Args:
        source: Name of a declared source.
        label: What the message starts with.
        path: Where the file is, or should be.
        finding: What is wrong with it.

    Raises:
        DataError: Files come from a local copy only, or the source has no URL.
    """
    if (copy := local_copy()) is not None:
        problem = f"{path}: {finding} (LM_EVAL_EXT_DATA is {copy})"
        if not copy.is_dir():
            problem = f"the folder {copy} that LM_EVAL_EXT_DATA names does not exist"
        remedy = (
            "Put the right file there, set LM_EVAL_EXT_DATA to a whole local copy, or unset it "
            "so that files are downloaded."
        )
        raise DataError(one_line(f"{label}: {problem}. {remedy}"))
    declared = find_source(source)
    if declared.unavailable and not mirror_url():
        raise DataError(one_line(f"{label}: {path}: {finding}; {declared.unavailable}"))


def transfer(source: str, file: str, path: Path, *, progress: bool | None) -> None:
    """Downloads a file, and makes its folder; the caller holds the lock.

    Raises:
        DataError: It is not to be had.
        OSError: It could not be written.
        OptionError: An environment variable has no legal value.
    """
    declared, spec = find_source(source), find_file(source, file)
    url = declared.url_of(spec, mirror_url())
    if url is None:
        raise DataError(one_line(f"{source}/{file}: {declared.unavailable}"))
    _log.info("%s/%s: fetching %s", source, file, one_line(shown_url(url)))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        download(url, path, spec, progress=progress)
    except TransferError as error:
        message = f"{source}/{file}: {shown_url(url)}: {error}. {fetch_remedy(source)}"
        raise DataError(one_line(message)) from error


def remove_broken(label: str, path: Path, finding: Finding) -> None:
    """Removes a file that is not the declared one, and says so."""
    if finding.state != "missing":
        _log.warning("%s", one_line(f"{label}: {path}: {finding}; fetching it again"))
        path.unlink()


def show_terms(source: str) -> None:
    """Prints a source's terms before its first file arrives."""
    declared = find_source(source)
    if not declared.terms:
        return
    folder = data_folder()
    if not any((folder / spec.path).exists() for spec in declared.files.values()):
        # Not a log message: a log level must not hide terms.
        sys.stderr.write(f"{source}: {declared.title}\n{declared.terms.rstrip()}\n")


def cannot_write(label: str, path: Path, size: int, error: Exception) -> DataError:
    """Returns the error of a file or folder that cannot be written (size in bytes)."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return DataError(
        one_line(
            f"{label}: cannot write {path}: {reason}. Set LM_EVAL_EXT_CACHE to a writable "
            f"folder with {size:,} bytes free, or LM_EVAL_EXT_DATA to a local copy."
        )
    )


def lock_of(declared: Source, spec: FileSpec) -> Path:
    """Returns the lock of a file: its own, or one for all files of a manifest.

    Hundreds of locks beside hundreds of small files would help nobody.
    """
    if declared.folder:
        return data_folder() / declared.folder / ".all.lock"
    path = data_folder() / spec.path
    return path.with_name(f".{path.name}.lock")


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Holds a lock, so that two processes do not download the same file at once.

    Raises:
        OSError: The lock cannot be written.
        NotImplementedError: What some releases of filelock raise on a file system without locks.
    """
    import filelock

    lock.parent.mkdir(parents=True, exist_ok=True)
    held = filelock.FileLock(lock)
    try:
        held.acquire(timeout=_SILENT_WAIT_S)
    except filelock.Timeout:
        _log.info("%s: waiting for another process that fetches it", lock.parent.name)
        held.acquire()
    try:
        yield
    finally:
        held.release()
