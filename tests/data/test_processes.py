"""Several processes at once, and processes that end in the middle of a download."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import until
from support.file_server import (
    COPY,
    MANY,
    REVISION,
    FileServer,
    declared_file,
    half_file_then_held,
    held_file,
    stored_files,
)

from lm_eval_ext.data import require_all

pytestmark = pytest.mark.e2e

CHILD = """
from lm_eval_ext.data import require_all
print("ready", flush=True)
print(require_all("%s").fetched)
"""


def start_fetching(source: str) -> "subprocess.Popen[str]":
    """Start a process that fetches a source and prints how many files it fetched."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD % source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_fetch_each_file_once(server: FileServer) -> None:
    server.replies = [*[declared_file] * 9, held_file]
    children = [start_fetching("many"), start_fetching("many")]
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
    assert sorted(server.requests) == sorted(f"/{REVISION}/{name}" for name in MANY)


@pytest.mark.parametrize(
    ("source", "size", "ending", "cleans_up"),
    [
        pytest.param("toy", 2, signal.SIGINT, True, id="interrupted"),
        pytest.param("many", len(MANY), signal.SIGKILL, False, id="killed"),
    ],
)
def test_complete_files_of_a_process_that_is_ended_are_used_by_the_next(
    server: FileServer,
    tmp_path: Path,
    *,
    source: str,
    size: int,
    ending: signal.Signals,
    cleans_up: bool,
) -> None:
    cache = tmp_path / "cache"
    complete_count = size // 2
    server.replies = [*[declared_file] * complete_count, half_file_then_held]

    def complete_files() -> list[str]:
        return [path for path in stored_files(cache) if ".part/" not in path]

    def next_file_has_begun() -> bool:
        return len(complete_files()) == complete_count < len(stored_files(cache))

    child = start_fetching(source)
    until(next_file_has_begun)
    child.send_signal(ending)
    assert child.wait(timeout=300)
    assert len(complete_files()) == complete_count
    incomplete = set(stored_files(cache)) - set(complete_files())
    assert (not incomplete) == cleans_up
    server.replies = []
    assert require_all(source).fetched == size - complete_count
    assert stored_files(cache) == sorted(f"data/{path}" for path in COPY if path.startswith(source))
