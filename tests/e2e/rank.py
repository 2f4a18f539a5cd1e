"""One rank of a distributed evaluation, over gloo; started by test_ranks.py."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lm_eval import evaluate
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.models.recorded import RecordedLM


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


def main() -> None:
    path, task, output = sys.argv[1:]
    dist.init_process_group("gloo")
    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    results = evaluate(lm=RankedLM(path), task_dict=manager.load(task), bootstrap_iters=10)
    if os.environ["RANK"] == "0":
        order = [sample["doc_id"] for sample in results["samples"][task]]
        Path(output).write_text(json.dumps({"results": results["results"], "order": order}))
    dist.destroy_process_group()


main()
