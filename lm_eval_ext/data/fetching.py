"""Fetches what is missing of a source with pooch: verified and complete, or not at all."""

import hashlib
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from http.client import responses
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from lm_eval_ext import __version__
from lm_eval_ext.data.files import (
    DataFile,
    DataFolder,
    Finding,
    data_folder,
    describe_file,
    folder_of,
    inspect,
    local_copy,
)
from lm_eval_ext.data.sources import find_file, find_source
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_CONNECTIONS = 6
"""For sources of hundreds of small files."""
_TIMEOUT_S = 30
"""For connecting, and for each read."""
_SILENT_WAIT_S = 1.0
"""How long another process may hold a lock before a log line says that we wait."""


def mirror_url() -> str | None:
    """Returns ``LM_EVAL_EXT_MIRROR``, the URL that replaces upstream, or None.

    Raises:
        OptionError: It is not an http or https URL.
    """
    mirror = os.environ.get("LM_EVAL_EXT_MIRROR") or None
    if mirror and not mirror.lower().startswith(("http://", "https://")):
        raise OptionError(
            one_line(f"LM_EVAL_EXT_MIRROR is {mirror!r}; write a URL that starts with https://")
        )
    return mirror


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
    declared = find_source(source)
    specs = {name: find_file(source, name) for name in names or declared.files}
    chosen = [name for name in declared.files if name in specs]
    bad, fetched = _bad(source, chosen), 0
    if bad:
        _refuse_if_not_fetchable(source, bad)
        fetched = _fetch(source, bad)
    lines = sorted((spec.path, spec.sha256) for spec in specs.values())
    digest = hashlib.sha256("".join(f"{sha}  {path}\n" for path, sha in lines).encode())
    files = tuple(describe_file(source, name) for name in chosen)
    return DataFolder(folder_of(source), files, digest.hexdigest(), fetched)


def _bad(source: str, names: Iterable[str]) -> dict[str, Finding]:
    return {name: found for name, found in inspect(source, names).items() if not found.ok}


def _refuse_if_not_fetchable(source: str, bad: dict[str, Finding]) -> None:
    """Raises where files come from a local copy only, or the source has no URL."""
    name, finding = next(iter(bad.items()))
    more = f" (and {len(bad) - 1:,} more files)" if len(bad) > 1 else ""
    problem = f"{source}/{name}: {describe_file(source, name).path}: {finding}{more}"
    if (copy := local_copy()) is not None:
        if not copy.is_dir():
            problem = f"{source}/{name}: the folder {copy} does not exist"
        raise DataError(
            one_line(
                f"{problem}; LM_EVAL_EXT_DATA is {copy}: put the declared file there, name a "
                "complete copy, or unset it so that files are downloaded"
            )
        )
    unavailable = find_source(source).unavailable
    if unavailable and not mirror_url():
        raise DataError(one_line(f"{problem}; {unavailable}"))


def _fetch(source: str, wanted: Iterable[str]) -> int:
    """Downloads files under the source's lock; returns how many no other process had fetched."""
    declared, folder = find_source(source), data_folder()
    parts = folder / f".{source}.part"
    try:
        with _locked(folder / f".{source}.lock"):
            bad = _bad(source, wanted)
            if declared.terms and not any(
                (folder / s.path).exists() for s in declared.files.values()
            ):
                # Not a log message: a log level must not hide terms.
                sys.stderr.write(f"{source}: {declared.title}\n{declared.terms.rstrip()}\n")
            for name, finding in bad.items():
                if finding.state != "missing":
                    _log.warning("%s/%s: %s; fetching it again", source, name, finding)
            shutil.rmtree(parts, ignore_errors=True)  # of a process that was killed
            try:
                _download(source, list(bad), parts)
            finally:
                shutil.rmtree(parts, ignore_errors=True)
    except (OSError, NotImplementedError) as error:  # a file system without locks
        size = sum(declared.files[name].size for name in wanted)
        reason = getattr(error, "strerror", "") or error
        message = (
            f"{source}: cannot write {folder_of(source)}: {reason}. "
            f"Set LM_EVAL_EXT_CACHE to a writable folder with {size:,} bytes free, or "
            "LM_EVAL_EXT_DATA to a local copy."
        )
        raise DataError(one_line(message)) from error
    return len(bad)


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Holds a lock, so that two processes do not download the same files at once."""
    import filelock

    lock.parent.mkdir(parents=True, exist_ok=True)
    held = filelock.FileLock(lock)
    try:
        held.acquire(timeout=_SILENT_WAIT_S)
    except filelock.Timeout:
        _log.info("%s: waiting for another process that fetches it", lock.stem[1:])
        held.acquire()
    try:
        yield
    finally:
        held.release()


def _download(source: str, names: list[str], parts: Path) -> None:
    """Downloads files; the first that fails stops the rest.

    Raises:
        DataError: A file is unavailable or is not the declared one.
        OSError: A file could not be written.
    """
    # Imported here: a run whose files are available locally needs none of these.
    import pooch
    from requests import RequestException
    from tqdm import tqdm
    from tqdm.contrib.concurrent import thread_map

    declared = find_source(source)
    many = declared.manifest is not None
    specs = [declared.files[name] for name in names]
    urls = {str(place): declared.url_of(spec, mirror_url()) for place, spec in enumerate(specs)}
    hashes = {str(place): spec.sha256 for place, spec in enumerate(specs)}
    files = pooch.Pooch(parts, "", hashes, urls, retry_if_failed=1)
    # pooch would print URLs, which may hold a password.
    pooch.get_logger().setLevel("ERROR")

    def get(place: int) -> None:
        path, url = data_folder() / specs[place].path, str(urls[str(place)])
        _log.info("%s/%s: fetching %s", source, names[place], _shown(url))

        def download(url: str, output: str, caller: Any) -> None:
            # pooch made the file readable by its owner alone, but caches are shared.
            Path(output).unlink()
            bar = tqdm(
                total=specs[place].size, desc=path.name, unit="B", unit_scale=True,
                disable=many or None,
            )  # fmt: skip
            # Uncompressed, so that the bytes that arrive are the bytes of the file.
            headers = {"User-Agent": f"lm-eval-ext/{__version__}", "Accept-Encoding": "identity"}
            with bar:
                pooch.HTTPDownloader(bar, timeout=_TIMEOUT_S, headers=headers)(url, output, caller)

        try:
            arrived = files.fetch(str(place), downloader=download)
        except (RequestException, ValueError) as error:
            raise DataError(
                one_line(
                    f"{source}/{names[place]}: {_shown(url)}: {_reason(error)}. Check the "
                    f"connection and run `lm-eval-ext data fetch {source}` again, or set "
                    "LM_EVAL_EXT_MIRROR to the URL of a mirror or LM_EVAL_EXT_DATA to a local copy."
                )
            ) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(arrived).replace(path)

    places = range(len(names))
    if many:
        thread_map(get, places, max_workers=_CONNECTIONS, desc=source, unit="file", disable=None)
    else:
        for place in places:
            get(place)


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
