"""Writes files and folders completely or not at all, and computes checksums."""

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from lm_eval_ext.errors import writing

_CHUNK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of_json(content: Any) -> str:
    """Return the SHA-256 of what JSON can hold, whatever the order of its keys."""
    return sha256_of_text(json.dumps(content, sort_keys=True))


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; what the block puts there gets its final name when the block ends.

    After an error or an interruption it is removed. The path is in the same folder, since a
    rename works within one file system only.

    Args:
        path: The final name of a file, which is replaced, or of a folder, which must be absent
            or empty.

    Raises:
        OSError: It cannot be renamed, such as a folder to the name of one that has files.
    """
    unfinished = path.parent / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        yield unfinished
        if unfinished.is_dir() and path.is_dir():
            path.rmdir()  # Windows does not rename to the name of an empty folder
        unfinished.replace(path)
    finally:
        if unfinished.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
        else:
            unfinished.unlink(missing_ok=True)


@contextmanager
def atomic_text(path: Path, *, errors: str = "strict") -> Iterator[TextIO]:
    """Open a text file that gets its name only when the block ends without an error.

    UTF-8, and line ends as they are written. An interruption leaves what was there before.

    Args:
        path: The final name.
        errors: What to do about text that is not Unicode, as :func:`open` takes it.

    Raises:
        OptionError: If a file cannot be written there.
    """
    with (
        writing(path),
        atomic_path(path) as unfinished,
        unfinished.open("w", encoding="utf-8", errors=errors, newline="") as handle,
    ):
        yield handle


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a folder that gets its name only when the block ends without an error.

    Args:
        path: The final name; must be absent or an empty folder.

    Raises:
        OptionError: If a folder cannot be written there.
    """
    with writing(path), atomic_path(path) as unfinished:
        unfinished.mkdir(parents=True)
        yield unfinished
