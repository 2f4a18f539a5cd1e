"""``lm-eval-ext run``: evaluates models on the tasks that they have no results of yet."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError, writing
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.results.files import MODEL_FILE, arguments_of, identity, metadata_of
from lm_eval_ext.runs.job import SILENT, HeldError, Job, Reporter
from lm_eval_ext.runs.model_files import ModelFile, read_model_files
from lm_eval_ext.runs.tasks import Selection, select
from lm_eval_ext.text import one_line

_POLL_S = 5.0
"""Seconds between looks at tasks that another run works on."""


class FailedError(LmEvalExtError):
    """Some models could not be evaluated, and the others were; ``reasons`` by model."""

    def __init__(self, reasons: Mapping[str, str], total: int) -> None:
        self.reasons = reasons
        super().__init__(f"{len(reasons)} of {total} models failed: {', '.join(reasons)}")


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
        files = map(str, self.models)
        words = ["lm-eval-ext", "run", "--models", *files, "--tasks", self.tasks]
        return [*words, "--output", str(self.output), *limit, *metadata]


def run(work: Work, reporter: Reporter) -> None:
    """Evaluates every model on every task that it has no results of yet.

    Files, names and the data of our tasks are checked first. Each model is evaluated in its own
    process, with lm-eval's cache of answers, so that an interruption loses none. Results are
    moved into the model's folder in the output when it is done. Several runs may share an output:
    one works on a model's task at a time, and each ends when all results are there.

    Raises:
        OptionError: If a file, a name or the limit is wrong; nothing was run.
        DataError: If data are missing or broken, or a folder holds another model's results.
        FailedError: If models failed; it names them with the reasons.
    """
    jobs = prepare(work, reporter)
    with writing(work.output):
        work.output.mkdir(parents=True, exist_ok=True)
    failed: dict[str, str] = {}
    waiting = jobs
    while waiting:
        # What another run works on comes last: by then it may be done.
        held = []
        for job in waiting:
            try:
                if problem := job.run():
                    failed[job.model.display_name] = problem
            except HeldError:
                held.append(job)
        if held == waiting:
            reporter.status(f"another run works on {', '.join(one.model.name for one in held)}")
            time.sleep(_POLL_S)
        waiting = held
    if failed:
        for model, reason in failed.items():
            reporter.line(f"{model}: {reason}")
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
        one: dict[str, Any] = {"model": job.model.name, "file": str(job.model.path)}
        one["tasks"] = names
        one["present"] = len(job.selection.requested) - len(names)
        one["resources"] = job.model.resources.model_dump(exclude_unset=True)
        found.append({**one, "command": command})
    return found


def prepare(work: Work, reporter: Reporter = SILENT) -> list[Job]:
    """Checks files, names and data; returns a job for each model.

    Raises:
        LmEvalExtError: As :func:`run`, before anything runs.
    """
    limit = work.limit
    if limit is not None and not (0 < limit < 1 or (limit >= 1 and float(limit).is_integer())):
        raise OptionError(f"--limit {limit:g} must be a number of documents or a share below 1")
    metadata = _mapping(work.metadata)
    selections: dict[str, Selection] = {}
    jobs: list[Job] = []
    models = read_model_files(work.models)
    for number, given in enumerate(models, start=1):
        merged = arguments_of(given.settings, "metadata") | metadata
        own = {"metadata": merged} if merged else {}
        model = replace(given, settings={**given.settings, **own})
        path = str(model.settings.get("include_path") or "")
        if path not in selections:
            selections[path] = select(work.tasks, [path] if path else [])
        selections[path].check(metadata_of(model.settings), merged)
        folder = work.output / model.name
        check_same_model(folder, model)
        place = f"[{number}/{len(models)}] {model.display_name}"
        jobs.append(Job(model, selections[path], folder, limit, place, reporter))
    return jobs


def _mapping(text: str) -> dict[str, Any]:
    """Reads ``--metadata``: JSON, or ``key=value`` pairs separated by commas."""
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else arguments_of({"": text}, "")
    except ValueError as error:
        raise OptionError(
            f"--metadata {one_line(text, limit=80)}: neither JSON nor key=value pairs ({error})"
        ) from None
    return dict(found)


def check_same_model(folder: Path, model: ModelFile) -> None:
    """Refuses a folder that holds the results of another model.

    Raises:
        DataError: If the model's file was changed so that it is another model.
    """
    kept = folder / MODEL_FILE
    holds = any(any(folder.rglob(one)) for one in ("results_*.json", "cache/*.db"))
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
