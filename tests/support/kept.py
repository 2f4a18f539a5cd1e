"""Keeps data between test runs that take minutes to build and rarely change.

They are in the user's cache folder, or in the folder ``LM_EVAL_EXT_TEST_CACHE``, under a key of
the sources and versions that they depend on. The folder can be deleted at any time.
"""

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import filelock
import platformdirs

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lm_eval_ext"
USERS_FOLDER = os.environ.get("LM_EVAL_EXT_TEST_CACHE")
BASE = Path(USERS_FOLDER or platformdirs.user_cache_path("lm-eval-ext-tests")).resolve()
"""The folder of everything that is kept."""

MAX_COPIES = 6
"""Copies of one name that are kept, for other branches and reverted changes."""

IN_USE_S = 24 * 3600
"""Seconds for which an unused copy is kept in any case, since another run may be using it."""

USE_MARK = ".used"
"""A file in each folder whose time says when the folder was last used."""


def key_of(sources: Iterable[Path], libraries: Iterable[str]) -> str:
    """Return a digest of files, of folders' files, and of the versions of libraries and SQLite."""
    digest = hashlib.sha256(sqlite3.sqlite_version.encode())
    for library in libraries:
        digest.update(f"{library} {version(library)}\n".encode())
    for source in sources:
        files = [source] if source.is_file() else source.rglob("*")
        for file in sorted(files):
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def folder_for(name: str, key: str) -> Path:
    """Return the folder of a name and key, which may be new; delete old ones of the name."""
    folder = BASE / f"{name}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / USE_MARK).touch()
    marks = sorted(
        BASE.glob(f"{name}-*/{USE_MARK}"), key=lambda mark: mark.stat().st_mtime, reverse=True
    )
    for mark in marks[MAX_COPIES:]:
        if time.time() - mark.stat().st_mtime > IN_USE_S:
            shutil.rmtree(mark.parent, ignore_errors=True)
    return folder


def built_once(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return a folder that ``build`` has filled, in one process and once."""
    folder = folder_for(name, key)
    content = folder / "content"
    with filelock.FileLock(folder / ".lock"):
        if not content.is_dir():
            unfinished = folder / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(content)
    return content
