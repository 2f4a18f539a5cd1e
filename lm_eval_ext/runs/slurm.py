"""``lm-eval-ext run --executor slurm``: a job of an array for each model that lacks results.

submitit writes the batch file, carries the work to the node, and puts a job that was preempted or
ran out of time back into the queue. What is done is read from the results folder, and what is
queued or runs from one call of ``squeue``. Nothing asks ``sacct``, which many clusters lack.
"""

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs import locks
from lm_eval_ext.runs.job import Job, Reporter
from lm_eval_ext.runs.process import reason
from lm_eval_ext.runs.run import FailedError, Work, run
from lm_eval_ext.runs.shards import Shard
from lm_eval_ext.runs.slurm_queue import QueueError, is_held, queue, release, said
from lm_eval_ext.text import one_line

FOLDER = ".slurm"
"""In the output folder: batch files, output of jobs, and which model has which job."""

DEFAULT_MINUTES = 24 * 60
"""A job's time where the model's file names none."""

_POLL_S = 5.0
_TURN_S = 0.5
_REQUEUES = 20
"""Times that a job may run out of its time and continue."""

_NOT_LAUNCHED = "launch failed requeued held"
"""Slurm's reason for a job that it could not launch on a node, such as one that had not ended the
job's last start: it is put back and held, which no flag of sbatch changes. Where the node is to
blame, Slurm drains it, so the job will start on another one."""

_RELEASES = 3
"""Times that such a job is let go on."""

_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


