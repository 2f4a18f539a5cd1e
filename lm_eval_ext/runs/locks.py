"""One run at a time works on a model's folder, whichever machine it is on.

A lock is a file with its owner's record: host and process. Its time says when the owner last gave
a sign of life. Only one process can make a file of a name, on network file systems too, where
``flock`` may not work. A dead owner's lock is not removed, since two runs might do that at once,
and one of them would remove the other's new lock: the next owner makes a file with the next
number, which only one can. Of these files the one with the highest number counts.

Clocks of machines differ, and some file systems stamp files by the clock of who writes. So an
owner elsewhere counts as dead only if it also gave no sign of life while somebody watched.
"""

import contextlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lm_eval_ext.atomic import atomic_text

BEAT_S = 15.0
"""Seconds between an owner's signs of life."""

DEAD_S = 300.0
"""Seconds without one after which an owner on another machine counts as dead."""

WATCH_S = 4 * BEAT_S
"""Seconds for which it is also watched."""

_NAME = ".lock-"
_BEGUN = "another run, which has just begun"

_watched: dict[Path, tuple[float, float]] = {}
"""Of each lock that was looked at: its time, and since when (by ``time.monotonic``) it has it."""


@dataclass(frozen=True)
class Owner:
    """Who holds a lock.

    Attributes:
        host: The machine's name.
        space: Where the number of the process holds: a boot of a machine, or a container on it.
        pid: The process.
        start: When the process started, since numbers are used again; 0 if it is not known.
        released: Whether the owner is done.
    """

    host: str
    space: str
    pid: int
    start: float
    released: bool = False

    @staticmethod
    def read(path: Path) -> "Owner | None":
        """A lock's owner; None if it was removed since, or holds nothing that is understood."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return Owner(
                str(found["host"]),
                str(found["space"]),
                int(found["pid"]),
                float(found.get("start", 0)),
                released=found.get("released") is True,
            )
        except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            return None


class Lock:
    """A model's folder, locked by this process until :meth:`release`.

    Attributes:
        gone: Whether it was noticed that another run has taken over.
    """

    def __init__(self, path: Path, owner: Owner) -> None:
        self.gone = False
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
                with contextlib.suppress(FileNotFoundError):
                    os.utime(self._path)
                self.gone = self.lost()


def acquire(folder: Path) -> Lock | str:
    """Locks an existing folder, or says who has it: "HOST (process N, ...)".

    Raises:
        OSError: If the folder cannot be written.
    """
    newest = _newest(folder)
    number = 0
    if newest is not None:
        number, path = newest
        holder = Owner.read(path)
        if holder is None or not holder.released:
            silent = _silence(folder, path)
            here = None if holder is None else _is_alive_here(holder)
            if here or (here is None and not _is_silent(path, silent)):
                who = f"{holder.host} (process {holder.pid}, " if holder else "another run ("
                return f"{who}last sign of life {silent:.0f} s ago)"
    mine = folder / f"{_NAME}{number + 1}"
    owner = Owner(platform.node(), _space(), os.getpid(), _start_of(os.getpid()) or 0.0)
    try:
        with mine.open("x", encoding="utf-8") as file:
            file.write(json.dumps(asdict(owner)))
    except FileExistsError:
        return _BEGUN
    except OSError:
        mine.unlink(missing_ok=True)  # such as on a full disk
        raise
    # A run that was slow to come here may have made a number that others are done with.
    after = _newest(folder)
    if after is not None and after[1] != mine:
        mine.unlink(missing_ok=True)
        return _BEGUN
    with contextlib.suppress(PermissionError):  # another user's may stay: the last one counts
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


def _is_silent(path: Path, silent: float) -> bool:
    """Whether an owner elsewhere counts as dead."""
    try:
        stamp = path.stat().st_mtime
    except FileNotFoundError:
        return False  # removed since: somebody is at it
    now = time.monotonic()
    known = _watched.get(path)
    if known is None or known[0] != stamp:
        known = _watched[path] = (stamp, now)
    watched = now - known[1]
    # A clock that is ahead would keep a dead owner for as long as it is ahead.
    return watched >= DEAD_S or (silent > DEAD_S and watched >= WATCH_S)


def _is_alive_here(owner: Owner) -> bool | None:
    """Whether an owner's process runs on this machine; None if that cannot be seen."""
    if not owner.start or (owner.host, owner.space) != (platform.node(), _space()):
        return None
    start = _start_of(owner.pid)
    return None if start is None else start == owner.start


def _start_of(pid: int) -> float | None:
    """When a process started; 0 if there is none, None if it is another user's.

    On Linux in ticks since the machine's start, which do not change where somebody sets its clock.
    """
    import psutil

    try:
        if os.name == "posix":
            os.kill(pid, 0)
            # What comes before is its name, which may hold anything.
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return 0.0 if stat[0] == "Z" else float(stat[19])
    except PermissionError:
        return None
    except ProcessLookupError:
        return 0.0
    except (OSError, LookupError, OverflowError):
        pass  # not Linux
    try:
        process = psutil.Process(pid)
        return 0.0 if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except (psutil.Error, ValueError):
        return 0.0


def _space() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""  # not Linux: one machine, one space
