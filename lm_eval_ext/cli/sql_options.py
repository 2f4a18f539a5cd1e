"""Options that the commands about SQL have in common."""

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lm_eval_ext.sql.scoring import JudgeOptions
    from lm_eval_ext.sql.suite_choice import SuiteSource
    from lm_eval_ext.sql.values import EngineName

DEFAULT_SEMANTICS = "reference"

DatabasesOption = Annotated[
    str,
    typer.Option(
        "--databases",
        metavar="DB",
        help="A folder with <db_id>/<db_id>.sqlite or <db_id>.sqlite (or .duckdb), a SQLite or "
        "DuckDB file, or postgresql://user@host/database.",
    ),
]
SemanticsOption = Annotated[
    str,
    typer.Option(
        "--semantics",
        help="How results are compared: reference, strict, sets, spider, spider-distinct or bird.",
    ),
]
SuiteOption = Annotated[
    Path | None,
    typer.Option(
        "--suite",
        metavar="SUITES",
        help="Judge on test suites, too: the folder that magnifico populate wrote.",
    ),
]
BuildSuiteOption = Annotated[
    bool,
    typer.Option(
        "--build-suite",
        help="Build the test suites that are missing, for the golds of the file; without --suite "
        "in the cache.",
    ),
]
ExtractOption = Annotated[
    bool,
    typer.Option(
        "--extract",
        help="Predictions are answers of a chat model: read the query from each by the rules of "
        "the tasks.",
    ),
]
NoQuotesOption = Annotated[
    bool,
    typer.Option(
        "--no-quotes",
        help="In .csv and .tsv, quotation marks are ordinary characters, and no cell has a line "
        "break.",
    ),
]
ByOption = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Accuracy for each value of a column, such as db_id; several columns with commas.",
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        help="Seconds of CPU time per query (PostgreSQL: real time); default: 10.",
    ),
]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=1, max=64, help="Number of processes.")
]


def suite_source(suite: Path | None, *, build: bool, databases: str) -> "SuiteSource | None":
    """Return where suites come from; None if the originals alone judge.

    Suites that are built without a folder are kept in the cache, by the databases' path.
    """
    from lm_eval_ext.atomic import sha256_of_text
    from lm_eval_ext.data import cache_dir
    from lm_eval_ext.sql.suite_choice import SuiteSource

    if suite is None and not build:
        return None
    workers = os.cpu_count() or 1
    if suite is not None:
        return SuiteSource(suite, build=build, workers=workers)
    digest = sha256_of_text(str(Path(databases).expanduser().resolve()))[:12]
    return SuiteSource(cache_dir() / "suites" / digest, build=True, per_golds=True, workers=workers)


@dataclass(frozen=True)
class JudgeFlags:
    """The options by which a command judges, as they were given.

    Attributes:
        databases: As ``--databases``.
        semantics: As ``--semantics``.
        suite: As ``--suite``.
        build_suite: As ``--build-suite``.
        extract: As ``--extract``.
        no_quotes: As ``--no-quotes``.
    """

    databases: str
    semantics: str
    suite: Path | None
    build_suite: bool
    extract: bool
    no_quotes: bool

    def judge_options(self, timeout: float | None, workers: int) -> "JudgeOptions":
        """Return how predictions are judged."""
        from lm_eval_ext.sql.scoring import JudgeOptions

        return JudgeOptions(
            self.databases,
            self.semantics,
            suite_source(self.suite, build=self.build_suite, databases=self.databases),
            timeout,
            workers,
            quotes=not self.no_quotes,
            read_query=read_query if self.extract else None,
        )

    def explain_command(self, predictions: Path, row: int) -> str:
        """Return the command that explains a row of a file under the same options."""
        words = ["lm-eval-ext", "sql", "explain", "--databases", self.databases]
        words += ["--predictions", str(predictions), "--row", str(row)]
        if self.semantics != DEFAULT_SEMANTICS:
            words += ["--semantics", self.semantics]
        if self.suite is not None:
            words += ["--suite", str(self.suite)]
        if self.build_suite:
            words.append("--build-suite")
        if self.extract:
            words.append("--extract")
        if self.no_quotes:
            words.append("--no-quotes")
        return shlex.join(words)


def json_text(content: object) -> str:
    """Return JSON to be printed; text that is no Unicode, such as half a surrogate, is escaped."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(content, indent=2)
    return text


def read_query(answer: str, engine: "EngineName") -> str | None:
    """Return the query in the answer of any system, or None."""
    from lm_eval_ext.benchmarks.magnifico.foreign_answers import read_foreign_answer

    return read_foreign_answer(answer, engine)
