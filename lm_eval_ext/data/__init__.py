"""Data files: declared, pinned, verified, and downloaded when they are needed.

``LM_EVAL_EXT_DATA`` names a local copy: files come from there only, never from the network.
Otherwise they come from the cache (``LM_EVAL_EXT_CACHE``, else the user's cache folder), and what
it lacks is downloaded with pooch: complete and verified, or not at all. A variable that is set to
nothing counts as not set. Every function raises a ``DataError`` for a source or file that is not
declared.
"""

import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from http.client import responses
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from lm_eval_ext import __version__
from lm_eval_ext.atomic import sha256_of, sha256_of_text
from lm_eval_ext.data.sources import FileSpec, Source, find_source, sources
from lm_eval_ext.errors import DataError, OptionError, nearest
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

__all__ = ["Source", "find_source", "sources"]

_log = get_logger(__name__)

_PARALLEL_DOWNLOADS = 6
"""Files that are downloaded at a time. No more than these are fetched one by one, each with a
progress bar."""

_TIMEOUT_S = 30
"""Seconds for connecting, and for each read."""

_HINTED_FILES = 10
"""Files that an error names."""

_SILENT_WAIT_S = 1.0
"""How long another process may hold a lock before a log line says that we wait."""


@dataclass(frozen=True)
class DataFile:
    """A verified local file and its provenance."""

    path: Path
    source: str
    name: str
    revision: str
    sha256: str


@dataclass(frozen=True)
class DataFolder:
    """Verified local files of one source.

    Attributes:
        path: The folder that holds all files.
        files: The files in the order of their declaration.
        sha256: The digest of all files: of the lines that ``sha256sum`` prints for them, run in the
            data folder and sorted by path.
        fetched: How many files had to be downloaded.
    """

    path: Path
    files: tuple[DataFile, ...]
    sha256: str
    fetched: int


def local_copy() -> Path | None:
    """Return the folder that ``LM_EVAL_EXT_DATA`` names, or None; it need not exist."""
    value = os.environ.get("LM_EVAL_EXT_DATA")
    return Path(value).expanduser().absolute() if value else None


def cache_dir() -> Path:
    """Return the cache folder, whether it exists or not; data files are in its ``data/``."""
    value = os.environ.get("LM_EVAL_EXT_CACHE")
    if value:
        return Path(value).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lm-eval-ext", appauthor=False))


def data_folder() -> Path:
    """Return the folder that files are read from: the local copy, or the cache's data."""
    return local_copy() or cache_dir() / "data"


def folder_of(source: str) -> Path:
    """Return the folder of all files of a source, whether it exists or not."""
    return data_folder() / find_source(source).folder


def mirror_url() -> str:
    """Return ``LM_EVAL_EXT_MIRROR``, the URL that replaces upstream, or "".

    Raises:
        OptionError: It is not an http or https URL.
    """
    mirror = os.environ.get("LM_EVAL_EXT_MIRROR", "")
    if mirror and not mirror.lower().startswith(("http://", "https://")):
        raise OptionError(
            one_line(f"LM_EVAL_EXT_MIRROR is {mirror!r}; write a URL that starts with https://")
        )
    return mirror


def available(source: str) -> bool:
    """Return whether every file of a source is available locally with its declared size.

    Cheap: no network, no hashing. :func:`require` verifies the content.
    """
    folder = folder_of(source)
    for spec in find_source(source).files.values():
        if _fault(folder / spec.path, spec, content=False):
            return False
    return True


def inspect(source: str, names: Collection[str] = ()) -> dict[str, str]:
    """Compare local files of a source with their declarations, without the network.

    The complete files are read each time, a second per some 500 MB, so that no broken or edited
    file ever enters an evaluation.

    Args:
        source: Name of a declared source.
        names: Short names of its files; none: all.

    Returns:
        What is wrong, by short name, of the files that are not as declared.
    """
    folder = folder_of(source)
    faults = {}
    for name, spec in _specs(source, names).items():
        fault = _fault(folder / spec.path, spec)
        if fault:
            faults[name] = fault
    return faults


