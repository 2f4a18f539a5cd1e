"""``lm-eval-ext magnifico``: test suites of databases, and new questions."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lm_eval_ext.sql.suite import Suite

app = typer.Typer(
    help="MAGNIFICo: build test suites, and generate questions on a database.",
    no_args_is_help=True,
)


GoldsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Gold queries of your own: .tsv, .csv or .jsonl with query, and db_id unless there is "
        "one database. Default: MAGNIFICo's.",
    ),
]


@app.command("populate")
def populate(
    *,
    databases: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="A SQLite database, or a folder of them, such as Spider's `database`.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for test suites.")
    ],
    golds: GoldsOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Report gold queries with a missed mutant or without a suite."
        ),
    ] = False,
) -> None:
    """Build test suites: databases on which answers are judged in addition to the original.

    DIR gets a folder per database: small databases, suite.json (which of them judge which gold).
    """
    from lm_eval_ext.benchmarks.magnifico import corpora, populating
    from lm_eval_ext.errors import DataError
    from lm_eval_ext.sql import suite

    golds_by_database = populating.databases_with_golds(databases, golds)
    shipped = suite.read_shipped(corpora.SHIPPED)
    workers = min(len(golds_by_database), os.cpu_count() or 1)
    suites = suite.populate_all(golds_by_database, out, shipped, workers=workers)
    if not suites:
        raise DataError(f"{databases}: no test suite could be built; see the lines above")
    if check:
        typer.echo(populating.examine(golds_by_database, suites))
        return
    typer.echo(f"{out}: {_sizes(suites)}")


def _sizes(suites: "Mapping[str, Suite]") -> str:
    """Return how many suites and databases there are, and how many golds have none."""
    database_count = 0
    unsuited_golds = 0
    for suite in suites.values():
        database_count += len(suite.names)
        unsuited_golds += sum(not names for names in suite.judges.values())
    return (
        f"{len(suites)} suites of {database_count:,} databases; {unsuited_golds:,} golds are "
        "judged by the original alone"
    )


@app.command("generate")
def generate(
    database: Annotated[Path, typer.Argument(metavar="DB", help="A SQLite file.")],
    *,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 0,
    questions: Annotated[
        int, typer.Option(min=1, help="Number of questions, each in all its forms.")
    ] = 100,
    lexicon: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A YAML file with English names of tables and columns."),
    ] = None,
) -> None:
    """Generate questions on a database for the tasks magnifico_own_...

    Every query runs, is not empty, and differs from its mutants on its suite; drops are counted.
    """
    import shlex

    from tqdm import tqdm

    from lm_eval_ext.benchmarks.magnifico.generate import folder

    with tqdm(total=questions, desc="questions", unit="q", disable=None) as bar:
        _, report = folder.generate(
            database, out, seed=seed, questions=questions, lexicon=lexicon, progress=bar.update
        )
    typer.echo(folder.report_text(report))
    task = folder.task_name(report["database"]["name"])
    include_path = shlex.quote(str(out))
    evaluation = f"lm_eval --include_path {include_path} --tasks {task} --model hf-prefix ..."
    typer.echo(f"Ask them: {evaluation}")
