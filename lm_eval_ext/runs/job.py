"""One model on its tasks: what it lacks, its evaluation, and its results put in place."""

import hashlib
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lm_eval_ext.atomic import atomic_path, atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import MODEL_FILE, ResultsFile, find_all
from lm_eval_ext.runs.model_files import ModelFile
from lm_eval_ext.runs.present import missing
from lm_eval_ext.runs.process import evaluate, reason
from lm_eval_ext.runs.tasks import Selection
from lm_eval_ext.text import one_line

CACHE = "cache"
PART = ".part-"
"""How the names of folders with unfinished results start."""

_SHORT = re.compile(r"[\w+.-]{1,80}")
"""Names of tasks that may be the name of a file."""

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
    """Another run works on some of the tasks."""


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
            HeldError: If another run works on a task; the others are done.
            KeyboardInterrupt: If the user ends it; nothing half-written stays.
        """
        try:
            (self.folder / CACHE).mkdir(parents=True, exist_ok=True)
            with ExitStack() as locks:
                return self._run(locks)
        except OSError as error:
            return f"cannot write {self.folder}: {error.strerror}"
        except sqlite3.Error as error:
            return f"{self.folder / CACHE}: a cache is broken ({error}); remove it"

    def missing(self) -> list[str]:
        """The names of which there are no results at the moment."""
        return missing(self.folder, self.model.settings, self.selection, self.limit)

    def _run(self, locks: ExitStack) -> str:
        wanted = self.missing()
        free = [name for name in wanted if self._lock(name, locks)]
        names = [name for name in self.missing() if name in free]  # one may be done since
        with atomic_text(self.folder / MODEL_FILE) as file:  # its display name may have changed
            file.write(self.model.text)
        total = len(self.selection.requested)
        if not wanted:
            self.reporter.line(f"{self.place}: nothing to do, {total} of {total} tasks are there")
        problem = self._evaluate(names, total) if names else ""
        if len(free) < len(wanted) and not problem:
            raise HeldError
        return problem

    def _lock(self, name: str, locks: ExitStack) -> bool:
        """Takes a task unless another run has it; the system frees it if the process dies."""
        lock = FileLock(self.folder / CACHE / f"{_stem([name])}.lock")
        try:
            locks.enter_context(lock.acquire(timeout=0))
        except Timeout:
            return False
        return True

    def _evaluate(self, names: Sequence[str], total: int) -> str:
        present = total - len(names)
        known = f" ({present} of {total} tasks are there)" if present else ""
        self.reporter.line(f"{self.place}: {', '.join(names)}{known}")
        stem, started = _stem(names), time.monotonic()
        _gather(self.folder / CACHE, stem)
        log = self.folder / CACHE / f"{stem}.log"
        part = self.folder / f"{PART}{stem}"
        shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
        try:
            problem = self._put(names, part, log)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        took = f"{time.monotonic() - started:.0f} s"
        end = f"failed after {took}; its output is in {log}" if problem else f"done in {took}"
        self.reporter.line(f"{self.place}: {end}")
        return problem

    def _put(self, names: Sequence[str], part: Path, log: Path) -> str:
        import yaml

        results = part / "results"
        results.mkdir(parents=True)
        config = part / "run.yaml"
        # lm-eval takes a name with this ending as it is; of a folder it makes one whose name has
        # all of the model's arguments, and may be too long.
        own = {"tasks": list(names), "output_path": str(results / "results.json")}
        settings: dict[str, Any] = {**self.model.settings, **own, "log_samples": True}
        if self.limit is not None:
            settings["limit"] = self.limit if self.limit < 1 else int(self.limit)
        if self.model.settings["model"] not in ANSWERS_ITSELF:
            settings["use_cache"] = str(log.with_suffix(""))
        config.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
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
            full = shutil.disk_usage(self.folder).free < _FULL  # then the log ends anywhere
            return "no space is left on the disk" if full else reason(log, status)
        written = {task for file in _results_in(results) for task in file.tasks}
        wanted = {task for name in names for task in self.selection.requested[name]}
        if lacking := sorted(wanted - written):
            return f"lm-eval wrote no results of {', '.join(lacking)}"
        put_in_place(results, self.folder)
        return ""


def _stem(names: Sequence[str]) -> str:
    """A name for files about tasks."""
    text = "+".join(names)
    return text if _SHORT.fullmatch(text) else hashlib.sha256(text.encode()).hexdigest()[:16]


def _results_in(folder: Path) -> list[ResultsFile]:
    try:
        return find_all(folder)
    except OptionError:
        return []


def _gather(folder: Path, stem: str) -> None:
    """Starts a cache with the answers of others, such as of an interrupted run of more tasks.

    A cache is a table of sqlitedict's; each process (rank) of an evaluation has its own.
    """
    ranks: dict[str, list[Path]] = {}
    for source in sorted(folder.glob("*_rank*.db")):
        ranks.setdefault(source.name.rpartition("_")[2], []).append(source)
    for rank, sources in ranks.items():
        target = folder / f"{stem}_{rank}"
        if target in sources:
            continue
        with atomic_path(target) as part, closing(sqlite3.connect(part)) as cache:
            cache.execute("CREATE TABLE unnamed (key TEXT PRIMARY KEY, value BLOB)")
            for source in sources:
                cache.execute("ATTACH ? AS other", (str(source),))
                cache.execute("INSERT OR IGNORE INTO unnamed SELECT key, value FROM other.unnamed")
                cache.commit()
                cache.execute("DETACH other")


def put_in_place(results: Path, folder: Path) -> None:
    """Moves results into the model's folder, after their samples."""
    files = [file for file in results.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda file: file.name.startswith("results_")):
        target = folder / file.relative_to(results)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