def require(source: str, file: str) -> DataFile:
    """Return a verified local file; errors are those of :func:`require_all`."""
    return require_all(source, [file]).files[0]


def require_all(source: str, names: Collection[str] = ()) -> DataFolder:
    """Return verified local files of a source, after those that are missing were downloaded.

    Each file is complete or absent, and what has arrived stays: after an error or an
    interruption the next call continues from there.

    Args:
        source: Name of a declared source.
        names: Short names of its files; none: all.

    Raises:
        DataError: A name is not declared, or a file is unavailable; the message says what
            happened and what to do.
        OptionError: An environment variable has no legal value.
    """
    declared = find_source(source)
    folder = folder_of(source)
    specs = _specs(source, names)
    faults = inspect(source, names)
    fetched = 0
    if faults:
        _refuse_if_not_fetchable(source, faults)
        fetched = _fetch(source, faults)
    digests = sorted((declared.folder + spec.path, spec.sha256) for spec in specs.values())
    sha256 = sha256_of_text("".join(f"{digest}  {path}\n" for path, digest in digests))
    files = []
    for name, spec in specs.items():
        path = folder / spec.path
        files.append(DataFile(path, source, name, declared.revision, spec.sha256))
    return DataFolder(folder, tuple(files), sha256, fetched)


def _specs(source: str, names: Collection[str]) -> dict[str, FileSpec]:
    """Return the declarations of some files of a source; without names those of all."""
    files = find_source(source).files
    for file in names:
        if file not in files:
            available = f"; its files are: {', '.join(islice(files, _HINTED_FILES))}"
            hint = nearest(file, files) or available
            raise DataError(one_line(f"data source {source!r} has no file {file!r}{hint}"))
    if not names:
        return dict(files)
    return {name: spec for name, spec in files.items() if name in names}


def _fault(path: Path, spec: FileSpec, *, content: bool = True) -> str:
    """Return what is wrong with a file: existence, size, then SHA-256; "" if nothing is."""
    try:
        size = path.stat().st_size
        digest = spec.sha256
        if content and size == spec.size:
            digest = sha256_of(path)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if size != spec.size:
        return f"wrong size: {size:,} bytes instead of {spec.size:,}"
    if digest != spec.sha256:
        return f"wrong checksum: got {digest[:12]}… expected {spec.sha256[:12]}…"
    return ""


def _refuse_if_not_fetchable(source: str, faults: Mapping[str, str]) -> None:
    """Raise an error where files come from a local copy only, or the source has no URL."""
    declared = find_source(source)
    name, fault = next(iter(faults.items()))
    problem = f"{source}/{name}: {folder_of(source) / declared.files[name].path}: {fault}"
    if len(faults) > 1:
        problem += f" (and {len(faults) - 1:,} more files)"
    remedy = "" if mirror_url() else declared.unavailable
    copy = local_copy()
    if copy is not None:
        remedy = (
            f"LM_EVAL_EXT_DATA is {copy}: put the declared file there, name a complete copy, or "
            "unset it so that files are downloaded"
        )
    if remedy:
        raise DataError(one_line(f"{problem}; {remedy}"))


