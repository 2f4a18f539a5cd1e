"""``magnifico populate``: suites of databases, their report, and scoring by them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.databases import written
from support.tasks import load_task
from typer.testing import CliRunner

from lm_eval_ext.benchmarks.magnifico import load, populating
from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql import SEMANTICS
from lm_eval_ext.sql.suite import COPY, populate_all

YARD = """
CREATE TABLE boats (id INTEGER PRIMARY KEY, name TEXT, tons INTEGER, built DATE);
INSERT INTO boats VALUES (1, 'Anna', 400, '1987-07-15'), (2, 'Bert', 700, '1988-08-01'),
  (3, 'Cleo', 900, '1989-01-31');
CREATE VIEW old AS SELECT no_such_column FROM boats;
"""
GOLDS = (
    "SELECT name FROM boats WHERE tons > 500",
    "SELECT AVG(tons) FROM boats",
    "SELECT name FROM old",
)


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    """Return a folder of one database, with a view that does not resolve."""
    written(tmp_path / "databases/yard/yard.sqlite", YARD)
    rows = "\n".join(f"yard\t{gold}" for gold in GOLDS)
    (tmp_path / "golds.tsv").write_text(f"db_id\tquery\n{rows}\n")
    return tmp_path


@dataclass(frozen=True)
class CommandResult:
    """The status of a command, and all that it printed, its error included."""

    status: int
    output: str


def populate(yard: Path, *options: str) -> CommandResult:
    arguments = {
        "--databases": yard / "databases",
        "--output": yard / "out",
        "--golds": yard / "golds.tsv",
    }
    words = ["magnifico", "populate"]
    for option, path in arguments.items():
        words += [option, str(path)]
    result = CliRunner().invoke(app, [*words, *options])
    return CommandResult(result.exit_code, f"{result.output}{result.exception or ''}")


def test_the_command_makes_a_suite(yard: Path) -> None:
    """It says how many golds only the original judges."""
    result = populate(yard)
    assert result.status == 0, result.output
    assert "1 suites of" in result.output
    assert "0 golds are judged by the original alone" in result.output
    assert (yard / "out/yard/suite.json").is_file()


def test_the_command_reports_on_a_suite(yard: Path) -> None:
    """``--check`` prints the report on golds, mutants and databases."""
    databases = populating.databases_with_golds(yard / "databases", yard / "golds.tsv")
    suites = populate_all(databases, yard / "out")
    report = populating.examine(databases, suites)
    assert report.startswith(
        "2 golds (1 more do not run), 0 of them judged by the original alone\n"
        "0 golds with a mutant that is missed (none), of "
    )
    result = populate(yard, "--check")
    assert result.status == 0
    assert result.output.strip() == report


def test_the_command_names_a_missing_file(yard: Path) -> None:
    """Golds that do not exist are an error."""
    result = populate(yard, "--golds", "none.tsv")
    assert result.status != 0
    assert "none.tsv" in result.output


def prepared(**options: str) -> load.PreparedCorpus:
    return load.prepared(load.dataset.options({"magnifico_corpus": "mini", **options}))


def test_populated_metrics_rest_on_suites(kept_cache: Path) -> None:
    """Version 3 judges by several databases under a suite's rules; each rule has its own."""
    scoring = prepared(magnifico_populated="v3").scoring
    assert scoring.signature.startswith("v3,")
    for name, semantics in SEMANTICS.items():
        assert scoring.suite_semantics(name) == semantics.suite_rule
    db_id, query = prepared().corpus.examples[0].gold
    assert len(scoring.suites[db_id].judges_of(query)) > 3


def test_version_2_judges_by_one_copy(kept_cache: Path) -> None:
    """Its rule is the original's."""
    scoring = prepared(magnifico_populated="v2").scoring
    assert scoring.signature.startswith("v2,")
    for suite in scoring.suites.values():
        assert set(suite.names) == {COPY}
    for name in SEMANTICS:
        assert scoring.suite_semantics(name) == name
    db_id, query = prepared().corpus.examples[0].gold
    assert list(scoring.suites[db_id].judges_of(query)) == [COPY]


def test_version_1_is_gone() -> None:
    """The error names the versions there are."""
    with pytest.raises(OptionError, match="magnifico_populated: Input should be 'v3' or 'v2'"):
        prepared(magnifico_populated="v1")


def verdicts(task: Any, doc: Mapping[str, Any], answer: str) -> dict[str, bool]:
    """Return whether an answer is right, by kind of database; nothing if it is not scored."""
    by_database = {}
    for row in task.process_results(doc, [answer]).get("rows") or []:
        if "database" in row:
            by_database[row["database"]] = row["correct"]
    return by_database


def test_an_answer_is_right_only_if_it_is_right_on_all_databases(kept_cache: Path) -> None:
    """A query that is almost right is wrong on a populated database."""
    task = load_task("magnifico_mini")
    doc = next(doc for doc in task.test_docs() if " > " in doc["query"])
    assert verdicts(task, doc, doc["query"]) == {"populated": True, "original": True}
    almost_right = doc["query"].replace(" > ", " >= ", 1)
    assert not verdicts(task, doc, almost_right)["populated"]
    assert verdicts(task, doc, "SELECT") == {"populated": False, "original": False}


def test_an_answer_to_a_gold_query_that_fails_is_not_scored(kept_cache: Path) -> None:
    """The document is excluded, and named with the cause."""
    task = load_task("magnifico_mini")
    doc = {**next(iter(task.test_docs())), "query": "SELECT no_such_column"}
    assert verdicts(task, doc, "SELECT 1") == {}
    assert task.excluded()["gold_error"] == [doc["id"]]
