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
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_building_twice_gives_equal_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "first"))
    first = mini.databases()
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "second"))
    with ThreadPoolExecutor(4) as pool:  # at once, as the ranks of a run do
        others = list(pool.map(lambda _: mini.databases(), range(4)))
    assert others[0] == others[-1]
    for db_id, database in first.items():
        again = others[0][db_id].path
        assert again != database.path
        assert _dump(again) == _dump(database.path)
    assert not list(tmp_path.rglob("*.part*"))


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"ferry_line.*file.*LM_EVAL_EXT_CACHE"):
        mini.databases()


@pytest.mark.usefixtures("kept_cache")
def test_what_ships_belongs_to_these_databases_and_golds() -> None:
    """Otherwise: ``python -m bench.judge --pack`` makes the seeds anew."""
    shipped = read_shipped(mini.SHIPPED)
    suites = load.prepared(Setting(corpus="mini")).scoring.suites
    files = {sha256_of(database.path) for database in mini.databases().values()}
    assert shipped.rows.keys() == files
    assert shipped.seeds.keys() == {suite.key for suite in suites.values()}
    for suite in suites.values():
        assert all(suite.judges.values()), "each gold is judged by rows that were added"
