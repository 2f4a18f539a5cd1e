"""``--executor slurm``: a job for each model and task without results, or other work in jobs.

submitit writes the batch file, carries the work to the node, and puts a job that was preempted or
ran out of time back into the queue. What is done is read from the output folder, and what is in
the queue from one call of ``squeue``. Nothing asks ``sacct``, which many clusters lack.
"""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from lm_eval_ext.errors import OptionError, require_extra, writing
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.runs.model_files import Resources
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


@dataclass(frozen=True)
class SlurmJob:
    """Work for one job.

    Attributes:
        label: What it does, for the line that is reported.
        identity: What it does, for its name: two jobs of the same identity do the same.
        resources: What it needs, as the parameters of submitit.
        work: Called on the node, and again by each job that continues it; has a method
            ``checkpoint`` for submitit.
    """

    label: str
    identity: Sequence[str]
    resources: Resources
    work: Callable[[], None]

    @property
    def name(self) -> str:
        """The name that the queue shows."""
        return f"lm-eval-ext-{digest(list(self.identity))}"


def submit(work: Work, jobs: Sequence[Job], reporter: Reporter) -> None:
    """Submit a job for each model and task without results, unless one is in the queue.

    Args:
        work: What the command line asks for.
        jobs: The jobs of :func:`.run.prepare` for it.
        reporter: Gets a line for each job.

    Raises:
        OptionError: submitit or Slurm is missing, or Slurm refuses a job.
    """
    output = work.output.resolve()

    def missing_jobs() -> Iterator[SlurmJob]:
        for job in jobs:
            for task in job.missing():
                task_work = replace(
                    work, models=[job.model.path.resolve()], tasks=task, output=output
                )
                yield SlurmJob(
                    label=f"{job.model.name}, {task}",
                    identity=[str(output), job.model.name, job.digest_by_task[task]],
                    resources=job.model.resources,
                    work=Evaluation(task_work),
                )

    if not submit_jobs(missing_jobs, output, reporter):
        reporter.line("nothing to do")


def submit_jobs(
    missing_jobs: Callable[[], Iterable[SlurmJob]], output: Path, reporter: Reporter
) -> int:
    """Submit jobs, unless they are in the queue; return how many are not done.

    Args:
        missing_jobs: Returns the jobs that are not done. It is called when no other command
            submits any into the same folder.
        output: The folder that has the jobs' output in ``.slurm``.
        reporter: Gets a line for each job.

    Raises:
        OptionError: submitit or Slurm is missing, or Slurm refuses a job.
    """
    require_extra("slurm", "--executor slurm", "submitit")
    folder = output / FOLDER
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock"):
            queue = _queue()
            count = 0
            for job in missing_jobs():
                count += 1
                state = queue.get(job.name) or f"submitted as job {_submit_job(job, folder)}"
                reporter.line(f"{job.label}: {state}")
            return count
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


def _submit_job(job: SlurmJob, folder: Path) -> str:
    """Submit a job, and return Slurm's number of it."""
    from submitit import SlurmExecutor

    executor = SlurmExecutor(folder=folder, max_num_timeout=_MAX_REQUEUES)
    parameters = {"time": _DAY_MINUTES, **job.resources, "job_name": job.name}
    parameters["additional_parameters"] = {
        "requeue": True,
        **parameters.get("additional_parameters", {}),
    }
    executor.update_parameters(**parameters)
    # A batch, so that checkpoint() is found on what is submitted.
    with executor.batch():
        submitted = executor.submit(job.work)
    return str(submitted.job_id)
