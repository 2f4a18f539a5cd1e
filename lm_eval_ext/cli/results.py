"""``lm-eval-ext show`` and ``tasks``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from lm_eval_ext.cli.questions import By, Json, Metric, Value, Where
from lm_eval_ext.text import names_in


def show(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Files results_*.json, or folders given as --output_path."
        ),
    ],
    *,
    tasks: Annotated[
        str,
        typer.Option(
            help="Show the metrics of these tasks: names or patterns, separated by commas; '*' for "
            "all."
        ),
    ] = "",
    metric: Metric = None,
    by: By = "",
    where: Where = None,
    value: Value = "",
    signatures: Annotated[
        bool,
        typer.Option(
            "--signatures",
            help="Also print each score's signature, which says what the score depends on.",
        ),
    ] = False,
) -> None:
    """Show results: models by benchmarks, a task's metrics, or a breakdown of its samples."""
    from lm_eval_ext.results.grid import text
    from lm_eval_ext.results.models import choose_tasks, read_models, runs_by_model
    from lm_eval_ext.results.query import ScoreQuery
    from lm_eval_ext.results.show import tables as shown

    models = read_models(paths)
    named = names_in(tasks)
    asked = ScoreQuery(tuple(metric or ()), value, tuple(where or ()), by)
    typer.echo(text(shown(models, asked, named)), nl=False)
    for task in choose_tasks(models, named, min_models=1) if signatures else ():
        for model, run in runs_by_model(models, task).items():
            typer.echo(f"{model}: " * (len(models) > 1) + run.signature)


def samples(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Files results_*.json, or folders given as --output_path."
        ),
    ],
    *,
    task: Annotated[
        str, typer.Option(help="The task. Not needed if the results have only one.")
    ] = "",
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A model, by its name or a part of it. Repeat it to see two models side by side.",
        ),
    ] = None,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Only samples that the first model has not right.")
    ] = False,
    differ: Annotated[
        bool,
        typer.Option("--differ", help="Only samples that two models have different scores of."),
    ] = False,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="The score; default: the one behind the headline.")
    ] = "",
    by: By = "",
    where: Where = None,
    value: Value = "",
    id_: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="Only the sample with this id; repeatable."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="Most samples to show, of each part with --by; 0 for all.")
    ] = 10,
    whole: Annotated[
        bool, typer.Option("--whole", help="Show long texts whole, and the prompts.")
    ] = False,
    format_: Annotated[
        Literal["text", "markdown", "jsonl"], typer.Option("--format", help="Output format.")
    ] = "text",
) -> None:
    """Show samples: question, right answer, response, what was read from it, score, and why."""
    from lm_eval_ext.results.models import read_models
    from lm_eval_ext.results.query import ScoreQuery
    from lm_eval_ext.results.sample_report import SampleQuery, samples_report

    metrics = (metric,) if metric else ()
    wanted = SampleQuery(
        query=ScoreQuery(metrics, value, tuple(where or ()), by),
        models=tuple(model or ()),
        is_wrong=wrong,
        is_different=differ,
        ids=tuple(id_ or ()),
        limit=limit,
        is_whole=whole,
    )
    typer.echo(samples_report(read_models(paths), task, wanted, format_), nl=False)


def tasks(
    only: Annotated[
        str,
        typer.Argument(
            metavar="[FILTER]",
            help="A benchmark, a group, a task, or a pattern such as '*_mini'; '*' for all.",
        ),
    ] = "",
    *,
    as_json: Json = False,
    folder: Annotated[
        bool,
        typer.Option("--folder", help="Print the folder of the task files."),
    ] = False,
    plain: Annotated[
        Path | None,
        typer.Option(
            help="Write a file for each task here, for lm_eval without the start-up file."
        ),
    ] = None,
) -> None:
    """List groups of tasks, or some tasks with description, size and data."""
    from lm_eval_ext._autoload import is_active
    from lm_eval_ext.cli.task_list import lines, matching, write_plain
    from lm_eval_ext.data import local_copy
    from lm_eval_ext.task_folder import tasks_folder

    if folder:
        typer.echo(tasks_folder())
        return
    if plain:
        write_plain(plain)
        return
    rows = matching(only)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for line in lines(rows, overview=not only):
        typer.echo(line)
    if any(row.data == "to fetch" for row in rows):
        if (copy := local_copy()) is not None:
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
