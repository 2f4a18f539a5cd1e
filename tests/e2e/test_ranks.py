"""Several ranks, as lm-eval's distributed models are: documents interleaved, results the same."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from lm_eval import evaluate
from support.tasks import load_task

from lm_eval_ext.models.recorded import RecordedLM

pytestmark = pytest.mark.e2e


class RankedLM(RecordedLM):
    """Recorded answers behind the communication that lm-eval's distributed models have."""

    def __init__(self, path: str) -> None:
        super().__init__(path=path)
        self._rank, self._world_size, self._device = dist.get_rank(), dist.get_world_size(), "cpu"

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        parts = [torch.zeros_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(parts, tensor)
        return torch.stack(parts)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        gathered = [None] * self.world_size if self.rank == dst else None
        dist.gather_object(obj, gathered, dst=dst)
        return gathered

    def barrier(self) -> None:
        dist.barrier()


def found(model: type[RecordedLM], answers: dict[str, str]) -> dict[str, Any]:
    """Results and the order of documents, of recorded answers by task."""
    scored = {}
    for task, path in answers.items():
        evaluated = evaluate(
            lm=model(path=path), task_dict={task: load_task(task)}, bootstrap_iters=10
        )
        if evaluated:
            order = [sample["doc_id"] for sample in evaluated["samples"][task]]
            scored[task] = {"results": evaluated["results"], "order": order}
    return scored


def rank() -> None:
    """A process of its own: one rank, over gloo."""
    answers, output = sys.argv[1:]
    dist.init_process_group("gloo")
    scored = found(RankedLM, json.loads(answers))
    if os.environ["RANK"] == "0":
        Path(output).write_text(json.dumps(scored))
    dist.destroy_process_group()


def test_ranks_give_the_results_of_one(real_data: Path, tmp_path: Path) -> None:
    """LIEDER; and COGS, whose metrics of some documents must be on every rank."""
    documents = load_task("cogs_mini_gen").dataset["test"]
    rows = (
        {"arguments": [one["sentence"]], "response": one["form"] if number % 3 else ""}
        for number, one in enumerate(documents)
    )
    (tmp_path / "cogs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = {
        "lieder_two": str(real_data / "lieder/recorded/two_llama2_7B.responses.jsonl"),
        "cogs_mini_gen": str(tmp_path / "cogs.jsonl"),
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    tests = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    output = tmp_path / "together.json"
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, json.dumps(answers), str(output)],
            env={**os.environ, **world, "RANK": str(number), "PYTHONPATH": paths},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    alone = json.loads(json.dumps(found(RecordedLM, answers)))
    for one in ranks:
        _, said = one.communicate(timeout=600)
        assert one.returncode == 0, said[-3000:]
    together = json.loads(output.read_text())
    for task in answers:
        assert together[task]["order"] != alone[task]["order"], "documents did arrive interleaved"
        assert sorted(together[task]["order"]) == sorted(alone[task]["order"])
        assert together[task]["results"] == alone[task]["results"]


if __name__ == "__main__":
    rank()
