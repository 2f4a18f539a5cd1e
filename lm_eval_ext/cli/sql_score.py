"""``lm-eval-ext sql-score``."""

import json
from pathlib import Path
from typing import Annotated

import typer


def sql_score(
    *,
    databases: Annotated[
        Path,
        typer.Option(help="Folder of SQLite files: <db_id>/<db_id>.sqlite or <db_id>.sqlite."),
    ],
    predictions: Annotated[
        Path,
        typer.Option(help="A .tsv or .jsonl file with db_id, gold_sql and predicted_sql."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The same rows with their status: .tsv or .jsonl.")
    ],
    semantics: Annotated[
        str, typer.Option(help="When results count as equal: reference or strict.")
    ] = "reference",
    timeout: Annotated[
        float | None,
        typer.Option(metavar="S", help="Seconds of processor time per query.", show_default="10"),
    ] = None,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Score SQL queries by execution: safely, beside the gold query's result."""
    from lm_eval_ext.sql import score_file

    summary = score_file(
        predictions, databases, out, semantics=semantics, timeout_s=timeout, workers=workers
    )
    typer.echo(json.dumps(summary.as_dict(), indent=2) if as_json else summary.as_text())
