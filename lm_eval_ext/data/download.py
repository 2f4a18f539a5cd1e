"""Downloading one file: verified before it gets its name, or not there at all."""

import hashlib
import math
import os
import sys
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from lm_eval_ext import __version__
from lm_eval_ext.data.declared import FileSpec
from lm_eval_ext.data.failures import TransferError, explain, incomplete
from lm_eval_ext.data.messages import wrong_checksum
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

_TIMEOUT_S = 30.0
_PAUSE_S = 0.5
"""Before the second attempt: a server that has just restarted needs a moment."""
_CHUNK_BYTES = 1 << 14


def timeout_s() -> float:
    """Returns how many seconds a connection, or a silence of the server, may last.

    Raises:
        OptionError: ``LM_EVAL_EXT_TIMEOUT`` is no positive number.
    """
    text = os.environ.get("LM_EVAL_EXT_TIMEOUT") or str(_TIMEOUT_S)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise OptionError(f"LM_EVAL_EXT_TIMEOUT is {text!r}; write seconds, such as 30 or 0.5")
    return value


class _WriteError(Exception):
    """Tells a full disk from a broken connection: requests' errors are OSErrors, too."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Sink:
    """A file that counts and hashes what is written to it and takes no byte too many."""

    def __init__(self, file: BinaryIO, size: int, tick: Callable[[int], object]) -> None:
        self.arrived = 0
        self.digest = hashlib.sha256()
        self._file = file
        self._size = size
        self._tick = tick

    def write(self, chunk: bytes) -> int:
        self.arrived += len(chunk)
        if self.arrived > self._size:
            # An endless answer must not fill the disk.
            raise TransferError(f"wrong size: more than the {self._size:,} bytes it should have")
        self.digest.update(chunk)
        try:
            self._file.write(chunk)
        except OSError as error:
            raise _WriteError(error) from error
        self._tick(len(chunk))
        return len(chunk)

    def flush(self) -> None:
        """Pooch flushes after every chunk; once at the end is enough."""


def download(url: str, target: Path, spec: FileSpec, *, progress: bool | None = None) -> None:
    """Downloads a file to its final name; tries a second time where that may help.

    The bytes go to ``.NAME.part`` beside the target. It is removed when the attempt fails;
    what a killed process left is overwritten. The caller holds the file's lock.

    Args:
        url: Where from.
        target: The final name; its folder exists.
        spec: Declared size and SHA-256.
        progress: Whether to show a bar on stderr; None: if stderr is a terminal.

    Raises:
        TransferError: The file could not be had or is not the declared one.
        OSError: The file could not be written.
        OptionError: ``LM_EVAL_EXT_TIMEOUT`` is no positive number.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        try:
            _attempt(url, part, spec, progress=progress)
        except TransferError as error:
            if not error.again:
                raise
            _log.info("%s: %s; trying once more", target.name, error)
            time.sleep(_PAUSE_S)
            _attempt(url, part, spec, progress=progress)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _attempt(url: str, part: Path, spec: FileSpec, *, progress: bool | None) -> None:
    # Imported here: a run whose files are at hand needs none of these.
    import pooch
    import urllib3
    from tqdm import tqdm

    seconds = timeout_s()
    downloader = pooch.HTTPDownloader(
        chunk_size=_CHUNK_BYTES,
        timeout=(seconds, seconds),
        # Uncompressed, so that the bytes on the wire are the bytes of the file.
        headers={"User-Agent": f"lm-eval-ext/{__version__}", "Accept-Encoding": "identity"},
    )
    bar = tqdm(
        total=spec.size,
        desc=Path(spec.path).name,
        unit="B",
        unit_scale=True,
        file=sys.stderr,
        disable=not (sys.stderr.isatty() if progress is None else progress),
    )
    with bar, part.open("wb") as file:
        sink = _Sink(file, spec.size, bar.update)
        try:
            downloader(url, sink, None)
        except _WriteError as error:
            raise error.error from error
        except (OSError, ValueError, HTTPException, urllib3.exceptions.HTTPError) as error:
            # OSError covers requests' own; ValueError what cannot be parsed (URLs, headers).
            raise explain(error, arrived=sink.arrived, size=spec.size, timeout_s=seconds) from error
        file.flush()
        os.fsync(file.fileno())
    if sink.arrived != spec.size:
        raise incomplete(sink.arrived, spec.size)
    if sink.digest.hexdigest() != spec.sha256:
        raise TransferError(wrong_checksum(sink.digest.hexdigest(), spec.sha256))
