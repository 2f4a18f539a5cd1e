"""Evaluating models on tasks: what is missing, one model after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.results.files import metadata_of
from lm_eval_ext.runs.job import Job, Screen, check_same_model
from lm_eval_ext.runs.model_files import ModelFile, read_model_files
from lm_eval_ext.runs.tasks import Selection, select

LOCK = ".lock"
"""In the output, held while a run writes there."""


class FailedError(LmEvalExtError):
    """Some models could not be evaluated; the others were."""


def run(
    paths: Sequence[Path], tasks: str, output: Path, limit: float | None, screen: Screen
) -> None:
    """Evaluates every model on every task that has no results yet.

    All files and names are checked first, and our tasks' data. Each model is evaluated in a
    process of its own; lm-eval keeps the answers, so that what is interrupted loses none.
    Results get their place in the output when a model is done.

    Args:
        paths: Models' files, or folders of them.
        tasks: As ``--tasks`` of lm-eval.
        output: Folder of the results, one folder per model.
        limit: As ``--limit`` of lm-eval.
        screen: Where to report.

    Raises:
        OptionError: If a file, a name or the limit is wrong; nothing was run.
        DataError: If data are missing or broken, or a folder holds another model's results.
        FailedError: If models failed; it says which and why.
    """
    if limit is not None and not (0 < limit < 1 or (limit >= 1 and float(limit).is_integer())):
        raise OptionError(f"--limit {limit:g} must be a number of documents or a share below 1")
    models = read_model_files(paths)
    selections = _select_all(models, tasks)
    for model in models:
        check_same_model(output / model.name, model.settings, model.path)
    failed = []
    with _locked(output):
        for number, model in enumerate(models, start=1):
            place = f"[{number}/{len(models)}] {model.display_name}"
            selection = selections[_include_path(model)]
            job = Job(model, selection, output / model.name, limit, place, screen)
            if problem := job.run():
                failed.append(f"{model.display_name}: {problem}")
    if failed:
        raise FailedError(f"{len(failed)} of {len(models)} models failed: {'; '.join(failed)}")


def _select_all(models: Sequence[ModelFile], tasks: str) -> dict[str, Selection]:
    """The selection by ``include_path``; the data of our tasks are checked for each model."""
    found: dict[str, Selection] = {}
    for model in models:
        include_path = _include_path(model)
        if include_path not in found:
            found[include_path] = select(tasks, [include_path] if include_path else [])
        found[include_path].check(metadata_of(model.settings))
    return found


def _include_path(model: ModelFile) -> str:
    return str(model.settings.get("include_path") or "")


def _locked(output: Path) -> Any:
    """Keeps a second run out of the same folder."""
    import filelock

    try:
        output.mkdir(parents=True, exist_ok=True)
        return filelock.FileLock(output / LOCK).acquire(timeout=0)
    except filelock.Timeout:
        raise OptionError(f"another run writes to {output}; wait for it or end it") from None
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror}") from None
