"""``hf-prefix`` beside ``hf``: the same requests, each model in a process of its own.

``hf`` has the batch size at which it is fastest, found on the smallest number of requests;
``hf-prefix`` gets the same.

A machine's speed drifts within minutes. Where ``hf`` needs minutes and ``hf-prefix`` seconds, two
turns would see two machines. There ``hf`` answers its requests in parts, ``hf-prefix`` answers all
of them beside each part, and a round is the sum of the parts beside the mean of these runs.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from bench import prefix_model
from bench.data import originals
from bench.rows import DifferError, Row, turns


@dataclass(frozen=True)
class Work:
    """Requests of a task.

    Attributes:
        task: Its name.
        data: The folder of its original data.
        title: Its name in the table.
        sizes: How many requests.
        tried: How many requests the batch sizes of ``hf`` are tried with.
        new_tokens: Most tokens of a generated text; 0 where probabilities are requested.
        times: Multiplies the rounds, for work of a second or two, which varies more.
        batches: Other batch sizes at which the largest number of requests is measured.
        shape: Of the random model, as :func:`bench.prefix_model.save_model` knows it.
        parts: In how many parts ``hf`` answers if its batch size is 1. With larger batches a part
            would cost more than it does within the whole, since fewer lengths can be sorted.
    """

    task: str
    data: str
    title: str
    sizes: tuple[int, ...]
    tried: int
    new_tokens: int = 0
    times: int = 1
    batches: tuple[int, ...] = ()
    shape: str = "llama"
    parts: int = 1


WORK = (
    Work(
        "magnifico_desc_plausible", "magnifico", "MAGNIFICo, description", (384,), 16, 24, parts=6
    ),
    Work(
        "magnifico_fewshot_plausible", "magnifico", "MAGNIFICo, few-shot", (96,), 16, 24, parts=6
    ),
    Work("conceptual_glue", "conceptual", "conceptual few-shot, GLUE", (192,), 64, 8),
    Work("cogs_icl_unmodified_gen", "cogs", "COGS in context, Gen", (48,), 16, 24),
    Work("lieder_base", "lieder", "LIEDER base", (576,), 288, times=4, batches=(4, 16)),
    Work(
        "lieder_base", "lieder", "LIEDER base, GPT-2's shape", (576,), 288, times=4,
        batches=(4, 16), shape="gpt2",
    ),
)  # fmt: skip

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Tried for ``hf``, until one is four times the best one."""

NOISE = 1e-4
"""Largest difference of log-probabilities."""

LEAST_DISTINCT = 0.4
"""Share of the answers: equal texts prove little if a model answers every prompt alike."""


class Worker:
    """A model in a process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def answer(self, requests: range, batch_size: int) -> dict[str, Any]:
        """Answers the requests in these places; returns seconds, peak of memory, answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{requests.start} {requests.stop} {batch_size}\n")
        self.process.stdin.flush()
        return dict(json.loads(self.line()))

    def line(self) -> str:
        """Returns the next line of the process."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the process of a model has ended")
        return line


@contextmanager
def started(kind: str, folder: str) -> Iterator[Worker]:
    """Yields a worker that has loaded its model."""
    script = Path(__file__).with_name("prefix_worker.py")
    process = subprocess.Popen(
        [sys.executable, str(script), kind, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        worker = Worker(process)
        while worker.line() != "ready\n":
            pass
        yield worker
        assert process.stdin is not None
        process.stdin.close()


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for each size of each task, and for each further batch size."""
    for work in WORK:
        originals(work.data)
        with tempfile.TemporaryDirectory() as folder:
            requests = prefix_model.requests_of(work.task, work.sizes[-1], work.new_tokens)
            Path(folder, "requests.json").write_text(json.dumps(requests), encoding="utf-8")
            model = Path(folder, "model")
            prefix_model.save_model(requests, model, work.shape)
            counts = [max(2, round(size * share)) for size in work.sizes]
            best = best_batch_size(folder, max(2, round(work.tried * share)))
            others = [(counts[-1], size) for size in work.batches if size != best]
            with started("hf", folder) as theirs, started("hf-prefix", folder) as ours:
                for count, size in [(count, best) for count in counts] + others:
                    limit = prefix_model.sharing(requests[:count], model)
                    row = measured(work, (theirs, ours), count, size, rounds * work.times)
                    if size != best:
                        row = replace(row, work=f"{row.work}, batch size {size}")
                    yield replace(row, limit=limit)


def best_batch_size(folder: str, count: int) -> int:
    """Returns the batch size at which ``hf`` is fastest; each is tried twice."""
    seconds: dict[int, float] = {}
    with started("hf", folder) as worker:
        for size in BATCH_SIZES:
            seconds[size] = min(worker.answer(range(count), size)["seconds"] for _ in range(2))
            best = min(seconds, key=lambda size: seconds[size])
            if size >= 4 * best or size >= count:
                break
    return best


def measured(
    work: Work, workers: tuple[Worker, Worker], count: int, batch_size: int, rounds: int
) -> Row:
    """Lets both answer in turn.

    Raises:
        DifferError: Their answers differ, or are too much alike to prove anything.
    """
    parts = split(count, work.parts if batch_size == 1 else 1)
    seconds: tuple[list[float], list[float]] = ([], [])
    runs: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for number, side in enumerate(turns(rounds * len(parts))):
        asked = range(count) if side else parts[number // 2 % len(parts)]
        runs[side].append(workers[side].answer(asked, batch_size))
    for first in range(0, rounds * len(parts), len(parts)):
        theirs, ours = (side[first : first + len(parts)] for side in runs)
        seconds[0].append(sum(run["seconds"] for run in theirs))
        seconds[1].append(mean(run["seconds"] for run in ours))
        answers = [answer for run in theirs for answer in run["answers"]]
        if not all(same(answers, run["answers"]) for run in ours):
            raise DifferError(f"{work.title}: the answers of hf and hf-prefix differ")
    distinct = len({json.dumps(answer) for answer in answers})
    if distinct < count * LEAST_DISTINCT:
        raise DifferError(f"{work.title}: only {distinct} of {count} answers are distinct")
    return Row(
        work=f"{work.title}, {work.new_tokens} new tokens" if work.new_tokens else work.title,
        size=count,
        unit="requests",
        baseline=f"hf, batch size {batch_size}",
        theirs=seconds[0],
        ours=seconds[1],
        same="texts identical" if work.new_tokens else f"log-probabilities within {NOISE:g}",
        peak=[max(run["peak"] for run in side) for side in runs],
        note="; ".join(message for run in runs[1] for message in run["said"]),
    )


def split(count: int, parts: int) -> list[range]:
    """Returns the places of consecutive requests in parts of nearly equal size, none empty."""
    parts = min(parts, count)
    return [range(count * n // parts, count * (n + 1) // parts) for n in range(parts)]


def same(one: Any, other: Any) -> bool:
    """Whether texts are equal, or log-probabilities within noise with equal greedy flags."""
    if isinstance(one[0], str):
        return bool(one == other)
    return all(abs(a - b) < NOISE and x == y for (a, x), (b, y) in zip(one, other, strict=True))
