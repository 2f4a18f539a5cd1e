"""``lm-eval-ext run``: evaluates models on the tasks that they have no results of yet."""

import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.results.files import (
    MODEL_FILE,
    ResultsFile,
    arguments_of,
    find_all,
    identity,
    metadata_of,
)
from lm_eval_ext.runs import locks
from lm_eval_ext.runs.key import missing, run_key, write_key
from lm_eval_ext.runs.model_files import ModelFile, read_model_files
from lm_eval_ext.runs.process import evaluate, reason
from lm_eval_ext.runs.tasks import Selection, select
from lm_eval_ext.text import one_line

LOG, CACHE = "log.txt", "cache"
PART = ".part-"
"""How the names of folders with unfinished results start."""

ANSWERS_ITSELF = frozenset({"recorded"})
"""Model types that refuse lm-eval's cache, since their answers are in files already."""

_POLL_S = 5.0
"""Seconds at most between looks at a model that another run works on."""


class FailedError(LmEvalExtError):
    """Some models could not be evaluated, and the others were."""


@dataclass(frozen=True)
class Reporter:
    """Output of a run: ``line`` prints a line, ``status`` replaces the status line."""

    line: Callable[[str], None]
    status: Callable[[str], None]


def run(
    paths: Sequence[Path], tasks: str, output: Path, limit: float | None, reporter: Reporter
) -> None:
    """Evaluates every model on every task that it has no results of yet.

    Files, names and the data of our tasks are checked first. Each model is evaluated in its own
    process, with lm-eval's cache of answers, so that an interruption loses none. Results are
    moved into the model's folder in the output when it is done. Several runs may share an output,
    on one machine or many: one works on a model at a time, and each ends when all is there.
    ``tasks`` and ``limit`` are as in lm-eval.

    Raises:
        OptionError: If a file, a name or the limit is wrong; nothing was run.
        DataError: If data are missing or broken, or a folder holds another model's results.
        FailedError: If models failed; it names them with the reasons.
    """
    jobs = _jobs(paths, tasks, output, limit, reporter)
    _make(output)
    failed: list[str] = []
    waiting, pause = jobs, 0.0
    while waiting:
        # Models that another run works on come last: by then it may be done with them.
        held = []
        for job in waiting:
            try:
                problem = job.run()
            except HeldError as error:
                held.append(job)
                reporter.status(f"{job.place}: waiting for {error}")
            else:
                failed += [f"{job.model.display_name}: {problem}"] if problem else []
        if held == waiting and not pause:
            reporter.line(f"waiting for another run: {', '.join(one.model.name for one in held)}")
        pause = min(_POLL_S, pause + 0.2) if held == waiting else 0.0
        time.sleep(pause)
        waiting = held
    if failed:
        raise FailedError(f"{len(failed)} of {len(jobs)} models failed: {'; '.join(failed)}")


