"""Several processes at once, and processes that end in the middle of a download."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from many_files import CONTENTS, FOLDER, NAMES, Server
from support import upstream as up
from support.upstream import ALPHA, Upstream

from lm_eval_ext.data import require, require_all

pytestmark = pytest.mark.slow

# A shell may have told its children to ignore the interrupt signal.
CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from lm_eval_ext.data import require, require_all
print("ready", flush=True)
print(%s)
"""
ONE = CHILD % 'require("toy", "alpha").path'
MANY = CHILD % 'require_all("many").fetched'


def start(code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.e2e
def test_two_processes_fetch_a_file_once(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [up.held]
    children = [start(ONE), start(ONE)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    assert wait_until(lambda: len(upstream.requests) == 1)
    # Time for the other one to ask, too, if no lock stopped it.
    assert not wait_until(lambda: len(upstream.requests) > 1, seconds=1)
    upstream.release.set()

    for child in children:
        out, err = child.communicate(timeout=300)
        assert (child.returncode, err) == (0, "")
        assert out.strip() == str(tmp_path / "cache/data/toy/alpha.txt")
    assert upstream.requests == ["/1234567890abcdef/files/alpha.txt"]
    assert up.stored(tmp_path / "cache") == ["data/toy/alpha.txt"]


def test_threads_fetch_a_file_once(upstream: Upstream) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: require("toy", "alpha"), range(8)))
    assert len(set(found)) == 1
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("how", "left"), [(signal.SIGKILL, 1), (signal.SIGINT, 0)], ids=["killed", "interrupted"]
)
def test_a_process_that_ends_in_the_middle(
    upstream: Upstream, tmp_path: Path, how: signal.Signals, left: int
) -> None:
    upstream.answers = [up.half_then_silent, up.right]
    temporary = tmp_path / "cache/data/toy/.alpha.txt.tmp"
    child = start(ONE)
    assert upstream.half_sent.wait(300)
    assert wait_until(lambda: any(path.stat().st_size for path in temporary.glob("*")))
    child.send_signal(how)
    child.communicate(timeout=300)

    assert child.returncode != 0
    assert len(list(temporary.glob("*"))) == len(up.stored(tmp_path / "cache")) == left

    assert require("toy", "alpha").path.read_bytes() == ALPHA
    assert up.stored(tmp_path / "cache") == ["data/toy/alpha.txt"]


def test_no_room_for_the_file(upstream: Upstream, tmp_path: Path) -> None:
    # The system's limit on the size of files stands in for a full disk.
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    assert resource
    limited = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from lm_eval_ext.data import require\n"
        "from lm_eval_ext.errors import DataError\n"
        "try:\n    require('toy', 'alpha')\n"
        "except DataError as error:\n    print(error)\n"
    )
    out, err = start(limited).communicate(timeout=300)
    assert out.startswith(f"toy/alpha: cannot write {tmp_path}/cache/data/toy/alpha.txt: File too")
    assert out.count("\n") == 1
    assert err == ""
    assert up.stored(tmp_path / "cache") == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_of_many_files_what_has_arrived_stays(
    many: Server, tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.hold_after = 100
    monkeypatch.setenv("LM_EVAL_EXT_TIMEOUT", "900")
    child = start(MANY)
    assert wait_until(lambda: many.requests.total() >= 106), "six connections hang"
    child.send_signal(how)
    # Only the signal ends it: the server is silent for longer, and is given longer.
    _, err = child.communicate(timeout=300)
    assert child.returncode != 0
    assert ("KeyboardInterrupt" in err) is (how is signal.SIGINT)

    here = [path for path in up.stored(tmp_path / "cache") if ".tmp/" not in path]
    arrived = [path.removeprefix(f"data/{FOLDER}") for path in here]
    assert len(arrived) == 100
    for name in arrived:
        assert (tmp_path / "cache/data" / FOLDER / name).read_bytes() == CONTENTS[name]

    many.hold_after = None
    many.requests.clear()
    assert require_all("many").fetched == len(NAMES) - 100
    assert many.requests == dict.fromkeys(set(NAMES) - set(arrived), 1)
    assert up.stored(tmp_path / "cache") == sorted(f"data/{FOLDER}{name}" for name in NAMES)


def test_two_processes_fetch_each_of_many_files_once(many: Server, tmp_path: Path) -> None:
    many.hold_after = 50
    children = [start(MANY), start(MANY)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    assert wait_until(lambda: many.requests.total() >= 56)
    many.hold_after = None
    many.release.set()
    fetched = []
    for child in children:
        out, err = child.communicate(timeout=300)
        assert (child.returncode, err) == (0, "")
        fetched.append(int(out))
    assert sorted(fetched) == [0, len(NAMES)]
    assert many.requests == dict.fromkeys(NAMES, 1)
