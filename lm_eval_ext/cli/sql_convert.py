"""``lm-eval-ext sql convert``: SQLite databases, and queries on them, on other engines."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lm_eval_ext.sql.convert.outcomes import Translated
    from lm_eval_ext.sql.convert.store import Source, Target

app = typer.Typer(help="SQLite databases on other engines.", no_args_is_help=True)

To = Annotated[
    str,
    typer.Option("--to", metavar="ENGINE", help="duckdb, or postgresql://owner@host/database."),
]
Readers = Annotated[
    list[str] | None,
    typer.Option("--reader", metavar="ROLE", help="A role of the server that may then read."),
]


@app.callback()
def _group() -> None:
    """Keeps ``convert`` a command of its own name."""


@app.command("convert")
def convert(
    *,
    databases: Annotated[
        Path,
        typer.Option(metavar="DIR", help="A SQLite file, or a folder of <db_id>/<db_id>.sqlite."),
    ],
    to: To,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder for the report, and for DuckDB's files."
        ),
    ],
    populated: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Copies with more rows (magnifico populate), converted alike."
        ),
    ] = None,
    golds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Queries to translate: .tsv, .csv or .jsonl with db_id and query. Those that "
            "give SQLite's result are told from the others in DIR/golds.tsv.",
        ),
    ] = None,
    reader: Readers = None,
) -> None:
    """Copy SQLite databases to DuckDB files or to schemas of a PostgreSQL server.

    Rows are copied as they are. A column whose values break its declared type gets a wider one,
    and a key that rows break is left out; each is said, and written to DIR/report.json. What is
    there already is not written again.
    """
    from lm_eval_ext.sql.convert import store

    sources = list(_sources(databases, populated))
    target = store.target_at(to, out, readers=reader or ())
    reports = {}
    for db_id, report in store.convert(sources, target):
        reports[db_id] = report
        notes = "".join(f"\n  {note}" for note in report.notes)
        typer.echo(f"{db_id}: {report.tables} tables, {report.rows:,} rows{notes}")
    store.write_report(out, {**target.reports(), **reports})
    if golds is not None:
        _translate(golds, sources, target, out / "golds.tsv")


def _sources(databases: Path, populated: Path | None) -> "Iterator[Source]":
    """The SQLite files by database.

    Raises:
        DataError: A database has no populated copy, or there is none at all.
    """
    from lm_eval_ext.errors import DataError
    from lm_eval_ext.sql import OneDatabase, databases_at, sqlite_path
    from lm_eval_ext.sql.convert.store import ORIGINAL, POPULATED, Source

    known = databases_at(databases)
    more = databases_at(populated, option="populated") if populated else None
    for db_id in [known.db_id] if isinstance(known, OneDatabase) else known.ids():
        found = {ORIGINAL: known.find(db_id)}
        if more is not None:
            found[POPULATED] = more.find(db_id)
        parts = {part: sqlite_path(place) for part, place in found.items() if place}
        if len(parts) < len(found):
            raise DataError(
                f"{populated} has no copy of {db_id}; run: lm-eval-ext magnifico populate"
            )
        yield Source(db_id.casefold(), parts)


def _translate(golds: Path, sources: "list[Source]", target: "Target", out: Path) -> None:
    """Translates queries, and writes what became of each."""
    import csv

    from lm_eval_ext.atomic import atomic_text
    from lm_eval_ext.benchmarks.magnifico.gold_files import golds_in
    from lm_eval_ext.errors import DataError
    from lm_eval_ext.sql import DIALECTS, Executor
    from lm_eval_ext.sql.convert.golds import Checker
    from lm_eval_ext.sql.convert.outcomes import as_text

    asked = [(db_id.casefold(), query) for db_id, query in golds_in(golds)]
    known = {source.db_id for source in sources}
    if lacking := next((db_id for db_id, _ in asked if db_id not in known), None):
        raise DataError(f"{golds}: there is no database {lacking!r}; name one of --databases")
    found: list[tuple[str, Translated]] = []
    with Executor(workers=1) as sqlite, Executor(workers=1) as other:
        checker = Checker(target.engine, sqlite, other)
        for source in sources:
            there = {part: target.place(source.db_id, part) for part in source.parts}
            queries = list(dict.fromkeys(query for db_id, query in asked if db_id == source.db_id))
            if queries:
                checked = checker.check(queries, source.parts, there)
                found += [(source.db_id, one) for one in checked]
    with atomic_text(out) as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(("db_id", "query", "translated", "reason", "detail"))
        rows.writerows((db_id, one.gold, one.sql, one.reason, one.detail) for db_id, one in found)
    typer.echo(f"{out}: {as_text([one for _, one in found], DIALECTS[target.engine].title)}")