def plan(
    paths: Sequence[Path], tasks: str, output: Path, limit: float | None
) -> list[dict[str, Any]]:
    """What :func:`run` would evaluate, a record for each model.

    Returns:
        ``model`` (its name), ``file``, ``tasks`` (those without results), ``present`` (how many
        have results), ``resources`` (as the file declares them) and ``command``, a list of words
        that evaluates the model; from the present folder, as file and output may be relative.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    found = []
    for job in _jobs(paths, tasks, output, limit, Reporter(_ignore, _ignore)):
        names = job.missing()[1]
        command = ["lm-eval-ext", "run", "--models", str(job.model.path)]
        command += ["--tasks", ",".join(names), "--output", str(output)]
        if limit is not None:
            command += ["--limit", f"{limit:g}"]
        found.append(
            {
                "model": job.model.name,
                "file": str(job.model.path),
                "tasks": names,
                "present": len(job.selection.requested) - len(names),
                "resources": job.model.resources,
                "command": command,
            }
        )
    return found


def _ignore(_: str) -> None:
    pass


def _jobs(
    paths: Sequence[Path], tasks: str, output: Path, limit: float | None, reporter: Reporter
) -> "list[Job]":
    """Checks files, names and data; a job for each model."""
    if limit is not None and not (0 < limit < 1 or (limit >= 1 and float(limit).is_integer())):
        raise OptionError(f"--limit {limit:g} must be a number of documents or a share below 1")
    models = read_model_files(paths)
    selections = _select_all(models, tasks)
    for model in models:
        check_same_model(output / model.name, model.settings, model.path)
    return [
        Job(
            model,
            selections[_include_path(model)],
            output / model.name,
            limit,
            f"[{number}/{len(models)}] {model.display_name}",
            reporter,
        )
        for number, model in enumerate(models, start=1)
    ]


def _select_all(models: Sequence[ModelFile], tasks: str) -> dict[str, Selection]:
    """The selection by ``include_path``; the data of our tasks are checked for each model."""
    found: dict[str, Selection] = {}
    for model in models:
        include_path = _include_path(model)
        if include_path not in found:
            found[include_path] = select(tasks, [include_path] if include_path else [])
        given = arguments_of(model.settings, "metadata")
        found[include_path].check(metadata_of(model.settings), given)
    return found


def _include_path(model: ModelFile) -> str:
    return str(model.settings.get("include_path") or "")


def _make(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror}") from None


def check_same_model(folder: Path, settings: Mapping[str, Any], file: Path) -> None:
    """Refuses a folder that holds the results of another model.

    Raises:
        DataError: If the model's file was changed so that it is another model.
    """
    import yaml

    kept = folder / MODEL_FILE
    if not kept.is_file():
        return
    try:
        before = yaml.safe_load(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        before = None
    if not isinstance(before, dict):
        raise DataError(f"{kept}: cannot be read; remove {folder} to start again")
    if identity(before) != identity(settings):
        raise DataError(
            f"{file}: {folder} holds results of {identity(before)}, and the file now says "
            f"{identity(settings)}; rename the file, or remove the folder"
        )


class HeldError(Exception):
    """Another run works on the model; says which."""


@dataclass(frozen=True)
class Job:
    """A model on tasks; lines about it start with ``place``."""

    model: ModelFile
    selection: Selection
    folder: Path
    limit: float | None
    place: str
    reporter: Reporter

    def run(self) -> str:
        """Evaluates what has no results yet; returns what went wrong, or "".

        Raises:
            HeldError: If another run works on the model.
            KeyboardInterrupt: If the user ends it; nothing half-written stays.
        """
        try:
            self.folder.mkdir(exist_ok=True)
            lock = locks.acquire(self.folder)
            if isinstance(lock, str):
                raise HeldError(lock)
            try:
                return self._run(lock)
            finally:
                lock.release()
        except OSError as error:
            return f"cannot write {self.folder}: {error.strerror}"

    def missing(self) -> tuple[dict[str, Any], list[str]]:
        """The run's key, and the names of which there are no results."""
        key = run_key(self.model.settings, self.selection)
        return key, missing(self.folder, key, self.selection, self.limit)

    def _run(self, lock: locks.Lock) -> str:
        for unfinished in self.folder.glob(f"{PART}*"):
            shutil.rmtree(unfinished)
        key, names = self.missing()
        total = len(self.selection.requested)
        there = total - len(names)
        if not names:
            self.reporter.line(f"{self.place}: nothing to do, {there} of {total} tasks are there")
            return ""
        known = f" ({there} of {total} tasks are there)" if there else ""
        self.reporter.line(f"{self.place}: {', '.join(names)}{known}")
        with atomic_text(self.folder / MODEL_FILE) as file:
            file.write(self.model.text)
        part = self.folder / f"{PART}{uuid.uuid4().hex}"
        started = time.monotonic()
        try:
            problem = self._evaluate(names, part, key, lock)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        took = f"{time.monotonic() - started:.0f} s"
        end = f"failed after {took}: {problem}" if problem else f"done in {took}"
        self.reporter.line(f"{self.place}: {end}")
        return problem

    def _evaluate(
        self, names: Sequence[str], part: Path, key: Mapping[str, Any], lock: locks.Lock
    ) -> str:
        import yaml

        results = part / "results"
        results.mkdir(parents=True)
        config = part / "run.yaml"
        settings = self._settings(names, results)
        config.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        log = self.folder / LOG
        try:
            status = evaluate(
                config,
                log,
                launcher=self.model.launcher,
                own_only=self.selection.own_only,
                on_progress=lambda line: self.reporter.status(f"{self.place}: {line}"),
            )
        except OptionError as error:
            return one_line(str(error))
        if status:
            return f"{reason(log)} ({log})"
        written = _results_in(results)
        wanted = {task for name in names for task in self.selection.requested[name]}
        lacking = sorted(wanted - {task for file in written for task in file.tasks})
        if lacking:
            return f"lm-eval wrote no results of {', '.join(lacking)} ({log})"
        for file in written:
            write_key(key, file)
        if lock.lost():
            return "another run took over, since this one gave no sign of life; its results count"
        _put_in_place(results, self.folder)
        return ""

    def _settings(self, names: Sequence[str], results: Path) -> dict[str, Any]:
        """The run as lm-eval's ``--config`` takes it."""
        settings = {
            **self.model.settings,
            "tasks": list(names),
            # A name with this ending makes lm-eval write beside it; otherwise it makes a folder
            # out of all of the model's arguments, whose name may be too long.
            "output_path": str(results / "results.json"),
            "log_samples": True,
        }
        if self.limit is not None:
            settings["limit"] = self.limit if self.limit < 1 else int(self.limit)
        if self.model.settings["model"] not in ANSWERS_ITSELF:
            settings["use_cache"] = str(self.folder / CACHE / "answers")
        return settings


def _results_in(folder: Path) -> list[ResultsFile]:
    try:
        return find_all(folder)
    except OptionError:
        return []


def _put_in_place(results: Path, folder: Path) -> None:
    """Moves results into the model's folder, after their samples and key."""
    files = [file for file in results.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda file: file.name.startswith("results_")):
        target = folder / file.relative_to(results)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
