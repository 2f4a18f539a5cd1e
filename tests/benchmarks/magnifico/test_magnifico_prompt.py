"""The layout of prompts, fact by fact, on a small database of our own and on the real ones."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.databases import written

from lm_eval_ext.benchmarks.magnifico import corpora, prompt
from lm_eval_ext.benchmarks.magnifico.records import Database, Example
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import place_of

INSTRUCTION = prompt.INSTRUCTION.format("SQLite")

SCRIPT = """-- the harbour; a semicolon in a comment
PRAGMA foreign_keys = ON;

CREATE TABLE "crane" (
  "name" TEXT,
  "lifts" REAL
);
INSERT INTO crane VALUES ('a;b', 1.5);
create table `Quay` (id int);
"""


PORT = """
CREATE TABLE tug (x);
CREATE TABLE quay (id int);
CREATE TABLE crane ("name" TEXT, "lifts" REAL);
INSERT INTO crane VALUES
  ('Ida', NULL), ('two' || char(10) || 'lines', 7.0), (x'007a', 3), ('never shown', 4);
INSERT INTO tug VALUES ('  Bo ');
"""


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Three tables, two of which the script creates; one has no rows."""
    return Database(place_of(written(tmp_path / "port/port.sqlite", PORT)))


def with_script(database: Database, name: str = "schema.sql") -> Database:
    """Write the script beside the database's file; return the database as it is now found."""
    database.path.with_name(name).write_text(SCRIPT, encoding="utf-8")
    return Database.at(database.path)


def blocks(database: Database) -> list[str]:
    return prompt.schema(database)


CRANE = """CREATE TABLE "crane" (
  "name" TEXT,
  "lifts" REAL
)
/*
3 example rows:
SELECT * FROM crane LIMIT 3;
name\tlifts
Ida\tNone
two
lines\t7.0
b'\\x00z'\t3.0
*/"""

QUAY = """create table `Quay` (id int)
/*
3 example rows:
SELECT * FROM `Quay` LIMIT 3;
id

*/"""


def test_a_table_has_its_statement_and_a_comment_block(database: Database) -> None:
    crane, quay, _ = blocks(with_script(database))
    assert crane == CRANE
    assert quay == QUAY


def test_a_script_is_split_at_every_semicolon(database: Database) -> None:
    schema = "CREATE TABLE crane (name TEXT DEFAULT ';', lifts REAL);"
    database.path.with_name("schema.sql").write_text(schema, encoding="utf-8")
    assert blocks(Database.at(database.path))[0].startswith(
        "CREATE TABLE crane (name TEXT DEFAULT '\n/*\n3 example rows:\n"
    )


def test_a_script_of_any_name_is_read(database: Database) -> None:
    scripted = with_script(database, "harbour.sql")
    assert scripted.script == database.path.with_name("harbour.sql")
    assert blocks(scripted)[:2] == [CRANE, QUAY]


def test_one_of_several_scripts_of_other_names_is_not_guessed(database: Database) -> None:
    with_script(database, "harbour.sql")
    assert with_script(database, "more.sql") == Database(database.location)


def test_a_published_database_without_a_script_has_no_statements(database: Database) -> None:
    listed = ("tug", "quay", "crane")
    shown = blocks(replace(database, listed_tables=listed))
    assert shown[0] == "/*\n3 example rows of table tug:\nSELECT * FROM tug LIMIT 3;\nx\nBo\n*/"
    for name, text in zip(listed, shown, strict=True):
        assert text.splitlines()[1] == f"3 example rows of table {name}:"
        assert "create table" not in text.casefold()


def test_a_users_database_without_a_script_has_the_statements_that_sqlite_keeps(
    database: Database,
) -> None:
    shown = blocks(database)
    assert len(shown) == 3
    for text in shown:
        assert text.startswith("CREATE TABLE ")


def test_a_published_database_has_the_tables_that_the_questions_list_and_that_exist(
    database: Database,
) -> None:
    crane, tug = blocks(replace(database, listed_tables=("Crane", "nowhere", "TUG")))
    assert crane.splitlines()[2] == "SELECT * FROM Crane LIMIT 3;"
    assert tug.splitlines()[2] == "SELECT * FROM TUG LIMIT 3;"


