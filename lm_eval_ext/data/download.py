"""Downloads one file with pooch: verified and complete, or not at all.

pooch streams into a temporary file, compares the SHA-256, tries again and renames. What it
lacks is added here: a limit on the size, and errors that say what happened.
"""

import io
import math
import os
import shutil
import socket
import ssl
import sys
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

from lm_eval_ext import __version__
from lm_eval_ext.data.sources import FileSpec
from lm_eval_ext.errors import OptionError

_TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 14
_FIRST_SERVER_ERROR = 500


class TransferError(Exception):
    """A failed download; the message says what happened."""


class _TemporaryError(TransferError, ValueError):
    """A failure that may be temporary: pooch tries again after a ValueError."""


class _LimitedFile(io.BufferedWriter):
    """A file that refuses more than its declared size: an endless body must not fill the disk."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(io.FileIO(path, "w"))
        self._size = size

    def write(self, chunk: Any) -> int:
        if self.tell() + len(chunk) > self._size:
            raise TransferError(f"wrong size: more than the {self._size:,} bytes it should have")
        return super().write(chunk)


def timeout_s() -> float:
    """Returns the timeout for connecting and for each read, in seconds.

    Raises:
        OptionError: ``LM_EVAL_EXT_TIMEOUT`` is not a positive number.
    """
    text = os.environ.get("LM_EVAL_EXT_TIMEOUT") or str(_TIMEOUT_S)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise OptionError(f"LM_EVAL_EXT_TIMEOUT is {text!r}; write seconds, such as 30 or 0.5")
    return value


def download(url: str, target: Path, spec: FileSpec, *, progress: bool | None = None) -> None:
    """Downloads a file to its final name; tries a second time where that may help.

    pooch works in the folder ``.NAME.tmp`` beside the target, which is removed at the end, or,
    after a process that was killed, by the next download. The caller holds the file's lock.

    Args:
        url: Where from.
        target: The final name; its folder exists.
        spec: Declared size and SHA-256.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        TransferError: The file is unavailable or is not the declared one.
        OSError: The file could not be written.
        OptionError: ``LM_EVAL_EXT_TIMEOUT`` is not a positive number.
    """
    # Imported here: a run whose files are available locally needs none of these.
    import pooch
    import urllib3
    from requests import RequestException
    from tqdm import tqdm

    seconds = timeout_s()

    def attempt(url: str, output: str, caller: pooch.Pooch) -> None:
        bar = tqdm(
            total=spec.size,
            desc=target.name,
            unit="B",
            unit_scale=True,
            file=sys.stderr,
            disable=not (sys.stderr.isatty() if progress is None else progress),
        )
        downloader = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=_CHUNK_BYTES,
            timeout=seconds,
            # Uncompressed, so that the bytes that arrive are the bytes of the file.
            headers={"User-Agent": f"lm-eval-ext/{__version__}", "Accept-Encoding": "identity"},
        )
        # pooch made the file readable by its owner alone, but caches are shared.
        Path(output).unlink()
        with bar, _LimitedFile(output, spec.size) as file:
            try:
                downloader(url, file, caller)
            except (RequestException, ValueError, HTTPException, urllib3.exceptions.HTTPError) as e:
                # ValueError: URLs and headers that cannot be parsed.
                raise _explain(e, arrived=file.tell(), size=spec.size, seconds=seconds) from e
            if file.tell() != spec.size:
                raise _incomplete(file.tell(), spec.size)

    # pooch would print URLs, which may hold a password.
    pooch.get_logger().setLevel("WARNING")
    folder = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
        name = target.name
        files = pooch.Pooch(folder, "", {name: spec.sha256}, {name: url}, retry_if_failed=1)
        Path(files.fetch(name, downloader=attempt)).replace(target)
    except TransferError:
        raise
    except ValueError as error:
        # pooch's message is a sentence with both checksums; advice follows that we give ourselves.
        raise TransferError(f"wrong checksum: {str(error).partition('. ')[0]}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _incomplete(arrived: int, size: int) -> TransferError:
    return _TemporaryError(f"{arrived:,} of {size:,} bytes arrived")


def _explain(error: Exception, *, arrived: int, size: int, seconds: float) -> TransferError:
    """Translates an exception of requests, urllib3 or the socket library.

    Nothing that the server wrote (reason phrases, bodies, redirect targets) is repeated.
    """
    from requests import exceptions as requests
    from urllib3 import exceptions as urllib3

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return _status(error.response.status_code)
    after = f" after {arrived:,} of {size:,} bytes" if arrived else ""
    # The first that fits counts: a refused connection may look like a timeout from outside.
    meanings: dict[type[BaseException] | tuple[type[BaseException], ...], str] = {
        requests.ProxyError: "cannot connect through the proxy (HTTP_PROXY, HTTPS_PROXY)",
        ConnectionRefusedError: "connection refused",
        socket.gaierror: "unknown host name",
        (ssl.SSLError, requests.SSLError): "no secure connection (TLS error or bad certificate)",
        (requests.Timeout, urllib3.TimeoutError, TimeoutError): (
            f"no answer within {seconds:g} s{after}"
        ),
        (requests.InvalidURL, requests.InvalidSchema, requests.TooManyRedirects): (
            "not a valid URL, or redirected to one that is not"
        ),
    }
    chain = tuple(_chain(error))
    for types, meaning in meanings.items():
        if any(isinstance(link, types) for link in chain):
            return TransferError(meaning)
    if isinstance(error, requests.ConnectionError | requests.ChunkedEncodingError):
        # urllib3 drops the last, partly filled chunk, but says how far it had come.
        partial = [link.partial for link in chain if isinstance(link, urllib3.IncompleteRead)]
        return _incomplete(max([arrived, *partial]), size)
    return TransferError(f"the transfer failed ({type(error).__name__})")


def _status(code: int) -> TransferError:
    # The phrase comes from the standard's table, not from the server, who may write anything.
    phrases = {status.value: f" ({status.phrase})" for status in HTTPStatus}
    failure = _TemporaryError if code >= _FIRST_SERVER_ERROR else TransferError
    return failure(f"HTTP {code}{phrases.get(code, '')}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and all that it wraps: as cause, context, reason or argument."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        link = waiting.pop()
        if not isinstance(link, BaseException) or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__, getattr(link, "reason", None), *link.args]
