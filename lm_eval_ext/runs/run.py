"""``lm-eval-ext run``: evaluates models on the tasks that they have no results of yet."""

import functools
import json
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError, writing
from lm_eval_ext.harness.model_path import check_model_path
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.log import get_logger
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.results.files import (
    KEYS,
    MODEL_FILE,
    arguments_of,
    find,
    identity,
    metadata_of,
)
from lm_eval_ext.runs.model_files import ModelFile, lm_eval_config, read_model_files
from lm_eval_ext.runs.process import evaluate, reason
from lm_eval_ext.runs.tasks import select
from lm_eval_ext.runs.weights import newer_format, weights_digest
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

CACHE = "cache"

_POLL_S = 5.0
"""Seconds between looks at tasks that another run works on."""

_ASKED = (
    "num_fewshot", "system_instruction", "apply_chat_template", "fewshot_as_multiturn",
    "gen_kwargs", "seed",
)  # fmt: skip
"""lm-eval's options that make another run of the same model on the same task."""

_SHORT = re.compile(r"[\w+.-]{1,80}")
"""Names of tasks that may be the name of a file."""

_FULL = 100_000
"""Bytes; where fewer are left, a disk counts as full."""


@dataclass(frozen=True)
class Reporter:
    """Output of a run: ``line`` prints a line, ``status`` replaces the status line."""

    line: Callable[[str], None]
    status: Callable[[str], None]


@dataclass(frozen=True)
class Work:
    """What a run is asked for.

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
        """The words of the command line that asks for it."""
        limit = [] if self.limit is None else ["--limit", f"{self.limit:g}"]
        metadata = ["--metadata", self.metadata] if self.metadata else []
        return [
            "lm-eval-ext", "run", "--models", *map(str, self.models), "--tasks", self.tasks,
            "--output", str(self.output), *limit, *metadata,
        ]  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A model on tasks.

    Attributes:
        model: Its file.
        keys: For each name that lm-eval is asked for, a digest of all that decides about the
            results: the model, what is asked and how, and the signatures of the tasks.
        folder: For its results.
        limit: As lm-eval's option.
        weights: A digest of the model's weights; "" if they are not known.
    """

    model: ModelFile
    keys: Mapping[str, str]
    folder: Path
    limit: float | None
    weights: str = ""

    def _cache_stem(self, stem: str) -> str:
        """Return the name of a cache of answers, which other weights must not get."""
        return f"{stem}@{self.weights}" if self.weights else stem

    def missing(self) -> list[str]:
        """The names of which there are no results at the moment."""
        try:
            noted = [one.content.get(KEYS, {}) for one in find(self.folder, unlearned=True)]
        except LmEvalExtError:
            noted = []
        return [
            name for name, key in self.keys.items() if all(one.get(name) != key for one in noted)
        ]

    def run(self, place: str, reporter: Reporter) -> str | None:
        """Evaluates what has no results yet; lines about it start with ``place``.

        Returns:
            What went wrong, "" if nothing did, or None if another run works on some of the tasks.

        Raises:
            KeyboardInterrupt: If the user ends it; nothing half-written stays.
        """
        cache = self.folder / CACHE
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with ExitStack() as locks:
                free = {name for name in self.keys if _lock(cache / f"{_stem(name)}.lock", locks)}
                missing = self.missing()
                with atomic_text(self.folder / MODEL_FILE) as file:  # it may have a new name
                    file.write(self.model.text)
                names = [name for name in missing if name in free]
                total, done = len(self.keys), len(self.keys) - len(missing)
                known = f"{done} of {total} tasks have results"
                if not missing:
                    reporter.line(f"{place}: nothing to do, {known}")
                problem = ""
                if names:
                    reporter.line(f"{place}: {', '.join(names)}{f' ({known})' if done else ''}")
                    problem = self._evaluate(names, place, reporter)
                return problem or (None if len(names) < len(missing) else "")
        except OSError as error:
            return f"cannot write {self.folder}: {error.strerror}"
        except LmEvalExtError as error:
            return str(error)
        except sqlite3.Error as error:
            return f"{cache}: a cache is broken ({error}); remove it"

    def _evaluate(self, names: Sequence[str], place: str, reporter: Reporter) -> str:
        stem, started = _stem("+".join(names)), time.monotonic()
        _gather(self.folder / CACHE, self._cache_stem(stem), self.weights)
        log = self.folder / CACHE / f"{stem}.log"
        part = self.folder / f".part-{stem}"
        shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
        try:
            problem = self._put(names, part, log, lambda at: reporter.status(f"{place}: {at}"))
        finally:
            shutil.rmtree(part, ignore_errors=True)
        took = f"{time.monotonic() - started:.0f} s"
        end = f"failed after {took}; its output is in {log}" if problem else f"done in {took}"
        reporter.line(f"{place}: {end}")
        return problem

    def _put(
        self, names: Sequence[str], part: Path, log: Path, status: Callable[[str], None]
    ) -> str:
        """Evaluates, and moves the results into the model's folder, after their samples."""
        import yaml

        results, config = part / "results", part / "run.yaml"
        results.mkdir(parents=True)
        settings = {
            **self.model.settings,
            "tasks": list(names),
            "limit": self.limit,
            # lm-eval takes a name with this ending as it is; of a folder it makes one whose name
            # has all of the model's arguments, and may be too long.
            "output_path": str(results / "results.json"),
            "log_samples": True,
        }
        if settings["model"] != "recorded":  # which has its answers in files, and refuses a cache
            settings["use_cache"] = str(log.with_name(self._cache_stem(log.stem)))
        config.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        keys = json.dumps({name: self.keys[name] for name in names})
        try:
            ended = evaluate([keys, str(config), self.weights], log, self.model.launcher, status)
        except OptionError as error:
            return str(error)
        # Where lm-eval cannot save samples it only warns. Of a full disk the log ends anywhere.
        if ended or "Could not save" in log.read_text(errors="replace"):
            full = shutil.disk_usage(self.folder).free < _FULL
            return "no space is left on the disk" if full else reason(log, ended)
        files = [file for file in results.rglob("*") if file.is_file()]
        for file in sorted(files, key=lambda file: file.name.startswith("results_")):
            file.replace(self.folder / file.name)
        lacking = [name for name in self.missing() if name in names]
        return f"lm-eval wrote no results of {', '.join(lacking)}" if lacking else ""


