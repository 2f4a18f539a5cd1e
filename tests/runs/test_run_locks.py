"""Locks of models' folders: one owner at a time, and none that is dead."""

import json
import os
import threading
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


def test_the_living_keep_theirs_and_the_dead_do_not(tmp_path: Path) -> None:
    here: dict[str, object] = {"released": False}
    cases: dict[str, tuple[dict[str, object], float, bool]] = {
        "alive": (here, 0, False),
        "alive and long silent": (here, 1e6, False),
        "its number was given to another process": ({**here, "born": 1.0}, 0, True),
        "no such process": ({**here, "pid": 2**22 + 1}, 0, True),
        "another machine": ({**here, "host": "other", "pid": 2**22 + 1}, 200, False),
        "another container": ({**here, "space": "other", "pid": 2**22 + 1}, 200, False),
        "another machine, silent": ({**here, "host": "other"}, locks.DEAD_S + 10, True),
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


def test_a_record_that_cannot_be_read_is_given_time(tmp_path: Path) -> None:
    path = tmp_path / ".lock-3"
    path.write_text("{")
    assert locks.acquire(tmp_path) == "another run, which has just begun"
    aged(path, 60)
    lock = locks.acquire(tmp_path)
    assert isinstance(lock, locks.Lock)
    lock.release()
    assert [file.name for file in tmp_path.iterdir()] == [".lock-4"]


def test_an_owner_learns_that_it_was_taken_for_dead(tmp_path: Path) -> None:
    lock = locks.acquire(tmp_path)
    assert isinstance(lock, locks.Lock) and not lock.lost()
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": "other"}))
    aged(path, locks.DEAD_S + 10)
    other = locks.acquire(tmp_path)
    assert isinstance(other, locks.Lock)
    assert lock.lost() and not other.lost()
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
