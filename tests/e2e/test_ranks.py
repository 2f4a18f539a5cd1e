"""Several ranks, as lm-eval's distributed models are: documents interleaved, results the same."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.cogs import load

pytestmark = pytest.mark.e2e

RANK = Path(__file__).parent / "rank.py"

Run = Callable[[int, Path, str], Any]


@pytest.fixture
def run(warm: Any, commands_environment: Callable[[], dict[str, str]], tmp_path: Path) -> Run:
    """Runs a task on recorded answers in a number of ranks; returns what rank 0 found out."""

    def run(world: int, recorded: Path, task: str) -> Any:
        output = tmp_path / f"{world}.json"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = [
            warm.start(
                [str(RANK), str(recorded), task, str(output)],
                environment={
                    **commands_environment(), "RANK": str(rank), "WORLD_SIZE": str(world),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                },
                folder=tmp_path,
            )
            for rank in range(world)
        ]  # fmt: skip
        for rank in ranks:
            done = rank.wait(timeout=240)
            assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(output.read_text())

    return run


def test_ranks_give_the_results_of_one(run: Run, real_data: Path) -> None:
    recorded = real_data / "lieder/recorded/two_llama2_7B.responses.jsonl"
    alone, together = (run(world, recorded, "lieder_two") for world in (1, 2))
    assert together["order"] != alone["order"], "the documents did arrive interleaved"
    assert sorted(together["order"]) == sorted(alone["order"])
    assert together["results"] == alone["results"]


def test_metrics_of_some_documents_are_on_every_rank(run: Run, tmp_path: Path) -> None:
    documents = load.dataset(cogs_corpus="mini")["test"]
    rows = (
        {"arguments": [sentence], "response": form if number % 3 else ""}
        for number, (sentence, form) in enumerate(
            zip(documents["sentence"], documents["form"], strict=True)
        )
    )
    recorded = tmp_path / "answers.jsonl"
    recorded.write_text("".join(json.dumps(row) + "\n" for row in rows))
    alone, together = (run(world, recorded, "cogs_mini_gen") for world in (1, 3))
    assert together["order"] != alone["order"]
    assert together["results"] == alone["results"]