def _stem(text: str) -> str:
    """A name for files about tasks."""
    return text if _SHORT.fullmatch(text) else digest(text)


def _lock(file: Path, locks: ExitStack) -> bool:
    """Takes a task unless another run has it; the system frees it if the process dies."""
    try:
        locks.enter_context(FileLock(file).acquire(timeout=0))
    except Timeout:
        return False
    return True


def _gather(folder: Path, stem: str, weights: str) -> None:
    """Add the answers of other caches of the same weights, such as of an interrupted run.

    A cache is a table of sqlitedict's; each process (rank) of an evaluation has its own.
    """
    for source in folder.glob("*_rank*.db"):
        if source.name.rpartition("_rank")[0].partition("@")[2] != weights:
            continue
        target = folder / f"{stem}_{source.name.rpartition('_')[2]}"
        if target != source:
            with closing(sqlite3.connect(target)) as cache:
                cache.execute(
                    "CREATE TABLE IF NOT EXISTS unnamed (key TEXT PRIMARY KEY, value BLOB)"
                )
                cache.execute("ATTACH ? AS other", (str(source),))
                cache.execute("INSERT OR IGNORE INTO unnamed SELECT key, value FROM other.unnamed")
                cache.commit()


def run(work: Work, reporter: Reporter) -> None:
    """Evaluates every model on every task that it has no results of yet.

    Files, names and the data of our tasks are checked first. Each model is evaluated in its own
    process, with lm-eval's cache of answers, so that an interruption loses none. Results are
    moved into the model's folder in the output when it is done. Several runs may share an output:
    one works on a model's task at a time, and each ends when all results are there.

    Raises:
        OptionError: If a file, a name or the limit is wrong; nothing was run.
        DataError: If data are missing or broken, or a folder holds another model's results.
        LmEvalExtError: If models failed, which are named; the others were evaluated.
    """
    jobs = prepare(work)
    with writing(work.output):
        work.output.mkdir(parents=True, exist_ok=True)
    failed: dict[str, str] = {}
    waiting = [
        (f"[{number}/{len(jobs)}] {job.model.display_name}", job)
        for number, job in enumerate(jobs, start=1)
    ]
    while waiting:
        # What another run works on comes last: by then it may be done.
        held = []
        for place, job in waiting:
            problem = job.run(place, reporter)
            if problem is None:
                held.append((place, job))
            elif problem:
                failed[job.model.display_name] = problem
        if held == waiting:
            reporter.status(f"another run works on {', '.join(one.model.name for _, one in held)}")
            time.sleep(_POLL_S)
        waiting = held
    if failed:
        for model, why in failed.items():
            reporter.line(f"{model}: {why}")
        raise LmEvalExtError(f"{len(failed)} of {len(jobs)} models failed: {', '.join(failed)}")