def test_a_table_that_the_script_lacks_follows_without_a_statement(database: Database) -> None:
    assert blocks(with_script(database))[2].startswith("/*\n3 example rows of table tug:\n")


BLOCKS = ["T1", "T2", "T3", "T4", "T5"]
TABLES = "T1\n\nT2"
QUESTION = "-- which?\nSELECT"
DESCRIPTION = "w means m."

DEMONSTRATIONS = [
    Example("t", ("i",), "plausible", "db", "q1", "select 1"),
    Example("t", ("i",), "plausible", "db", "q2", "select 2"),
]


def test_a_blank_line_separates_schema_instruction_and_question() -> None:
    text = prompt.for_question(BLOCKS[:2], "which?")
    assert text == f"{TABLES}\n\n{INSTRUCTION}\n\n{QUESTION}"


def test_demonstrations_stand_before_the_question_with_a_blank_line_each() -> None:
    text = prompt.for_question(BLOCKS[:2], "which?", support=DEMONSTRATIONS)
    shown = "-- q1\nselect 1\n\n-- q2\nselect 2"
    assert text == f"{TABLES}\n\n{INSTRUCTION}\n\n{shown}\n\n{QUESTION}"


def test_a_description_at_the_end_is_a_comment() -> None:
    text = prompt.for_question(BLOCKS[:2], "which?", descriptions=[DESCRIPTION])
    assert text == f"{TABLES}\n\n{INSTRUCTION}\n\n-- {DESCRIPTION}\n\n{QUESTION}"


def test_a_description_at_the_start_is_bare_text() -> None:
    text = prompt.for_question(BLOCKS[:2], "which?", descriptions=[DESCRIPTION], position="start")
    assert text == f"{DESCRIPTION}\n\n{TABLES}\n\n{INSTRUCTION}\n\n{QUESTION}"


@pytest.mark.parametrize(("tables", "before"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_the_middle_is_after_half_of_the_tables_rounded_down(tables: int, before: int) -> None:
    text = prompt.for_question(
        BLOCKS[:tables], "which?", descriptions=[DESCRIPTION], position="mid"
    )
    paragraphs = text.split("\n\n")
    assert paragraphs[: tables + 1] == [*BLOCKS[:before], DESCRIPTION, *BLOCKS[before:tables]]


def test_a_dialogue_goes_on_with_the_schema_and_the_question() -> None:
    text = prompt.in_dialogue("User1: Hm.\n\nUser2: Ah.\n", ["T1", "T2"], "which?")
    assert text == (
        "User1: Hm.\n\nUser2: Ah.\n\nUser1: Suppose you are given the following schema:\n\n"
        "T1\n\nT2\n\nUsing valid SQLite, answer the following question with the corresponding SQL "
        "query:\nwhich?\n\nUser2: SELECT"
    )


def tables_of(path: Path) -> list[str]:
    """Return the names of a database's tables, without SQLite's own."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [name for (name,) in rows if not name.startswith("sqlite_")]


def test_every_real_database_is_shown_in_full(shared_data: Path) -> None:
    corpus = corpora.read(shared_data / "magnifico/magnifico_data")
    databases = corpora._databases_in(shared_data / "spider_databases", corpus)
    without_script = set()
    for db_id, database in databases.items():
        text = "\n".join(blocks(database))
        shown = re.findall(r"^SELECT \* FROM [\"`[']?(.+?)[\"`\]']? LIMIT 3;$", text, re.M)
        tables = tables_of(database.path)
        assert sorted(map(str.casefold, shown)) == sorted(map(str.casefold, tables)), db_id
        if text.startswith("/*"):
            without_script.add(db_id)
            assert shown == list(database.listed_tables), db_id
    assert without_script == {"chinook_1", "flight_4", "icfp_1", "small_bank_1"}


def test_a_missing_database_is_one_line_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.sqlite: cannot be read"):
        prompt.schema(Database(place_of(tmp_path / "nowhere.sqlite")))
    assert not (tmp_path / "nowhere.sqlite").exists()


def test_text_that_is_not_utf_8_is_shown(database: Database) -> None:
    written(database.path, "UPDATE tug SET x = CAST(x'66ff' AS TEXT)")
    assert "\nf\ufffd\n*/" in blocks(database)[0]
