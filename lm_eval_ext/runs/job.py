"""One model on its tasks: what it lacks, its evaluation, and its results put in place."""

import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import MODEL_FILE, ResultsFile, find_all, metadata_of
from lm_eval_ext.runs import locks
from lm_eval_ext.runs.key import missing, run_key, write_key
from lm_eval_ext.runs.model_files import ModelFile
from lm_eval_ext.runs.process import evaluate, reason
from lm_eval_ext.runs.shards import ANSWERS, Shard, merge
from lm_eval_ext.runs.tasks import Selection
from lm_eval_ext.text import one_line

LOG, CACHE = "log.txt", "cache"
PART = ".part-"
"""How the names of folders with unfinished results start."""

_FULL = 100_000
"""Bytes; where fewer are left, a disk counts as full."""

ANSWERS_ITSELF = frozenset({"recorded"})
"""Model types that refuse lm-eval's cache, since their answers are in files already."""


@dataclass(frozen=True)
class Reporter:
    """Output of a run: ``line`` prints a line, ``status`` replaces the status line."""

    line: Callable[[str], None]
    status: Callable[[str], None]


SILENT = Reporter(lambda _: None, lambda _: None)


class HeldError(Exception):
    """Another run works on the model; says which."""


_TAKEN_OVER = "another run, which took over since this one gave no sign of life"


@dataclass(frozen=True)
class Job:
    """A model on tasks; lines about it start with ``place``."""

    model: ModelFile
    selection: Selection
    folder: Path
    limit: float | None
    place: str
    reporter: Reporter
    shard: Shard | None = None

    def run(self) -> str:
        """Evaluates what has no results yet; returns what went wrong, or "".

        Raises:
            HeldError: If another run works on the model.
            KeyboardInterrupt: If the user ends it; nothing half-written stays.
        """
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            lock = locks.acquire(self._place)
            if isinstance(lock, str):
                raise HeldError(lock)
            try:
                return self._run(lock)
            finally:
                lock.release()
        except OSError as error:
            return f"cannot write {self._place}: {error.strerror}"
        except sqlite3.Error as error:
            return f"{self.folder / CACHE}: a cache is broken ({error}); remove it"

    @property
    def _place(self) -> Path:
        """The folder that it works in, locked meanwhile."""
        return self.folder / CACHE / self.shard.folder if self.shard else self.folder

    @cached_property
    def key(self) -> dict[str, Any]:
        """The run's key (:mod:`.key`)."""
        return run_key(self.model.settings, self.selection)

    def missing(self) -> list[str]:
        """The names of which there are no results at the moment."""
        return missing(self.folder, self.key, self.selection, self.limit)

    def _run(self, lock: locks.Lock) -> str:
        for unfinished in self._place.glob(f"{PART}*"):
            shutil.rmtree(unfinished)
        names = self.missing()
        if self.shard is None:  # also where nothing is missing: its display name may have changed
            with atomic_text(self.folder / MODEL_FILE) as file:
                file.write(self.model.text)
        total = len(self.selection.requested)
        there = total - len(names)
        if not names:
            self.reporter.line(f"{self.place}: nothing to do, {there} of {total} tasks are there")
            return ""
        known = f" ({there} of {total} tasks are there)" if there else ""
        self.reporter.line(f"{self.place}: {', '.join(names)}{known}")
        if self.shard is None:
            merge(self.folder / CACHE)
        part = self._place / f"{PART}{uuid.uuid4().hex}"
        started = time.monotonic()
        try:
            problem = self._evaluate(names, part, lock)
        except HeldError as error:
            self.reporter.line(f"{self.place}: held by {error}")
            raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
        took = f"{time.monotonic() - started:.0f} s"
        end = f"failed after {took}: {problem}" if problem else f"done in {took}"
        self.reporter.line(f"{self.place}: {end}")
        return problem

    def _evaluate(self, names: Sequence[str], part: Path, lock: locks.Lock) -> str:
        import yaml

        results = part / "results"
        results.mkdir(parents=True)
        config = part / "run.yaml"
        settings = self._settings(names, results)
        config.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        log = self._place / LOG
        try:
            status = evaluate(
                config,
                log,
                launcher=self.model.launcher,
                own_only=self.selection.own_only,
                on_progress=partial(self._on_progress, lock),
            )
        except OptionError as error:
            return one_line(str(error))
        if status:
            full = shutil.disk_usage(self._place).free < _FULL  # then the log ends anywhere
            return f"{'no space is left on the disk' if full else reason(log)} ({log})"
        if self.shard is not None:
            return ""
        written = _results_in(results)
        wanted = {task for name in names for task in self.selection.requested[name]}
        lacking = sorted(wanted - {task for file in written for task in file.tasks})
        if lacking:
            return f"lm-eval wrote no results of {', '.join(lacking)} ({log})"
        for file in written:
            write_key(self.key, file)
        if lock.lost():
            raise HeldError(_TAKEN_OVER)
        put_in_place(results, self.folder)
        return ""

    def _on_progress(self, lock: locks.Lock, line: str) -> None:
        if lock.gone:
            raise HeldError(_TAKEN_OVER)
        self.reporter.status(f"{self.place}: {line}")

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
            place = self.folder / CACHE if self.shard is None else self._place
            settings["use_cache"] = str(place / ANSWERS)
        if self.shard is not None:
            sizes = self.selection.sizes(names, metadata_of(self.model.settings))
            settings["samples"] = self.shard.documents(sizes)
            settings["tasks"] = list(settings["samples"])
        return settings


def _results_in(folder: Path) -> list[ResultsFile]:
    try:
        return find_all(folder)
    except OptionError:
        return []


def put_in_place(results: Path, folder: Path) -> None:
    """Moves results into the model's folder, after their samples and key."""
    files = [file for file in results.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda file: file.name.startswith("results_")):
        target = folder / file.relative_to(results)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
