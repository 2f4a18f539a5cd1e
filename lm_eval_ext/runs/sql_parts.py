"""``lm-eval-ext sql-score --executor slurm``: the parts of a file of predictions as jobs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs.model_files import Resources
from lm_eval_ext.runs.run import Reporter
from lm_eval_ext.runs.slurm import SlurmJob, submit_jobs
from lm_eval_ext.sql.part_scoring import plan_parts, score_part
from lm_eval_ext.sql.parts import Part
from lm_eval_ext.sql.scoring import JudgeOptions, check_output

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission


@dataclass(frozen=True)
class PartScoring:
    """A job: the verdicts on one part of a file. submitit sends it to the node.

    Attributes:
        predictions: The file.
        options: How predictions are judged.
        out: The file that all parts together will be.
        part: The part.
        digest: The checksum of everything that verdicts depend on.
    """

    predictions: Path
    options: JudgeOptions
    out: Path
    part: Part
    digest: str

    def __call__(self) -> None:
        """Judge the part, on the node."""
        summary = score_part(
            self.predictions, self.options, self.out, self.part, expected_digest=self.digest
        )
        print(f"{self.part}: {summary.rows:,} rows, {summary.seconds:.1f} s", flush=True)  # noqa: T201

    def checkpoint(self) -> "DelayedSubmission":
        """Return the job that continues this one: itself, as the verdicts are kept."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True)
class PartsWork:
    """A file of predictions that is judged in parts.

    Attributes:
        predictions: A file as for :func:`~lm_eval_ext.sql.scoring.score_file`.
        options: How predictions are judged, :func:`with_absolute_paths`.
        out: The file that all parts together will be.
        parts: How many parts there are.
        resources: What each job needs, as the parameters of submitit.
    """

    predictions: Path
    options: JudgeOptions
    out: Path
    parts: int
    resources: Resources

    def missing_jobs(self) -> Iterator[SlurmJob]:
        """Yield a job for each part that has rows without a verdict.

        Raises:
            OptionError: An option is wrong, or the output exists although nothing is judged.
            DataError: A file cannot be read.
        """
        predictions, out = self.predictions.resolve(), self.out.resolve()
        plan = plan_parts(predictions, self.options, out, self.parts)
        if out.exists() and not plan.judged:
            raise OptionError(f"{out} exists; remove it, or name another output, to judge anew")
        for part in plan.missing:
            yield SlurmJob(
                label=str(part),
                identity=[str(out), plan.digest, str(part)],
                resources={"cpus_per_task": self.options.workers, **self.resources},
                work=PartScoring(predictions, self.options, out, part, plan.digest),
            )


def submit_parts(work: PartsWork, reporter: Reporter) -> bool:
    """Submit a job for each part that is not judged, unless it is in the queue.

    Args:
        work: The file and how it is judged.
        reporter: Gets a line for each part that is not done.

    Returns:
        Whether all rows are judged.

    Raises:
        OptionError: As :meth:`PartsWork.missing_jobs`, or Slurm is missing or refuses a job.
        DataError: A file cannot be read.
    """
    check_output(work.out)
    return submit_jobs(work.missing_jobs, work.out.resolve().parent, reporter) == 0


def with_absolute_paths(options: JudgeOptions) -> JudgeOptions:
    """Return options that mean the same in any folder, such as the one in which a job starts."""
    databases = options.databases
    if "://" not in str(databases):
        databases = Path(databases).expanduser().resolve()
    suite = options.suite
    if suite is not None:
        suite = replace(suite, folder=suite.folder.resolve())
    return replace(options, databases=databases, suite=suite)
