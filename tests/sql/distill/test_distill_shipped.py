"""Reports count ties at a LIMIT and broken rewrites; rows come back from a pack."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from distill_cases import content

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.distill import batch, populate_all
from lm_eval_ext.sql.distill.build import check, populate
from lm_eval_ext.sql.distill.cuts import cuts_of, tied
from lm_eval_ext.sql.distill.query import Query
from lm_eval_ext.sql.distill.scratch_db import Runner
from lm_eval_ext.sql.distill.shipped import Pack, pack
from lm_eval_ext.sql.parsing import parse
from lm_eval_ext.sql.schema import read_schema

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE TABLE ferry (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, built DATE, crew INTEGER);
CREATE TABLE blobs (b BLOB);
INSERT INTO blobs VALUES (x'00');
"""
NAMES = ("Aro", "Bel", "Cimo", "Dora Lin", "Edda", "Falk", "Gil", "Hanno", "Ines", "Jo")
KINDS = ("car", "foot", "night")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "port.sqlite"
    rows = [
        (n + 1, name, KINDS[n % 3], f"19{87 + n}-07-{20 + n}", 5 + n)
        for n, name in enumerate(NAMES)
    ]
    with closing(sqlite3.connect(path)) as opened:
        opened.executescript(SCRIPT)
        opened.executemany("INSERT INTO ferry VALUES (?, ?, ?, ?, ?)", rows)
        opened.commit()
    return path


QUERIES = [
    ("SELECT name FROM ferry ORDER BY crew LIMIT 1", 0),
    ("SELECT name FROM ferry ORDER BY kind LIMIT 1", 1),
    ("SELECT name FROM ferry ORDER BY kind, crew LIMIT 1", 0),
    ("SELECT name FROM ferry ORDER BY kind LIMIT 4", 0),
    ("SELECT name FROM ferry ORDER BY kind LIMIT 1 OFFSET 4", 1),
    ("SELECT name FROM ferry ORDER BY kind LIMIT 10", 0),
    ("SELECT name FROM ferry ORDER BY kind LIMIT 99", 0),
    ("SELECT kind AS k FROM ferry ORDER BY k LIMIT 1", 1),
    ("SELECT DISTINCT kind FROM ferry ORDER BY kind LIMIT 1", 0),
    ("SELECT kind FROM ferry GROUP BY kind ORDER BY count(*) DESC LIMIT 1", 0),
    ("SELECT kind FROM ferry GROUP BY kind ORDER BY count(*) LIMIT 1", 1),
    ("SELECT crew, kind FROM ferry ORDER BY 2 LIMIT 1", 1),
    ("SELECT name FROM ferry WHERE crew > (SELECT crew FROM ferry ORDER BY kind LIMIT 1)", 1),
    ("SELECT * FROM ferry ORDER BY 3 LIMIT 1", 0),  # not resolved, so not counted
    ("SELECT name FROM ferry ORDER BY kind LIMIT -1", 0),
    ("SELECT name FROM ferry LIMIT 1", 0),
]


@pytest.mark.parametrize(("sql", "count"), QUERIES)
def test_ties_where_a_limit_cuts(original: Path, sql: str, count: int) -> None:
    schema = read_schema(original)
    with closing(sqlite3.connect(original)) as connection:
        cuts = cuts_of(Query(parse(sql, schema), schema))
        assert len(tied(cuts, Runner(connection))) == count


GOLDS = [
    "SELECT name FROM ferry ORDER BY crew DESC LIMIT 1",
    "SELECT count(*) FROM ferry WHERE built BETWEEN '1987-07-01' AND '1987-07-31'",
    "SELECT name FROM ferry WHERE crew > (SELECT avg(crew) FROM ferry)",
    "SELECT name FROM ferry WHERE kind = 'barge' AND crew > 20",
]


def test_a_pack_gives_the_same_copy_and_errors(original: Path, tmp_path: Path) -> None:
    report = populate(original, [*GOLDS, "SELECT nothing"], tmp_path / "copy.sqlite")
    text = pack({"port": (original, tmp_path / "copy.sqlite", report)})
    assert text == pack({"port": (original, tmp_path / "copy.sqlite", report)})
    assert not any(gold in text for gold in GOLDS)
    (entry,) = json.loads(text)["databases"].values()
    assert sum(map(len, entry["rows"].values())) == sum(report.added.values()) > 0
    for row in entry["rows"]["ferry"]:  # a change of one row is a change of one line
        assert f"\n{json.dumps(row)}" in text
    (tmp_path / "rows.json").write_text(text)
    found, key = Pack.read(tmp_path / "rows.json"), sha256_of(original)
    assert key in found
    assert sha256_of(tmp_path / "copy.sqlite") not in found
    again = found.apply(key, original, [*GOLDS, "SELECT nothing"], tmp_path / "again.sqlite")
    assert again.added == report.added
    assert [gold.error is None for gold in again.golds] == [True] * len(GOLDS) + [False]
    assert content(tmp_path / "again.sqlite") == content(tmp_path / "copy.sqlite")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 0, "databases": {}}'])
def test_a_file_that_is_no_pack_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.json").write_text(text)
    with pytest.raises(DataError) as raised:
        Pack.read(tmp_path / "rows.json")
    assert "\n" not in str(raised.value)


def test_shipped_rows_spare_the_search(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = populate_all({"port": (original, GOLDS)}, tmp_path / "first")
    made_from = (original, tmp_path / "first/port/port.sqlite", first["port"])
    (tmp_path / "rows.json").write_text(pack({"port": made_from}))

    def searched(*_: object) -> NoReturn:
        raise AssertionError("it searched")

    monkeypatch.setattr(batch, "_run", lambda _databases, todo, *_: searched() if todo else ())
    again = populate_all(
        {"port": (original, GOLDS)}, tmp_path / "again", shipped=tmp_path / "rows.json"
    )
    assert again["port"].added == first["port"].added
    assert content(tmp_path / "again/port/port.sqlite") == content(made_from[1])
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as opened:
        opened.executescript(SCRIPT)
    with pytest.raises(AssertionError, match="it searched"):
        populate_all({"port": (other, GOLDS)}, tmp_path / "new", shipped=tmp_path / "rows.json")


def test_rewrites_that_a_row_breaks_are_reported(original: Path, tmp_path: Path) -> None:
    """A day that does not exist, and a new tie at the top; sound rows break nothing."""
    top = "SELECT name FROM ferry ORDER BY crew DESC LIMIT 1"
    july = "SELECT name FROM ferry WHERE built >= '1987-07-01' AND built < '1987-08-01'"
    sound = check(original, original, [top, july])
    assert all(gold.rewrites and not gold.broken and not gold.cut_ties for gold in sound.golds)
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(original.read_bytes())
    with closing(sqlite3.connect(copy)) as opened:
        opened.execute("INSERT INTO ferry (id, name, built, crew) VALUES (0, 'x', '1987-07-3', 1)")
        opened.execute("INSERT INTO ferry (id, name, built, crew) VALUES (99, 'y', NULL, 14)")
        opened.commit()
    found = {gold.gold: gold for gold in check(copy, original, [top, july]).golds}
    assert found[top].cut_ties == 1
    assert "first_as_extreme" in {one.kind for one in found[top].broken}
    assert "date_called" in {one.kind for one in found[july].broken}
    for gold in found.values():
        assert sum(gold.rewrites.values()) > len(gold.broken)
