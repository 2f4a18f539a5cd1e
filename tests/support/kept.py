"""Keeps data between test runs that take minutes to make and rarely change.

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
CHOSEN = os.environ.get("LM_EVAL_EXT_TEST_CACHE")
BASE = Path(CHOSEN or platformdirs.user_cache_path("lm-eval-ext-tests")).resolve()
"""The folder of everything that is kept."""

MOST = 6
"""Copies of one kind that are kept, for other branches and reverted changes."""

IN_USE_S = 24 * 3600
"""Newer copies are kept, since another run may be using them."""

USED = ".used"


def key(sources: Iterable[Path], libraries: Iterable[str]) -> str:
    """A digest of files, of folders' files, and of the versions of libraries and SQLite."""
    digest = hashlib.sha256(sqlite3.sqlite_version.encode())
    for library in libraries:
        digest.update(f"{library} {version(library)}\n".encode())
    for source in sources:
        files = [source] if source.is_file() else source.rglob("*")
        for file in sorted(files):
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def folder(kind: str, key: str) -> Path:
    """The folder of a kind and key, which may be new; drops old ones of the kind."""
    found = BASE / f"{kind}-{key}"
    found.mkdir(parents=True, exist_ok=True)
    (found / USED).touch()
    by_age = sorted(BASE.glob(f"{kind}-*/{USED}"), key=lambda file: -file.stat().st_mtime)
    for used in by_age[MOST:]:
        if time.time() - used.stat().st_mtime > IN_USE_S:
            shutil.rmtree(used.parent, ignore_errors=True)
    return found


def made(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """What ``make`` writes into a folder, made by one process and once."""
    place = folder(kind, key)
    done = place / "content"
    with filelock.FileLock(place / ".lock"):
        if not done.is_dir():
            unfinished = place / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(done)
    return done
