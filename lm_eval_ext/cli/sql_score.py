"""``lm-eval-ext sql-score``, also ``sql score``: scoring SQL queries outside of lm-eval."""

from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.cli.questions import Json
from lm_eval_ext.cli.sql_options import (
    DEFAULT_SEMANTICS,
    BuildSuiteOption,
    ByOption,
    DatabasesOption,
    ExplainCommand,
    ExtractOption,
    NoQuotesOption,
    SemanticsOption,
    SuiteOption,
    TimeoutOption,
    WorkersOption,
    json_text,
    read_query,
    suite_source,
)


def sql_score(
    *,
    databases: DatabasesOption,
    predictions: Annotated[
        Path,
        typer.Option(help="A .csv, .tsv or .jsonl file with db_id, gold_sql and predicted_sql."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write, .csv, .tsv or .jsonl: the rows with status and reason.",
        ),
    ],
    semantics: SemanticsOption = DEFAULT_SEMANTICS,
    suite: SuiteOption = None,
    build_suite: BuildSuiteOption = False,
    extract: ExtractOption = False,
    by: ByOption = "",
    no_quotes: NoQuotesOption = False,
    timeout: TimeoutOption = None,
    workers: WorkersOption = 2,
    as_json: Json = False,
) -> None:
    """Execute SQL queries safely and compare their results with those of gold queries."""
    from lm_eval_ext.cli import resumable
    from lm_eval_ext.cli.sql_screens import score_screen
    from lm_eval_ext.sql.scoring import score_file
    from lm_eval_ext.text import names_in

    with resumable():
        summary = score_file(
            predictions,
            databases,
            out,
            semantics=semantics,
            suite=suite_source(suite, build=build_suite, databases=databases),
            timeout_s=timeout,
            workers=workers,
            quotes=not no_quotes,
            read_query=read_query if extract else None,
            by=names_in(by),
        )
    if as_json:
        typer.echo(json_text(summary.as_dict()))
        return
    typer.echo(score_screen(summary), nl=False)
    if summary.wrong_row is not None:
        command = ExplainCommand(
            databases, predictions, semantics, suite, build_suite, extract, no_quotes
        )
        # For people, so not on stdout; in one line, however long, so that it can be copied.
        typer.echo(f"see why a row is wrong: {command.text(summary.wrong_row)}", err=True)
