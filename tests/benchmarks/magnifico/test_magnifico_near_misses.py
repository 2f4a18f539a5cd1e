"""``lm-eval-ext magnifico``: building populated copies, and counting ties on databases."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lm_eval_ext.benchmarks.magnifico import gold_files, near_misses
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, Corpus, Example
from lm_eval_ext.cli.magnifico import app
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.sql.distill import GoldReport, Report, Tie
from lm_eval_ext.sql.distill.report import Broken
from lm_eval_ext.sql.mutants import Mutant

pytestmark = pytest.mark.slow


def gold(
    sql: str, *reasons: str | None, empty: str | None = None, error: str | None = None
) -> GoldReport:
    ties = tuple(Tie(sql, Mutant("k", f"{sql} {i}", ""), r) for i, r in enumerate(reasons))
    return GoldReport(sql, -1, 0, 10, 1, ties, empty, error)


def test_what_is_counted() -> None:
    """One per example: a gold of two examples counts twice, one of another form not at all."""
    report = Report(
        "yard",
        {},
        (
            gold("told apart"),
            replace(
                gold("tied", None, "proven"),
                rewrites={"in_as_exists": 2, "join_swapped": 1},
                broken=(Broken("in_as_exists", "SELECT 2", "1 -> 2"),),
                cut_ties=1,
                new_cut_ties=1,
            ),
            gold("equivalent", "proven"),
            gold("empty", empty="not filled"),
            gold("never", empty="unsatisfiable: no row can be"),
            gold("broken", error="no such table"),
        ),
        {"usual": 98, "first null": 1, "malformed": 1},
    )
    asked = ["told apart", "tied", "tied", "equivalent", "empty", "never", "broken"]
    examples = [
        Example(f"w/{i}", ("w",), "plausible", "Yard", "?", sql) for i, sql in enumerate(asked)
    ]
    examples += [Example("w/0", ("w",), BASE, "Yard", "?", "tied")]
    support = {("w", NOVEL[0]): (Example("w/s", ("w",), NOVEL[0], "gone", "?", "tied"),)}
    corpus = Corpus({}, tuple(examples), support)
    found = near_misses.count({"yard": report}, corpus, ["plausible"])
    assert found == near_misses.Count(
        examples=7, database_missing=1, broken=1, golds=6, near_misses=60, undecided=6,
        tied=2, equivalent=1, empty=1, unsatisfiable=1, cut_ties=2, new_cut_ties=2,
        kinds={"k": 2}, values={"usual": 98, "first null": 1, "malformed": 1},
        rules={"in_as_exists": (4, 2), "join_swapped": (2, 0)},
    )  # fmt: skip
    assert found.share == pytest.approx(2 / 6)
    assert "2 tie with a near miss (33.3 %)" in found.as_text()
    assert "2 of 6 rewrites are judged wrong (33.3 %)" in found.as_text()
    assert "a LIMIT that cuts a tie, 2 of them a new one" in found.as_text()
    assert "100 added values, 98.0 % as their column's own; first null 1, new" in found.as_text()
    assert [one["rewrite"] for one in near_misses.listed_rewrites({"yard": report})] == ["SELECT 2"]
    listed = near_misses.listed({"yard": report})
    assert [(tie["gold"], tie["equivalent"]) for tie in listed] == [
        ("tied", None), ("tied", "proven"), ("equivalent", "proven"),
    ]  # fmt: skip


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, LmEvalExtError):
        raise result.exception  # the program's own front prints it as one line
    assert result.exit_code == 0, result.output
    return result.stdout


def counted(databases: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        run("near-misses", "--databases", databases, "--form", "all", "--json", "--workers", "1")
    )
    return content


def test_copies_are_built_anywhere_and_tell_more_apart(real_data: Path, tmp_path: Path) -> None:
    for db_id in ("icfp_1", "products_gen_characteristics"):
        shutil.copytree(real_data / "spider_databases" / db_id, tmp_path / "in" / db_id)
    said = run("populate", "--databases", tmp_path / "in", "--out", tmp_path / "out")
    assert "2 databases" in said
    before, after = counted(tmp_path / "in"), counted(tmp_path / "out")
    assert before["golds"] == after["golds"] > 0
    assert before["tied"] > after["tied"]
    assert after["share"] == after["tied"] / after["golds"]
    assert after["empty"] == 0


def test_with_the_originals_the_count_is_the_builds(real_data: Path, tmp_path: Path) -> None:
    """What is proven from rows that stay counts in both."""
    for db_id in ("icfp_1", "products_gen_characteristics"):
        shutil.copytree(real_data / "spider_databases" / db_id, tmp_path / "in" / db_id)
    _, wanted = gold_files.wanted(tmp_path / "in", None)
    built = near_misses.build(wanted, tmp_path / "out", workers=1, progress=False)
    _, made = gold_files.wanted(tmp_path / "out", None)
    found = near_misses.examine(made, originals=tmp_path / "in", workers=1, progress=False)
    assert {db_id: report.golds for db_id, report in found.items()} == {
        db_id: report.golds for db_id, report in built.items()
    }
    # The published ones are at hand, so copies of them need not be told.
    assert near_misses.examine(made, workers=1, progress=False) == found
    shutil.rmtree(tmp_path / "in" / "icfp_1")
    with pytest.raises(DataError, match="does not have the original of icfp_1"):
        run("near-misses", "--databases", tmp_path / "out", "--originals", tmp_path / "in")


def test_a_copy_may_lie_in_the_working_folder(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile(real_data / "spider_databases/icfp_1/icfp_1.sqlite", tmp_path / "icfp_1.sqlite")
    monkeypatch.chdir(tmp_path)
    assert near_misses._of_copy(Path("icfp_1.sqlite"), "icfp_1", ()) is None  # never populated


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (("--workers", "0"), OptionError, r"workers=0: use 1 or more"),
        (("--form", "strange"), OptionError, r"--form strange: use base, plausible"),
    ],
)
def test_an_illegal_option_is_one_line(
    options: tuple[str, ...], kind: type[LmEvalExtError], message: str, real_data: Path
) -> None:
    with pytest.raises(kind, match=message) as caught:
        run("near-misses", "--databases", real_data / "spider_databases", *options)
    assert "\n" not in str(caught.value)


def test_a_folder_without_its_databases_is_named(real_data: Path, tmp_path: Path) -> None:
    assert real_data
    with pytest.raises(DataError, match="no database in the folder"):
        run("near-misses", "--databases", tmp_path)


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    place = tmp_path / "databases" / "yard"
    place.mkdir(parents=True)
    with closing(sqlite3.connect(place / "yard.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE mast (name TEXT PRIMARY KEY, height INTEGER);"
            "INSERT INTO mast VALUES ('fore', 28), ('main', 33), ('mizzen', 21);"
        )
    return tmp_path / "databases"


GOLD = "SELECT name FROM mast WHERE height > 30"


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_anybodys_golds_on_anybodys_database(yard: Path, tmp_path: Path, ending: str) -> None:
    golds = tmp_path / f"golds.{ending}"
    golds.write_text(
        {
            "tsv": f"query\tdb_id\n{GOLD}\tYard\n",
            "csv": f"db_id,query\nyard,{GOLD}\n",
            "jsonl": json.dumps({"db_id": "yard", "query": GOLD}) + "\n\n",
        }[ending]
    )
    said = run("populate", "--databases", yard, "--out", tmp_path / "out", "--golds", golds)
    assert "1 databases" in said
    before, after = (
        run("near-misses", "--databases", folder, "--golds", golds, "--rules", "--workers", "1")
        for folder in (yard, tmp_path / "out")
    )
    assert "1 tie with a near miss (100.0 %)" in before
    assert "0 tie with a near miss" in after
    assert re.search(r"\n0 of \d+ rewrites are judged wrong \(0.0 %\)", after)
    assert "step_of_one" in after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no gold queries"),
        ("db_id\tquery\n", "no gold queries"),
        ("db_id\tsql\nyard\tSELECT 1\n", ":2: needs a db_id and a query"),
        ("db_id\tquery\nyard\tSELECT 1\nyard\t\n", ":3: needs a db_id and a query"),
    ],
)
def test_a_file_without_golds_is_one_line(
    yard: Path, tmp_path: Path, text: str, message: str
) -> None:
    golds = tmp_path / "golds.tsv"
    golds.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        run("populate", "--databases", yard, "--out", tmp_path / "out", "--golds", golds)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
