"""``lm-eval-ext magnifico``: databases that tell near misses apart, positions of descriptions."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="MAGNIFICo: databases that distinguish gold queries from near misses, and positions.",
    no_args_is_help=True,
)

Folder = Annotated[
    Path,
    typer.Option(
        "--databases", metavar="DIR", help="A folder of databases, such as Spider's `database`."
    ),
]
Workers = Annotated[int, typer.Option(help="Number of processes.")]


@app.command("populate")
def populate(
    databases: Folder,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the copies.")],
    workers: Workers = 2,
) -> None:
    """Copy the databases and add rows on which near misses differ from the gold queries."""
    from lm_eval_ext.benchmarks.magnifico import near_misses

    reports = near_misses.build(databases, out, workers=workers)
    rows = sum(sum(report.added.values()) for report in reports.values())
    typer.echo(f"{out}: {len(reports)} databases, {rows:,} rows added")


@app.command("near-misses")
def count(
    databases: Folder,
    originals: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The databases that these were copied from, if not the published ones.",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option(help="Examples to count: plausible, foreign, adversarial, base or all.")
    ] = "plausible",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print counts and all ties as JSON.")
    ] = False,
    workers: Workers = 2,
) -> None:
    """Count the gold queries with a near miss that has the same result on these databases."""
    from lm_eval_ext.benchmarks.magnifico import near_misses
    from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL
    from lm_eval_ext.errors import OptionError

    forms = (BASE, *NOVEL)
    if form != "all" and form not in forms:
        raise OptionError(f"--form {form}: use {', '.join(forms)} or all")
    corpus = near_misses.texts()
    reports = near_misses.examine(databases, originals=originals, workers=workers)
    found = near_misses.count(reports, corpus, forms if form == "all" else [form])  # type: ignore[list-item]
    if as_json:
        content = {
            "form": form,
            **asdict(found),
            "share": found.share,
            "ties": near_misses.listed(reports),
        }
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(found.as_text())


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
