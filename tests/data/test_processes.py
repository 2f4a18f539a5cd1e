"""Several processes at once, and processes that end in the middle of a download."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import server as fake
from server import MANY, Server, stored
from support.commands import until

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


def test_two_processes_fetch_each_file_once(server: Server, tmp_path: Path) -> None:
    server.answers = [*[fake.right] * 9, fake.held]
    children = [start("many"), start("many")]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    until(lambda: server.waiting > 0)
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

    until(lambda: len(whole()) == arrived < len(stored(tmp_path / "cache")))
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
