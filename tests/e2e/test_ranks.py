"""Two ranks, as lm-eval's distributed models are: documents interleaved, results the same."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

RANK = Path(__file__).parent / "rank.py"


def run(world: int, recorded: Path, task: str, output: Path) -> dict[str, object]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, str(RANK), str(recorded), task, str(output)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    for process in ranks:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors[-3000:]
    loaded: dict[str, object] = json.loads(output.read_text())
    return loaded


@pytest.mark.parametrize(("world", "task"), [(2, "lieder_base"), (3, "lieder_two")])
def test_ranks_give_the_results_of_one(
    world: int, task: str, real_data: Path, tmp_path: Path
) -> None:
    experiment = task.partition("_")[2]
    recorded = real_data / f"lieder/recorded/{experiment}_llama2_7B.responses.jsonl"
    alone = run(1, recorded, task, tmp_path / "one.json")
    together = run(world, recorded, task, tmp_path / "many.json")
    assert together["order"] != alone["order"], "the documents did arrive interleaved"
    assert sorted(together["order"]) == sorted(alone["order"])  # type: ignore[type-var,arg-type]
    assert together["results"] == alone["results"]
