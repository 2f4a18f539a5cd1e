"""``magnifico populate``: suites of databases, their report, and scoring by them."""

from pathlib import Path

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
    """A folder of one database, with a view that does not resolve."""
    written(tmp_path / "databases/yard/yard.sqlite", YARD)
    rows = "\n".join(f"yard\t{gold}" for gold in GOLDS)
    (tmp_path / "golds.tsv").write_text(f"db_id\tquery\n{rows}\n")
    return tmp_path


def run(yard: Path, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        app,
        [
            "magnifico", "populate", "--databases", str(yard / "databases"), "--output",
            str(yard / "out"), "--golds", str(yard / "golds.tsv"), *options,
        ],
    )  # fmt: skip
    return done.exit_code, f"{done.output}{done.exception or ''}"


def test_the_command_makes_a_suite_and_reports_on_it(yard: Path) -> None:
    code, said = run(yard)
    assert code == 0, said
    assert "1 suites of" in said
    assert "0 golds are judged by the original alone" in said
    assert (yard / "out/yard/suite.json").is_file()
    found = populating.databases_with_golds(yard / "databases", yard / "golds.tsv")
    made = populate_all(found, yard / "again")
    report = populating.examine(found, made)
    assert report.startswith(
        "2 golds (1 more do not run), 0 of them judged by the original alone\n"
        "0 golds with a mutant that is missed (none), of "
    )
    code, said = run(yard, "--check")
    assert (code, said.strip()) == (0, report)
    code, said = run(yard, "--golds", "none.tsv")
    assert code != 0
    assert "none.tsv" in said


def prepared(**options: str) -> load.PreparedCorpus:
    return load.prepared(load.dataset.options({"magnifico_corpus": "mini", **options}))


def test_what_populated_metrics_rest_on(kept_cache: Path) -> None:
    v3, v2 = (prepared(magnifico_populated=rows).scoring for rows in ("v3", "v2"))
    assert v3.signature.startswith("v3,")
    assert v2.signature.startswith("v2,")
    assert {name for suite in v2.suites.values() for name in suite.databases} == {COPY}
    rules = {name: semantics.suite_rule for name, semantics in SEMANTICS.items()}
    assert {name: v3.suite_semantics(name) for name in SEMANTICS} == rules
    assert {name: v2.suite_semantics(name) for name in SEMANTICS} == {n: n for n in SEMANTICS}
    db_id, query = prepared().corpus.examples[0].gold
    assert len(v3.suites[db_id].judging(query)) > 3
    assert list(v2.suites[db_id].judging(query)) == [COPY]
    with pytest.raises(OptionError, match="magnifico_populated: Input should be 'v3' or 'v2'"):
        prepared(magnifico_populated="v1")


def test_an_answer_is_right_only_if_it_is_right_on_all_databases(kept_cache: Path) -> None:
    task = load_task("magnifico_mini")
    doc = next(one for one in task.test_docs() if " > " in one["query"])

    def scored(answer: str, **other: str) -> dict[str, object]:
        found = task.process_results({**doc, **other}, [answer]).get("rows") or []
        return {row["database"]: row["correct"] for row in found if "database" in row}

    assert scored(doc["query"]) == {"populated": True, "original": True}
    almost = scored(doc["query"].replace(" > ", " >= ", 1))
    assert not almost["populated"]
    assert scored("SELECT") == {"populated": False, "original": False}
    assert scored("SELECT 1", query="SELECT no_such_column") == {}
    assert task.excluded()["gold_error"] == [doc["id"]]
