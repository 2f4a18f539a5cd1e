"""Fetching what is missing of a source: verified, under a lock, several files at a time."""

import hashlib
import queue
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from lm_eval_ext.data.download import TransferError, download
from lm_eval_ext.data.folders import data_folder, local_copy, mirror_url
from lm_eval_ext.data.sources import FileSpec, Source, find_file, find_source
from lm_eval_ext.data.store import (
    DataFile,
    DataFolder,
    Finding,
    describe_file,
    folder_of,
    inspect,
    path_of,
)
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_CONNECTIONS = 6
_BIG_BYTES = 10_000_000
"""From here on a file has a bar of its own and is fetched alone."""
_GIVE_UP_AFTER = 3
"""After so many failures the network will not get better with the next hundred files."""
_GRACE_S = 1.0
"""How long an interrupted program lets running downloads come to their end."""
_SILENT_WAIT_S = 1.0
"""How long another process may hold a lock before a log line says that we wait."""


def require(source: str, file: str) -> DataFile:
    """Returns a verified local file; downloads it if it is missing.

    Raises:
        DataError: The name is not declared, or the file is unavailable; the message says what
            happened and what to do.
        OptionError: An environment variable has no legal value.
    """
    return fetch(source, file)[0]


def fetch(source: str, file: str, *, progress: bool | None = None) -> tuple[DataFile, bool]:
    """Does the work of :func:`require` and also returns whether the file was downloaded."""
    found = require_all(source, [file], progress=progress)
    return found.files[0], found.fetched > 0


def require_all(
    source: str, under: str | Collection[str] = "", *, progress: bool | None = None
) -> DataFolder:
    """Returns verified local files of a source; downloads those that are missing.

    Each file is complete or absent, and what has arrived stays: after an error or an
    interruption the next call continues from there.

    Args:
        source: Name of a declared source.
        under: Which files: a folder (all whose short name begins with it), a collection of
            short names, or "" for all.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        DataError: A name is not declared, or files are unavailable; the message says how many,
            what happened to the first, and what to do.
        OptionError: An environment variable has no legal value.
    """
    names = _chosen(source, under)
    bad = _bad(source, names)
    fetched = 0
    if bad:
        _refuse_if_not_fetchable(source, bad, len(names))
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


def _bad(source: str, names: Iterable[str]) -> dict[str, Finding]:
    return {name: found for name, found in inspect(source, names).items() if not found.ok}


