"""``lm-eval-ext compare``: from its options to the text that it prints."""

from collections.abc import Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import latex
from lm_eval_ext.compare.differences import compare, compare_tasks
from lm_eval_ext.compare.formats import FORMATS
from lm_eval_ext.compare.reading import choose_tasks, read_joined, read_models
from lm_eval_ext.compare.report import Report, Settings
from lm_eval_ext.errors import DataError, OptionError


def run(
    paths: Sequence[Path],
    settings: Settings,
    *,
    tasks: str = "",
    between: str | None = None,
    format_: str = "text",
    out: Path | None = None,
) -> tuple[str, str]:
    """Compares, and writes to the file ``out`` if it is named.

    ``tasks`` are names, groups or patterns, separated by commas. ``between`` names two tasks,
    which are then compared within each model; it is the default for two paths with one task each
    that differ.

    Returns:
        The text to print, and an error message: which tasks could not be compared, or "".

    Raises:
        OptionError: If an option is invalid, or there is nothing to compare.
        DataError: If a file cannot be read.
    """
    if format_ not in FORMATS:
        raise OptionError(f"no format {format_!r}; use {', '.join(FORMATS)}")
    if not 0 < settings.alpha < 1:
        raise OptionError(f"--alpha {settings.alpha:g} must lie between 0 and 1, such as 0.05")
    report = _compared(paths, [name for name in tasks.split(",") if name], between, settings)
    if not report.tables and report.refused:
        refusal = report.refused[0]
        signatures = "; ".join(f"{name}: {text}" for name, text in refusal.signatures.items())
        raise DataError(f"{refusal.reason} ({signatures})")
    return _written(FORMATS[format_](report), report, out)


def leaderboard(
    paths: Sequence[Path], metrics: Sequence[str], *, tasks: str = "", out: Path | None = None
) -> tuple[str, str]:
    """One LaTeX table of all models and tasks, ranked by the same tests; arguments as for `run`.

    A task may be one model's alone.
    """
    models = read_joined(paths)
    chosen = choose_tasks(models, [name for name in tasks.split(",") if name], least=1)
    report = compare(models, chosen, Settings(tuple(metrics)))
    return _written(latex.of_all_tasks(report), report, out)


def _written(text: str, report: Report, out: Path | None) -> tuple[str, str]:
    if out is not None:
        with atomic_text(out) as file:
            file.write(text)
        text = f"{out}: {len(report.tables)} metric{'s' * (len(report.tables) != 1)}\n"
    return text, "; ".join(refusal.reason for refusal in report.refused)


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
