"""``lm-eval-ext sql-score``, also ``sql score``: scoring SQL queries outside of lm-eval."""

from pathlib import Path
from typing import Annotated

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
    no_quotes: NoQuotesOption = False,
    timeout: TimeoutOption = None,
    workers: WorkersOption = 2,
    as_json: JsonOption = False,
) -> None:
    """Execute SQL queries safely and compare their results with those of gold queries."""
    from lm_eval_ext.cli import resumable
    from lm_eval_ext.cli.sql_screens import score_screen
    from lm_eval_ext.sql.scoring import score_file
    from lm_eval_ext.text import names_in

    flags = JudgeFlags(databases, semantics, suite, build_suite, extract, no_quotes)
    options = flags.judge_options(timeout, workers)
    with resumable():
        summary = score_file(predictions, options, out, by=names_in(by))
    if as_json:
        typer.echo(json_text(summary.as_dict()))
        return
    typer.echo(score_screen(summary), nl=False)
    if summary.wrong_row is not None:
        command = flags.explain_command(predictions, summary.wrong_row)
        # For people, so not on stdout; in one line, however long, so that it can be copied.
        typer.echo(f"see why a row is wrong: {command}", err=True)
