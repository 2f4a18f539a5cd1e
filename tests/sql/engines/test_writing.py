"""Writing tables into a new DuckDB file, or a new schema of PostgreSQL."""

from pathlib import Path

import pytest
from support.postgres import served

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.engines.writing import ColumnDraft, TableDraft, write_duckdb, write_postgresql
from lm_eval_ext.sql.schema import ForeignKey

duckdb = pytest.importorskip("duckdb")

PAY = [("id", "INTEGER"), ("owner", "INTEGER"), ("at", "DATE"), ("sum", "DECIMAL(20, 2)")]
TABLES = [
    TableDraft(
        "pay", [ColumnDraft(*one) for one in PAY],
        [(number, 1, "2020-01-01", "123456789012345678.25") for number in range(700)],
        ["id"], [ForeignKey(("owner",), "odd one", ("Id",))], ["CHECK (id >= 0)"],
    ),
    TableDraft(
        "odd one", [ColumnDraft("Id", "INTEGER", not_null=True), ColumnDraft('a"b', "VARCHAR")],
        [(1, "é\t\\N\n"), (2, None)], ["Id"],
    ),
]  # fmt: skip
ASKED = 'SELECT count(*), min("at"), CAST(max("sum") AS VARCHAR) FROM pay'
TEXTS = 'SELECT "a""b" FROM "odd one" ORDER BY "Id"'


def one(rows: list[tuple[object, ...]], column: str = "INTEGER", name: str = "t") -> TableDraft:
    return TableDraft(name, [ColumnDraft("a", column)], rows)


def test_a_duckdb_file_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    write_duckdb(path, TABLES)
    with duckdb.connect(str(path), read_only=True) as made:
        ((count, day, most),) = made.execute(ASKED).fetchall()
        assert (count, str(day), most) == (700, "2020-01-01", "123456789012345678.25")
        assert made.execute(TEXTS).fetchall() == [("é\t\\N\n",), (None,)]
    with pytest.raises(DataError, match="DuckDB refuses the table t: Conversion Error"):
        write_duckdb(tmp_path / "b.duckdb", [one([("x",)])])
    with pytest.raises(OptionError, match=r"cannot write .*none/b\.duckdb"):
        write_duckdb(tmp_path / "none" / "b.duckdb", TABLES)
    assert list(tmp_path.iterdir()) == [path]


def test_keys_in_a_circle(tmp_path: Path) -> None:
    columns = [ColumnDraft("id", "INTEGER"), ColumnDraft("other", "INTEGER")]
    circle = [
        TableDraft(name, columns, [(1, 1)], ["id"], [ForeignKey(("other",), other, ("id",))])
        for name, other in (("a", "b"), ("b", "a"), ("c", "c"))
    ]
    write_duckdb(tmp_path / "a.duckdb", circle)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        keys = "SELECT table_name FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'"
        assert sorted(made.execute(keys).fetchall()) == [("a",)]


def test_a_schema_is_whole_or_absent() -> None:
    statements = ("CREATE ROLE reader LOGIN", "CREATE ROLE weak LOGIN")
    with served(*statements, missing=pytest.skip) as server:
        url = server.url("postgres", "admin")
        write_postgresql(url, "new one", TABLES, readers=["reader"])
        refused = {
            "exists and holds something": (url, "new one", TABLES),
            "refuses the table t: invalid input syntax": (url, "x", [*TABLES, one([("x",)])]),
            "cuts off names": (url, "x", [one([], name="ä" * 40)]),
            "may not write there": (server.url("postgres", "weak"), "x", TABLES),
            'role "nobody" does not exist': (server.url("postgres", "nobody"), "x", TABLES),
        }
        for message, (place, schema, tables) in refused.items():
            with pytest.raises((DataError, OptionError), match=message) as raised:
                write_postgresql(place, schema, tables)
            assert "\n" not in str(raised.value)
        with server.admin("postgres") as admin:
            admin.execute('SET ROLE reader; SET search_path = "new one"')
            ((count, day, most),) = admin.execute(ASKED).fetchall()
            assert (count, str(day), most) == (700, "2020-01-01", "123456789012345678.25")
            assert admin.execute(TEXTS).fetchall() == [("é\t\\N\n",), (None,)]
            assert admin.execute("SELECT to_regnamespace('x')").fetchone() == (None,)
