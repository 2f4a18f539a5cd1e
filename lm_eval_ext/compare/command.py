"""``lm-eval-ext compare``: from its options to the text that it prints."""

from collections.abc import Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import latex, seeds
from lm_eval_ext.compare.comparison import Report, Settings, compare, compare_tasks
from lm_eval_ext.compare.output import FORMATS
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.models import choose_tasks, read_joined, read_models
from lm_eval_ext.results.overview import overview


def run(
    paths: Sequence[Path],
    settings: Settings,
    *,
    tasks: str = "",
    between: str | None = None,
    by_seed: bool = False,
    format_: str = "text",
    out: Path | None = None,
) -> tuple[str, str]:
    """Compares, and writes to the file ``out`` if it is named.

    Args:
        paths: Of results.
        settings: The question, and how to compare.
        tasks: Names, groups or patterns, separated by commas.
        between: Two tasks, which are compared within each model; the default for two paths with
            one task each that differ.
        by_seed: Mean and spread of models that differ in their seed, without tests.
        format_: One of :data:`~lm_eval_ext.compare.output.FORMATS`.
        out: A file.

    Returns:
        The text to print, and an error message: which tasks could not be compared, or "".

    Raises:
        OptionError: An option is invalid, or there is nothing to compare.
        DataError: A file cannot be read.
    """
    if format_ not in FORMATS:
        raise OptionError(f"no format {format_!r}; use {', '.join(FORMATS)}")
    if not 0 < settings.alpha < 1:
        raise OptionError(f"--alpha {settings.alpha:g} must lie between 0 and 1, such as 0.05")
    named = [name for name in tasks.split(",") if name]
    if by_seed:
        models = read_models(paths)
        chosen = choose_tasks(models, named, least=1)
        return _written(seeds.table(models, chosen, settings, format_), out), ""
    report = _compared(paths, named, between, settings)
    if not report.tables and report.refused:
        refusal = report.refused[0]
        signatures = "; ".join(f"{name}: {text}" for name, text in refusal.signatures.items())
        raise DataError(f"{refusal.reason} ({signatures})")
    refused = "; ".join(refusal.reason for refusal in report.refused)
    return _written(FORMATS[format_](report), out), refused


def leaderboard(paths: Sequence[Path], *, tasks: str = "", out: Path | None = None) -> str:
    """The table of models by benchmarks in LaTeX, or by ``tasks``; arguments as for :func:`run`."""
    models = read_joined(paths)
    named = [name for name in tasks.split(",") if name]
    chosen = choose_tasks(models, named, least=1) if named else ()
    return _written(latex.overview(overview(models, tasks=chosen)), out)


def _written(text: str, out: Path | None) -> str:
    if out is None:
        return text
    with atomic_text(out) as file:
        file.write(text)
    return f"{out}\n"


def _compared(
    paths: Sequence[Path], tasks: Sequence[str], between: str | None, settings: Settings
) -> Report:
    match between.split(",") if between is not None else _one_task_each(paths):
        case []:
            models = read_models(paths)
        case [first, second] if first != second:
            return compare_tasks(read_joined(paths), first, second, settings)
        case _:
            raise OptionError(f"--between {between} must name two tasks, TASK,TASK")
    if len(models) == 1:
        raise OptionError(
            f"one model alone ({models[0].label}) cannot be compared; name results of two models, "
            "or two tasks of one model with --between TASK,TASK"
        )
    return compare(models, choose_tasks(models, tasks), settings)


def _one_task_each(paths: Sequence[Path]) -> list[str]:
    """The tasks of two paths with one task each that differ; otherwise none."""
    match paths:
        case [_, _]:
            one, two = (
                {task for model in read_models([path]) for task in model.runs} for path in paths
            )
            return [*one, *two] if len(one) == len(two) == 1 and one != two else []
    return []
