"""One model of a run: what it still lacks, and getting it."""

import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import find_all
from lm_eval_ext.results.labels import MODEL_FILE
from lm_eval_ext.suites.model_files import ModelFile
from lm_eval_ext.suites.present import Wanted
from lm_eval_ext.suites.process import evaluate, reason
from lm_eval_ext.suites.tasks import Selection
from lm_eval_ext.text import one_line

LOG, CACHE = "log.txt", "cache"
PART = ".part-"
"""What a folder of unfinished results starts with."""

ANSWERS_ITSELF = frozenset({"recorded"})
"""Model types that refuse lm-eval's cache: their answers lie in files already."""


@dataclass(frozen=True)
class Screen:
    """Where a run says what it does.

    Attributes:
        say: Takes a line that stays.
        tell: Takes a line that the next one replaces.
    """

    say: Callable[[str], None]
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """A model on tasks.

    Attributes:
        model: As its file describes it.
        selection: The tasks.
        folder: Where its results go.
        limit: As ``--limit`` of lm-eval.
        place: How lines about it start.
        screen: Where to report.
    """

    model: ModelFile
    selection: Selection
    folder: Path
    limit: float | None
    place: str
    screen: Screen

    def run(self) -> str:
        """Evaluates what has no results yet; returns what went wrong, or "".

        Raises:
            KeyboardInterrupt: If the user ends it; nothing half-written stays.
        """
        try:
            return self._run()
        except OSError as error:
            return f"cannot write {self.folder}: {error.strerror}"

    def _run(self) -> str:
        self.folder.mkdir(exist_ok=True)
        for unfinished in self.folder.glob(f"{PART}*"):
            shutil.rmtree(unfinished)
        wanted = Wanted(self.model.settings, self.limit, self.selection)
        units = wanted.missing(self.folder)
        total = len(self.selection.units)
        there = total - len(units)
        if not units:
            self.screen.say(f"{self.place}: nothing to do, {there} of {total} tasks are there")
            return ""
        known = f" ({there} of {total} tasks are there)" if there else ""
        self.screen.say(f"{self.place}: {', '.join(units)}{known}")
        with atomic_text(self.folder / MODEL_FILE) as file:
            file.write(self.model.text)
        part = self.folder / f"{PART}{uuid.uuid4().hex}"
        started = time.monotonic()
        try:
            problem = self._evaluate(units, part)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        took = f"{time.monotonic() - started:.0f} s"
        end = f"failed after {took}: {problem}" if problem else f"done in {took}"
        self.screen.say(f"{self.place}: {end}")
        return problem

    def _evaluate(self, units: Sequence[str], part: Path) -> str:
        import yaml

        results = part / "results"
        results.mkdir(parents=True)
        config = part / "run.yaml"
        settings = self._settings(units, results)
        config.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        log = self.folder / LOG
        try:
            status = evaluate(
                config,
                log,
                launcher=self.model.launcher,
                own_only=self.selection.own_only,
                tell=lambda line: self.screen.tell(f"{self.place}: {line}"),
            )
        except OptionError as error:
            return one_line(str(error))
        if status:
            return f"{reason(log)} ({log})"
        wanted = {task for unit in units for task in self.selection.units[unit]}
        lacking = sorted(wanted - _tasks_in(results))
        if lacking:
            return f"lm-eval wrote no results of {', '.join(lacking)} ({log})"
        _put_in_place(results, self.folder)
        return ""

    def _settings(self, units: Sequence[str], results: Path) -> dict[str, Any]:
        """The run as lm-eval's ``--config`` takes it."""
        settings = {
            **self.model.settings,
            "tasks": list(units),
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


def _tasks_in(results: Path) -> set[str]:
    try:
        return {task for file in find_all(results) for task in file.tasks}
    except OptionError:
        return set()


def _put_in_place(results: Path, folder: Path) -> None:
    """Moves results to where they stay: samples first, so that none lack theirs."""
    files = [file for file in results.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda file: file.name.startswith("results_")):
        target = folder / file.relative_to(results)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
