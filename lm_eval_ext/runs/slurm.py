"""``lm-eval-ext run --executor slurm``: a job for each model and task without results.

submitit writes the batch file, carries the work to the node, and puts a job that was preempted or
ran out of time back into the queue. What is done is read from the results folder, and what is in
the queue from one call of ``squeue``. Nothing asks ``sacct``, which many clusters lack.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from filelock import FileLock

from lm_eval_ext.errors import OptionError, require_extra, writing
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.runs.run import Job, Reporter, Work, run
from lm_eval_ext.text import one_line

FOLDER = ".slurm"
"""In the output folder: batch files, and the jobs' output."""

_DAY = 24 * 60
"""Minutes."""

_REQUEUES = 20
"""Times that a job may run out of its time and continue."""


@dataclass(frozen=True)
class Evaluation:
    """What a job does: one model's run on one task. submitit sends it to the node."""

    work: Work

    def __call__(self) -> None:
        """Evaluates the model, on the node."""
        run(self.work, Reporter(partial(print, flush=True), lambda _: None))

    def checkpoint(self) -> Any:
        """What continues the job: itself, as answers and results lie in the output folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def submit(work: Work, jobs: Sequence[Job], reporter: Reporter) -> None:
    """Submits a job for each model and task without results, unless one is in the queue.

    Args:
        work: What is asked for.
        jobs: What :func:`.run.prepare` makes of it.
        reporter: Gets a line for each job.

    Raises:
        OptionError: If submitit or Slurm is missing, or Slurm refuses a job.
    """
    require_extra("slurm", "--executor slurm", "submitit")
    from submitit import SlurmExecutor

    output = work.output.resolve()
    folder = output / FOLDER
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock"):  # another run may be submitting
            jobs_there = subprocess.run(
                ["squeue", "--me", "--noheader", "--format=%j|%T (job %i, %r)"],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            queued = dict(line.lower().split("|", 1) for line in jobs_there.splitlines())
            lacking = [(job, task) for job in jobs for task in job.missing()]
            if not lacking:
                reporter.line("nothing to do")
            for job, task in lacking:
                name = f"lm-eval-ext-{digest([str(output), job.model.name, job.keys[task]])}"
                what = f"{job.model.name}, {task}"
                if name in queued:
                    reporter.line(f"{what}: {queued[name]}")
                    continue
                file = job.model.path.resolve()
                own = replace(work, models=[file], tasks=task, output=output)
                executor = SlurmExecutor(folder=folder, max_num_timeout=_REQUEUES)
                given = {"time": _DAY, **job.model.resources, "job_name": name}
                extra = {"requeue": True, **given.pop("additional_parameters", {})}
                executor.update_parameters(**given, additional_parameters=extra)
                # A batch, so that checkpoint() is found on what is submitted.
                with executor.batch():
                    submitted = executor.submit(Evaluation(own))
                reporter.line(f"{what}: submitted as job {submitted.job_id}")
    except FileNotFoundError as error:
        raise OptionError(
            f"there is no {error.filename} here; run this where Slurm's commands are, such as on "
            "the cluster's login node"
        ) from None
    except (subprocess.CalledProcessError, RuntimeError, ValueError, TypeError) as error:
        why = one_line(str(getattr(error, "stderr", None) or error), limit=300)
        raise OptionError(f"Slurm refuses: {why}") from None
