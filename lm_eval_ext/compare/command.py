"""``lm-eval-ext compare``: from its options to the text that it prints."""

from collections.abc import Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare import latex
from lm_eval_ext.compare.comparison import Report, by_seed, compare
from lm_eval_ext.compare.output import FORMATS, rendered, rendered_seeds
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.ask import Asked
from lm_eval_ext.results.models import choose_tasks, read_models
from lm_eval_ext.results.overview import overview, representatives


def run(
    paths: Sequence[Path],
    asked: Asked,
    *,
    tasks: str = "",
    between: str = "",
    seeds: bool = False,
    across_settings: bool = False,
    format_: str = "text",
    out: Path | None = None,
) -> tuple[str, str]:
    """Compares, and writes to the file ``out`` if it is named.

    Args:
        paths: Of results.
        asked: The question.
        tasks: Names, groups or patterns, separated by commas. Without any, and without a question,
            the task that stands for each benchmark.
        between: Two tasks, which are compared within each model.
        seeds: Mean and spread of models that differ in their seed, without tests.
        across_settings: Also runs with different prompts.
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
    named = [name for name in tasks.split(",") if name]
    if seeds:
        models = read_models(paths)
        rows = by_seed(models, choose_tasks(models, named, least=1), asked)
        return _written(rendered_seeds(rows, format_), out), ""
    if between:
        both = between.split(",")
        if len(set(filter(None, both))) != 2 or len(both) != 2:  # noqa: PLR2004
            raise OptionError(f"--between {between} must name two tasks, TASK,TASK")
        report = compare(read_models(paths, joined=True), both, asked, within=True)
    else:
        report = _compared(paths, named, asked, across_settings=across_settings)
    refused = "; ".join(report.refused)
    if not report.tables and not report.refused:
        raise OptionError("no document has what is asked for; results of older versions lack parts")
    if not report.tables:
        signatures = next(iter(report.refused.values())).items()
        raise DataError(f"{refused} ({'; '.join(map(': '.join, signatures))})")
    return _written(rendered(report, format_), out), refused


def leaderboard(paths: Sequence[Path], out: Path) -> str:
    """Writes the table of models by benchmarks in LaTeX."""
    return _written(latex.overview(overview(read_models(paths, joined=True))), out)


def _written(text: str, out: Path | None) -> str:
    if out is None:
        return text
    with atomic_text(out) as file:
        file.write(text)
    return f"{out}\n"


def _compared(
    paths: Sequence[Path], tasks: Sequence[str], asked: Asked, *, across_settings: bool
) -> Report:
    models = read_models(paths)
    if len(models) == 1:
        raise OptionError(
            f"one model alone ({models[0].label}) cannot be compared; name results of two models, "
            "or two tasks of one model with --between TASK,TASK"
        )
    chosen = choose_tasks(models, tasks)
    benchmarks = representatives(models)
    if len(benchmarks) > 1 and not tasks and not asked.is_question:
        chosen = [task for task in benchmarks.values() if task in chosen] or chosen
    return compare(models, chosen, asked, across_settings=across_settings)
