"""``lm-eval-ext run --executor slurm`` submits a job for each model and task without results.

submitit writes the batch file, carries the work to the node, and puts a job that was preempted or
ran out of time back into the queue. What is done is read from the results folder, and what is in
the queue from one call of ``squeue``. Nothing asks ``sacct``, which many clusters lack.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from lm_eval_ext.errors import OptionError, require_extra, writing
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.runs.run import Job, Reporter, Work, run
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

FOLDER = ".slurm"
"""The folder in the output that has batch files, and the jobs' output."""

_DAY_MINUTES = 24 * 60

_MAX_REQUEUES = 20
"""Times that a job may run out of its time and continue."""


@dataclass(frozen=True)
class Evaluation:
    """A job: one model's run on one task. submitit sends it to the node."""

    work: Work

    def __call__(self) -> None:
        """Evaluate the model, on the node."""
        run(self.work, Reporter(partial(print, flush=True), lambda _: None))

    def checkpoint(self) -> "DelayedSubmission":
        """Return the job that continues this one: itself, as the output folder has all results."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def submit(work: Work, jobs: Sequence[Job], reporter: Reporter) -> None:
    """Submit a job for each model and task without results, unless one is in the queue.

    Args:
        work: What the command line asks for.
        jobs: The jobs of :func:`.run.prepare` for it.
        reporter: Gets a line for each job.

    Raises:
        OptionError: submitit or Slurm is missing, or Slurm refuses a job.
    """
    require_extra("slurm", "--executor slurm", "submitit")
    output = work.output.resolve()
    folder = output / FOLDER
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock"):  # another run may be submitting
            _submit_missing(replace(work, output=output), jobs, folder, reporter)
    except FileNotFoundError as error:
        raise OptionError(
            f"there is no {error.filename} here; run this where Slurm's commands are, such as on "
            "the cluster's login node"
        ) from None
    except subprocess.CalledProcessError as error:
        problem = one_line(error.stderr or str(error), limit=300)
        raise OptionError(f"Slurm refuses: {problem}") from None
    except (RuntimeError, ValueError, TypeError) as error:
        raise OptionError(f"Slurm refuses: {one_line(str(error), limit=300)}") from None


def _submit_missing(work: Work, jobs: Sequence[Job], folder: Path, reporter: Reporter) -> None:
    """Submit what is neither done nor in the queue."""
    queue = _queue()
    is_done = True
    for job in jobs:
        for task in job.missing():
            is_done = False
            identity = [str(work.output), job.model.name, job.keys[task]]
            job_name = f"lm-eval-ext-{digest(identity)}"
            label = f"{job.model.name}, {task}"
            if job_name in queue:
                reporter.line(f"{label}: {queue[job_name]}")
            else:
                job_id = _submit_task(work, job, task, job_name, folder)
                reporter.line(f"{label}: submitted as job {job_id}")
    if is_done:
        reporter.line("nothing to do")


def _queue() -> dict[str, str]:
    """Return the state of the user's jobs in the queue, by their names in lower case."""
    listing = subprocess.run(
        ["squeue", "--me", "--noheader", "--format=%j|%T (job %i, %r)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    states = {}
    for line in listing.stdout.lower().splitlines():
        job_name, state = line.split("|", 1)
        states[job_name] = state
    return states


def _submit_task(work: Work, job: Job, task: str, job_name: str, folder: Path) -> str:
    """Submit a job for one task of a model, and return Slurm's number of it."""
    from submitit import SlurmExecutor

    task_work = replace(work, models=[job.model.path.resolve()], tasks=task)
    executor = SlurmExecutor(folder=folder, max_num_timeout=_MAX_REQUEUES)
    parameters = {"time": _DAY_MINUTES, **job.model.resources, "job_name": job_name}
    parameters["additional_parameters"] = {
        "requeue": True,
        **parameters.get("additional_parameters", {}),
    }
    executor.update_parameters(**parameters)
    # A batch, so that checkpoint() is found on what is submitted.
    with executor.batch():
        submitted = executor.submit(Evaluation(task_work))
    return str(submitted.job_id)
