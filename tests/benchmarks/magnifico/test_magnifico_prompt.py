"""The layout ``figure``: CREATE statements, rows, positions of descriptions, dialogues.

``test_magnifico_released.py`` has the layout of the authors' code.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora, prompt
from lm_eval_ext.benchmarks.magnifico.records import Database, Example, Layout, Position
from lm_eval_ext.benchmarks.magnifico.tables import tables_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import place_of

INSTRUCTION = prompt.INSTRUCTION.format("SQLite")

SCRIPT = """
-- a script; with a semicolon in a comment
/* and
   another */
PRAGMA foreign_keys = ON;
CREATE TABLE IF NOT EXISTS `Quay` (
  `name` varchar(20), -- as painted
  depth REAL DEFAULT ';'
) ;
create table "Night Boat" (id int, quay text);
INSERT INTO Quay VALUES ('a;b', 1.5);
"""


def build(folder: Path, *, script: str | None = SCRIPT) -> Database:
    path = folder / "port.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('CREATE TABLE "Night Boat" (id int, quay text)')
        connection.execute("CREATE TABLE Quay (name, depth)")
        connection.execute("CREATE TABLE later (x)")
        rows = [("one", 1.5), ("two\nlines", None), (b"\xff\x00", 3), ("never shown", 4)]
        connection.executemany("INSERT INTO Quay VALUES (?, ?)", rows)
        # Not UTF-8.
        connection.execute("INSERT INTO later VALUES (CAST(x'66ff' AS TEXT))")
        connection.commit()
    schema = folder / "schema.sql"
    if script is None:
        return Database(place_of(path))
    schema.write_text(script, encoding="utf-8")
    return Database(place_of(path), schema)


def test_statements_come_from_the_script_in_its_order(tmp_path: Path) -> None:
    quay, boat, later = tables_of(build(tmp_path), "figure")
    assert (quay.name, boat.name, later.name) == ("Quay", "Night Boat", "later")
    assert quay.create
    assert quay.create.startswith("CREATE TABLE IF NOT EXISTS `Quay` (\n  `name` varchar(20), --")
    assert quay.create.endswith(")")
    assert boat.create == 'create table "Night Boat" (id int, quay text)'
    assert later.create == "CREATE TABLE later (x)"


def test_without_a_script_they_come_from_sqlite(tmp_path: Path) -> None:
    tables = tables_of(build(tmp_path, script=None), "figure")
    assert [table.name for table in tables] == ["Night Boat", "Quay", "later"]
    assert tables[1].create == "CREATE TABLE Quay (name, depth)"


def test_three_rows_are_shown_a_line_each(tmp_path: Path) -> None:
    quay, boat, later = tables_of(build(tmp_path), "figure")
    assert quay.header == ("name", "depth")
    assert quay.rows == (("one", 1.5), ("two\nlines", None), (b"\xff\x00", 3))
    assert boat.rows == ()
    assert later.rows == (("f\ufffd",),)


def test_a_block_is_laid_out_as_in_the_paper(tmp_path: Path) -> None:
    blocks = prompt.schema(tables_of(build(tmp_path), "figure"), "figure")
    assert blocks[0].partition("/*\n3")[2] == (
        " example rows:\nSELECT * FROM Quay LIMIT 3;\nname\tdepth\none\t1.5\ntwo\\nlines\tNULL\n"
        "ff00\t3\n*/"
    )
    assert 'SELECT * FROM "Night Boat" LIMIT 3;' in blocks[1]


@pytest.mark.parametrize("layout", get_args(Layout))
def test_no_database_is_one_line(tmp_path: Path, layout: Layout) -> None:
    with pytest.raises(DataError, match=r"nowhere\.sqlite: cannot be read"):
        tables_of(Database(place_of(tmp_path / "nowhere.sqlite")), layout)
    assert not (tmp_path / "nowhere.sqlite").exists()


BLOCKS = ["T1", "T2", "T3"]
LINES = ["The word 'w' refers to m."]


def test_a_direct_prompt() -> None:
    assert prompt.for_question(BLOCKS, "how many?", "figure") == (
        f"T1\nT2\nT3\n{INSTRUCTION}\n-- how many?\nSELECT"
    )


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("start", "-- {d}\nT1\nT2\nT3\n{i}\n-- q\nSELECT"),
        ("mid", "T1\nT2\n-- {d}\nT3\n{i}\n-- q\nSELECT"),
        ("end", "T1\nT2\nT3\n{i}\n-- {d}\n-- q\nSELECT"),
    ],
)
def test_a_description_stands_where_it_is_wanted(position: Position, expected: str) -> None:
    made = prompt.for_question(BLOCKS, "q", "figure", descriptions=LINES, position=position)
    assert made == expected.format(d=LINES[0], i=INSTRUCTION)


def test_support_stands_before_the_question() -> None:
    shown = [Example("t", ("i",), "plausible", "db", f"q{n}", f"select {n}") for n in (1, 2)]
    made = prompt.for_question(["T"], "q", "figure", support=shown)
    assert made == f"T\n{INSTRUCTION}\n-- q1\nselect 1\n-- q2\nselect 2\n-- q\nSELECT"


def test_a_phrase_is_called_one() -> None:
    assert prompt.description("w", "m") == "The word 'w' refers to m."
    assert prompt.description("two words", "m") == "The phrase 'two words' refers to m."


def test_a_dialogue_goes_on_with_the_question() -> None:
    made = prompt.in_dialogue("User1: Hm.\n\nUser2: Ah.\n", ["T1", "T2"], "which?", "figure")
    turns = made.split("\n\n")
    assert turns[:2] == ["User1: Hm.", "User2: Ah."]
    assert turns[2].startswith("User1: Suppose you are given the following schema:\nT1\nT2\n")
    assert turns[2].endswith("\nwhich?")
    assert turns[3] == "User2: SELECT"


def test_every_real_database_shows_all_its_tables(shared_data: Path) -> None:
    for folder in sorted((shared_data / "spider_databases").iterdir()):
        path = folder / f"{folder.name}.sqlite"
        if not path.is_file():
            continue
        script = folder / "schema.sql"
        tables = tables_of(Database(place_of(path), script if script.is_file() else None), "figure")
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            kept = connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite%'"
            )
            assert len(tables) == kept.fetchone()[0]
        for table in tables:
            assert table.create
            assert table.create.casefold().startswith("create table")
            assert table.name.casefold() in table.create.casefold()
            assert table.create.rstrip().endswith(")")
            assert "insert into" not in table.create.casefold()


def test_descriptions_are_one_line_each() -> None:
    for interpretation in corpora.interpretations().values():
        for form in interpretation.forms.values():
            line = prompt.description(form, interpretation.meaning)
            assert line.count("\n") == 0
            assert line.endswith(".")
            assert not line.endswith("..")
