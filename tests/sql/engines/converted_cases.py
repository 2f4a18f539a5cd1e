"""A SQLite database that is hard to convert, and queries that must survive or must not."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.convert.columns import Type
from lm_eval_ext.sql.convert.drafts import Tally, plan
from lm_eval_ext.sql.convert.golds import Checker
from lm_eval_ext.sql.convert.store import ORIGINAL, POPULATED, Source, Target, convert

FAIR = """
CREATE TABLE Stall (Stall_ID INTEGER PRIMARY KEY, "Order" VARCHAR(5), opened DATE, closed DATETIME,
  fee NUMERIC(6,2), open BOOLEAN, rank INT, code TEXT, Keeper TEXT COLLATE NOCASE, note);
INSERT INTO Stall VALUES
  (1, 'first', '2020-02-03', '2020-02-03 10:00:00', 12.5, 1, 3, '007', 'Ann', 'x'),
  (2, 'secnd', '2019-12-31', '2020-01-01 00:00:00', 7, 0, NULL, '12', 'bob', 2),
  (3, 'third', '2020-06-30', NULL, 0.25, 1, 1, '110', 'ann', NULL);
CREATE TABLE sale (sale_id INTEGER PRIMARY KEY, stall_id INTEGER REFERENCES Stall(Stall_ID),
  helper INTEGER REFERENCES helper(id), pieces INT, digits VARCHAR(4), clock TIME);
INSERT INTO sale VALUES (10, 1, 1, 7, '4', '09:30:00'), (11, 1, 2, 2, '10', '10:00:00'),
  (12, 2, 9, 5, '6', '11:15:00'), (13, 3, 1, -3, '20', '12:00:00');
CREATE TABLE helper (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES helper(id), age INTEGER,
  raw TEXT);
INSERT INTO helper VALUES (1, 1, 30, 'a'), (2, 1, '', 'b'), (3, 2, 25, CAST(x'ff61' AS TEXT));
CREATE TABLE loose (k TEXT PRIMARY KEY, big INTEGER, wide VARCHAR(2));
INSERT INTO loose VALUES (NULL, 5000000000, 'abc'), ('a', 1, 'd');
CREATE TABLE guest (name TEXT COLLATE NOCASE REFERENCES keeper(name),
  code VARCHAR(2) COLLATE RTRIM);
