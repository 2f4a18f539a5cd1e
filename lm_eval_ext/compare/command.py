"""``lm-eval-ext compare``: from its options to a comparison in the format that is asked for."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare.comparison import Table, compare
from lm_eval_ext.compare.formats import LEVEL, rendered, rendered_seeds
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.align import ACROSS_SETTINGS, across_settings_command
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import (
    latex,
    legend,
)
from lm_eval_ext.results.models import Model, choose_tasks, read_models, runs_by_model
from lm_eval_ext.results.overview import (
    ROW_ORDER,
    overview_columns,
    ranked_models,
    representatives,
    table_of,
)
from lm_eval_ext.results.query import ScoreQuery, question_of
from lm_eval_ext.results.show import (
    TRIALS,
    library_notes,
    overview_chances,
    overview_notes,
    overview_table,
    unlisted_note,
    version_notes,
)
from lm_eval_ext.text import counted, names_in, one_line


def run(
    paths: Sequence[Path],
    query: ScoreQuery,
    *,
    tasks: str = "",
    between: str = "",
    seeds: bool = False,
    across_settings: bool = False,
    format_: str = "text",
    intervals: bool | None = None,
    out: Path | None = None,
) -> tuple[str, list[str]]:
    """Compare, and write to the file ``out`` if it is named.

    Args:
        paths: Results files or folders.
        query: The question.
        tasks: Names, groups or patterns, separated by commas. Without any, and without a question,
            the task that stands for each benchmark.
        between: Two tasks, which are compared within each model.
        seeds: Whether to show mean and spread of models that differ in their seed, without tests.
        across_settings: Whether to compare also runs with different prompts.
        format_: ``text``, ``markdown``, ``csv``, ``json`` or ``latex``.
        intervals: Whether a table of several questions has the intervals below or behind the
            values; None: in Markdown and LaTeX, for which there is room.
        out: A file.

    Returns:
        The text to print, and the reasons for which something could not be compared.

    Raises:
        OptionError: An option is invalid, or there is nothing to compare.
        DataError: A file cannot be read, or nothing could be compared.
    """
    if intervals is not None:
        _check_intervals_option(format_, seeds=seeds)
    patterns = names_in(tasks)
    models = read_models(paths, joined=bool(between))
    if seeds:
        chosen = choose_tasks(models, patterns, min_models=1)
        report = compare(models, chosen, query, seeds=True)
    elif between:
        report = compare(models, _two_tasks(between), query, between_tasks=True)
    elif len(models) == 1:
        raise OptionError(
            f"one model alone ({models[0].label}) cannot be compared; name results of two models, "
            "or the folders of two runs of it, or two of its tasks with --between TASK,TASK"
        )
    else:
        chosen = _tasks_to_compare(models, patterns, query)
        report = compare(models, chosen, query, across_settings=across_settings)
    arguments = _arguments(paths, query, tasks, format_, out)
    if intervals is not None:
        arguments += " --intervals" if intervals else " --no-intervals"
    command = across_settings_command(arguments)
    refused = _with_advice_once(dict.fromkeys(map(one_line, report.refused)), command)
    if not report.tables:
        raise DataError("; ".join(refused))
    if not query.is_question and not seeds and not between:
        settings = "--across-settings" if across_settings else ""
        report.remarks += _metrics_advice(report.tables, models, paths, settings)
    if intervals is False and format_ != "latex" and len(report.tables) == 1:
        raise OptionError(
            "--no-intervals is for tables of several questions, and this table has one, with a "
            "column of intervals; leave the option out, or use --format latex"
        )
    if seeds:
        output = rendered_seeds(report, format_)
    else:
        output = rendered(report, format_, intervals=intervals)
    return _write(output, out), refused


def _check_intervals_option(format_: str, *, seeds: bool) -> None:
    """Refuse ``--intervals`` and ``--no-intervals`` where the output always has intervals.

    Raises:
        OptionError: The option has no effect.
    """
    subject = ""
    if seeds:
        subject = "--by-seed"
    elif format_ in ("csv", "json"):
        subject = f"--format {format_}"
    if subject:
        raise OptionError(
            f"--intervals and --no-intervals have no effect with {subject}, which always has "
            "intervals; leave the option out, or use --format text, markdown or latex without "
            "--by-seed"
        )


def _arguments(
    paths: Sequence[Path], query: ScoreQuery, tasks: str, format_: str, out: Path | None
) -> str:
    """Return the folders and the options of a comparison as words of a command."""
    words = list(map(str, paths))
    if tasks:
        words += ["--tasks", tasks]
    for metric in query.metrics:
        words += ["--metric", metric]
    for condition in query.where:
        words += ["--where", condition]
    if query.by:
        words += ["--by", query.by]
    if query.value:
        words += ["--value", query.value]
    if format_ != "text":
        words += ["--format", format_]
    if out is not None:
        words += ["--output", str(out)]
    return shlex.join(words)


def _with_advice_once(reasons: Iterable[str], command: str) -> list[str]:
    """Return the reasons, and behind the last one the command that compares all the same.

    Args:
        reasons: Why something could not be compared; those that the command helps with end with
            :data:`~lm_eval_ext.results.align.ACROSS_SETTINGS`.
        command: The command.
    """
    advice = f"; {ACROSS_SETTINGS}"
    shortened = []
    is_needed = False
    for reason in reasons:
        is_needed = is_needed or reason.endswith(advice)
        shortened.append(reason.removesuffix(advice))
    if is_needed:
        shortened[-1] += f"; to compare models with their settings: {command}"
    return shortened


def _metrics_advice(
    tables: Sequence[Table], models: Sequence[Model], paths: Sequence[Path], settings: str
) -> Iterator[str]:
    """Yield commands that compare another metric, for tasks whose headline not all models have.

    Args:
        tables: The comparisons, each on the headline of its task.
        models: The models with their runs.
        paths: Where their results are.
        settings: The option with which they are compared, or "".
    """
    for table in tables:
        if all(estimate.value is not None for estimate in table.figures.values()):
            continue
        runs = runs_by_model(models, table.task)
        compared_runs = [runs[system] for system in table.figures if system in runs]
        metric = _testable_metric(compared_runs)
        if metric:
            words = shlex.join([*map(str, paths), "--tasks", table.task, "--metric", metric])
            yield f"{table.task}: every model has a value of {metric}, which can be tested:"
            yield f"lm-eval-ext compare {words} {settings}".rstrip()


def _testable_metric(runs: Sequence[Run]) -> str:
    """Return a metric that is a mean of documents' values, which all runs have; "" if none is.

    Those that a benchmark's card names as headlines come first.
    """
    if not runs:
        return ""
    card = runs[0].card
    metrics = [*(card.headlines if card else ()), *runs[0].scores]
    for metric in metrics:
        if any(run.scores.get(metric) is None for run in runs):
            continue
        measure = question_of(runs[0], metric).measure
        if measure.statistic == "mean" and not measure.diagnostic:
            return metric
    return ""


def _two_tasks(between: str) -> list[str]:
    tasks = names_in(between)
    if len(tasks) != 2 or len(set(tasks)) != 2:  # noqa: PLR2004
        raise OptionError(f"--between {between} must name two tasks, TASK,TASK")
    return tasks


def _tasks_to_compare(
    models: Sequence[Model], patterns: Sequence[str], query: ScoreQuery
) -> list[str]:
    """Return the tasks that are asked for; by default all, or of several benchmarks one each."""
    chosen = choose_tasks(models, patterns)
    if patterns or query.is_question:
        return chosen
    benchmarks = representatives(models)
    if len(benchmarks) == 1:
        return chosen
    return [task for task in benchmarks.values() if task in chosen] or chosen


def leaderboard(paths: Sequence[Path], out: Path, *, intervals: bool | None = None) -> str:
    """Write the table of models by benchmarks in LaTeX.

    Its caption says what is shown, and the note below it what tasks measure and marks mean.
    Comments say why a value is missing or was not tested.

    Args:
        paths: Results files or folders.
        out: The file.
        intervals: Whether 95 % intervals stand below the values; None: they do.
    """
    models = read_models(paths)
    benchmark_columns = overview_columns(models)
    rows = table_of(benchmark_columns)
    order = ranked_models(benchmark_columns)
    has_intervals = intervals is not False
    titles, columns, lines = overview_table(rows, order, has_intervals=has_intervals)
    systems = counted(len({row.model for row in rows}), "system")
    benchmarks = counted(len(titles), "benchmark")
    caption = f"Scores of {systems} on {benchmarks}"
    if has_intervals and any(row.low is not None for row in rows):
        caption += f", with {LEVEL} intervals"
    notes = [*titles]
    if any(row.scored < row.total for row in rows):
        notes.append(TRIALS)
    notes += legend((row.standing for row in rows), overview_chances(models, rows))
    for task in dict.fromkeys(row.task for row in rows):
        runs = runs_by_model(models, task)
        notes += [*version_notes(runs), *library_notes(runs)]
    reasons = [note for note in overview_notes(models, rows) if note not in notes]
    reasons += unlisted_note(models, order)
    signatures = dict.fromkeys(row.signature for row in rows)
    table = latex(
        columns,
        lines,
        caption,
        label="overview",
        notes=list(dict.fromkeys(notes)),
        comments=[f"order of the models: {ROW_ORDER}", *reasons, *signatures],
    )
    return _write(table, out)


def _write(text: str, out: Path | None) -> str:
    """Return the text; or the name of the file, after the text was written to it."""
    if out is None:
        return text
    with atomic_text(out) as file:
        file.write(text)
    return f"{out}\n"
