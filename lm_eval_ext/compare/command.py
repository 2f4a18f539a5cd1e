"""``lm-eval-ext compare``: from its options to the text that it prints."""

from collections.abc import Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import latex
from lm_eval_ext.compare.comparison import Report, Settings, by_seed, compare
from lm_eval_ext.compare.output import FORMATS, rendered, rendered_seeds
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.models import choose_tasks, read_joined, read_models
from lm_eval_ext.results.overview import overview, representatives


def run(
    paths: Sequence[Path],
    settings: Settings,
    *,
    tasks: str = "",
    between: str | None = None,
    seeds: bool = False,
    format_: str = "text",
    out: Path | None = None,
) -> tuple[str, str]:
    """Compares, and writes to the file ``out`` if it is named.

    Args:
        paths: Of results.
        settings: The question, and how to compare.
        tasks: Names, groups or patterns, separated by commas. Without any, and without a question,
            the task that stands for each benchmark.
        between: Two tasks, which are compared within each model.
        seeds: Mean and spread of models that differ in their seed, without tests.
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
    if seeds:
        models = read_models(paths)
        rows = by_seed(models, choose_tasks(models, named, least=1), settings)
        return _written(rendered_seeds(rows, format_), out), ""
    report = _compared(paths, named, between, settings)
    refused = "; ".join(map(str, report.refused))
    if not report.figures and not report.refused:
        raise OptionError("no document has what is asked for; results of older versions lack parts")
    if not report.figures:
        signatures = report.refused[0].signatures.items()
        raise DataError(f"{refused} ({'; '.join(f'{name}: {text}' for name, text in signatures)})")
    return _written(rendered(report, format_), out), refused


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
    if between is not None:
        first, _, second = between.partition(",")
        if not second or "," in second or first == second:
            raise OptionError(f"--between {between} must name two tasks, TASK,TASK")
        return compare(read_joined(paths), (first, second), settings, within=True)
    models = read_models(paths)
    if len(models) == 1:
        raise OptionError(
            f"one model alone ({models[0].label}) cannot be compared; name results of two models, "
            "or two tasks of one model with --between TASK,TASK"
        )
    chosen = choose_tasks(models, tasks)
    benchmarks = representatives(models)
    if len(benchmarks) > 1 and not tasks and not settings.is_question:
        chosen = [task for task in benchmarks.values() if task in chosen] or chosen
    return compare(models, chosen, settings)