INSERT INTO guest VALUES ('Ann', 'x'), ('ann', 'x  ');
CREATE TABLE keeper (name TEXT COLLATE NOCASE PRIMARY KEY);
INSERT INTO keeper VALUES ('Ann');
CREATE VIEW busy AS SELECT * FROM Stall WHERE open = 1;
"""
MORE = "INSERT INTO Stall VALUES (4, 'fourt', '2021-1-1', NULL, 3, 0, 1, '5', 'Cy', NULL);"

NOTES = {
    "Stall.opened: DATE is TEXT (it holds texts such as '2020-02-03')",
    "Stall.Keeper: compares by NOCASE in SQLite, by bytes here",
    "Stall.note: no type is TEXT (it holds integers and texts such as 'x')",
    "helper.age: INTEGER is TEXT (it holds integers and texts such as '')",
    "loose: the primary key holds NULL, and is UNIQUE instead",
    "loose.big: INTEGER is BIGINT (it holds integers)",
    "busy: a view, which is not converted",
    "guest.name: compares by NOCASE in SQLite, by bytes here",
    "guest.code: compares by RTRIM in SQLite, by bytes here",
    "guest (name) REFERENCES keeper: not declared, ('ann',) and 0 more are not there",
    "keeper.name: compares by NOCASE in SQLite, by bytes here",
    "sale (helper) REFERENCES helper: not declared, (9,) and 0 more are not there",
}
DUCKDB_NOTES = NOTES | {
    "helper.raw: TEXT is BLOB (it holds texts)",
    "helper (boss) REFERENCES helper: not declared, DuckDB has no keys in a circle",
}
POSTGRESQL_NOTES = NOTES | {
    "helper.raw: TEXT is BYTEA (it holds texts)",
    "loose.wide: VARCHAR(2) is TEXT (it holds texts)",
    "guest.code: VARCHAR(2) is TEXT (it holds texts)",
}

KEPT = {
    "names": "SELECT stall_id, T.keeper FROM stall AS T",
    "a reserved name": 'SELECT "order" FROM Stall WHERE stall.STALL_ID = 1',
    "a string in double quotes": 'SELECT fee FROM Stall WHERE Keeper = "bob"',
    "a whole quotient": "SELECT sale_id, pieces / 2 FROM sale",
    "a part of whole numbers": "SELECT sum(pieces) / count(*) FROM sale",
    "a quotient by zero": "SELECT sale_id, 1 / (pieces - 7) FROM sale",
    "LIKE in any case": "SELECT Stall_ID FROM Stall WHERE Keeper LIKE 'AN%'",
    "NOT LIKE": "SELECT Stall_ID FROM Stall WHERE Keeper NOT LIKE 'AN%'",
    "LIKE of a day": "SELECT Stall_ID FROM Stall WHERE closed LIKE '2020-02%'",
    "LIKE of a number": "SELECT pieces FROM sale WHERE sale_id LIKE '1_'",
    "a number as a text": "SELECT pieces FROM sale WHERE sale_id = '11'",
    "a text as a number": "SELECT Stall_ID FROM Stall WHERE code = 12",
    "no such text": "SELECT Stall_ID FROM Stall WHERE code = 7",
    "a truth value": "SELECT Stall_ID FROM Stall WHERE open = 1",
    "a year": "SELECT Stall_ID FROM Stall WHERE closed > '2020-01'",
    "a moment": "SELECT closed FROM Stall WHERE closed >= '2020-01-01 00:00:00' ORDER BY closed",
    "a part of a moment": "SELECT substr(closed, 1, 4) FROM Stall",
    "a text that is a number": "SELECT sum(digits), max(digits), digits * 2 > 11 FROM sale "
    "GROUP BY digits",
    "a column that the key decides": "SELECT S.keeper, count(*) FROM sale JOIN Stall AS S "
    "ON S.stall_id = sale.stall_id GROUP BY sale.stall_id ORDER BY count(*) DESC, S.Stall_ID",
    "a join without ON": "SELECT count(*) FROM sale JOIN helper JOIN Stall "
    "ON sale.helper = helper.id AND sale.stall_id = Stall.stall_id",
    "a subquery without a name": "SELECT Keeper FROM (SELECT keeper FROM Stall)",
    "strings joined with a number": "SELECT code || sale_id FROM sale, Stall",
    "LIMIT with two numbers": "SELECT sale_id FROM sale ORDER BY sale_id LIMIT 1, 2",
    "decimals": "SELECT avg(fee), max(fee), sum(fee) FROM Stall",
    "the deviation": "SELECT avg(pieces) - stdev(pieces) FROM sale",
    "an alias that a column has": "SELECT pieces * 2 AS Sale_ID FROM sale ORDER BY sale_id",
    "sets": "SELECT sale_id FROM sale EXCEPT SELECT sale_id FROM sale WHERE pieces > 4",
}  # fmt: skip
LOST = {
    "not SQL": ("SELECT FROM WHERE", "not_read"),
    "fails on SQLite": ("SELECT nothing FROM Stall", "gold_fails"),
    "a bare column": ("SELECT Keeper, max(fee) FROM Stall GROUP BY open", "bare_column"),
    "a number that is none": ("SELECT age + 1 FROM helper", "types"),
    "a text for a number": ("SELECT fee FROM Stall WHERE rank <> 'null'", "types"),
    "a day less a day": ("SELECT closed - opened FROM Stall", "types"),
    "NULL first": ("SELECT Stall_ID FROM Stall ORDER BY rank LIMIT 1", "null_order"),
    "texts that were numbers": ("SELECT age FROM helper", "differs_original"),
    "a comparison by NOCASE": (
        "SELECT Stall_ID FROM Stall WHERE Keeper = 'ANN'", "differs_original"
    ),
    "a value that only the copy has": (
        "SELECT count(*) FROM Stall WHERE keeper = 'CY'", "differs_populated"
    ),
    "a tie inside": (
        "SELECT Stall_ID FROM Stall WHERE keeper IN (SELECT keeper FROM Stall GROUP BY keeper "
        "ORDER BY min(0) LIMIT 1)", "inner_limit"
    ),
}  # fmt: skip
"""A query and the reason."""


def fair(folder: Path) -> Source:
    """The database and its populated copy."""
    parts = {part: folder / part / "fair.sqlite" for part in (ORIGINAL, POPULATED)}
    for part, path in parts.items():
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(FAIR + (MORE if part == POPULATED else ""))
    return Source("fair", parts)


KEYS = """
CREATE TABLE shelf (place INTEGER PRIMARY KEY, tag UNIQUE, sign UNIQUE);
INSERT INTO shelf VALUES (1, 1, 1), (2, '1', 'x'), (3, NULL, NULL), (4, NULL, '2');
CREATE TABLE crate (mark NOT NULL PRIMARY KEY, at REAL REFERENCES shelf(place), size REAL UNIQUE);
INSERT INTO crate VALUES ('a', 1.0, 2.5), (x'61', 2.0, 3);
CREATE TABLE label (fits INTEGER REFERENCES crate(size), tag REFERENCES shelf(tag), sum);
INSERT INTO label VALUES (3, 1, 1), (3, '1', 1.0);
CREATE TABLE scale (weight STRING UNIQUE, code UNIQUE);
INSERT INTO scale VALUES (0.3, 1.0), (0.1 + 0.2, 'x');
CREATE TABLE aisle (row INT, side INT, PRIMARY KEY (row, side));
CREATE TABLE sign (name TEXT);
CREATE TABLE lamp (code REFERENCES scale(code), aisle INT REFERENCES aisle, sign REFERENCES sign);
INSERT INTO lamp VALUES (1, 1, NULL), ('x', 2, NULL);
"""


def with_keys(folder: Path) -> Path:
    """A database of these tables."""
    path = folder / "keys.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(KEYS)
    return path


def check_keys(folder: Path, target: Target) -> None:
    """Keys are left out where casts make values one or types do not fit, and nowhere else."""
    path = with_keys(folder)
    source = Source("keys", {ORIGINAL: path})
    ((_, report),) = convert([source], target)
    assert (report.tables, report.rows) == (7, 12)
    said = "no key, different values in SQLite are one here"
    double = Type("double").written(target.engine)
    left_out = {
        f"shelf (tag): {said}", f"crate (mark): {said}", f"scale (weight): {said}",
        f"crate (at) REFERENCES shelf: not declared, the types {double} and INTEGER differ",
        "label (tag) REFERENCES shelf: not declared, the other columns are no key",
        "lamp (code) REFERENCES scale: not declared, ('1',) and 0 more are not there",
        "lamp (aisle) REFERENCES aisle: not declared, the other columns are no key",
        "lamp (sign) REFERENCES sign: not declared, the other columns are no key",
    }  # fmt: skip
    if target.engine == "duckdb":
        left_out.add(
            "label (fits) REFERENCES crate: not declared, the types INTEGER and DOUBLE differ"
        )
    assert {one for one in report.notes if "declared" in one or "no key" in one} == left_out
    planned = plan([path], target.engine)
    kept = {name: keys for name, keys in planned.own_keys.items() if keys != ((), [])}
    assert kept == {
        "shelf": (("place",), [("sign",)]), "crate": ((), [("size",)]),
        "scale": ((), [("code",)]), "aisle": (("row", "side"), []),
    }  # fmt: skip
    foreign = {name for name, keys in planned.keys.items() if keys}
    assert foreign == ({"label"} if target.engine == "postgresql" else set())
    drafts = {one.name: one for one in planned.drafts(path, Tally())}
    not_null = [c.name for one in drafts.values() for c in one.columns if c.not_null]
    assert not_null == ["mark"]
    assert planned.types["label"]["sum"] == Type("double"), "1 and 1.0 are two values"


def check_queries(source: Source, target: Target) -> None:
    """Tries all queries."""
    there = {part: target.place("fair", part) for part in source.parts}
    golds = {**KEPT, **{name: sql for name, (sql, _) in LOST.items()}}
    wanted = {**dict.fromkeys(KEPT, ""), **{name: one for name, (_, one) in LOST.items()}}
    with Executor(workers=1) as sqlite, Executor(workers=1) as other:
        checked = Checker(target.engine, sqlite, other).check(golds.values(), source.parts, there)
    found = {name: one.reason for name, one in zip(golds, checked, strict=True)}
    assert found == wanted, [one for one in checked if one.reason]
    assert all(bool(one.detail) == bool(one.reason) for one in checked)


def check_rows(source: Source, target: Target) -> None:
    """Every value is there as SQLite has it, as the type that its column got."""
    places = {part: target.place("fair", part) for part in source.parts}
    columns = {"Stall": 'Stall_ID, "Order", closed, fee, open, rank, code, "Keeper"',
               "sale": "sale_id, stall_id, helper, pieces, digits, clock",
               "loose": "k, big, wide", "guest": "name, code"}  # fmt: skip
    with Executor(workers=1) as executor, Executor(workers=1) as other:
        for part, path in source.parts.items():
            for table, names in columns.items():
                quoted = names if target.engine == "duckdb" else names.replace(
                    "Stall_ID", '"Stall_ID"')  # fmt: skip
                theirs = executor_rows(executor, path, f"SELECT {names} FROM {table}")
                ours = other.query(places[part], f'SELECT {quoted} FROM "{table}"').rows
                assert [tuple(_as_moment(one) for one in row) for row in theirs] == ours


def executor_rows(executor: Executor, path: Path, sql: str) -> list[tuple[object, ...]]:
    return list(executor.query(path, sql).rows)


def _as_moment(value: object) -> object:
    """At midnight the date alone, as both engines' values are compared."""
    return value.removesuffix(" 00:00:00") if isinstance(value, str) else value


def converted(source: Source, target: Target) -> set[str]:
    """The notes of the conversion."""
    ((db_id, report),) = convert([source], target)
    assert (db_id, report.tables, report.rows) == ("fair", 6, 31)
    return set(report.notes)
