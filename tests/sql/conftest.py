"""Databases that the tests write themselves, and that they must not change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.databases import written
from support.hostile_cases import Case
from support.small_databases import PATIENT, PEOPLE, TIGHT, state_of

from lm_eval_ext.sql import Executor


@pytest.fixture(scope="session")
def yard_sql() -> str:
    """The script of the documentation's example, which all engines run."""
    script = Path(__file__).parents[2] / "examples" / "magnifico_own" / "yard.sql"
    return script.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of databases whose bytes must be the same after the module's tests."""
    folder = tmp_path_factory.mktemp("databases")
    written(folder / "people/people.sqlite", PEOPLE)
    for name in ("Mixed_Case/Mixed_Case.sqlite", "flat.db", "100% a?b#c.sqlite"):
        written(folder / name, f"CREATE TABLE t (a); INSERT INTO t VALUES ('{name}');")
    written(
        folder / "bytes.sqlite",
        "CREATE TABLE t (id INTEGER, a);"
        "INSERT INTO t VALUES (1, CAST(x'61ff62' AS TEXT)), (2, CAST(x'61fe62' AS TEXT)),"
        "(3, x'61ff62'), (4, CAST(x'61eda08062' AS TEXT)), (5, 'a' || char(0) || 'b'), (6, 'a');",
    )
    written(
        folder / "search.sqlite",
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('red fox');",
    )
    (folder / "broken.sqlite").write_bytes(b"this is no database" * 100)
    (folder / "empty.sqlite").touch()
    before = state_of(folder)
    yield folder
    assert state_of(folder) == before


@pytest.fixture(scope="module")
def executor(databases: Path) -> Iterator[Executor]:
    with Executor(databases, workers=1, limits=PATIENT) as executor:
        yield executor


@pytest.fixture(scope="module")
def impatient(databases: Path) -> Iterator[Executor]:
    """An executor with tight limits, for queries that end on no machine."""
    with Executor(databases, workers=1, limits=TIGHT) as executor:
        yield executor


@pytest.fixture
def fitting(case: Case, executor: Executor, impatient: Executor) -> Executor:
    """The executor with a short limit of time for cases that can be late, else the patient one."""
    if case.can_be_late:
        return impatient
    return executor
