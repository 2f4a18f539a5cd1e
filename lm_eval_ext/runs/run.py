"""``lm-eval-ext run`` evaluates models on the tasks that they have no results of yet."""

import errno
import functools
import glob
import json
import re
import shlex
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError, writing
from lm_eval_ext.harness.exclusions import collected_exclusions
from lm_eval_ext.harness.lm_eval_types import Metadata
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.log import get_logger
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.results.files import (
    KEYS,
    MODEL_FILE,
    arguments_of,
    identity,
    metadata_of,
    read_results,
)
from lm_eval_ext.runs.caches import count_answers, merge_caches
from lm_eval_ext.runs.child import EVALUATION_FAILED
from lm_eval_ext.runs.model_files import (
    ModelFile,
    Resources,
    Settings,
    lm_eval_config,
    read_model_files,
)
from lm_eval_ext.runs.options import RECORDED, check_limit, check_model_exists, parse_metadata
from lm_eval_ext.runs.process import evaluate, reason
from lm_eval_ext.runs.tasks import Selection, TaskIdentity, select
from lm_eval_ext.runs.weights import newer_format, weights_digest
from lm_eval_ext.text import counted, named_briefly

_log = get_logger(__name__)

CACHE = "cache"

_POLL_S = 5.0
"""Seconds between looks at tasks that another run works on."""

_RUN_OPTIONS = (
    "num_fewshot", "system_instruction", "apply_chat_template", "fewshot_as_multiturn",
    "gen_kwargs", "seed",
)  # fmt: skip
"""lm-eval's options that make another run of the same model on the same task."""

_FILE_NAME = re.compile(r"[\w+.-]{1,80}")
"""Names of tasks that may be the name of a file."""

NO_LOCKS = (
    "{folder}: this file system has no locks (flock), by which several runs share the work; name "
    "an --output on another one"
)
_NO_LOCKS_ERRORS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)

_FULL_BYTES = 100_000
"""Free bytes below which a disk counts as full."""


@dataclass(frozen=True)
class Reporter:
    """Output of a run: ``line`` prints a line, ``status`` replaces the status line."""

    line: Callable[[str], None]
    status: Callable[[str], None]

    def labelled(self, label: str) -> "Reporter":
        """Return a reporter whose texts begin with a label."""

        def label_line(text: str) -> None:
            self.line(f"{label}: {text}")

        def label_status(text: str) -> None:
            self.status(f"{label}: {text}")

        return Reporter(label_line, label_status)


@dataclass(frozen=True)
class Work:
    """The models and tasks of a run, as the command line names them.

    Attributes:
        models: Models' files, or folders of them.
        tasks: As lm-eval's option.
        output: The folder for results.
        limit: As lm-eval's option; so is ``metadata``, which overrides what a model's file has.
    """

    models: Sequence[Path]
    tasks: str
    output: Path
    limit: float | None = None
    metadata: str = ""

    def command(self) -> list[str]:
        """Return the words of the command line that asks for this work."""
        words = ["lm-eval-ext", "run", "--models", *map(str, self.models)]
        words += ["--tasks", self.tasks, "--output", str(self.output)]
        if self.limit is not None:
            words += ["--limit", f"{self.limit:g}"]
        if self.metadata:
            words += ["--metadata", self.metadata]
        return words


@dataclass(frozen=True)
class PlannedRun:
    """A model's part of a plan; the fields are the keys of ``run --json``.

    Attributes:
        model: Its name.
        file: The model's file.
        tasks: Those without results.
        present: The number of tasks that have results.
        resources: As the file declares them.
        command: The words of a command that evaluates the model; it is to be run from the present
            folder, as file and output may be relative.
    """

    model: str
    file: str
    tasks: list[str]
    present: int
    resources: Resources
    command: list[str]


@dataclass(frozen=True)
class Outcome:
    """How a model's job ended.

    Attributes:
        problem: The reason why it failed; "" if it did not.
        is_waiting: Whether another run works on some of its tasks.
    """

    problem: str = ""
    is_waiting: bool = False


