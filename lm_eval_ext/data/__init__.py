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
from collections.abc import Collection, Iterable
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

_FEW = 6
"""Files that get a progress bar each; of more, as many are downloaded at a time."""
_TIMEOUT_S = 30
"""For connecting, and for each read."""
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


def folder_of(source: str) -> Path:
    """Returns the folder of all files of a source, whether it exists or not."""
    return data_folder() / find_source(source).folder


def mirror_url() -> str:
    """Returns ``LM_EVAL_EXT_MIRROR``, the URL that replaces upstream, or "".

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
    """Returns whether every file of a source is available locally with its declared size.

    Cheap: no network, no hashing. :func:`require` verifies the content.
    """
    folder, files = folder_of(source), find_source(source).files.values()
    return not any(_fault(folder / spec.path, spec, content=False) for spec in files)


def inspect(source: str, names: Collection[str] = ()) -> dict[str, str]:
    """Compares local files of a source with their declarations; uses no network.

    The complete files are read each time, a second per some 500 MB, so that no broken or edited
    file ever enters an evaluation.

    Args:
        source: Name of a declared source.
        names: Short names of its files; none: all.

    Returns:
        What is wrong, by short name, of the files that are not as declared.
    """
    folder = folder_of(source)
    found = {name: _fault(folder / one.path, one) for name, one in _specs(source, names).items()}
    return {name: fault for name, fault in found.items() if fault}


def require(source: str, file: str) -> DataFile:
    """Returns a verified local file; raises as :func:`require_all`."""
    return require_all(source, [file]).files[0]


def require_all(source: str, names: Collection[str] = ()) -> DataFolder:
    """Returns verified local files of a source; downloads those that are missing.

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
    declared, folder, specs = find_source(source), folder_of(source), _specs(source, names)
    bad, fetched = inspect(source, names), 0
    if bad:
        _refuse_if_not_fetchable(source, bad)
        fetched = _fetch(source, bad)
    lines = sorted((declared.folder + spec.path, spec.sha256) for spec in specs.values())
    digest = sha256_of_text("".join(f"{sha}  {path}\n" for path, sha in lines))
    files = (
        DataFile(folder / spec.path, source, name, declared.revision, spec.sha256)
        for name, spec in specs.items()
    )
    return DataFolder(folder, tuple(files), digest, fetched)


def _specs(source: str, names: Collection[str]) -> dict[str, FileSpec]:
    files = find_source(source).files
    for file in names:
        if file not in files:
            hint = nearest(file, files) or f"; its files are: {', '.join(islice(files, 10))}"
            raise DataError(one_line(f"data source {source!r} has no file {file!r}{hint}"))
    return {name: spec for name, spec in files.items() if name in (names or files)}


def _fault(path: Path, spec: FileSpec, *, content: bool = True) -> str:
    """What is wrong with a file: existence, size, then SHA-256."""
    try:
        size = path.stat().st_size
        digest = sha256_of(path) if content and size == spec.size else spec.sha256
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if size != spec.size:
        return f"wrong size: {size:,} bytes instead of {spec.size:,}"
    if digest != spec.sha256:
        return f"wrong checksum: got {digest[:12]}… expected {spec.sha256[:12]}…"
    return ""


def _refuse_if_not_fetchable(source: str, bad: dict[str, str]) -> None:
    """Raises where files come from a local copy only, or the source has no URL."""
    declared, (name, fault) = find_source(source), next(iter(bad.items()))
    more = f" (and {len(bad) - 1:,} more files)" if len(bad) > 1 else ""
    problem = f"{source}/{name}: {folder_of(source) / declared.files[name].path}: {fault}{more}"
    remedy = "" if mirror_url() else declared.unavailable
    if (copy := local_copy()) is not None:
        remedy = (
            f"LM_EVAL_EXT_DATA is {copy}: put the declared file there, name a complete copy, or "
            "unset it so that files are downloaded"
        )
    if remedy:
        raise DataError(one_line(f"{problem}; {remedy}"))


