"""Values of added rows could be real; LIMITs cut no ties."""

import calendar
import sqlite3
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.sql.distill.build import populate
from lm_eval_ext.sql.distill.cuts import cuts_of, tied
from lm_eval_ext.sql.distill.formats import FORMATS, pattern_of
from lm_eval_ext.sql.distill.query import Query
from lm_eval_ext.sql.distill.scratch_db import Runner
from lm_eval_ext.sql.distill.shape import Shape
from lm_eval_ext.sql.distill.shapes import Shapes, shape_of
from lm_eval_ext.sql.parsing import parse
from lm_eval_ext.sql.schema import Column, read_schema, schema_of
from lm_eval_ext.sql.values import Value

SCRIPT = """
CREATE TABLE ferry (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, built DATE, left_at DATETIME,
  berth TEXT, mail TEXT, crew INTEGER, load REAL, us_date TEXT, day_number INTEGER, odd INTEGER);
"""
KINDS = ("car", "foot", "night")


def fill(connection: sqlite3.Connection) -> None:
    names = ("Aro", "Bel", "Cimo", "Dora Lin", "Edda", "Falk", "Gil", "Hanno", "Ines", "Jo")
    for number, name in enumerate(names):
        connection.execute(
            f"INSERT INTO ferry VALUES ({', '.join('?' * 12)})",
            (
                number + 1, name, KINDS[number % 3], f"19{87 + number % 10}-07-{20 + number}",
                f"2001-03-{10 + number} 08:0{number}:59", f"D-{100 + 7 * number}",
                f"{name.split()[0].lower()}@port{number}.example", 5 + number, 10.5 * number + 0.25,
                f"{1 + number}/{10 + number}/2013", 20010101 + number,
                "unknown" if number == 4 else number,
            ),
        )  # fmt: skip


@pytest.fixture
def connection() -> sqlite3.Connection:
    opened = sqlite3.connect(":memory:")
    opened.executescript(SCRIPT)
    fill(opened)
    return opened


@pytest.fixture
def shapes(connection: sqlite3.Connection) -> Shapes:
    return Shapes(connection, schema_of(connection))


STAY_RIGHT = [
    ("id", 11), ("name", "Kara"), ("name", "Aroa"), ("name", "Mia Sol"), ("kind", "night"),
    ("built", "1987-07-31"), ("built", "2000-02-29"), ("left_at", "2001-12-31 23:59:59"),
    ("berth", "D-999"), ("mail", "kara@port12.example"), ("crew", 900), ("load", 3.125),
    ("load", 7), ("us_date", "12/31/2013"), ("us_date", "2/29/2012"), ("day_number", 20040229),
    ("odd", "unknown"), ("odd", 3),
]  # fmt: skip
TURN_WRONG = [
    ("id", -1), ("id", 2.5), ("id", "12"), ("name", ""), ("name", "Kara "), ("name", "Kara7"),
    ("name", None), ("name", 3), ("kind", "nigh"), ("kind", "nightx"), ("kind", "Night"),
    ("built", "1987-07-0"), ("built", "1987-09-01x"), ("built", "2001-02-29"), ("built", ""),
    ("built", 1987), ("left_at", "2018-03-20 21:38:411"), ("left_at", "2018-03-20"),
    ("left_at", "2018-03-20 24:00:00"), ("berth", "D-9999"), ("berth", "d100"),
    ("mail", "kara.example"), ("crew", 7.000000000000001), ("crew", -3), ("crew", "7"),
    ("load", 3.00000001), ("load", -0.5), ("load", "heavy"), ("us_date", "02/28/2013"),
    ("us_date", "2/30/2013"), ("day_number", 20010132), ("odd", "nullx1111"), ("odd", 1e300),
    ("crew", float("inf")), ("crew", b"7"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), STAY_RIGHT)
def test_what_could_be_real_fits(shapes: Shapes, column: str, value: Value) -> None:
    assert shapes.fits("FERRY", column.upper(), value)


@pytest.mark.parametrize(("column", "value"), TURN_WRONG)
def test_what_could_not_is_refused(shapes: Shapes, column: str, value: Value) -> None:
    assert not shapes.fits("ferry", column, value)