@dataclass(frozen=True)
class Failure:
    """Why an evaluation has no results.

    Attributes:
        reason: For the user.
        is_after_loading: Whether the model and the tasks were loaded before, so that the other
            tasks may have results if they are evaluated without the one that failed.
    """

    reason: str
    is_after_loading: bool = False


@dataclass(frozen=True)
class Job:
    """A model on tasks.

    Attributes:
        model: Its file.
        digest_by_task: For each name that lm-eval is asked for, a digest of all that decides about
            the results: the model, the requests, and the signatures of the tasks.
        folder: For its results.
        limit: As lm-eval's option.
        weights_digest: A digest of the model's weights; "" if they are not known.
        tasks_by_name: The tasks that each name stands for, as far as they are ours or the user's.
    """

    model: ModelFile
    digest_by_task: Mapping[str, str]
    folder: Path
    limit: float | None
    weights_digest: str = ""
    tasks_by_name: Mapping[str, TaskIdentity] = field(default_factory=dict)

    def missing_tasks(self) -> set[str]:
        """Return the names without results at the moment, and the tasks that they stand for."""
        tasks = set()
        for name in self.missing():
            tasks.update([name, *self.tasks_by_name.get(name, ())])
        return tasks

    def missing(self) -> list[str]:
        """Return the names that have no results at the moment."""
        try:
            results_files = read_results(self.folder, include_failed_training=True)
        except LmEvalExtError:
            results_files = []
        recorded_digests = [file.content.get(KEYS, {}) for file in results_files]
        missing = []
        for name, task_digest in self.digest_by_task.items():
            if all(digests.get(name) != task_digest for digests in recorded_digests):
                missing.append(name)
        return missing

    def run(self, label: str, reporter: Reporter) -> Outcome:
        """Evaluate the tasks that have no results yet.

        Args:
            label: The beginning of the lines that are reported.
            reporter: Gets them.

        Raises:
            KeyboardInterrupt: The user ended it; nothing half-written stays.
        """
        cache = self.folder / CACHE
        try:
            cache.mkdir(parents=True, exist_ok=True)
            return self._run_free_tasks(label, reporter)
        except OSError as error:
            return Outcome(f"cannot write {self.folder}: {error.strerror}")
        except LmEvalExtError as error:
            return Outcome(str(error))
        except sqlite3.Error as error:
            return Outcome(f"{cache}: a cache is broken ({error}); remove it")

    def _run_free_tasks(self, label: str, reporter: Reporter) -> Outcome:
        """Evaluate the tasks without results that no other run works on."""
        with ExitStack() as locks:
            free_names = {name for name in self.digest_by_task if self._lock(name, locks)}
            # After locking, since another run may have finished a task in between.
            missing = self.missing()
            with atomic_text(self.folder / MODEL_FILE) as file:  # the display name may be new
                file.write(self.model.text)
            names = [name for name in missing if name in free_names]
            present = len(self.digest_by_task) - len(missing)
            progress = f"{present} of {len(self.digest_by_task)} tasks have results"
            if not missing:
                reporter.line(f"{label}: nothing to do, {progress}")
            problem = ""
            if names:
                line = f"{label}: {', '.join(names)}"
                if present:
                    line += f" ({progress})"
                reporter.line(f"{line}; output goes to {self._log(names)}")
                problem = self._evaluate_all(names, label, reporter)
            return Outcome(problem, is_waiting=not problem and len(names) < len(missing))

    def _lock(self, name: str, locks: ExitStack) -> bool:
        """Lock a task unless another run has it; the system frees it if the process dies.

        Raises:
            OptionError: The file system has no locks.
        """
        lock = FileLock(self.folder / CACHE / f"{_file_stem(name)}.lock")
        try:
            locks.enter_context(lock.acquire(timeout=0))
        except Timeout:
            return False
        except NotImplementedError:
            raise OptionError(NO_LOCKS.format(folder=self.folder)) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS_ERRORS:
                raise
            raise OptionError(NO_LOCKS.format(folder=self.folder)) from None
        return True

    def _evaluate_all(self, names: Sequence[str], label: str, reporter: Reporter) -> str:
        """Evaluate these tasks together or, if one of them fails, each of them alone.

        Returns:
            The problem; "" if there is none.
        """
        failure = self._evaluate(names, label, reporter)
        if failure is None:
            return ""
        if len(names) == 1 or not failure.is_after_loading:
            return failure.reason
        reporter.line(f"{label}: each task is evaluated alone, since one of them failed")
        problems = []
        for name in names:
            task_label = f"{label}: {name}"
            failure = self._evaluate([name], task_label, reporter)
            if failure is not None:
                problems.append(f"{name}: {failure.reason}")
        # Without a problem, the tasks failed only together, for instance for lack of memory.
        return "; ".join(problems)

    def _evaluate(self, names: Sequence[str], label: str, reporter: Reporter) -> Failure | None:
        """Evaluate these tasks together, report the time, and return the failure, if any."""
        started = time.monotonic()
        log = self._log(names)
        merge_caches(self.folder / CACHE, self._cache_stem(log.stem), self.weights_digest)
        before = self._count_stored_answers(log.stem)
        part_folder = self.folder / f".part-{log.stem}"
        shutil.rmtree(part_folder, ignore_errors=True)  # of a run that was killed

        try:
            failure = self._evaluate_into(part_folder, names, log, reporter.labelled(label))
        except KeyboardInterrupt:
            # The interruption must end the command even if a cache cannot be read.
            with suppress(sqlite3.Error):
                reporter.line(f"{label}: {self._describe_stored_answers(log.stem, before)}")
            raise
        finally:
            shutil.rmtree(part_folder, ignore_errors=True)
        seconds = f"{time.monotonic() - started:.0f} s"
        if failure:
            reporter.line(f"{label}: failed after {seconds}; its output is in {log}")
        else:
            reporter.line(f"{label}: done in {seconds}")
        return failure

    def _evaluate_into(
        self, part_folder: Path, names: Sequence[str], log: Path, reporter: Reporter
    ) -> Failure | None:
        """Evaluate in a folder, and move the results into the model's, after their samples."""
        import yaml

        results = part_folder / "results"
        results.mkdir(parents=True)
        config = part_folder / "run.yaml"
        settings = {
            **self.model.settings,
            "tasks": list(names),
            "limit": self.limit,
            # lm-eval takes a name with this ending unchanged. In a folder, it makes one whose
            # name has all of the model's arguments, and may be too long.
            "output_path": str(results / "results.json"),
            "log_samples": True,
        }
        if settings["model"] != RECORDED:  # which has its responses in files, and no cache
            settings["use_cache"] = str(log.with_name(self._cache_stem(log.stem)))
        config.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        digests = json.dumps({name: self.digest_by_task[name] for name in names})
        words = [digests, str(config), self.weights_digest]
        try:
            status = evaluate(words, log, self.model.launcher, reporter.status, reporter.line)
        except OptionError as error:
            return Failure(str(error))
        # Where lm-eval cannot save samples it only warns. On a full disk, the log ends anywhere.
        if status or "Could not save" in log.read_text(errors="replace"):
            if shutil.disk_usage(self.folder).free < _FULL_BYTES:
                return Failure("no space is left on the disk")
            return Failure(reason(log, status), is_after_loading=status == EVALUATION_FAILED)
        files = [file for file in results.rglob("*") if file.is_file()]
        for file in sorted(files, key=lambda file: file.name.startswith("results_")):
            file.replace(self.folder / file.name)
        missing = [name for name in self.missing() if name in names]
        if missing:
            return Failure(f"lm-eval wrote no results of {', '.join(missing)}")
        return None

    def _log(self, names: Sequence[str]) -> Path:
        """Return the file for the output of an evaluation of these tasks."""
        return self.folder / CACHE / f"{_file_stem('+'.join(names))}.log"

    def _count_stored_answers(self, stem: str) -> int:
        """Count the responses in a cache."""
        cache_stem = glob.escape(self._cache_stem(stem))
        answers = 0
        for cache in (self.folder / CACHE).glob(f"{cache_stem}_rank*.db"):
            answers += count_answers(cache)
        return answers

    def _describe_stored_answers(self, stem: str, before: int) -> str:
        """Return what an interrupted evaluation has stored.

        Args:
            stem: The name of its cache.
            before: The number of responses there when it began.
        """
        stored = self._count_stored_answers(stem)
        if not stored:
            return "0 answers are stored; this evaluation starts from the beginning next time"
        return f"{stored:,} answers are stored, {stored - before:,} of them since this start"

    def _cache_stem(self, stem: str) -> str:
        """Return the name of a cache of responses, which other weights must not get."""
        return f"{stem}@{self.weights_digest}" if self.weights_digest else stem


