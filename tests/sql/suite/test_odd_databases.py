"""Any file that SQLite reads gets a suite, or one line says what has none and why."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.odd_databases import ODD, write
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.suite import SuiteRunners, build, populate, populate_all, store


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


SLOW = ("wide", "many_tables")
"""Databases that take seconds."""


def odd_databases() -> Iterator[Any]:
    """Yield the names of all databases; a slow one is marked."""
    for name in ODD:
        marks = [pytest.mark.slow] if name in SLOW else []
        yield pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", list(odd_databases()))
def test_a_database_with_one_odd_thing(name: str, tmp_path: Path) -> None:
    """The gold is judged by small databases, by the original alone, or the file is refused."""
    database = ODD[name]
    file = write(tmp_path / "databases", name)
    before = listing(tmp_path / "databases")
    if database.outcome == "unreadable":
        with pytest.raises(DataError, match="cannot read the database") as caught:
            populate(name, file, [database.gold], tmp_path / "suites")
        assert str(caught.value).isprintable()
        return
    suite = populate(name, file, [database.gold], tmp_path / "suites")
    assert listing(tmp_path / "databases") == before
    assert sorted(suite.excluded) == sorted(database.excluded)
    assert len(suite.judges) == 1, "the gold runs on the original"
    assert bool(suite.judges_of(database.gold)) == (database.outcome == "suite")
    judge = SuiteRunners(suite, file)
    assert judge.wrong_on(database.gold, database.gold) is None
    judge.close()


def test_one_command_for_all_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """``populate`` ends with status 0; a line names each database that has no suite."""
    readable = ("latin1", "name_greek", "fts5", "check_function_read")
    unreadable = ("garbage", "encrypted")
    rows = ["db_id\tquery"]
    for name in (*readable, *unreadable):
        write(tmp_path / "databases", name)
        rows.append(f"{name}\t{ODD[name].gold}")
    golds = tmp_path / "golds.tsv"
    golds.write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = ["--databases", str(tmp_path / "databases"), "--golds", str(golds)]
    result = CliRunner().invoke(
        app, ["magnifico", "populate", *options, "--output", str(tmp_path / "suites")]
    )
    assert result.exit_code == 0, result.output
    assert "4 suites of" in result.output
    assert "1 golds are judged by the original alone" in result.output
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for name in unreadable:
        (line,) = (line for line in warnings if line.startswith(f"{name}: no test suite"))
        assert "file is not a database" in line
    (line,) = (line for line in warnings if line.startswith("check_function_read: "))
    assert "c (no such function: REGEXP)" in line


def test_a_defect_stops_no_other_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception that nobody expected is one line, and the other databases have suites."""
    original = build.gold_cases

    def fail_for_latin1(source: build.Original) -> list[build.GoldCase]:
        if source.path.stem == "latin1":
            raise ZeroDivisionError("a defect")
        return original(source)

    monkeypatch.setattr(store, "gold_cases", fail_for_latin1)
    jobs = {
        name: (write(tmp_path / "databases", name), [ODD[name].gold])
        for name in ("latin1", "infinity")
    }
    suites = populate_all(jobs, tmp_path / "suites")
    assert set(suites) == {"infinity"}
    assert (
        "latin1: no test suite, so the original alone judges its golds: "
        "ZeroDivisionError: a defect" in caplog.text
    )


def test_functions_are_known_to_the_writer_only() -> None:
    """The cases above mean something only if SQLite lacks these functions."""
    connection = sqlite3.connect(":memory:")
    for name in ("shout", "regexp"):
        with pytest.raises(sqlite3.OperationalError, match="no such function"):
            connection.execute(f"SELECT {name}('a')")
    connection.close()
