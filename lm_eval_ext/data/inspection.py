"""Is a local file the declared one?"""

import hashlib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lm_eval_ext.data.declared import FileSpec
from lm_eval_ext.data.messages import short_hash

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Finding:
    """What a look at a file found; ``detail`` is empty where the state says everything."""

    state: Literal["ok", "missing", "wrong size", "wrong checksum", "unreadable"]
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the file is exactly the declared one."""
        return self.state == "ok"

    def __str__(self) -> str:
        return f"{self.state}: {self.detail}" if self.detail else self.state


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a file's content, in hexadecimal digits.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def has_declared_size(path: Path, spec: FileSpec) -> bool:
    """Returns whether a file of the declared size lies there; reads nothing of it."""
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == spec.size


def inspect_file(path: Path, spec: FileSpec) -> Finding:
    """Compares a file with its declaration: existence, size, then SHA-256.

    The whole file is read, each time: a second per some 500 MB buys that no broken or
    edited file ever enters an evaluation.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return Finding("unreadable", "this is no regular file")
        if status.st_size != spec.size:
            return Finding("wrong size", f"{status.st_size:,} bytes instead of {spec.size:,}")
        digest = sha256_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return Finding("missing")
    except OSError as error:
        return Finding("unreadable", error.strerror or type(error).__name__)
    if digest != spec.sha256:
        got, expected = short_hash(digest), short_hash(spec.sha256)
        return Finding("wrong checksum", f"got {got} expected {expected}")
    return Finding("ok")
