"""``lm-eval-ext sql-score``: scoring SQL queries outside of lm-eval."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.cli.questions import Json


def sql_score(
    *,
    databases: Annotated[
        str,
        typer.Option(
            metavar="DB",
            help="A folder with <db_id>/<db_id>.sqlite or <db_id>.sqlite (or .duckdb), a SQLite or "
            "DuckDB file, or postgresql://user@host/database.",
        ),
    ],
    predictions: Annotated[
        Path,
        typer.Option(help="A .tsv or .jsonl file with db_id, gold_sql and predicted_sql."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file to write, .tsv or .jsonl: the rows with their status."
        ),
    ],
    semantics: Annotated[
        str, typer.Option(help="How results are compared: reference, strict or sets.")
    ] = "reference",
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Seconds of CPU time per query (PostgreSQL: real time); default: 10.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of processes.")] = 2,
    as_json: Json = False,
) -> None:
    """Execute SQL queries safely and compare their results with those of gold queries."""
    from lm_eval_ext.cli import resumable
    from lm_eval_ext.errors import OptionError
    from lm_eval_ext.sql.scoring import score_file

    if timeout is not None and not 0 < timeout < math.inf:
        raise OptionError(f"--timeout {timeout:g}: must be a number above 0")
    with resumable():
        summary = score_file(
            predictions, databases, out, semantics=semantics, timeout_s=timeout, workers=workers
        )
    typer.echo(json.dumps(summary.as_dict(), indent=2) if as_json else summary.as_text())
