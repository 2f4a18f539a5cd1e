"""``lm-eval-ext magnifico``: databases that tell near misses apart, positions of descriptions."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.cli.sql_convert import Readers, To

app = typer.Typer(
    help="MAGNIFICo: databases that distinguish gold queries from near misses, and positions.",
    no_args_is_help=True,
)

Source = Annotated[
    str,
    typer.Option(
        "--databases",
        metavar="PATH|URL",
        help="A folder of databases, such as Spider's `database`, or one database: of SQLite or "
        "DuckDB, a folder of Parquet or CSV files, postgresql://reader@host/database.",
    ),
]
Golds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Gold queries of your own: .tsv, .csv or .jsonl with query, and db_id unless there "
        "is one database. MAGNIFICo's if left out.",
    ),
]
Into = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="PostgreSQL: an empty database for the copy, as a role that may write there.",
    ),
]
Workers = Annotated[int, typer.Option(help="Number of processes.")]


@app.command("populate")
def populate(
    *,
    databases: Source,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for copies and reports.")
    ],
    golds: Golds = None,
    into: Into = "",
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Search for rows, also where they are shipped.")
    ] = False,
    pack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the added rows to a file, to ship them."),
    ] = None,
    workers: Workers = 2,
) -> None:
    """Copy the databases and add rows on which near misses differ from the gold queries.

    The last lines say how many near misses still have a gold query's result, and how many
    rewrites of gold queries, which are right, have another one.
    """
    from lm_eval_ext.benchmarks.magnifico import corpora, gold_files, near_misses

    corpus, found = gold_files.wanted(databases, golds)
    shipped = None if rebuild else corpora.SHIPPED
    reports = near_misses.build(found, out, shipped=shipped, into=into, workers=workers)
    if pack is not None:
        near_misses.write_pack(pack, found, out, reports)
    for report in reports.values():
        for line in report.left_out:
            typer.echo(f"{report.database}: not searched for: {line}")
    rows = sum(sum(report.added.values()) for report in reports.values())
    typer.echo(f"{into or out}: {len(reports)} databases, {rows:,} rows added")
    typer.echo(near_misses.count(reports, corpus, near_misses.FORMS).as_text())


@app.command("near-misses")
def count(
    *,
    databases: Source,
    originals: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|URL",
            help="The databases that these were copied from, if not the published ones.",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option(help="Examples to count: plausible, foreign, adversarial, base or all.")
    ] = "plausible",
    golds: Golds = None,
    semantics: Annotated[
        str, typer.Option(help="DuckDB and PostgreSQL: when results are equal, also strict.")
    ] = "reference",
    by_rule: Annotated[
        bool, typer.Option("--rules", help="Also print ties and broken rewrites by rule.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print counts, all ties and broken rewrites as JSON.")
    ] = False,
    workers: Workers = 2,
) -> None:
    """Count near misses with the gold query's result, and rewrites with another one."""
    from lm_eval_ext.benchmarks.magnifico import gold_files, near_misses
    from lm_eval_ext.errors import OptionError

    forms = near_misses.FORMS
    if form != "all" and form not in forms:
        raise OptionError(f"--form {form}: use {', '.join(forms)} or all")
    corpus, wanted = gold_files.wanted(databases, golds)
    reports = near_misses.examine(wanted, originals=originals, semantics=semantics, workers=workers)
    chosen = forms if form == "all" or golds is not None else [form]
    found = near_misses.count(reports, corpus, chosen)  # type: ignore[arg-type]
    if as_json:
        content = {
            "form": form,
            **asdict(found),
            "share": found.share,
            "ties": near_misses.listed(reports),
            "rewrites_broken": near_misses.listed_rewrites(reports),
        }
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(found.as_text())
    if by_rule:
        from rich.console import Console

        for table in near_misses.by_rule(found):
            Console().print(table)


@app.command("convert")
def convert(
    *,
    to: To,
    mini: Annotated[
        bool, typer.Option("--mini", help="The databases of magnifico_mini instead.")
    ] = False,
    reader: Readers = None,
) -> None:
    """Bring MAGNIFICo to another engine, for the tasks' magnifico_engine.

    DuckDB's files lie in the cache, where the tasks write them by themselves. A server gets its
    schemas here, from a role that may create some; then, as a role that may only read, the same
    command says how many gold queries can be scored, and why the others cannot.
    """
    from lm_eval_ext.benchmarks.magnifico import converted, load

    name = "mini" if mini else "published"
    ready = load.prepare(name)  # type: ignore[arg-type]
    sources = converted.sources(ready.corpus, ready.scoring.original, ready.scoring.populated)
    for line in converted.bring(name, sources, ready.corpus.golds(), to, reader or ()):
        typer.echo(line)


@app.command("generate")
def generate(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DB",
            help="A file of SQLite or DuckDB, a folder of Parquet or CSV files, or "
            "postgresql://reader@host/database.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
    questions: Annotated[int, typer.Option(help="Questions, each in all of its forms.")] = 100,
    lexicon: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML: what tables and columns are called in English."),
    ] = None,
    into: Into = "",
) -> None:
    """Make questions on any database, which the tasks magnifico_own_... ask.

    Every question runs, is not empty, and is told from its near misses on populated rows, which are
    part of the folder. What was dropped is counted by reason.
    """
    from tqdm import tqdm

    from lm_eval_ext.benchmarks.magnifico.generate import folder

    with tqdm(total=questions, desc="questions", unit="q", disable=None) as bar:
        made, said = folder.generate(
            database,
            out,
            seed=seed,
            questions=questions,
            words=lexicon,
            into=into,
            progress=bar.update,
        )
    if not made.profile.keys:
        typer.echo("The database declares no foreign keys, so no question joins tables.")
    typer.echo(folder.as_text(said))
    if said["database"].get("engine") == "PostgreSQL" and not into:
        typer.echo("Without --into, near misses were told apart in SQLite only.")
    task = folder.task_of(said["database"]["name"])
    typer.echo(f"Ask them: lm_eval --include_path {out} --tasks {task} --model hf ...")


@app.command("positions")
def positions(
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS", help="A folder of results and samples of lm_eval."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Compare descriptions at the start and in the middle of prompts with those at the end."""
    from lm_eval_ext.benchmarks.magnifico import positions as compared

    rows = compared.compare(results)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    typer.echo(compared.as_text(rows))