@dataclass(frozen=True)
class Evaluation:
    """What a job does: one model's run. submitit sends it to the node."""

    work: Work

    def __call__(self) -> None:
        """Evaluates the model, on the node."""

        def say(line: str) -> None:
            print(line, flush=True)  # noqa: T201 (goes to the job's output)

        run(self.work, Reporter(say, lambda _: None))

    def checkpoint(self) -> Any:
        """What continues the job: itself, as answers and results lie in the output folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True)
class State:
    """A model's state.

    Attributes:
        model: Its name.
        job: Its last job, such as "12_0"; of several shards' the one that is held; "" without one.
        word: ``done``, Slurm's word for a job in the queue (``pending``, ``running``, ...),
            ``failed``, or ``not submitted``.
        reason: Why it waits or failed.
        missing: What there are no results of.
    """

    model: str
    job: str
    word: str
    reason: str = ""
    missing: Sequence[str] = ()

    @property
    def queued(self) -> bool:
        """Whether Slurm has a job of it."""
        return self.word not in {"done", "failed", "not submitted"}

    @property
    def held(self) -> bool:
        """Whether its job waits for somebody to release it."""
        return is_held(self.word, self.reason)

    @property
    def not_launched(self) -> bool:
        """Whether it is held by Slurm itself, not by a person."""
        return self.held and _NOT_LAUNCHED in self.reason


def submit(work: Work, jobs: Sequence[Job], shards: int, reporter: Reporter) -> None:
    """Submits a job for each model that lacks results and has none in the queue.

    Models with the same resources share an array. With several shards each of these is a job,
    and a last job, which waits for them, puts a model's results together.

    Args:
        work: What is asked for.
        jobs: What :func:`.run.prepare` makes of it.
        shards: Jobs for each model.
        reporter: Hears of another ``run`` that submits at the same time, which is waited for.

    Raises:
        OptionError: If submitit or Slurm is missing, or Slurm refuses a job.
    """
    executor_class = _executor()
    folder = work.output / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while isinstance(lock := locks.acquire(folder), str):
            reporter.status(f"jobs are being submitted by {lock}")
            time.sleep(_TURN_S)
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror}") from None
    try:
        _submit_all(work, jobs, shards, executor_class)
    finally:
        lock.release()


def _submit_all(work: Work, jobs: Sequence[Job], shards: int, executor_class: Any) -> None:
    groups: dict[str, dict[str, Work]] = {}
    for job, state in zip(jobs, states(jobs, work.output), strict=True):
        if state.not_launched:
            release(state.job)
        elif state.missing and not state.queued:
            try:
                flags = parameters(job.model.resources)
            except OptionError as error:
                raise OptionError(f"{job.model.path}: {error}") from None
            key = json.dumps(flags, sort_keys=True)
            groups.setdefault(key, {})[state.model] = replace(
                work,
                models=[job.model.path.resolve()],
                tasks=",".join(state.missing),
                output=work.output.resolve(),
            )
    for key, models in groups.items():
        executor = executor_class(folder=work.output.resolve() / FOLDER, max_num_timeout=_REQUEUES)
        flags = json.loads(key)
        split: list[str] = []
        if shards > 1:
            parts = [
                replace(one, shard=Shard(number, shards))
                for one in models.values()
                for number in range(1, shards + 1)
            ]
            split = _submit(executor, parts, flags)
            flags["dependency"] = f"afterany:{split[0].partition('_')[0]}"
        last = _submit(executor, models.values(), flags)
        own = {
            model: [*split[place * shards : (place + 1) * shards], last[place]]
            for place, model in enumerate(models)
        }
        _write_jobs(work.output, own)


def _submit(executor: Any, work: Iterable[Work], flags: Mapping[str, Any]) -> list[str]:
    """Submits an array; returns its jobs."""
    try:
        executor.update_parameters(**flags)
        with executor.batch():  # so that checkpoint() is found on what is submitted
            jobs = [executor.submit(Evaluation(one)) for one in work]
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        raise OptionError(f"Slurm refuses the jobs: {said(error)}") from None
    return [job.job_id for job in jobs]


def wait(look: Callable[[], list[State]], reporter: Reporter, *, poll_s: float = _POLL_S) -> None:
    """Waits until Slurm has no job of the models any more; releases those that it holds itself.

    Args:
        look: Returns the models' states.
        reporter: Gets a line for each change, and the counts as status.
        poll_s: Seconds between two looks.

    Raises:
        FailedError: If models lack results then.
    """
    known: dict[str, str] = {}
    released: Counter[str] = Counter()
    while True:
        try:
            now = look()
        except QueueError as error:  # a controller that is being restarted answers again
            reporter.status(one_line(str(error)))
            time.sleep(poll_s)
            continue
        for state in now:
            change = state.reason if state.held else state.word
            if state.not_launched and released[state.job] < _RELEASES:
                released[state.job] += 1
                release(state.job)
                reporter.line(f"{state.model}: released (job {state.job}): {state.reason}")
            elif known.get(state.model) != change:
                known[state.model] = change
                reporter.line(line(state))
        if not any(state.queued for state in now):
            break
        reporter.status(counts(now))
        time.sleep(poll_s)
    if failed := {one.model: one.reason or one.word for one in now if one.word != "done"}:
        raise FailedError(failed, len(now))


def states(jobs: Sequence[Job], output: Path) -> list[State]:
    """Each model's state, by one call of ``squeue`` and what is in the results folder.

    Raises:
        QueueError: If ``squeue`` cannot be asked.
    """
    numbers = _read_jobs(output)
    # The queue first: what ends between the two looks has its results by the second.
    queued = queue() if numbers else {}
    found = []
    for job in jobs:
        own = numbers.get(job.model.name, [""])
        held = (one for one in own if is_held(*queued.get(one, ("", ""))))
        number = next(held, own[-1])
        missing = job.missing()
        word, why = queued.get(number, ("", ""))
        if not word and not missing:
            word = "done"
        elif not word and number:
            word, why = "failed", _why(output, number)
        found.append(State(job.model.name, number, word or "not submitted", why, missing))
    return found


def line(state: State) -> str:
    """A state as a line for people."""
    job = f" (job {state.job})" if state.job else ""
    why = f": {state.reason}" if state.reason else ""
    can = state.held and state.reason != "JobHeldAdmin"
    remedy = f"; scontrol release {state.job} lets it go on" if can else ""
    return f"{state.model}: {state.word}{job}{why}{remedy}"


def counts(found: Sequence[State]) -> str:
    """How many models are in which state."""
    words = [state.word for state in found]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def parameters(resources: Mapping[str, Any]) -> dict[str, Any]:
    """A model's ``resources`` as submitit's Slurm executor takes them.

    Raises:
        OptionError: If the time cannot be read.
    """
    found = {
        "job_name": "lm-eval-ext",
        "time": minutes(resources.get("time", DEFAULT_MINUTES)),
        "gpus_per_node": resources.get("gpus") or None,
        "cpus_per_task": resources.get("cpus") or None,
        "mem": resources.get("memory"),
        "partition": resources.get("partition"),
        "account": resources.get("account"),
        "additional_parameters": {"requeue": True, **(resources.get("extra") or {})},
    }
    return {name: value for name, value in found.items() if value is not None}


def minutes(text: str | int) -> int:
    """A time as Slurm writes it ("90", "1:30:00", "2-12", "2-12:30") in minutes, rounded up.

    Raises:
        OptionError: If it is none.
    """
    match = _TIME.fullmatch(str(text).strip())
    if not match:
        raise OptionError(
            f"resources: time {str(text)!r}; use minutes, H:MM:SS, D-HH or D-HH:MM as Slurm does"
        )
    days, *rest = match.groups()
    parts = [int(part) for part in rest if part is not None]
    units = (60, 1) if days is None and len(parts) < len(rest) else (3600, 60, 1)
    seconds = sum(count * unit for count, unit in zip(parts, units, strict=False))
    seconds += 86400 * int(days or 0)
    return max(1, -(-seconds // 60))


def _executor() -> Any:
    try:
        from submitit import SlurmExecutor
    except ImportError:
        raise OptionError(
            "--executor slurm needs submitit; pip install 'lm-eval-ext[slurm]'"
        ) from None
    if lacking := [name for name in ("sbatch", "srun", "squeue") if which(name) is None]:
        raise OptionError(
            f"there is no {lacking[0]} here; run this where Slurm's commands are, such as on the "
            "cluster's login node"
        )
    return SlurmExecutor


def _why(output: Path, job: str) -> str:
    """What a job's error output says of the model."""
    log = output / FOLDER / f"{job}_0_log.err"
    if not log.is_file() or not log.stat().st_size:
        return "no output; the job was cancelled, or its node was lost"
    said = reason(log)
    known = said.partition(" models failed: ")[2].partition(": ")[2]  # names the model's own log
    return known or f"{said} ({log})"


def _read_jobs(output: Path) -> dict[str, list[str]]:
    """Each model's jobs: those of its shards, and the last one, which makes its results."""
    try:
        found = json.loads((output / FOLDER / "jobs.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {model: [one] if isinstance(one, str) else one for model, one in found.items()}


def _write_jobs(output: Path, jobs: Mapping[str, list[str]]) -> None:
    with atomic_text(output / FOLDER / "jobs.json") as file:
        file.write(json.dumps({**_read_jobs(output), **jobs}, indent=2) + "\n")
