"""Several ranks, as lm-eval's distributed models are: documents interleaved, results the same."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from lm_eval import evaluate
from support.private_slurm import free_port
from support.tasks import load_task

from lm_eval_ext.models.recorded import RecordedLM

pytestmark = pytest.mark.e2e


class RankedLM(RecordedLM):
    """Recorded answers behind the communication that lm-eval's distributed models have."""

    def __init__(self, path: str) -> None:
        super().__init__(path=path)
        self._rank, self._world_size, self._device = dist.get_rank(), dist.get_world_size(), "cpu"

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        gathered = [torch.zeros_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(gathered, tensor)
        return torch.stack(gathered)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        gathered = [None] * self.world_size if self.rank == dst else None
        dist.gather_object(obj, gathered, dst=dst)
        return gathered

    def barrier(self) -> None:
        dist.barrier()


def evaluated_answers(model: type[RecordedLM], answers: dict[str, str]) -> dict[str, Any]:
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


def rank(number: int, port: int, answers: dict[str, str], output: Path) -> None:
    """One rank, over gloo."""
    meeting = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", meeting, rank=number, world_size=2)
    scored = evaluated_answers(RankedLM, answers)
    if number == 0:
        output.write_text(json.dumps(scored))
    dist.destroy_process_group()


def test_ranks_give_the_results_of_one(real_data: Path, tmp_path: Path) -> None:
    """Both for LIEDER and for COGS, whose metrics of some documents must be on every rank."""
    documents = load_task("cogs_mini_gen").dataset["test"]
    lines = []
    for number, document in enumerate(documents):
        response = document["form"] if number % 3 else ""
        lines.append(json.dumps({"arguments": [document["sentence"]], "response": response}) + "\n")
    (tmp_path / "cogs.jsonl").write_text("".join(lines))
    answers = {
        "lieder_two": str(real_data / "lieder/recorded/two_llama2_7B.responses.jsonl"),
        "cogs_mini_gen": str(tmp_path / "cogs.jsonl"),
    }
    output, port = tmp_path / "together.json", free_port()
    # Forked: imports of their own would take each of them seconds.
    ranks = [
        multiprocessing.get_context("fork").Process(
            target=rank, args=(number, port, answers, output)
        )
        for number in range(2)
    ]
    for process in ranks:
        process.start()
    alone = json.loads(json.dumps(evaluated_answers(RecordedLM, answers)))
    for process in ranks:
        process.join(600)
        assert process.exitcode == 0
    together = json.loads(output.read_text())
    for task in answers:
        assert together[task]["order"] != alone[task]["order"], "documents did arrive interleaved"
        assert sorted(together[task]["order"]) == sorted(alone[task]["order"])
        assert together[task]["results"] == alone[task]["results"]
