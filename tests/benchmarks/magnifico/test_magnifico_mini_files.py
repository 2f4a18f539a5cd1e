"""magnifico_mini's files, the databases that are built from them, and their test suites."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import load, mini
from lm_eval_ext.benchmarks.magnifico.documents import Setting
from lm_eval_ext.errors import DataError

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
    rows = json.loads((mini.SHIPPED / "populated.json").read_text(encoding="utf-8"))["databases"]
    assert {key: entry["database"] for key, entry in rows.items()} == {
        sha256_of(database.path): db_id for db_id, database in mini.databases().items()
    }
    seeds = json.loads((mini.SHIPPED / "suites.json").read_text(encoding="utf-8"))["databases"]
    suites = load.prepared(Setting(corpus="mini")).scoring.suites
    assert {key: entry["database"] for key, entry in seeds.items()} == {
        suite.key: db_id for db_id, suite in suites.items()
    }
    for suite in suites.values():
        hashes = [content[:16] for content in suite.databases.values()]
        assert hashes == seeds[suite.key]["hashes"]
        assert suite.judges.keys() == seeds[suite.key]["golds"].keys()
        assert all(suite.judges.values()), "each gold is judged by rows that were added"
