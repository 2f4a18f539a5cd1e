"""Which results are there already: the same model, the same signature, with samples.

One model of a run: what it still lacks, and getting it.
"""

import math
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.signature import of_result
from lm_eval_ext.results.files import MODEL_FILE, ResultsFile, find_all, identity, metadata_of
from lm_eval_ext.results.samples import samples_file
from lm_eval_ext.runs.model_files import ModelFile
from lm_eval_ext.runs.process import evaluate, reason
from lm_eval_ext.runs.tasks import Selection
from lm_eval_ext.text import one_line


@dataclass(frozen=True)
class Wanted:
    """What a run would ask a model.

    Attributes:
        settings: lm-eval's options from the model's file.
        limit: As lm-eval takes it.
        selection: The tasks.
    """

    settings: Mapping[str, Any]
    limit: float | None
    selection: Selection

    def missing(self, folder: Path) -> list[str]:
        """The units of the selection that a model's folder has no results of.

        There are results of a unit if one file holds all of its tasks, asked of this model
        under the signature that a run would have now, with their samples beside it.
        """
        own = identity(self.settings)
        files = [file for file in _files(folder) if identity(file.content["config"]) == own]
        return [
            unit
            for unit in self.selection.units
            if not any(self._is_in(file, unit) for file in files)
        ]

    def _is_in(self, file: ResultsFile, unit: str) -> bool:
        tasks = self.selection.units[unit]
        wanted = [*tasks, unit] if self.selection.is_group(unit) else tasks
        if not all(task in file.content["results"] for task in wanted):
            return False
        if not all(samples_file(file, task).is_file() for task in tasks):
            return False
        loaded = self.selection.load(unit, metadata_of(self.settings))
        return all(
            file.signature(name) == expected_signature(task, self.settings, file)
            and self._as_many_documents(file, name)
            for name, task in loaded.items()
        )

    def _as_many_documents(self, file: ResultsFile, task: str) -> bool:
        total = file.documents(task)[1]
        return _asked(file.content["config"].get("limit"), total) == _asked(self.limit, total)


def _files(folder: Path) -> list[ResultsFile]:
    try:
        return find_all(folder)
    except OptionError:
        return []


def expected_signature(task: Any, settings: Mapping[str, Any], file: ResultsFile) -> str:
    """The signature that a run with these settings would have, the documents aside.

    A chat template is known only by the loaded model, so the file's own stands in for it where
    both have one.

    Args:
        task: lm-eval's, loaded; it is changed as lm-eval's evaluation changes it.
        settings: lm-eval's options.
        file: The results that the signature is held against.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.utils import hash_string

    config = EvaluatorConfig(**settings, tasks=["any"])._parse_dict_args()
    config._validate_arguments()._normalize_seed()
    seed = config.seed[3] if config.seed else None
    if task.get_config("output_type") == "generate_until":
        task.set_config(key="generation_kwargs", value=config.gen_kwargs, update=True)
    shots = task.get_config("num_fewshot")
    if config.num_fewshot is not None and shots != 0:
        shots = config.num_fewshot
    system = config.system_instruction
    name = task.get_config("task")
    found = file.content
    chat = bool(config.apply_chat_template)
    return of_result(
        {
            "configs": {name: task.dump_config()},
            "versions": {name: task.VERSION},
            "n-samples": {name: found["n-samples"].get(name)},
            "n-shot": {name: shots or 0},
            "config": {"fewshot_seed": seed},
            "fewshot_as_multiturn": config.fewshot_as_multiturn,
            "system_instruction_sha": hash_string(system) if system else None,
            "chat_template": (found.get("chat_template") or "") if chat else None,
            "chat_template_sha": found.get("chat_template_sha") if chat else None,
            "lm_eval_version": _version(),
        },
        name,
    )


def _asked(limit: Any, total: int) -> int:
    """How many documents lm-eval asks under a limit: a number of them, or a share."""
    if limit is None:
        return total
    return min(total, math.ceil(total * limit) if limit < 1 else int(limit))


def _version() -> str:
    from importlib.metadata import version

    return version("lm_eval")


def check_same_model(folder: Path, settings: Mapping[str, Any], file: Path) -> None:
    """Refuses a folder that holds the results of another model.

    Raises:
        DataError: If the model's file was changed so that it is another model.
    """
    import yaml

    from lm_eval_ext.results.files import MODEL_FILE

    kept = folder / MODEL_FILE
    if not kept.is_file():
        return
    try:
        before = yaml.safe_load(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        before = None
    if not isinstance(before, dict):
        raise DataError(f"{kept}: cannot be read; remove {folder} to start anew")
    if identity(before) != identity(settings):
        raise DataError(
            f"{file}: {folder} holds results of {identity(before)}, and the file now says "
            f"{identity(settings)}; rename the file, or remove the folder"
        )


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
