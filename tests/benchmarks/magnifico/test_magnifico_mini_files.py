"""magnifico_mini's files, the databases that are built from them, and their test suites."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import load, mini
from lm_eval_ext.benchmarks.magnifico.documents import Setting
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.suite import read_shipped

pytestmark = pytest.mark.slow


def _dump(path: Path) -> list[str]:
    """Return the script that makes a database."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_building_twice_gives_equal_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time, four threads build at once, as the ranks of a run do."""
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "alone"))
    databases = mini.databases()
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "at once"))
    with ThreadPoolExecutor(4) as pool:
        builds = [pool.submit(mini.databases) for _ in range(4)]
    rebuilt = builds[0].result()
    assert rebuilt == builds[-1].result()
    for db_id, database in databases.items():
        path = rebuilt[db_id].path
        assert path != database.path, db_id
        assert _dump(path) == _dump(database.path), db_id
    assert not list(tmp_path.rglob("*.part*"))


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"ferry_line.*file.*LM_EVAL_EXT_CACHE"):
        mini.databases()


@pytest.mark.usefixtures("kept_cache")
def test_suites_that_ship_belong_to_these_databases_and_golds() -> None:
    """Each gold is judged by rows that were added.

    If this fails, ``python -m bench.judge --pack`` makes the seeds anew.
    """
    shipped = read_shipped(mini.SHIPPED)
    suites = load.prepared(Setting(corpus="mini")).scoring.suites
    files = {sha256_of(database.path) for database in mini.databases().values()}
    assert shipped.rows.keys() == files
    assert shipped.seeds.keys() == {suite.key for suite in suites.values()}
    for db_id, suite in suites.items():
        assert all(suite.judges.values()), db_id
