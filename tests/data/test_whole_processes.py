"""Fetching many files: processes that share the work, and processes that end in the middle."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from many_files import CONTENTS, FOLDER, NAMES, Server
from support.upstream import stored

from lm_eval_ext.data import require_all

# A shell may have told its children to ignore the interrupt signal.
CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from lm_eval_ext.data import require_all
print("ready", flush=True)
print(require_all("many").fetched)
"""


def start() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
@pytest.mark.e2e
def test_what_has_arrived_stays(many: Server, tmp_path: Path, how: signal.Signals) -> None:
    many.hold_after = 100
    child = start()
    assert wait_until(lambda: many.requests.total() >= 106), "six connections hang"
    child.send_signal(how)
    # Far less than the 30 s that a silent server is given, and the 60 s that ours is silent.
    _, err = child.communicate(timeout=20)
    assert child.returncode != 0
    assert ("KeyboardInterrupt" in err) is (how is signal.SIGINT)

    here = [path for path in stored(tmp_path / "cache") if not path.endswith(".part")]
    arrived = [path.removeprefix(f"data/{FOLDER}") for path in here]
    assert len(arrived) == 100
    for name in arrived:
        assert (tmp_path / "cache/data" / FOLDER / name).read_bytes() == CONTENTS[name]

    many.hold_after = None
    many.requests.clear()
    assert require_all("many").fetched == len(NAMES) - 100
    assert many.requests == dict.fromkeys(set(NAMES) - set(arrived), 1)
    assert stored(tmp_path / "cache") == sorted(f"data/{FOLDER}{name}" for name in NAMES)


@pytest.mark.e2e
def test_two_processes_fetch_each_file_once(many: Server, tmp_path: Path) -> None:
    many.hold_after = 50
    children = [start(), start()]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    assert wait_until(lambda: many.requests.total() >= 56)
    many.hold_after = None
    many.release.set()
    fetched = []
    for child in children:
        out, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
        fetched.append(int(out))
    assert sorted(fetched) == [0, len(NAMES)]
    assert many.requests == dict.fromkeys(NAMES, 1)
