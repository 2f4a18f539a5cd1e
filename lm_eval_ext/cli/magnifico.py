"""``lm-eval-ext magnifico``: databases that distinguish near misses, and new questions."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="MAGNIFICo: databases that distinguish gold queries from near misses, new questions.",
    no_args_is_help=True,
)

Source = Annotated[
    str,
    typer.Option(
        "--databases",
        metavar="PATH",
        help="A SQLite database, or a folder of them, such as Spider's `database`.",
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
Workers = Annotated[int, typer.Option(help="Number of processes.")]


@app.command("populate")
def populate(
    *,
    databases: Source,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for copies and reports.")
    ],
    golds: Golds = None,
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

    After a search the last lines say how many near misses still have a gold query's result, and
    how many rewrites of gold queries, which are right, have another one.
    """
    from lm_eval_ext.benchmarks.magnifico import corpora, gold_files, near_misses

    corpus, found = gold_files.wanted(databases, golds)
    shipped = None if rebuild else corpora.SHIPPED
    reports = near_misses.build(found, out, shipped=shipped, workers=workers)
    if pack is not None:
        near_misses.write_pack(pack, found, out, reports)
    for report in reports.values():
        for line in report.left_out:
            typer.echo(f"{report.database}: not searched for: {line}")
    rows = sum(sum(report.added.values()) for report in reports.values())
    typer.echo(f"{out}: {len(reports)} databases, {rows:,} rows added")
    if any(gold.near_misses for report in reports.values() for gold in report.golds):
        typer.echo(near_misses.count(reports, corpus, near_misses.FORMS).as_text())
    else:
        typer.echo("shipped rows; magnifico near-misses examines the copies")


@app.command("near-misses")
def count(
    *,
    databases: Source,
    originals: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The databases that these were copied from, if not the published ones.",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option(help="Examples to count: plausible, foreign, adversarial, base or all.")
    ] = "plausible",
    golds: Golds = None,
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
    reports = near_misses.examine(wanted, originals=originals, workers=workers)
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


@app.command("generate")
def generate(
    database: Annotated[Path, typer.Argument(metavar="DB", help="A SQLite file.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 0,
    questions: Annotated[int, typer.Option(help="Questions, each in all of its forms.")] = 100,
    lexicon: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML: what tables and columns are called in English."),
    ] = None,
) -> None:
    """Make questions on any database, which the tasks magnifico_own_... ask.

    Every question runs, is not empty, and its query differs from each of its mutants on the
    databases of its test suite. What was dropped is counted by reason.
    """
    import shlex

    from tqdm import tqdm

    from lm_eval_ext.benchmarks.magnifico.generate import folder

    with tqdm(total=questions, desc="questions", unit="q", disable=None) as bar:
        _, said = folder.generate(
            database, out, seed=seed, questions=questions, lexicon=lexicon, progress=bar.update
        )
    typer.echo(folder.as_text(said))
    task = folder.task_of(said["database"]["name"])
    place = shlex.quote(str(out))
    typer.echo(f"Ask them: lm_eval --include_path {place} --tasks {task} --model hf ...")
