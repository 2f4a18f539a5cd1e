"""SQLite databases with one odd thing each, and what becomes of their suites.

Scripts run with the application's functions and collation that :func:`write` defines and that no
reader has.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Path_ = Literal["suite", "alone", "unreadable"]

PLAIN = """
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);
INSERT INTO t VALUES (1, 'Ann', 5), (2, 'Bob', 7), (3, 'Cid', 9), (4, 'Dan', 2);
"""
GOLD = "SELECT name FROM t WHERE n > 4"


@dataclass(frozen=True)
class OddDatabase:
    """A database with one odd thing.

    Attributes:
        script: What makes it.
        gold: A query that runs on it.
        outcome: ``suite`` if small databases judge the gold, ``alone`` if only the original does,
            ``unreadable`` if there is no suite.
        excluded: Tables that its small databases lack.
    """

    script: str
    gold: str = GOLD
    outcome: Path_ = "suite"
    excluded: tuple[str, ...] = ()


def beside_plain(script: str, gold: str = GOLD, *, excluded: tuple[str, ...] = ()) -> OddDatabase:
    """Return the plain table with something odd that the gold may read."""
    return OddDatabase(PLAIN + script, gold, "suite", excluded)


def alone(script: str, gold: str, *excluded: str) -> OddDatabase:
    """Return a database whose gold reads what cannot be copied."""
    return OddDatabase(PLAIN + script, gold, "alone", excluded)


def renamed(table: str, column: str = "name", *, quote: bool = False) -> OddDatabase:
    """Return the plain table with other names, which the gold writes bare unless it must quote."""
    quoted_table = '"' + table.replace('"', '""') + '"'
    quoted_column = '"' + column.replace('"', '""') + '"'
    script = PLAIN.replace("TABLE t ", f"TABLE {quoted_table} ")
    script = script.replace("INTO t ", f"INTO {quoted_table} ")
    script = script.replace("name TEXT", f"{quoted_column} TEXT")
    if quote:
        return OddDatabase(script, f"SELECT {quoted_column} FROM {quoted_table} WHERE n > 4")
    return OddDatabase(script, f"SELECT {column} FROM {table} WHERE n > 4")


def measured(values: str, *, declared: str = "REAL", condition: str = "mass > 1") -> OddDatabase:
    """Return a table of names with a measure, which the gold compares."""
    script = f"CREATE TABLE p (name TEXT, mass {declared}); INSERT INTO p VALUES {values};"
    return OddDatabase(script, f"SELECT name FROM p WHERE {condition}")


WIDE = ", ".join(f"c{number} INTEGER" for number in range(1_050))
LONG_DIGITS = "1" * 5_000

ODD: dict[str, OddDatabase] = {
    # Texts
    "latin1": beside_plain("UPDATE t SET name = CAST(X'4DFC6C6C' AS TEXT) WHERE id = 2;"),
    "latin1_in_other_table": beside_plain(
        "CREATE TABLE u (x TEXT); INSERT INTO u VALUES (CAST(X'4DFC' AS TEXT));"
    ),
    "latin1_key": OddDatabase(
        "CREATE TABLE k (code TEXT PRIMARY KEY, n INTEGER);"
        "INSERT INTO k VALUES (CAST(X'FC' AS TEXT), 5), (CAST(X'E4' AS TEXT), 7), ('a', 1);"
        "CREATE TABLE r (code TEXT REFERENCES k (code)); INSERT INTO r SELECT code FROM k;",
        "SELECT k.code FROM k JOIN r ON k.code = r.code WHERE k.n > 4",
    ),
    "cesu8": beside_plain("UPDATE t SET name = CAST(X'EDA080EDB080' AS TEXT) WHERE id = 2;"),
    "utf8_cut": beside_plain("UPDATE t SET name = CAST(X'61C3' AS TEXT) WHERE id = 2;"),
    "latin1_in_constraint": OddDatabase(
        "", "SELECT name FROM t WHERE n > 4"
    ),  # filled by write(), since scripts are UTF-8
    "nul_in_text": beside_plain("UPDATE t SET name = 'a' || char(0) || 'b' WHERE id = 1;"),
    "utf16": OddDatabase("PRAGMA encoding = 'UTF-16';" + PLAIN),
    "utf16be_latin": OddDatabase(
        "PRAGMA encoding = 'UTF-16be';" + PLAIN + "UPDATE t SET name = 'Müll' WHERE id = 2;"
    ),
    "emoji": beside_plain(
        "UPDATE t SET name = '🦊' WHERE id = 1;", "SELECT n FROM t WHERE name = '🦊'"
    ),
    "long_text": beside_plain("UPDATE t SET name = hex(zeroblob(200000)) WHERE id = 1;"),
    "long_digits": beside_plain(
        "CREATE TABLE d (code TEXT, n INTEGER);"
        f"INSERT INTO d VALUES ('{LONG_DIGITS}', 5), ('12', 6);",
        "SELECT code FROM d WHERE n > 4",
    ),
    "dates_of_all_kinds": beside_plain(
        "CREATE TABLE e (day DATE, n INTEGER); INSERT INTO e VALUES ('0000-00-00', 1),"
        " ('9999-12-31', 5), ('0001-01-01', 6), ('2020-02-30', 7), (2459000.5, 8), ('', 9);",
        "SELECT day FROM e WHERE n > 4",
    ),
    # Numbers
    "large_real": measured("('a', 5.972e24), ('b', 6.39e23), ('c', 3)"),
    "large_numeric": measured(
        "('a', 9223372036854775808), ('b', 12), ('c', 3)", declared="NUMERIC"
    ),
    "large_real_among_integers": measured("('a', 1e19), ('b', 12), ('c', 3)", declared="INTEGER"),
    "largest_integer": beside_plain("UPDATE t SET n = 9223372036854775807 WHERE id = 3;"),
    "smallest_integer": beside_plain("UPDATE t SET n = -9223372036854775808 WHERE id = 3;"),
    "largest_key": beside_plain("INSERT INTO t VALUES (9223372036854775807, 'Eve', 8);"),
    "largest_literal": beside_plain("", "SELECT name FROM t WHERE n < 9223372036854775807"),
    "literal_beyond": beside_plain("", "SELECT name FROM t WHERE n < 9223372036854775808"),
    "literal_hexadecimal": beside_plain("", "SELECT name FROM t WHERE n > 0x04"),
    "infinity": measured("('a', 9e999), ('b', 1.5), ('c', 2.0)"),
    "minus_infinity": measured("('a', -9e999), ('b', 1.5), ('c', 2.0)"),
    "only_infinity": measured("('a', 9e999), ('b', 9e999)"),
    "not_a_number": measured("('a', 9e999 - 9e999), ('b', 1.5), ('c', 2.0)"),
    "tiny_real": measured("('a', 5e-324), ('b', 1e-300), ('c', 2)", condition="mass > 1e-200"),
    "minus_zero": measured("('a', -0.0), ('b', 0.0), ('c', 2.5)"),
    "numbers_as_text": measured("('a', '12x'), ('b', '7'), ('c', x'37')", declared="ANYTHING"),
    "blobs": beside_plain(
        "CREATE TABLE b (n INTEGER, data BLOB); INSERT INTO b SELECT value, randomblob(9) FROM"
        " json_each('[1,2,3,4,5,6,7]'); INSERT INTO b SELECT n + 10, randomblob(8) FROM b;"
        " INSERT INTO b SELECT n + 20, randomblob(8) FROM b; INSERT INTO b SELECT n + 40,"
        " randomblob(8) FROM b;",
        "SELECT data FROM b WHERE n > 4",
    ),
    # Names
    "name_german": renamed("Ärzte"),
    "name_cyrillic": renamed("Клиенты"),
    "name_greek": renamed("δρόμος"),
    "name_turkish": renamed("İSTANBUL", "ısı"),  # noqa: RUF001
    "name_sharp_s": renamed("Straße", "Maß"),
    "names_differ_beyond_ascii": OddDatabase(
        'CREATE TABLE "Ä" (id INTEGER PRIMARY KEY, "É" TEXT, "é" INTEGER);'
        """INSERT INTO "Ä" VALUES (1, 'a', 5), (2, 'b', 6), (3, 'c', 1);"""
        'CREATE TABLE "ä" (id INTEGER PRIMARY KEY, x TEXT);'
        """INSERT INTO "ä" VALUES (1, 'p'), (2, 'q');""",
        'SELECT "É" FROM "Ä" WHERE "é" > 4',
    ),
    "name_with_space": renamed("my table", "full name", quote=True),
    "name_with_dot": renamed("main.t", "a.b", quote=True),
    "name_with_quotes": renamed('say "hi"', "it's", quote=True),
    "name_is_keyword": renamed("order", "select", quote=True),
    "name_turned": renamed("turned", "p"),
    "name_like_temporary": renamed("temp", "rowid", quote=True),
    "name_of_sqlite": renamed("sqlitemaster", "oid"),
    "all_rowid_names": beside_plain(
        "CREATE TABLE w (rowid TEXT, oid TEXT, _rowid_ TEXT, n INTEGER);"
        "INSERT INTO w VALUES ('a', 'b', 'c', 5), ('d', 'e', 'f', 1);",
        "SELECT oid FROM w WHERE n > 4",
    ),
    # Kinds of tables
    "fts5": beside_plain(
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('a note');",
        excluded=("notes", "notes_config", "notes_content", "notes_data", "notes_docsize",
                  "notes_idx"),
    ),
    "fts5_read": alone(
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('a note');",
        "SELECT body FROM notes WHERE notes MATCH 'note'",
        "notes", "notes_config", "notes_content", "notes_data", "notes_docsize", "notes_idx",
    ),
    "fts4": beside_plain(
        "CREATE VIRTUAL TABLE notes USING fts4(body); INSERT INTO notes VALUES ('a note');",
        excluded=("notes", "notes_content", "notes_docsize", "notes_segdir", "notes_segments",
                  "notes_stat"),
    ),
    "fts3": beside_plain(
        "CREATE VIRTUAL TABLE notes USING fts3(body); INSERT INTO notes VALUES ('a note');",
        excluded=("notes", "notes_content", "notes_segdir", "notes_segments"),
    ),
    "rtree": beside_plain(
        "CREATE VIRTUAL TABLE areas USING rtree(id, x0, x1); INSERT INTO areas VALUES (1, 0, 2);",
        excluded=("areas", "areas_node", "areas_parent", "areas_rowid"),
    ),
    "module_missing": beside_plain(
        "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('table', 'places',"
        " 'places', 0, 'CREATE VIRTUAL TABLE places USING nowhere(x)');",
        excluded=("places",),
    ),
    "table_named_like_a_shadow": beside_plain(
        "CREATE VIRTUAL TABLE notes USING fts4(body); CREATE TABLE notes_extra (n INTEGER);"
        "INSERT INTO notes_extra VALUES (5), (6), (1);",
        "SELECT n FROM notes_extra WHERE n > 4",
        excluded=("notes", "notes_content", "notes_docsize", "notes_segdir", "notes_segments",
                  "notes_stat"),
    ),
    "without_rowid": beside_plain(
        "CREATE TABLE w (code TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;"
        "INSERT INTO w VALUES ('a', 5), ('b', 6), ('c', 1);",
        "SELECT code FROM w WHERE n > 4",
    ),
    "strict": beside_plain(
        "CREATE TABLE s (code TEXT PRIMARY KEY, n INT, x ANY) STRICT;"
        "INSERT INTO s VALUES ('a', 5, 1), ('b', 6, 'x'), ('c', 1, 2.5);",
        "SELECT code FROM s WHERE n > 4",
    ),
    "wide": beside_plain(
        f"CREATE TABLE w ({WIDE}); INSERT INTO w (c0, c1049) VALUES (1, 5), (2, 6), (3, 1);",
        "SELECT c0 FROM w WHERE c1049 > 4",
    ),
    "many_tables": beside_plain(
        "".join(f"CREATE TABLE m{number} (id INTEGER, x TEXT);" for number in range(60))
    ),
    "empty_table": OddDatabase("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER);"),
    "no_table": OddDatabase("", "SELECT 1"),
    "one_column": OddDatabase("CREATE TABLE x (y); INSERT INTO x VALUES (1), (2), (NULL);",
                              "SELECT y FROM x WHERE y > 1"),
    "autoincrement": OddDatabase(
        PLAIN.replace("PRIMARY KEY", "PRIMARY KEY AUTOINCREMENT") + "DELETE FROM t WHERE id = 4;"
    ),
    "analyzed": beside_plain("CREATE INDEX i ON t (n); ANALYZE;"),
    "vacuumed": beside_plain("DELETE FROM t WHERE id = 1; VACUUM;"),
    "trigger": beside_plain("CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET n = n; END;"),
    "trigger_of_application": beside_plain(
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT shout(new.name); END;"
    ),
    "broken_view": beside_plain("CREATE VIEW v AS SELECT missing FROM nowhere;"),
    "view_of_application": beside_plain("CREATE VIEW v AS SELECT shout(name) AS s FROM t;"),
    "view_of_everything": beside_plain(
        "CREATE VIEW v AS SELECT *, n AS n, name AS N FROM t;", "SELECT name FROM v WHERE id > 1"
    ),
    # Functions and collations of the application
    "check_function": beside_plain(
        "CREATE TABLE c (code TEXT CHECK (code REGEXP '^[A-Z]'));", excluded=("c",)
    ),
    "check_function_read": alone(
        "CREATE TABLE c (code TEXT CHECK (code REGEXP 'x'), n INTEGER);"
        "INSERT INTO c VALUES ('a', 5), ('b', 1);",
        "SELECT code FROM c WHERE n > 4",
        "c",
    ),
    "default_function": beside_plain(
        "CREATE TABLE c (code TEXT DEFAULT (shout('x')), n INTEGER);"
        "INSERT INTO c VALUES ('a', 5), ('b', 1), ('c', 8);",
        "SELECT code FROM c WHERE n > 4",
    ),
    "generated_by_function": alone(
        "CREATE TABLE c (code TEXT, loud TEXT AS (shout(code)), n INTEGER);"
        "INSERT INTO c (code, n) VALUES ('a', 5), ('b', 1);",
        "SELECT code FROM c WHERE n > 4",
        "c",
    ),
    "index_on_function": beside_plain("CREATE INDEX i ON t (shout(name));"),
    "unique_index_on_function": beside_plain("CREATE UNIQUE INDEX i ON t (shout(name));"),
    "partial_index_by_function": beside_plain("CREATE INDEX i ON t (n) WHERE shout(name) = 'X';"),
    "collation": alone(
        "CREATE TABLE c (code TEXT COLLATE german, n INTEGER);"
        "INSERT INTO c VALUES ('a', 5), ('b', 1), ('c', 8);",
        "SELECT code FROM c WHERE n > 4",
        "c",
    ),
    "collation_of_key": alone(
        "CREATE TABLE c (code TEXT COLLATE german PRIMARY KEY, n INTEGER);"
        "INSERT INTO c VALUES ('a', 5), ('b', 1), ('c', 8);",
        "SELECT code FROM c WHERE n > 4",
        "c",
    ),
    "collation_of_parent": beside_plain(
        "CREATE TABLE p (code TEXT COLLATE german, n INTEGER); INSERT INTO p VALUES ('a', 5),"
        " ('b', 1); CREATE TABLE c (code TEXT REFERENCES p (code), m INTEGER);"
        "INSERT INTO c VALUES ('a', 5), ('b', 7);",
        "SELECT m FROM c WHERE m > 4",
        excluded=("p",),
    ),
    "collation_of_index": beside_plain("CREATE INDEX i ON t (name COLLATE german);"),
    # Keys, conditions, computed columns
    "refers_to_itself": beside_plain(
        "CREATE TABLE s (id INTEGER PRIMARY KEY, boss INTEGER NOT NULL REFERENCES s (id));"
        "INSERT INTO s VALUES (1, 1), (2, 1), (3, 2);",
        "SELECT id FROM s WHERE boss > 1",
    ),
    "circle_of_keys": beside_plain(
        "CREATE TABLE hen (id INTEGER PRIMARY KEY, egg INTEGER NOT NULL REFERENCES egg (id));"
        "CREATE TABLE egg (id INTEGER PRIMARY KEY, hen INTEGER NOT NULL REFERENCES hen (id));"
        "INSERT INTO hen VALUES (1, 1), (2, 2); INSERT INTO egg VALUES (1, 1), (2, 2);",
        "SELECT hen.id FROM hen JOIN egg ON egg.hen = hen.id WHERE egg.id > 1",
    ),
    "key_to_nowhere": beside_plain(
        "CREATE TABLE c (n INTEGER REFERENCES gone (id), m INTEGER REFERENCES t (gone),"
        " k REFERENCES p); CREATE TABLE p (x);"
        "INSERT INTO c VALUES (5, 1, 2), (6, 2, 3);",
        "SELECT n FROM c WHERE n > 4",
    ),
    "key_to_view": beside_plain(
        "CREATE VIEW v AS SELECT id FROM t; CREATE TABLE c (n INTEGER REFERENCES v (id));"
        "INSERT INTO c VALUES (5), (6), (1);",
        "SELECT n FROM c WHERE n > 4",
    ),
    "generated_key": beside_plain(
        "CREATE TABLE g (a INTEGER, b INTEGER AS (a + 1) STORED UNIQUE REFERENCES t (id), "
        "c AS (b * 2)); INSERT INTO g (a) VALUES (1), (2), (3);",
        "SELECT a FROM g WHERE b > 2",
    ),
    "generated_that_fails": beside_plain(
        "CREATE TABLE g (a TEXT, b AS (json_extract(a, '$.x')) STORED);"
        "INSERT INTO g (a) VALUES ('{\"x\": 5}'), ('{\"x\": 1}'), ('{\"x\": 8}');",
        "SELECT a FROM g WHERE b > 4",
    ),
    "check_that_fails": beside_plain(
        "CREATE TABLE g (a TEXT CHECK (json_extract(a, '$.x') > 0), n INTEGER);"
        "INSERT INTO g VALUES ('{\"x\": 5}', 5), ('{\"x\": 1}', 8);",
        "SELECT a FROM g WHERE n > 4",
    ),
    "unique_on_expression": beside_plain("CREATE UNIQUE INDEX i ON t (lower(name), n % 7);"),
    "double_quoted_default": beside_plain(
        'CREATE TABLE q (a TEXT DEFAULT "none", n INTEGER);'
        "INSERT INTO q (n) VALUES (5), (1), (6);",
        "SELECT a FROM q WHERE n > 4",
    ),
    # Files
    "log_mode": beside_plain("PRAGMA journal_mode = WAL;"),
    "page_size": OddDatabase("PRAGMA page_size = 65536;" + PLAIN),
    "auto_vacuum": OddDatabase("PRAGMA auto_vacuum = INCREMENTAL;" + PLAIN),
    "zero_bytes": OddDatabase("", "SELECT 1"),
    "garbage": OddDatabase("", outcome="unreadable"),
    "encrypted": OddDatabase("", outcome="unreadable"),
    "cut_file": OddDatabase(PLAIN, outcome="unreadable"),
}  # fmt: skip


def write(folder: Path, name: str) -> Path:
    """Write one of the databases, as a folder of databases has it."""
    file = folder / name / f"{name}.sqlite"
    file.parent.mkdir(parents=True)
    if name == "zero_bytes":
        file.touch()
    elif name == "garbage":
        file.write_bytes(b"this is no database" * 100)
    elif name == "encrypted":
        file.write_bytes(bytes(range(256)) * 32)
    else:
        with closing(sqlite3.connect(file)) as connection:
            _run(connection, name)
    if name == "cut_file":
        file.write_bytes(file.read_bytes()[:2_000])
    return file


def _run(connection: sqlite3.Connection, name: str) -> None:
    connection.create_function("shout", 1, lambda text: f"{text}".upper(), deterministic=True)
    connection.create_function("regexp", 2, lambda pattern, text: 1, deterministic=True)
    connection.create_collation("german", lambda a, b: (a > b) - (a < b))
    connection.executescript(ODD[name].script)
    if name == "latin1_in_constraint":
        # A declaration that an old program wrote: its comment and its condition are Latin-1.
        connection.executescript(
            "CREATE TABLE t (name TEXT, n INTEGER /* XX */, CHECK (name <> 'XX'));"
            "INSERT INTO t VALUES ('Ann', 5), ('Bob', 7), ('Cid', 1);"
            "PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = CAST(replace(CAST(sql AS BLOB), CAST('XX' AS BLOB),"
            " x'FC') AS TEXT);"
        )
    connection.commit()
