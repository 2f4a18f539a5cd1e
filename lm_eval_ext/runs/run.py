"""``lm-eval-ext run``: evaluates models on the tasks that they have no results of yet."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.results.files import MODEL_FILE, arguments_of, identity, metadata_of
from lm_eval_ext.runs.job import SILENT, HeldError, Job, Reporter
from lm_eval_ext.runs.model_files import ModelFile, read_model_files
from lm_eval_ext.runs.shards import Shard
from lm_eval_ext.runs.tasks import Selection, select
from lm_eval_ext.text import one_line

_POLL_S = 5.0
"""Seconds at most between looks at a model that another run works on."""


class FailedError(LmEvalExtError):
    """Some models could not be evaluated, and the others were; ``reasons`` by model."""

    def __init__(self, reasons: Mapping[str, str], total: int) -> None:
        self.reasons = reasons
        said = "; ".join(f"{model}: {reason}" for model, reason in reasons.items())
        super().__init__(f"{len(reasons)} of {total} models failed: {said}")


@dataclass(frozen=True)
class Work:
    """What a run is asked for.

    Attributes:
        models: Models' files, or folders of them.
        tasks: As lm-eval's option.
        output: The folder for results.
        limit: As lm-eval's option; so is ``metadata``, which goes before what a model's file has.
        shard: Only answers to a part of the documents are kept, for a later run without it.
    """

    models: Sequence[Path]
    tasks: str
    output: Path
    limit: float | None = None
    metadata: str = ""
    shard: Shard | None = None

    def command(self) -> list[str]:
        """The words of the command line that asks for it."""
        words = ["lm-eval-ext", "run", "--models", *map(str, self.models)]
        words += ["--tasks", self.tasks, "--output", str(self.output)]
        if self.limit is not None:
            words += ["--limit", f"{self.limit:g}"]
        if self.metadata:
            words += ["--metadata", self.metadata]
        if self.shard is not None:
            words += ["--shard", str(self.shard)]
        return words


def run(work: Work, reporter: Reporter) -> None:
    """Evaluates every model on every task that it has no results of yet.

    Files, names and the data of our tasks are checked first. Each model is evaluated in its own
    process, with lm-eval's cache of answers, so that an interruption loses none. Results are
    moved into the model's folder in the output when it is done. Several runs may share an output,
    on one machine or many: one works on a model at a time, and each ends when all is there.

    Raises:
        OptionError: If a file, a name or the limit is wrong; nothing was run.
        DataError: If data are missing or broken, or a folder holds another model's results.
        FailedError: If models failed; it names them with the reasons.
    """
    jobs = prepare(work, reporter)
    try:
        work.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {work.output}: {error.strerror}") from None
    failed: dict[str, str] = {}
    waiting, pause = jobs, 0.0
    while waiting:
        # Models that another run works on come last: by then it may be done with them.
        held, owners = [], []
        for job in waiting:
            try:
                problem = job.run()
            except HeldError as error:
                held.append(job)
                owners.append(f"{job.model.name} by {error}")
                reporter.status(f"{job.place}: waiting for {error}")
            else:
                failed |= {job.model.display_name: problem} if problem else {}
        if held == waiting and not pause:
            reporter.line(f"waiting for another run: {', '.join(owners)}")
        pause = min(_POLL_S, pause + 0.2) if held == waiting else 0.0
        time.sleep(pause)
        waiting = held
    if failed:
        raise FailedError(failed, len(jobs))


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
        command = replace(work, models=[job.model.path], tasks=",".join(names)).command()
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


def prepare(work: Work, reporter: Reporter = SILENT) -> list[Job]:
    """Checks files, names and data; returns a job for each model.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    limit = work.limit
    if limit is not None and not (0 < limit < 1 or (limit >= 1 and float(limit).is_integer())):
        raise OptionError(f"--limit {limit:g} must be a number of documents or a share below 1")
    if limit is not None and work.shard is not None:
        raise OptionError("--shard and --limit exclude each other: a trial needs no shards")
    models = _with_metadata(read_model_files(work.models), work.metadata)
    selections = _select_all(models, work.tasks)
    for model in models:
        check_same_model(work.output / model.name, model.settings, model.path)
    shard = f", shard {work.shard}" if work.shard else ""
    return [
        Job(
            model,
            selections[_include_path(model)],
            work.output / model.name,
            limit,
            f"[{number}/{len(models)}] {model.display_name}{shard}",
            reporter,
            work.shard,
        )
        for number, model in enumerate(models, start=1)
    ]


def _with_metadata(models: Sequence[ModelFile], text: str) -> Sequence[ModelFile]:
    """Adds metadata for all models: JSON, or ``key=value`` pairs separated by commas."""
    if not text:
        return models
    try:
        given = json.loads(text) if text.lstrip().startswith("{") else arguments_of({"": text}, "")
    except ValueError as error:
        raise OptionError(
            f"--metadata {one_line(text, limit=80)}: neither JSON nor key=value pairs ({error})"
        ) from None
    return [
        replace(
            one,
            settings={
                **one.settings,
                "metadata": arguments_of(one.settings, "metadata") | given,
            },
        )
        for one in models
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


def check_same_model(folder: Path, settings: Mapping[str, Any], file: Path) -> None:
    """Refuses a folder that holds the results of another model.

    Raises:
        DataError: If the model's file was changed so that it is another model.
    """
    import yaml

    kept = folder / MODEL_FILE
    holds = any(any(folder.rglob(one)) for one in ("results_*.json", "cache/*"))
    if not kept.is_file() or not holds:  # a model that never started leaves its file and a log
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