def _combined(source: str, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for spec in sorted((find_file(source, name) for name in names), key=lambda spec: spec.path):
        digest.update(f"{spec.sha256}  {spec.path}\n".encode())
    return digest.hexdigest()


def _refuse_if_not_fetchable(source: str, bad: dict[str, Finding], wanted: int) -> None:
    """Raises where files come from a local copy only, or the source has no URL."""
    name, finding = next(iter(bad.items()))
    label, path = f"{source}/{name}", path_of(source, name)
    if len(bad) > 1:
        label = f"{source}: {len(bad):,} of {wanted:,} files are missing or broken; {name}"
    if (copy := local_copy()) is not None:
        problem = f"{path}: {finding} (LM_EVAL_EXT_DATA is {copy})"
        if not copy.is_dir():
            problem = f"the folder {copy} that LM_EVAL_EXT_DATA names does not exist"
        remedy = (
            "Put the right file there, set LM_EVAL_EXT_DATA to a complete local copy, or unset it "
            "so that files are downloaded."
        )
        raise DataError(one_line(f"{label}: {problem}. {remedy}"))
    unavailable = find_source(source).unavailable
    if unavailable and not mirror_url():
        raise DataError(one_line(f"{label}: {path}: {finding}; {unavailable}"))


def _fetch(source: str, names: Sequence[str], *, progress: bool | None) -> int:
    """Downloads files under their locks; returns how many no other process had fetched."""
    declared = find_source(source)
    # Sorted: two processes that take several locks must take them in the same order.
    locks = sorted({_lock_of(declared, declared.files[name]) for name in names})
    try:
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(_locked(lock))
            bad = _bad(source, names)
            if bad:
                _show_terms(source)
            for name, finding in bad.items():
                _remove_broken(f"{source}/{name}", path_of(source, name), finding)
            _download_all(source, tuple(bad), progress=progress)
    except (OSError, NotImplementedError) as error:
        label, path = source, folder_of(source)
        if len(names) == 1:
            label, path = f"{source}/{names[0]}", path_of(source, names[0])
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        size = sum(declared.files[name].size for name in names)
        message = (
            f"{label}: cannot write {path}: {reason}. Set LM_EVAL_EXT_CACHE to a writable "
            f"folder with {size:,} bytes free, or LM_EVAL_EXT_DATA to a local copy."
        )
        raise DataError(one_line(message)) from error
    return len(bad)


def _lock_of(declared: Source, spec: FileSpec) -> Path:
    """Returns the lock of a file: its own, or one for all files of a manifest.

    Hundreds of locks beside hundreds of small files would be clutter.
    """
    if declared.folder:
        return data_folder() / declared.folder / ".all.lock"
    path = data_folder() / spec.path
    return path.with_name(f".{path.name}.lock")


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Holds a lock, so that two processes do not download the same file at once.

    On a file system without locks some releases of filelock raise a NotImplementedError.
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


def _show_terms(source: str) -> None:
    """Prints a source's terms before its first file arrives."""
    declared = find_source(source)
    if declared.terms and not any(path_of(source, name).exists() for name in declared.files):
        # Not a log message: a log level must not hide terms.
        sys.stderr.write(f"{source}: {declared.title}\n{declared.terms.rstrip()}\n")


def _remove_broken(label: str, path: Path, finding: Finding) -> None:
    if finding.state != "missing":
        _log.warning("%s", one_line(f"{label}: {path}: {finding}; fetching it again"))
        path.unlink()


def _download_all(source: str, names: Sequence[str], *, progress: bool | None) -> None:
    from tqdm import tqdm

    files = find_source(source).files
    alone = [name for name in names if files[name].size >= _BIG_BYTES or len(names) == 1]
    small = [name for name in names if name not in alone]
    for name in alone:
        _transfer(source, name, progress=progress)
    failures: list[DataError] = []
    bar = tqdm(
        total=len(small),
        desc=source,
        unit="file",
        file=sys.stderr,
        disable=not (sys.stderr.isatty() if progress is None else progress) or not small,
    )
    with bar, closing(_in_threads(small, lambda name: _transfer(source, name))) as results:
        for error in results:
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
        first = min(map(str, failures))
        raise DataError(
            f"{source}: {at_least}{len(failures)} files are unavailable; one of them: {first}"
        )


def _transfer(source: str, name: str, *, progress: bool | None = False) -> None:
    declared, path = find_source(source), path_of(source, name)
    url = declared.url_of(declared.files[name], mirror_url())
    if url is None:
        raise DataError(one_line(f"{source}/{name}: {declared.unavailable}"))
    # User name, password and query may be secret.
    parts = urlsplit(url)
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    _log.info("%s/%s: fetching %s", source, name, one_line(shown))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        download(url, path, declared.files[name], progress=progress)
    except TransferError as error:
        message = (
            f"{source}/{name}: {shown}: {error}. Check the connection and run "
            f"`lm-eval-ext data fetch {source}` again, or set LM_EVAL_EXT_MIRROR to the URL of a "
            "mirror or LM_EVAL_EXT_DATA to a local copy."
        )
        raise DataError(one_line(message)) from error


def _in_threads(
    names: Sequence[str], work: Callable[[str], None]
) -> Generator[Exception | None, None, None]:
    """Does the work in threads; yields the exception of each name that is done, or None.

    Closing the iterator starts no further work and waits for what runs. An interruption waits
    for a moment only: a silent server must not hold the program until its timeout, so the
    threads are daemons, which an executor's are not.
    """
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            try:
                work(waiting.get_nowait())
            except queue.Empty:
                return
            except Exception as error:  # noqa: BLE001 - handed to the main thread
                done.put(error)
            else:
                done.put(None)

    for name in names:
        waiting.put(name)
    threads = [threading.Thread(target=run, daemon=True) for _ in names[:_CONNECTIONS]]
    until: float | None = None
    try:
        for thread in threads:
            thread.start()
        for _ in names:
            yield done.get()
    except KeyboardInterrupt:
        until = time.monotonic() + _GRACE_S
        raise
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(None if until is None else max(0.0, until - time.monotonic()))