def _fetch(source: str, names: Collection[str]) -> int:
    """Download files under the source's lock, and return how many no other process had fetched."""
    import filelock

    folder = data_folder()
    unfinished = folder / f".{source}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / f".{source}.lock")
        try:
            held = lock.acquire(timeout=_SILENT_WAIT_S)
        except filelock.Timeout:
            _log.info("%s: waiting for another process that fetches it", source)
            held = lock.acquire()
        with held:
            faults = inspect(source, names)
            for name, fault in faults.items():
                if fault != "missing":
                    _log.warning("%s/%s: %s; fetching it again", source, name, fault)
            try:
                _download(source, list(faults), unfinished)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)  # also of a process that was killed
    except (OSError, NotImplementedError) as error:  # a file system without locks
        size = sum(spec.size for spec in _specs(source, names).values())
        problem = getattr(error, "strerror", "") or error
        message = (
            f"{source}: cannot write {folder_of(source)}: {problem}. Set LM_EVAL_EXT_CACHE to a "
            f"writable folder with {size:,} bytes free, or LM_EVAL_EXT_DATA to a local copy."
        )
        raise DataError(one_line(message)) from error
    return len(faults)


def _download(source: str, names: Sequence[str], unfinished: Path) -> None:
    """Download files; the first that fails stops the rest.

    Raises:
        DataError: A file is unavailable or is not the declared one.
        OSError: A file could not be written.
    """
    # Imported here: a run whose files are available locally needs none of these.
    import pooch
    from requests import RequestException
    from tqdm.contrib.concurrent import thread_map

    declared = find_source(source)
    fetcher = pooch.Pooch(unfinished, "", {}, {}, retry_if_failed=1)
    # pooch would print URLs, which may hold a password.
    pooch.get_logger().setLevel("ERROR")
    download = pooch.HTTPDownloader(
        progressbar=len(names) <= _PARALLEL_DOWNLOADS and sys.stderr.isatty(),
        timeout=_TIMEOUT_S,
        # Uncompressed, so that the bytes that arrive are the bytes of the file.
        headers={"User-Agent": f"lm-eval-ext/{__version__}", "Accept-Encoding": "identity"},
    )

    def fetch_file(name: str) -> None:
        spec = declared.files[name]
        path = folder_of(source) / spec.path
        url = declared.url_of(spec, mirror_url())
        quoted_name = quote(name, safe="")
        _log.info("%s/%s: fetching %s", source, name, _public_url(url))
        fetcher.registry[quoted_name] = spec.sha256
        fetcher.urls[quoted_name] = url
        try:
            arrived = Path(fetcher.fetch(quoted_name, downloader=download))
        except (RequestException, ValueError) as error:
            problem = f"{source}/{name}: {_public_url(url)}: {_reason(error)}"
            raise _unavailable(source, problem) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        arrived.chmod(0o644)  # pooch makes it readable by its owner alone, but caches are shared
        arrived.replace(path)

    if len(names) > _PARALLEL_DOWNLOADS:
        thread_map(
            fetch_file,
            names,
            max_workers=_PARALLEL_DOWNLOADS,
            desc=source,
            unit="file",
            disable=None,
        )
    else:
        for name in names:
            fetch_file(name)


def _unavailable(source: str, problem: str) -> DataError:
    """Return the error of a file that could not be downloaded, with the remedies."""
    return DataError(
        one_line(
            f"{problem}. Check the connection and run `lm-eval-ext data fetch {source}` again, or "
            "set LM_EVAL_EXT_MIRROR to the URL of a mirror or LM_EVAL_EXT_DATA to a local copy."
        )
    )


def _public_url(url: str) -> str:
    """Return a URL without user name, password and query, which may be secret."""
    split_url = urlsplit(url)
    host = split_url.netloc.rpartition("@")[2]
    return urlunsplit((split_url.scheme, host, split_url.path, "", ""))


def _reason(error: Exception) -> str:
    """Return what happened in the words of the innermost exception, without any of the server's."""
    from requests import HTTPError, RequestException

    if isinstance(error, HTTPError) and error.response is not None:
        code = error.response.status_code
        return f"HTTP {code} {responses.get(code, '')}".rstrip()
    if not isinstance(error, RequestException):
        return "what arrives is not the declared file"
    root: BaseException = error
    while root.__context__ is not None:
        root = root.__context__
    name = type(error).__name__
    return name if "://" in str(root) else f"{name}: {root}"