def plan(work: Work) -> list[dict[str, Any]]:
    """What :func:`run` would evaluate, a record for each model.

    Returns:
        ``model`` (its name), ``file``, ``tasks`` (those without results), ``present`` (how many
        have results), ``resources`` (as the file declares them) and ``command``, a list of words
        that evaluates the model; from the present folder, as file and output may be relative.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    found = []
    for job in prepare(work):
        names = job.missing()
        found.append(
            {
                "model": job.model.name,
                "file": str(job.model.path),
                "tasks": names,
                "present": len(job.keys) - len(names),
                "resources": job.model.resources,
                "command": replace(work, models=[job.model.path], tasks=",".join(names)).command(),
            }
        )
    return found


def prepare(work: Work) -> list[Job]:
    """Checks files, names and data; returns a job for each model.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    limit = work.limit
    if limit is not None and not (0 < limit < 1 or (limit >= 1 and float(limit).is_integer())):
        raise OptionError(f"--limit {limit:g} must be a number of documents or a share below 1")
    metadata = _mapping(work.metadata)
    chosen = functools.cache(lambda include_path: select(work.tasks, include_path))
    jobs: list[Job] = []
    model_files = read_model_files(work.models)
    for model_file in model_files:
        _check_model_path(model_file)
    for given in model_files:
        merged = arguments_of(given.settings, "metadata") | metadata
        own = {"metadata": merged} if merged else {}
        model = replace(given, settings={**given.settings, **own})
        selection = chosen(model.settings.get("include_path") or "")
        tasks = selection.check(metadata_of(model.settings), merged)
        folder = work.output / model.name
        check_same_model(folder, model)
        weights = weights_digest(model.settings)
        job_keys = keys(model.settings, tasks, limit, weights)
        jobs.append(Job(model, job_keys, folder, limit, weights))
        problem = newer_format(model.settings)
        if problem:
            _log.warning("%s", problem)
    return jobs


def _check_model_path(model_file: ModelFile) -> None:
    """Check that the folder of a model exists.

    Raises:
        OptionError: There is no such folder; the line names the model's file.
    """
    settings = model_file.settings
    try:
        check_model_path(settings["model"], arguments_of(settings))
    except OptionError as error:
        raise OptionError(f"{model_file.path}: {error}") from None


def keys(
    settings: Mapping[str, Any],
    tasks: Mapping[str, Any],
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
    asked = [getattr(config, name) for name in _ASKED]
    same = [identity(settings), asked, limit and float(limit), version("lm_eval")]
    if weights:
        same.append(weights)
    return {name: digest([*same, one]) for name, one in tasks.items()}


def _mapping(text: str) -> dict[str, Any]:
    """Reads ``--metadata``: JSON, or ``key=value`` pairs separated by commas."""
    from lm_eval._cli.utils import try_parse_json

    try:
        return arguments_of({"": try_parse_json(text)}, "")
    except (ValueError, TypeError) as error:
        raise OptionError(
            f"--metadata {one_line(text, limit=80)}: neither JSON nor key=value pairs ({error})"
        ) from None


def check_same_model(folder: Path, model: ModelFile) -> None:
    """Refuses a folder that holds the results of another model.

    Raises:
        DataError: If the model's file was changed so that it is another model.
    """
    kept = folder / MODEL_FILE
    holds = any(any(folder.rglob(one)) for one in ("results_*.json", f"{CACHE}/*.db"))
    if not kept.is_file() or not holds:  # a model that never started leaves its file and a log
        return
    try:
        before = identity(read_yaml(kept, TypeAdapter(dict[str, Any])))
    except DataError as error:
        raise DataError(f"{error}; remove {folder} to start again") from None
    if before != (now := identity(model.settings)):
        raise DataError(
            f"{model.path}: {folder} holds results of {before}, and the file now says {now}; "
            "rename the file, or remove the folder"
        )
