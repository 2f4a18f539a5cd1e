"""One run at a time works on a model's folder, whichever machine it is on.

A lock is a file with its owner's record: host and process. Its time says when the owner last gave
a sign of life. Only one process can make a file of a name, on network file systems too, where
``flock`` may not work. A dead owner's lock is not removed, since two runs might do that at once,
and one of them would remove the other's new lock: the next owner makes a file with the next
number, which only one can. Of these files the one with the highest number counts.
"""

import contextlib
import json
import os
import platform
import threading
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lm_eval_ext.atomic import atomic_text

BEAT_S = 15.0
"""Seconds between an owner's signs of life."""

DEAD_S = 300.0
"""Seconds without one after which an owner on another machine counts as dead."""

_SAME_S = 2.0
"""Seconds by which two readings of when a process started may differ, as clocks are set."""

_WRITTEN_S = 10.0
"""Seconds after which an owner has written its record."""

_NAME = ".lock-"
_BEGUN = "another run, which has just begun"


@dataclass(frozen=True)
class Owner:
    """Who holds a lock.

    Attributes:
        host: The machine's name.
        space: Where the number of the process holds: a boot of a machine, or a container on it.
        pid: The process.
        born: When the process started, in seconds since 1970: numbers are used again.
        released: Whether the owner is done.
    """

    host: str
    space: str
    pid: int
    born: float
    released: bool = False


class Lock:
    """A model's folder, locked by this process until :meth:`release`."""

    def __init__(self, path: Path, owner: Owner) -> None:
        self._path = path
        self._owner = owner
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def lost(self) -> bool:
        """Whether another run has taken over, because this one gave no sign of life."""
        newest = _newest(self._path.parent)
        return newest is None or newest[1] != self._path

    def release(self) -> None:
        """Lets others have the folder."""
        self._done.set()
        self._thread.join()
        if not self.lost():
            done = replace(self._owner, released=True)
            with contextlib.suppress(Exception), atomic_text(self._path) as file:
                file.write(json.dumps(asdict(done)))

    def _beat(self) -> None:
        while not self._done.wait(BEAT_S):
            with contextlib.suppress(OSError):
                os.utime(self._path)


def acquire(folder: Path) -> Lock | str:
    """Locks an existing folder, or says who has it: "HOST (process N, ...)".

    Raises:
        OSError: If the folder cannot be written.
    """
    newest = _newest(folder)
    number = 0
    if newest is not None:
        number, path = newest
        holder = _read(path)
        silent = _silence(folder, path)
        if holder is None and silent < _WRITTEN_S:
            return _BEGUN
        if holder is not None and not _is_dead(holder, silent):
            return f"{holder.host} (process {holder.pid}, last sign of life {silent:.0f} s ago)"
    mine = folder / f"{_NAME}{number + 1}"
    owner = Owner(platform.node(), _space(), os.getpid(), _born(os.getpid()))
    try:
        with mine.open("x", encoding="utf-8") as file:
            file.write(json.dumps(asdict(owner)))
    except FileExistsError:
        return _BEGUN
    # A run that was slow to come here may have made a number that others are done with.
    after = _newest(folder)
    if after is not None and after[1] != mine:
        mine.unlink(missing_ok=True)
        return _BEGUN
    for old in _all(folder):
        if old[0] <= number:
            old[1].unlink(missing_ok=True)
    return Lock(mine, owner)


def _all(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.glob(f"{_NAME}*"):
        if (number := path.name.removeprefix(_NAME)).isdecimal():
            yield int(number), path


def _newest(folder: Path) -> tuple[int, Path] | None:
    return max(_all(folder), default=None)


def _read(path: Path) -> Owner | None:
    """A lock's owner; None if it was removed since, or holds nothing that can be read."""
    try:
        return Owner(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _silence(folder: Path, path: Path) -> float:
    """Seconds since an owner's last sign of life, by the file system's clock."""
    probe = folder / f"{_NAME}{uuid.uuid4().hex}.part"
    try:
        probe.touch()
        return max(0.0, probe.stat().st_mtime - path.stat().st_mtime)
    except FileNotFoundError:
        return 0.0  # removed since: somebody is at it
    finally:
        probe.unlink(missing_ok=True)


def _is_dead(owner: Owner, silent: float) -> bool:
    if owner.released:
        return True
    if owner.host == platform.node() and owner.space == _space():
        return abs(_born(owner.pid) - owner.born) > _SAME_S
    return silent > DEAD_S


def _born(pid: int) -> float:
    """When a process started, in seconds since 1970; 0 if there is none."""
    import psutil

    try:
        process = psutil.Process(pid)
        return 0.0 if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return 0.0


def _space() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""  # not Linux: one machine, one space
