"""Locks of models' folders: one owner at a time, and none that is dead."""

import json
import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from lm_eval_ext.runs import locks

RACERS = 8
ROUNDS = 15


def held_by(folder: Path, **changes: object) -> Path:
    """A lock as another process has left it, with changes to its record."""
    lock = locks.acquire(folder)
    assert isinstance(lock, locks.Lock)
    (path,) = folder.glob(".lock-*")
    record = json.loads(path.read_text())
    lock.release()
    path.write_text(json.dumps({**record, **changes}))
    return path


def aged(path: Path, seconds: float) -> None:
    now = path.stat().st_mtime
    os.utime(path, (now - seconds, now - seconds))


@pytest.mark.parametrize("before", ["nothing", "released", "dead"])
def test_of_many_that_ask_at_once_one_has_it(tmp_path: Path, before: str) -> None:
    won: Counter[int] = Counter()
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        if before != "nothing":
            held_by(folder, released=before == "released", pid=2**22 + 1)
        ready = threading.Barrier(RACERS)
        got: list[locks.Lock] = []

        def race(folder: Path = folder, got: list[locks.Lock] = got) -> None:
            ready.wait()  # noqa: B023 (joined below)
            lock = locks.acquire(folder)
            if isinstance(lock, locks.Lock):
                got.append(lock)

        racers = [threading.Thread(target=race) for _ in range(RACERS)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        won[len(got)] += 1
        for lock in got:
            assert not lock.lost()
            lock.release()
        assert len(list(folder.iterdir())) == 1
    # All may lose where one removes its own number after another has looked; none wins twice.
    assert won[0] + won[1] == ROUNDS and won[1] > ROUNDS // 2


def test_the_living_keep_theirs_and_the_dead_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WATCH_S", 0)
    here: dict[str, object] = {"released": False}
    cases: dict[str, tuple[dict[str, object], float, bool]] = {
        "alive": (here, 0, False),
        "alive and long silent": (here, 1e6, False),
        "its number was given to another process": ({**here, "start": 1.0}, 0, True),
        "a number that no process has": ({**here, "pid": 10**30}, 0, True),
        "no such process": ({**here, "pid": 2**22 + 1}, 0, True),
        "another machine": ({**here, "host": "other", "pid": 2**22 + 1}, 200, False),
        "another container": ({**here, "space": "other", "pid": 2**22 + 1}, 200, False),
        "another machine, silent": ({**here, "host": "other"}, locks.DEAD_S + 10, True),
        "another machine, its clock ahead": ({**here, "host": "other"}, -1e6, False),
        "released": ({"released": True}, 0, True),
    }
    for name, (changes, silent, free) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        aged(held_by(folder, **changes), silent)
        found = locks.acquire(folder)
        assert isinstance(found, locks.Lock) == free, name
        if isinstance(found, locks.Lock):
            found.release()
        else:
            assert "process" in found and "last sign of life" in found


RECORDS = {
    "nothing": b"",
    "half": b'{"host": "a", "sp',
    "no record": b"[1]",
    "deep": b"[" * 100_000,
    "no text": b"\xff\xfe\x00",
    "of a later version": b'{"format": 3, "owner": {"host": "a"}}',
    "other types": b'{"host": "a", "space": "", "pid": {}, "start": null}',
    "no number": b'{"host": "a", "space": "", "pid": Infinity, "start": 1}',
}


def test_a_record_that_is_not_understood_counts_by_its_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WATCH_S", 0)
    for name, content in RECORDS.items():
        folder = tmp_path / name
        folder.mkdir()
        path = folder / ".lock-3"
        path.write_bytes(content)
        aged(path, locks.DEAD_S - 100)
        found = locks.acquire(folder)
        assert isinstance(found, str) and found.startswith("another run (last sign"), name
        aged(path, 200)
        lock = locks.acquire(folder)
        assert isinstance(lock, locks.Lock), name
        lock.release()
        assert [file.name for file in folder.iterdir()] == [".lock-4"]


def test_records_of_other_versions_are_understood(tmp_path: Path) -> None:
    path = held_by(tmp_path, more=[1])
    said = locks.acquire(tmp_path)
    assert isinstance(said, str) and f"process {os.getpid()}" in said
    record = json.loads(path.read_text())
    del record["start"]  # earlier ones had the time since 1970, as "born"
    for released in (False, True):
        path.write_text(json.dumps({**record, "born": 1e9, "released": released}))
        lock = locks.acquire(tmp_path)
        assert isinstance(lock, locks.Lock) == released
    assert isinstance(lock, locks.Lock)
    lock.release()


def test_an_owner_elsewhere_is_dead_only_if_nothing_was_seen_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clock may be behind or ahead, on file systems that stamp files by it."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for behind in (3600, 0, -3600):
        folder = tmp_path / str(behind)
        folder.mkdir()
        path = held_by(folder, released=False, host="other")
        real = path.stat().st_mtime
        for beat in range(100):  # alive for 25 minutes
            now += locks.BEAT_S
            os.utime(path, (real - behind + beat * locks.BEAT_S,) * 2)
            assert isinstance(locks.acquire(folder), str), (behind, beat)
        now += locks.WATCH_S - 1
        assert isinstance(locks.acquire(folder), str)
        now += locks.DEAD_S
        lock = locks.acquire(folder)
        assert isinstance(lock, locks.Lock), behind
        lock.release()


def test_a_full_disk_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(OSError, match="No space"):
        locks.acquire(tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_users_process_counts_by_its_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = held_by(tmp_path, released=False)

    def refused(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    monkeypatch.setattr(locks, "WATCH_S", 0)
    assert isinstance(locks.acquire(tmp_path), str)
    aged(path, locks.DEAD_S + 10)
    lock = locks.acquire(tmp_path)
    assert isinstance(lock, locks.Lock)
    lock.release()


def test_an_owner_learns_that_it_was_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WATCH_S", 0)
    monkeypatch.setattr(locks, "BEAT_S", 0.01)
    lock = locks.acquire(tmp_path)
    assert isinstance(lock, locks.Lock) and not lock.lost()
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": "other"}))
    aged(path, locks.DEAD_S + 10)
    other = locks.acquire(tmp_path)
    assert isinstance(other, locks.Lock)
    assert lock.lost() and not other.lost()
    for _ in range(1000):
        if lock.gone:
            break
        time.sleep(0.01)
    assert lock.gone and not other.gone
    lock.release()
    assert not other.lost()
    other.release()


def test_an_owner_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT_S", 0.01)
    lock = locks.acquire(tmp_path)
    assert isinstance(lock, locks.Lock)
    (path,) = tmp_path.iterdir()
    aged(path, 1000)
    old = path.stat().st_mtime
    until = threading.Event()
    for _ in range(1000):
        if path.stat().st_mtime > old + 500:
            break
        until.wait(0.01)
    else:
        pytest.fail("no sign of life")
    lock.release()
