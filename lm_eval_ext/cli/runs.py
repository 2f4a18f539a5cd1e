"""``lm-eval-ext run``, ``compare`` and ``leaderboard``."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lm_eval_ext.cli import resumable
from lm_eval_ext.cli.shared_options import (
    AcrossSettingsOption,
    FacetOption,
    MetricOption,
    ValueOption,
    WhereOption,
)
from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import counted, one_line

if TYPE_CHECKING:
    from lm_eval_ext.runs.run import PlannedRun, Reporter

_STATUS_EVERY_S = 60.0
"""Seconds between status lines where there is no terminal."""

_SPINNER_WIDTH = 2
"""Characters before a status line on a terminal."""

_PROGRESS = re.compile(
    r"(?:: [\d.,]+[kMGT]? of [\d.,]+[kMGT]?)?; \d+ (?:s|min) since the start(?:; no output .*)?$"
)
"""How the status of an evaluation ends: a count, if there is one, and times."""

ModelsOption = Annotated[
    list[Path],
    typer.Option(
        "--models", metavar="PATH", help="A YAML file per model, or a folder of them; repeatable."
    ),
]
FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="More files or folders, in addition to --models."),
]
TasksOption = Annotated[
    str, typer.Option(help="Names of tasks or groups, or patterns, separated by commas.")
]
LimitOption = Annotated[
    float | None,
    typer.Option(help="Number of documents per task; below 1, the share of documents."),
]
PlanJsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Like --dry-run, as JSON lines, each with the command that evaluates the model.",
    ),
]
ComparedTasksOption = Annotated[
    str,
    typer.Option(
        help="Names of tasks or groups, or patterns, separated by commas. Default: all of one "
        "benchmark; of several benchmarks one task each."
    ),
]
BySeedOption = Annotated[
    bool,
    typer.Option(
        "--by-seed", help="Mean and spread of models whose names end with seed N; no tests."
    ),
]
BetweenOption = Annotated[
    str, typer.Option(metavar="TASK,TASK", help="Compare two tasks within each model.")
]
TableFormatOption = Annotated[
    Literal["text", "markdown", "csv", "json", "latex"],
    typer.Option("--format", help="Output format."),
]
IntervalsOption = Annotated[
    bool | None,
    typer.Option(
        "--intervals/--no-intervals",
        help="Show 95 % intervals in tables of several questions. Default: in Markdown and LaTeX.",
        show_default=False,
    ),
]


def run(
    models: ModelsOption,
    tasks: TasksOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")],
    more: FilesArgument = None,
    *,
    limit: LimitOption = None,
    metadata: Annotated[
        str, typer.Option(help="Options of the tasks, as JSON: '{\"fresh\": 7}'.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what is missing, and evaluate nothing.")
    ] = False,
    as_json: PlanJsonOption = False,
    executor: Annotated[
        Literal["here", "slurm"], typer.Option(help="Run here, or send jobs to Slurm.")
    ] = "here",
) -> None:
    """Evaluate models on the tasks for which they have no results yet."""
    from lm_eval_ext.runs.run import Work, plan, prepare
    from lm_eval_ext.runs.run import run as run_here

    work = Work([*models, *(more or [])], tasks, output, limit, metadata)
    if dry_run or as_json:
        _print_plan(plan(work), as_json=as_json)
        return
    with reporting() as reporter:
        if executor == "here":
            run_here(work, reporter)
        else:
            from lm_eval_ext.runs.slurm import submit

            submit(work, prepare(work), reporter)


@contextmanager
def reporting() -> Iterator["Reporter"]:
    """Yield a reporter that writes to stderr.

    On a terminal, the status is a line that is replaced; elsewhere, for instance in a job's log,
    it is printed once a minute.
    """
    from rich.console import Console
    from rich.text import Text

    from lm_eval_ext.runs.run import Reporter

    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        with resumable():
            yield Reporter(line=console.print, status=once_a_minute(console.print))
        return
    status = console.status("")

    def show_status(line: str) -> None:
        status.update(Text(fit_status(line, console.width - _SPINNER_WIDTH)))

    with resumable(), status:
        yield Reporter(line=console.print, status=show_status)


def fit_status(line: str, width: int) -> str:
    """Return a status line that fits a width: what is done gets shorter, not its count and times.

    Args:
        line: A status, such as ``model: Running requests: 613 of 832; 10 s since the start``.
        width: Characters of the terminal's line.
    """
    if len(line) <= width:
        return line
    progress = _PROGRESS.search(line)
    if progress is None:
        return one_line(line, limit=max(width, 1))
    room = width - len(progress[0])
    return one_line(line[: progress.start()], limit=max(room, 1)) + progress[0]


def once_a_minute(
    show: Callable[[str], object], clock: Callable[[], float] = time.monotonic
) -> Callable[[str], None]:
    """Return a function that shows a text if a minute has passed since it last did, or began."""
    shown_at = clock()

    def show_if_due(text: str) -> None:
        nonlocal shown_at
        if clock() - shown_at >= _STATUS_EVERY_S:
            shown_at = clock()
            show(text)

    return show_if_due


def _print_plan(planned_runs: "Sequence[PlannedRun]", *, as_json: bool) -> None:
    """Print the models that have tasks without results, as text or as JSON lines."""
    import json
    from dataclasses import asdict

    unfinished = [planned for planned in planned_runs if planned.tasks]
    if as_json:
        for planned in unfinished:
            typer.echo(json.dumps(asdict(planned), ensure_ascii=False))
        return
    for planned in unfinished:
        line = f"{planned.model}: {', '.join(planned.tasks)}"
        if planned.present:
            line += f" ({planned.present} have results)"
        typer.echo(line)
    if unfinished:
        typer.echo(f"{counted(len(unfinished), 'model')} to evaluate")
    else:
        typer.echo("nothing to do")


def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Results files or folders, of several models."),
    ],
    *,
    tasks: ComparedTasksOption = "",
    metric: MetricOption = None,
    by: FacetOption = "",
    where: WhereOption = None,
    value: ValueOption = "",
    by_seed: BySeedOption = False,
    between: BetweenOption = "",
    across_settings: AcrossSettingsOption = False,
    format_: TableFormatOption = "text",
    intervals: IntervalsOption = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file, not to stdout.")
    ] = None,
) -> None:
    """Compare models on the documents that all of them answered, with significance tests."""
    from lm_eval_ext.compare.command import run as run_comparison
    from lm_eval_ext.results.query import ScoreQuery

    text, refused = run_comparison(
        paths,
        ScoreQuery(tuple(metric or ()), value, tuple(where or ()), by),
        tasks=tasks,
        between=between,
        seeds=by_seed,
        across_settings=across_settings,
        format_=format_,
        intervals=intervals,
        out=out,
    )
    typer.echo(text, nl=False)
    for reason in refused:
        typer.echo(f"lm-eval-ext: not compared: {reason}", err=True)


def leaderboard(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Results files, or folders given as --output_path."),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the page; or a file .tex, for models by benchmarks."
        ),
    ],
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Leaderboard",
    samples: Annotated[
        int, typer.Option(min=0, help="Most samples per task on the page; 0 for none.")
    ] = 300,
    intervals: IntervalsOption = None,
) -> None:
    """Make an HTML page of many models: plots, tables, published values, samples."""
    if output.suffix not in ("", ".tex"):
        raise OptionError(f"-o {output}: name a folder, or a file .tex")
    if output.suffix == ".tex":
        from lm_eval_ext.compare.command import leaderboard as write_table

        typer.echo(write_table(results, output, intervals=intervals), nl=False)
        return
    if intervals is not None:
        raise OptionError("--intervals is for a file .tex; the page always has intervals")
    from lm_eval_ext.leaderboard.site import build

    print(build(results, output, title=title, samples=samples))