def _file_stem(text: str) -> str:
    """Return a name for files about tasks."""
    return text if _FILE_NAME.fullmatch(text) else digest(text)


def run(work: Work, reporter: Reporter) -> None:
    """Evaluate every model on every task that it has no results of yet.

    Files, names and the data of our tasks are checked first. Each model is evaluated in its own
    process, with lm-eval's cache of responses, so that an interruption loses none. Results are
    moved into the model's folder in the output when it is done. Several runs may share an output:
    only one works on a model's task at a time, and each ends when all results are there.

    Raises:
        OptionError: A file, a name or the limit is wrong; nothing was run.
        DataError: Data are missing or broken, or a folder holds another model's results.
        LmEvalExtError: Some models failed, which are named; the others were evaluated.
    """
    jobs = prepare(work)
    with writing(work.output):
        work.output.mkdir(parents=True, exist_ok=True)
    problems: dict[str, str] = {}
    labels = [
        f"[{number}/{len(jobs)}] {job.model.display_name}"
        for number, job in enumerate(jobs, start=1)
    ]
    waiting = list(zip(labels, jobs, strict=True))
    while waiting:
        # Tasks that another run works on come last: by then it may be done.
        still_waiting = []
        for label, job in waiting:
            outcome = job.run(label, reporter)
            if outcome.is_waiting:
                still_waiting.append((label, job))
            if outcome.problem:
                problems[job.model.display_name] = outcome.problem
        if still_waiting == waiting:  # no progress in this round
            names = ", ".join(job.model.name for _, job in waiting)
            reporter.status(f"another run works on {names}")
            time.sleep(_POLL_S)
        waiting = still_waiting
    if problems:
        evaluated = len(jobs) - len(problems)
        if evaluated:
            commands = "; ".join(_next_commands(work.output, evaluated))
            reporter.line(f"{counted(evaluated, 'model')} evaluated; next: {commands}")
        for model, problem in problems.items():
            reporter.line(f"{model}: {problem}")
        raise LmEvalExtError(f"{len(problems)} of {len(jobs)} models failed: {', '.join(problems)}")
    reporter.line(f"next: {'; '.join(_next_commands(work.output, len(jobs)))}")