def test_relaxed_columns_take_more_but_no_nonsense(shapes: Shapes) -> None:
    levels = {
        1: [("load", 3.00000001), ("berth", "D-1000")],
        2: [("kind", "barge")],
    }
    for level, taken in levels.items():
        assert not any(shapes.fits("ferry", column, value) for column, value in taken)
        shapes.relax(level)
        assert all(shapes.fits("ferry", column, value) for column, value in taken)
    for column, value in TURN_WRONG:
        if column not in ("kind", "load", "berth"):
            assert not shapes.fits("ferry", column, value), (column, value)


def test_constants_of_golds_fit_if_they_are_of_the_columns_kind(shapes: Shapes) -> None:
    shapes["ferry", "kind"].name(["barge", 4, None])
    shapes["ferry", "built"].name(["2020-01-01", "soon"])
    shapes["ferry", "crew"].name([-7, 2.5, "7"])
    assert [shapes.fits("ferry", "kind", value) for value in ("barge", "BARGE", 4)] == [1, 0, 0]
    assert not shapes.fits("ferry", "built", "soon")
    assert [shapes.fits("ferry", "crew", value) for value in (-7, -6, 2.5, -8)] == [1, 1, 0, 0]


def test_neighbours_sort_beside_a_value_and_fit(shapes: Shapes) -> None:
    assert shapes["ferry", "name"].above("Falk") == "Falk"  # no word that nobody has, at first
    shapes["ferry", "name"].relaxed = 1
    for (table, column), shape in shapes.items():
        for value in sorted(shape.known, key=str):
            above, below = shape.above(value), shape.below(value)
            if column in ("kind", "odd") and isinstance(value, str):
                assert above == below == value
            elif column == "us_date":  # sorts by no time
                assert column in ("odd", "name") or shapes.fits(table, column, above)
            else:
                if column != "mail":  # port9 comes after port10
                    assert below < value < above, column  # type: ignore[operator]
                assert column in ("odd", "name") or shapes.fits(table, column, above)
    assert shapes["ferry", "built"].above("1987-07-31") == "1987-08-01"
    assert shapes["ferry", "built"].below("1988-03-01") == "1988-02-29"
    assert shapes["ferry", "left_at"].above("2001-12-31 23:59:59") == "2002-01-01 00:00:00"
    assert shapes["ferry", "us_date"].above("12/31/2013") == "1/1/2014"
    assert shapes["ferry", "day_number"].above(20010131) == 20010201
    assert shapes["ferry", "berth"].above("D-199") == "D-200"


@given(st.dates(date(1800, 1, 1), date(2200, 12, 30)), st.sampled_from(FORMATS))
def test_every_format_reads_what_it_writes(day: date, form: object) -> None:
    assert isinstance(form, type(FORMATS[0]))
    moment = datetime(day.year, day.month, day.day, 9, 5, 7)
    text = form.write(moment)
    read = form.read(text)
    if read is None:  # a number like 22000101 is no date
        assert form.write(moment).isdigit()
        assert not 1800 <= day.year <= 2099
        return
    assert form.write(read) == text
    assert form.write(read + form.step) != text


@given(st.integers(1900, 2090), st.integers(1, 12), st.integers(1, 40))
def test_a_day_fits_if_and_only_if_the_calendar_has_it(year: int, month: int, day: int) -> None:
    shape = Shape("moment", nullable=False, format=FORMATS[0])
    exists = day <= calendar.monthrange(year, month)[1]
    assert shape.fits(f"{year}-{month:02}-{day:02}") == exists
    assert exists or shape.above(f"{year}-{month:02}-{day:02}") == f"{year}-{month:02}-{day:02}"


