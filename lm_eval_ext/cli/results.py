"""``lm-eval-ext show``, ``samples`` and ``tasks``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lm_eval_ext.cli.shared_options import (
    FacetOption,
    JsonOption,
    MetricOption,
    ResultsArgument,
    ValueOption,
    WhereOption,
    shell_words,
)
from lm_eval_ext.text import names_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lm_eval_ext.cli.task_list import TaskRow

TaskNamesOption = Annotated[
    str,
    typer.Option(
        help="Show the metrics of these tasks: names or patterns, separated by commas; '*' for all."
    ),
]
SignaturesOption = Annotated[
    bool,
    typer.Option(
        "--signatures",
        help="Also print each score's signature, which says what the score depends on.",
    ),
]
SampleModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A model, by its name or a part of it. Repeat it to see two models side by side.",
    ),
]
WrongOption = Annotated[
    bool, typer.Option("--wrong", help="Only samples that the first model did not get right.")
]
DifferOption = Annotated[
    bool,
    typer.Option("--differ", help="Only samples for which two models have different scores."),
]
ScoreOption = Annotated[
    str, typer.Option(metavar="NAME", help="The score; default: the one behind the headline.")
]
IdOption = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="ID", help="Only the sample with this id; repeatable."),
]
LimitOption = Annotated[
    int, typer.Option(min=0, help="Most samples to show, of each part with --by; 0 for all.")
]
WholeOption = Annotated[
    bool, typer.Option("--whole", help="Show long texts whole, and the prompts.")
]
SampleFormatOption = Annotated[
    Literal["text", "markdown", "jsonl"], typer.Option("--format", help="Output format.")
]
FilterArgument = Annotated[
    str,
    typer.Argument(
        metavar="[FILTER]",
        help="A benchmark, a group, a task, or a pattern such as '*_mini'; '*' for all. Or a task "
        "file of your own, or a folder of them.",
    ),
]
PlainOption = Annotated[
    Path | None,
    typer.Option(help="Write a file for each task here, for lm_eval without the start-up file."),
]


def show(
    paths: ResultsArgument,
    *,
    tasks: TaskNamesOption = "",
    metric: MetricOption = None,
    by: FacetOption = "",
    where: WhereOption = None,
    value: ValueOption = "",
    signatures: SignaturesOption = False,
) -> None:
    """Show results: models by benchmarks, a task's metrics, or a breakdown of its samples."""
    from lm_eval_ext.results.grid import text
    from lm_eval_ext.results.models import choose_tasks, read_models, runs_by_model
    from lm_eval_ext.results.query import ScoreQuery
    from lm_eval_ext.results.show import tables

    models = read_models(paths)
    task_names = names_in(tasks)
    query = ScoreQuery(tuple(metric or ()), value, tuple(where or ()), by)
    sections = tables(models, query, task_names, results=shell_words(paths))
    typer.echo(text(sections), nl=False)
    if not signatures:
        return
    for task in choose_tasks(models, task_names, min_models=1):
        for model, run in runs_by_model(models, task).items():
            label = f"{model}: " if len(models) > 1 else ""
            typer.echo(label + run.signature)


def samples(
    paths: ResultsArgument,
    *,
    task: Annotated[
        str, typer.Option(help="The task. Not needed if the results have only one.")
    ] = "",
    model: SampleModelsOption = None,
    wrong: WrongOption = False,
    differ: DifferOption = False,
    metric: ScoreOption = "",
    by: FacetOption = "",
    where: WhereOption = None,
    value: ValueOption = "",
    id_: IdOption = None,
    limit: LimitOption = 10,
    whole: WholeOption = False,
    format_: SampleFormatOption = "text",
) -> None:
    """Show samples: question, right answer, response, what was read from it, score, and why."""
    from lm_eval_ext.results.models import read_models
    from lm_eval_ext.results.query import ScoreQuery
    from lm_eval_ext.results.sample_report import samples_report
    from lm_eval_ext.results.shown_samples import SampleQuery

    metrics = (metric,) if metric else ()
    sample_query = SampleQuery(
        query=ScoreQuery(metrics, value, tuple(where or ()), by),
        models=tuple(model or ()),
        is_wrong=wrong,
        is_different=differ,
        ids=tuple(id_ or ()),
        limit=limit,
        is_whole=whole,
    )
    typer.echo(samples_report(read_models(paths), task, sample_query, format_), nl=False)


def tasks(
    name: FilterArgument = "",
    *,
    as_json: JsonOption = False,
    folder: Annotated[
        bool,
        typer.Option("--folder", help="Print the folder of the task files."),
    ] = False,
    plain: PlainOption = None,
) -> None:
    """List groups of tasks, or some tasks with description, size and data."""
    from lm_eval_ext.cli.task_list import is_name, lines, matching, write_plain
    from lm_eval_ext.harness.user_files import is_path
    from lm_eval_ext.task_folder import tasks_folder

    if folder:
        typer.echo(tasks_folder())
        return
    if plain:
        write_plain(plain)
        return
    if is_path(name) and not is_name(name):
        _print_user_tasks(Path(name), as_json=as_json)
        return
    rows = matching(name)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for line in lines(rows, overview=not name):
        typer.echo(line)
    _print_advice(rows)


def _print_user_tasks(path: Path, *, as_json: bool) -> None:
    """Print what a user's task file, or a folder of them, holds."""
    from lm_eval_ext.cli.user_task_list import user_task_content, user_task_lines
    from lm_eval_ext.harness.user_files import read_user_files

    files = read_user_files(path)
    if as_json:
        typer.echo(json.dumps(user_task_content(files), indent=2))
        return
    for line in user_task_lines(files):
        typer.echo(line)


def _print_advice(rows: "Sequence[TaskRow]") -> None:
    """Print what to do about missing data, and where plain lm_eval does not find our tasks."""
    from lm_eval_ext._autoload import is_active
    from lm_eval_ext.data import local_copy

    if any(row.data == "to fetch" for row in rows):
        copy = local_copy()
        if copy is not None:
            typer.echo(f"Some data are missing, or differ in size, in LM_EVAL_EXT_DATA:\n{copy}")
        else:
            typer.echo(
                "Data to fetch are downloaded by the first run, or by: lm-eval-ext data fetch"
            )
    if not is_active():
        typer.echo(
            "Plain lm_eval does not find them here: run python -m lm_eval_ext instead, or see "
            "lm-eval-ext tasks --plain"
        )