def _next_commands(output: Path, models: int) -> list[str]:
    """Return the commands that show the results of a number of models, and compare several."""
    folder = shlex.quote(str(output))
    commands = [f"lm-eval-ext show {folder}"]
    if models > 1:
        commands.append(f"lm-eval-ext compare {folder}")
    return commands


def plan(work: Work) -> list[PlannedRun]:
    """Return what :func:`run` would evaluate, model by model.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    planned_runs = []
    for job in prepare(work):
        names = job.missing()
        model_work = replace(work, models=[job.model.path], tasks=",".join(names))
        planned_runs.append(
            PlannedRun(
                model=job.model.name,
                file=str(job.model.path),
                tasks=names,
                present=len(job.digest_by_task) - len(names),
                resources=job.model.resources,
                command=model_work.command(),
            )
        )
    return planned_runs


def prepare(work: Work) -> list[Job]:
    """Check files, names and data, and return a job for each model.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    check_limit(work.limit)
    metadata = parse_metadata(work.metadata)
    model_files = read_model_files(work.models)
    # All of them first, since the tasks' data take longer.
    for model_file in model_files:
        check_model_exists(model_file)

    @functools.cache
    def select_tasks(include_path: str) -> Selection:
        return select(work.tasks, include_path)

    jobs = []
    models_of_note: dict[str, list[str]] = {}
    for model_file in model_files:
        with collected_exclusions() as notes:
            job = _prepare_job(model_file, metadata, select_tasks, work)
        jobs.append(job)
        missing_tasks = job.missing_tasks()
        for note, tasks in notes.items():
            # What was evaluated before says it in its results files.
            if missing_tasks and (not tasks or tasks & missing_tasks):
                models_of_note.setdefault(note, []).append(model_file.name)
    for note, models in models_of_note.items():
        _log.warning("%s (%s)", note, named_briefly(models))
    return jobs