def _fetch(source: str, wanted: Collection[str]) -> int:
    """Downloads files under the source's lock; returns how many no other process had fetched."""
    import filelock

    folder = data_folder()
    parts = folder / f".{source}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / f".{source}.lock")
        try:
            held = lock.acquire(timeout=_SILENT_WAIT_S)
        except filelock.Timeout:
            _log.info("%s: waiting for another process that fetches it", source)
            held = lock.acquire()
        with held:
            bad = inspect(source, wanted)
            for name, fault in bad.items():
                if fault != "missing":
                    _log.warning("%s/%s: %s; fetching it again", source, name, fault)
            try:
                _download(source, bad, parts)
            finally:
                shutil.rmtree(parts, ignore_errors=True)  # also of a process that was killed
    except (OSError, NotImplementedError) as error:  # a file system without locks
        size = sum(spec.size for spec in _specs(source, wanted).values())
        message = (
            f"{source}: cannot write {folder_of(source)}: "
            f"{getattr(error, 'strerror', '') or error}. Set LM_EVAL_EXT_CACHE to a writable "
            f"folder with {size:,} bytes free, or LM_EVAL_EXT_DATA to a local copy."
        )
        raise DataError(one_line(message)) from error
    return len(bad)


def _download(source: str, names: Iterable[str], parts: Path) -> None:
    """Downloads files; the first that fails stops the rest.

    Raises:
        DataError: A file is unavailable or is not the declared one.
        OSError: A file could not be written.
    """
    # Imported here: a run whose files are available locally needs none of these.
    import pooch
    from requests import RequestException
    from tqdm.contrib.concurrent import thread_map

    declared, names = find_source(source), list(names)
    arriving = pooch.Pooch(parts, "", {}, {}, retry_if_failed=1)
    # pooch would print URLs, which may hold a password.
    pooch.get_logger().setLevel("ERROR")
    download = pooch.HTTPDownloader(
        progressbar=len(names) <= _FEW and sys.stderr.isatty(),
        timeout=_TIMEOUT_S,
        # Uncompressed, so that the bytes that arrive are the bytes of the file.
        headers={"User-Agent": f"lm-eval-ext/{__version__}", "Accept-Encoding": "identity"},
    )

    def get(name: str) -> None:
        spec, part = declared.files[name], quote(name, safe="")
        path, url = folder_of(source) / spec.path, declared.url_of(spec, mirror_url())
        _log.info("%s/%s: fetching %s", source, name, _shown(url))
        arriving.registry[part], arriving.urls[part] = spec.sha256, url
        try:
            arrived = Path(arriving.fetch(part, downloader=download))
        except (RequestException, ValueError) as error:
            raise DataError(
                one_line(
                    f"{source}/{name}: {_shown(url)}: {_reason(error)}. Check the connection and "
                    f"run `lm-eval-ext data fetch {source}` again, or set LM_EVAL_EXT_MIRROR to "
                    "the URL of a mirror or LM_EVAL_EXT_DATA to a local copy."
                )
            ) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        arrived.chmod(0o644)  # pooch makes it readable by its owner alone, but caches are shared
        arrived.replace(path)

    if len(names) > _FEW:
        thread_map(get, names, max_workers=_FEW, desc=source, unit="file", disable=None)
    else:
        for name in names:
            get(name)


def _shown(url: str) -> str:
    """A URL without user name, password and query, which may be secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _reason(error: Exception) -> str:
    """What happened, in the words of the innermost exception; no text of the server's."""
    from requests import HTTPError, RequestException

    if isinstance(error, HTTPError) and error.response is not None:
        code = error.response.status_code
        return f"HTTP {code} {responses.get(code, '')}".rstrip()
    if not isinstance(error, RequestException):
        return "what arrives is not the declared file"
    root: BaseException = error
    while root.__context__ is not None:
        root = root.__context__
    said = "" if "://" in str(root) else f": {root}"
    return f"{type(error).__name__}{said}"
