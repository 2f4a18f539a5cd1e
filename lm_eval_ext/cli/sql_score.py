"""``lm-eval-ext sql-score``, also ``sql score``: scoring SQL queries outside of lm-eval."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lm_eval_ext.cli.shared_options import JsonOption
from lm_eval_ext.cli.sql_options import (
    DEFAULT_SEMANTICS,
    BuildSuiteOption,
    ByOption,
    DatabasesOption,
    ExtractOption,
    JudgeFlags,
    NoQuotesOption,
    SemanticsOption,
    SuiteOption,
    TimeoutOption,
    WorkersOption,
    json_text,
)
from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import counted, names_in, one_line

if TYPE_CHECKING:
    from lm_eval_ext.runs.model_files import Resources
    from lm_eval_ext.runs.sql_parts import PartsWork
    from lm_eval_ext.sql.scoring import JudgeOptions

PredictionsOption = Annotated[
    Path,
    typer.Option(help="A .csv, .tsv or .jsonl file with db_id, gold_sql and predicted_sql."),
]
ScoredRowsOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="The file to write, .csv, .tsv or .jsonl: the rows with status and reason.",
    ),
]

ShowWrongOption = Annotated[
    int,
    typer.Option(
        "--show-wrong",
        metavar="N",
        min=0,
        help="List up to N rows that are not correct, with the reason; 0 for none.",
    ),
]
PartOption = Annotated[
    str,
    typer.Option(
        "--part",
        metavar="K/N",
        help="Judge the K-th of N parts of the rows only, and keep the verdicts beside the output; "
        "without --part, the command puts all parts together.",
    ),
]
ExecutorOption = Annotated[
    Literal["here", "slurm"], typer.Option(help="Judge here, or send --parts to Slurm as jobs.")
]
PartsOption = Annotated[
    int,
    typer.Option(
        "--parts", metavar="N", min=1, max=10_000, help="For --executor slurm: so many jobs."
    ),
]
ResourcesOption = Annotated[
    str,
    typer.Option(
        metavar="JSON",
        help='For --executor slurm: what a job needs, such as \'{"time": 120, "mem": "8G"}\'.',
    ),
]


def sql_score(
    *,
    databases: DatabasesOption,
    predictions: PredictionsOption,
    out: ScoredRowsOption,
    semantics: SemanticsOption = DEFAULT_SEMANTICS,
    suite: SuiteOption = None,
    build_suite: BuildSuiteOption = False,
    extract: ExtractOption = False,
    by: ByOption = "",
    show_wrong: ShowWrongOption = 20,
    no_quotes: NoQuotesOption = False,
    timeout: TimeoutOption = None,
    workers: WorkersOption = 2,
    part: PartOption = "",
    executor: ExecutorOption = "here",
    parts: PartsOption = 1,
    resources: ResourcesOption = "",
    as_json: JsonOption = False,
) -> None:
    """Execute SQL queries safely and compare their results with those of gold queries."""
    from lm_eval_ext.cli import resumable
    from lm_eval_ext.cli.sql_screens import score_screen
    from lm_eval_ext.sql.scoring import score_file

    flags = JudgeFlags(databases, semantics, suite, build_suite, extract, no_quotes)
    options = flags.judge_options(timeout, workers)
    if executor == "here" and (parts > 1 or resources):
        raise OptionError("--parts and --resources need --executor slurm; for one part: --part K/N")
    if part:
        if executor == "slurm":
            raise OptionError("--part judges here; --executor slurm takes --parts N")
        _score_part(predictions, options, out, part, as_json=as_json)
        return
    if executor == "slurm":
        from lm_eval_ext.runs.sql_parts import PartsWork, with_absolute_paths

        options = with_absolute_paths(options)
        if not _submit(PartsWork(predictions, options, out, parts, _parse_resources(resources))):
            return
    with resumable():
        summary = score_file(predictions, options, out, by=names_in(by))
    if as_json:
        typer.echo(json_text(summary.as_dict()))
        return
    typer.echo(score_screen(summary, listed_rows=show_wrong), nl=False)
    if summary.wrong_row is not None:
        command = flags.explain_command(predictions, summary.wrong_row)
        # For people, so not on stdout; in one line, however long, so that it can be copied.
        typer.echo(f"see why a row is wrong: {command}", err=True)


def _score_part(
    predictions: Path, options: "JudgeOptions", out: Path, name: str, *, as_json: bool
) -> None:
    """Judge the part of that name, and say so."""
    from dataclasses import asdict

    from lm_eval_ext.cli import resumable
    from lm_eval_ext.sql.part_scoring import score_part
    from lm_eval_ext.sql.parts import parse_part

    part = parse_part(name)
    with resumable():
        summary = score_part(predictions, options, out, part)
    if as_json:
        typer.echo(json_text(asdict(summary)))
    else:
        typer.echo(f"{part}: {counted(summary.rows, 'row')} judged in {summary.seconds:.1f} s")


def _parse_resources(text: str) -> "Resources":
    """Parse ``--resources``."""
    import json

    try:
        resources = json.loads(text or "{}")
    except ValueError:
        resources = None
    if not isinstance(resources, dict):
        example = '{"time": 120}'
        raise OptionError(
            f"--resources {one_line(text, limit=80)}: no JSON object such as {example}"
        )
    return resources


def _submit(work: "PartsWork") -> bool:
    """Submit the parts that are not judged; return whether all rows are judged."""
    from lm_eval_ext.cli.runs import reporting
    from lm_eval_ext.runs.sql_parts import submit_parts

    with reporting() as reporter:
        return submit_parts(work, reporter)