def _prepare_job(
    model_file: ModelFile,
    metadata: Metadata,
    select_tasks: Callable[[str], Selection],
    work: Work,
) -> Job:
    """Check a model's tasks and folder, and return its job.

    Args:
        model_file: The model.
        metadata: The options of ``--metadata``, which override the file's.
        select_tasks: Returns the tasks of the work, given the folder of the user's own.
        work: The work that the job is a part of.
    """
    merged = {**arguments_of(model_file.settings, "metadata"), **metadata}
    settings = dict(model_file.settings)
    if merged:
        settings["metadata"] = merged
    model = replace(model_file, settings=settings)
    selection = select_tasks(settings.get("include_path") or "")
    tasks = selection.check(metadata_of(settings), merged)
    folder = work.output / model.name
    check_same_model(folder, model)
    problem = newer_format(settings)
    if problem:
        _log.warning("%s", problem)
    weights = weights_digest(settings)
    digests = run_keys(settings, tasks, work.limit, weights)
    return Job(model, digests, folder, work.limit, weights, tasks)


def run_keys(
    settings: Settings,
    tasks: Mapping[str, TaskIdentity],
    limit: float | None,
    weights: str = "",
) -> dict[str, str]:
    """Return for each name a digest of what makes it the same run.

    Where and how fast a model runs is not part of it.

    Args:
        settings: lm-eval's options.
        tasks: As a selection checks them.
        limit: As lm-eval's option.
        weights: The digest of the model's weights, if they are known.
    """
    config = lm_eval_config(settings)
    options = [getattr(config, name) for name in _RUN_OPTIONS]
    # As a float, so that the limits 1 and 1.0 are the same run.
    asked_documents = None if limit is None else float(limit)
    shared_by_tasks = [identity(settings), options, asked_documents, version("lm_eval")]
    if weights:
        shared_by_tasks.append(weights)
    return {name: digest([*shared_by_tasks, task]) for name, task in tasks.items()}


def check_same_model(folder: Path, model: ModelFile) -> None:
    """Refuse a folder that holds the results of another model.

    Raises:
        DataError: The model's file was changed so that it is another model.
    """
    kept_file = folder / MODEL_FILE
    has_results = any(folder.rglob("results_*.json")) or any(folder.rglob(f"{CACHE}/*.db"))
    if not kept_file.is_file() or not has_results:
        # A folder with only a log: the model never started.
        return
    try:
        kept_identity = identity(read_yaml(kept_file, TypeAdapter(dict[str, Any])))
    except DataError as error:
        raise DataError(f"{error}; remove {folder} to start again") from None
    new_identity = identity(model.settings)
    if kept_identity != new_identity:
        raise DataError(
            f"{model.path}: {folder} holds results of {kept_identity}, and the file now says "
            f"{new_identity}; rename the file, or remove the folder"
        )
