"""Reading declared schemas as SQLite understands them, without changing the file."""

from pathlib import Path

import pytest
from support.databases import opened, read_schema, written
from support.small_databases import state_of

from lm_eval_ext.sql.schema import ForeignKey, Schema, affinity_of, schema_of

SCRIPT = """
CREATE TABLE Shelf (id INTEGER PRIMARY KEY, room TEXT COLLATE NOCASE UNIQUE, width NUMBER(4, 2));
CREATE TABLE book (
  isbn VARCHAR(13) PRIMARY KEY, "the title" TEXT NOT NULL DEFAULT 'none', pages INT, price FLOAT,
  anything, bought DATETIME, shelf INTEGER REFERENCES shelf, twice AS (pages * 2) STORED,
  UNIQUE ("the title", pages)
);
CREATE UNIQUE INDEX some ON book (price) WHERE price > 10;
CREATE UNIQUE INDEX shouted ON book (upper(anything));
CREATE UNIQUE INDEX folded ON book (anything COLLATE NOCASE);
CREATE UNIQUE INDEX exact ON shelf (room COLLATE BINARY);
CREATE TABLE loan (
  isbn TEXT, day TEXT, who TEXT, PRIMARY KEY (isbn, day), FOREIGN KEY (isbn) REFERENCES BOOK (isbn)
) WITHOUT ROWID;
CREATE TABLE late (isbn TEXT, day TEXT, fee INTEGER UNIQUE,
  FOREIGN KEY (isbn, day) REFERENCES loan (isbn, day));
CREATE TABLE number (n INT PRIMARY KEY);
INSERT INTO number VALUES (NULL), (1);
CREATE TABLE backwards (n INTEGER PRIMARY KEY DESC, m TEXT);
CREATE VIEW long AS SELECT * FROM book WHERE pages > 100;
"""


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    path = written(tmp_path / "library ?#.sqlite", SCRIPT)
    before = state_of(tmp_path)
    read = read_schema(path)
    assert state_of(tmp_path) == before
    return read


def test_tables_and_columns_in_any_case(schema: Schema) -> None:
    assert list(schema) == ["Shelf", "book", "loan", "late", "number", "backwards", "long"]
    assert "SHELF" in schema
    assert "none" not in schema
    book = schema["Book"]
    assert [c.name for c in book.columns][:2] == ["isbn", "the title"]
    assert book.column("THE TITLE") is book.columns[1]
    assert book.column("title") is None
    assert book.columns[1].not_null
    assert [c.name for c in book.columns if c.generated] == ["twice"]
    assert schema["long"].view
    assert not schema["long"].unique_keys


@pytest.mark.parametrize(
    "declared",
    ["INT", "tinyint(1)", "FLOATING POINT", "VARCHAR(20)", "clob", "", "blob", "double", "float(3)",
     "decimal(3,2)", "DATE", "bool"],
)  # fmt: skip
def test_the_affinity_of_a_type_is_that_of_sqlite(declared: str) -> None:
    with opened(f"CREATE TABLE t (c {declared}); INSERT INTO t VALUES ('07');") as connection:
        ((storage,),) = connection.execute("SELECT typeof(c) FROM t").fetchall()
        rule = affinity_of(declared)
        assert (storage, rule) in {
            ("integer", "INTEGER"), ("integer", "NUMERIC"), ("real", "REAL"), ("text", "TEXT"),
            ("text", "BLOB"),
        }  # fmt: skip
        if storage == "integer":  # which of the two only a division tells
            assert (rule == "INTEGER") == ("INT" in declared.upper())


def test_keys_and_rowids_are_those_of_sqlite(schema: Schema) -> None:
    assert not schema["shelf"].rowid
    assert schema["book"].rowid
    assert schema["number"].rowid, "INT is not INTEGER"
    assert schema["backwards"].rowid, "SQLite's own exception"
    assert ("the title", "pages") in schema["book"].unique_keys
    assert schema["late"].unique_keys == (("fee",),)
    assert not schema["loan"].rowid
    assert schema["loan"].unique_keys == (("isbn", "day"),)


def test_indexes_that_say_nothing_about_the_column_are_no_keys(schema: Schema) -> None:
    keys = schema["book"].unique_keys
    assert ("price",) not in keys, "of a part of the rows"
    assert not any(None in key for key in keys), "of an expression"
    assert ("anything",) in keys, "what differs in more than case differs"
    assert schema["shelf"].unique_keys == (("id",), ("room",))


def test_null_in_primary_keys(schema: Schema) -> None:
    """SQLite lets NULL into most; a file that has none is taken at SQL's word."""
    assert schema["book"].columns[0].not_null
    assert not schema["number"].columns[0].not_null
    assert all(c.not_null for c in schema["loan"].columns[:2])
    assert not schema["late"].columns[2].not_null, "UNIQUE alone allows NULL"


def test_foreign_keys_name_the_parents_key_where_the_declaration_does_not(schema: Schema) -> None:
    assert schema["book"].foreign_keys == (ForeignKey(("shelf",), "shelf", ("id",)),)
    assert schema["late"].foreign_keys == (ForeignKey(("isbn", "day"), "loan", ("isbn", "day")),)


def test_columns_know_whether_rows_hold_null_or_repeat() -> None:
    script = """
      CREATE TABLE jar (id INTEGER PRIMARY KEY, jam TEXT, lid TEXT REFERENCES jar (jam), "a b");
      INSERT INTO jar VALUES (1, 'fig', NULL, 2), (2, 'plum', 'fig', '2'), (3, NULL, 'fig', x'02');
      CREATE TABLE empty (one INTEGER, two TEXT NOT NULL);
    """
    with opened(script) as connection:
        schema = schema_of(connection)
    holds_null_and_repeats = {}
    for table in schema.values():
        for column in table.columns:
            holds_null_and_repeats[column.name] = (column.holds_null, column.repeats)
    assert holds_null_and_repeats == {
        "id": (False, False), "jam": (True, False), "lid": (True, True), "a b": (False, False),
        "one": (False, False), "two": (False, False),
    }  # fmt: skip


def test_a_view_that_does_not_resolve_is_skipped_with_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = (
        "CREATE TABLE jar (jam TEXT); CREATE VIEW sound AS SELECT jam FROM jar;"
        "CREATE VIEW broken AS SELECT no_such_column FROM jar;"
        "CREATE VIEW through AS SELECT * FROM broken;"
    )
    with opened(script) as connection:
        assert list(schema_of(connection)) == ["jar", "sound"]
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        f"the view {name} is skipped: no such column: no_such_column"
        for name in ("broken", "through")
    ]