def test_new_keys_continue_their_sequence(connection: sqlite3.Connection, shapes: Shapes) -> None:
    taken = {value for (value,) in connection.execute("SELECT berth FROM ferry")}
    new = shapes["ferry", "berth"].fresh("D-163", taken.__contains__)
    assert new == "D-164"
    name = shapes["ferry", "name"].fresh("Jo", {"Jo", "Joa"}.__contains__)
    assert isinstance(name, str)
    assert name == "Fanno"  # Falk and Hanno
    assert shapes.fits("ferry", "name", name)
    assert shapes["ferry", "kind"].fresh("night", lambda _: True) is None


def test_an_empty_column_goes_by_its_declaration() -> None:
    def of(declared: str, affinity: str) -> Shape:
        column = Column("c", declared, affinity, not_null=False, primary_key=0, default=None)  # type: ignore[arg-type]
        return shape_of([], column, nulls=False, rows=0)

    assert of("DATE", "NUMERIC").fits("2020-02-29")
    assert not of("DATE", "NUMERIC").fits("2020-02-30")
    assert of("TIMESTAMP", "NUMERIC").fits("2020-02-29 10:00:00")
    assert of("INT", "INTEGER").fits(3)
    assert not of("INT", "INTEGER").fits("x")
    assert of("TEXT", "TEXT").fits("word")


def test_patterns() -> None:
    assert pattern_of("AD_PRES-12", exact=True) == "AA_AAAA-99"
    assert pattern_of("AD_PRES-12", exact=False) == "A_A-9"
    assert pattern_of("Zoë 7", exact=False) == "A 9"


GOLDS = [
    "SELECT name FROM ferry ORDER BY crew DESC LIMIT 1",
    "SELECT count(*) FROM ferry WHERE built BETWEEN '1987-07-01' AND '1987-07-31'",
    "SELECT name FROM ferry WHERE crew > (SELECT avg(crew) FROM ferry)",
    "SELECT name FROM ferry WHERE kind = 'barge' AND crew > 20",
]


def test_a_populated_copy_has_only_values_that_fit_and_no_new_tie(tmp_path: Path) -> None:
    original, copy = tmp_path / "port.sqlite", tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(original)) as opened:
        opened.executescript(SCRIPT)
        fill(opened)
        opened.commit()
        shapes = Shapes(opened, schema_of(opened))
    shapes["ferry", "kind"].name(["barge"])
    report = populate(original, GOLDS, copy)
    assert sum(report.added.values()) > 0
    schema = read_schema(copy)
    with closing(sqlite3.connect(copy)) as opened:
        names = [column.name for column in schema["ferry"].columns]
        for row in opened.execute("SELECT * FROM ferry"):
            for name, value in zip(names, row, strict=True):
                assert shapes.fits("ferry", name, value), (name, value)
        for gold in GOLDS:
            assert not tied(cuts_of(Query(parse(gold, schema), schema)), Runner(opened))


@pytest.mark.parametrize(
    ("values", "right", "wrong"),
    [
        (["1994-01-31", "1998-12-30", "0000-00-00"], ["1996-02-29"], ["0000-00-00", "1998-12-33"]),
        (["1986-11-30", "1986-1-5", "1979-02-11"], ["1986-12-01"], ["1986-11-61", "1986-1-5"]),
        (["soon", "later", "1986-11-30"], ["soon"], [" soon", "3"]),
        (["Ann", "Bob", "Cleo", "Dana"], ["Cleona"], ["Annaaa", "Clee", "Annna", "Anan"]),
        (["Aaron", "Baaal", "Cleo", "Danaa"], ["Annnaaa"], []),
    ],
)
def test_what_most_values_are_decides(
    values: list[Value], right: list[Value], wrong: list[Value]
) -> None:
    column = Column("c", "TEXT", "TEXT", not_null=False, primary_key=0, default=None)
    shape = shape_of(values, column, nulls=False, rows=len(values))
    assert [v for v in right if not shape.fits(v)] == []
    assert [v for v in wrong if shape.fits(v)] == []
    assert not shape.fits(None)


def test_an_empty_table_gets_no_null() -> None:
    column = Column("c", "TEXT", "TEXT", not_null=False, primary_key=0, default=None)
    assert not shape_of([], column, nulls=False, rows=0).fits(None)
    assert shape_of(["a"], column, nulls=True, rows=2).fits(None)
