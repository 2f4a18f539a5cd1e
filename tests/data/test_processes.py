"""Several processes at once, and processes that end in the middle of a download."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import server as fake
from server import MANY, Server, stored

from lm_eval_ext.data import require_all

pytestmark = pytest.mark.e2e

CHILD = """
from lm_eval_ext.data import require_all
print("ready", flush=True)
print(require_all("%s").fetched)
"""
COUNTS = {"toy": 2, "many": len(MANY)}


def start(source: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CHILD % source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_two_processes_fetch_each_file_once(server: Server, tmp_path: Path) -> None:
    server.answers = [*[fake.right] * 9, fake.held]
    children = [start("many"), start("many")]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    wait_until(lambda: server.waiting > 0)
    server.release.set()
    fetched = []
    for child in children:
        out, err = child.communicate(timeout=300)
        assert (child.returncode, err) == (0, "")
        fetched.append(int(out))
    assert sorted(fetched) == [0, len(MANY)]
    assert sorted(server.requests) == sorted(f"/{fake.REVISION}/{name}" for name in MANY)


@pytest.mark.parametrize(("source", "how"), [("toy", signal.SIGINT), ("many", signal.SIGKILL)])
def test_a_process_that_is_ended(
    server: Server, tmp_path: Path, source: str, how: signal.Signals
) -> None:
    arrived = COUNTS[source] // 2
    server.answers = [*[fake.right] * arrived, fake.half_then_held]
    child = start(source)

    def whole() -> list[str]:
        return [path for path in stored(tmp_path / "cache") if ".part/" not in path]

    wait_until(lambda: len(whole()) == arrived < len(stored(tmp_path / "cache")))
    child.send_signal(how)
    assert child.wait(timeout=300)
    assert len(whole()) == arrived
    left = set(stored(tmp_path / "cache")) - set(whole())
    assert bool(left) == (how == signal.SIGKILL), "an interrupted process cleans up"
    server.answers = []
    assert require_all(source).fetched == COUNTS[source] - arrived
    assert stored(tmp_path / "cache") == sorted(
        f"data/{path}" for path in fake.COPY if path.startswith(source)
    )


def test_no_room_for_the_file(server: Server, tmp_path: Path) -> None:
    # The system's limit on the size of files stands in for a full disk.
    pytest.importorskip("resource", reason="only POSIX limits the size of files")
    limited = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from lm_eval_ext.data import require\n"
        "from lm_eval_ext.errors import DataError\n"
        "try:\n    require('toy', 'alpha')\n"
        "except DataError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"toy: cannot write {tmp_path}/cache/data/toy: File too large. ")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert stored(tmp_path / "cache") == []
