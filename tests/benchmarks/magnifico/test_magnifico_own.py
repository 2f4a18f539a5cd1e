"""A user's own file and database: reading, and one-line errors."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.benchmarks.magnifico.documents import Setting, documents
from lm_eval_ext.errors import DataError, OptionError

HEADER = "interpretation\tword\tmeaning\tquestion\tbase_question\tquery"
ROW = (
    "tall\tlofty\ta height above 30\twhich masts are lofty?\twhich masts are above 30?"
    "\tselect name from mast where height > 30"
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "Yard.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mast (name TEXT PRIMARY KEY, height REAL)")
        connection.execute("INSERT INTO mast VALUES ('fore', 28.5), ('main', 33)")
        connection.commit()
    return path


def write(folder: Path, *lines: str) -> Path:
    file = folder / "mine.tsv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_row_gives_a_base_and_a_novel_example(tmp_path: Path, database: Path) -> None:
    corpus = own.read(write(tmp_path, HEADER, ROW), database)
    base, novel = corpus.examples
    assert (base.form, novel.form) == ("base", "plausible")
    assert base.template == novel.template
    assert base.query == novel.query
    assert corpus.databases["yard"].path == database
    (asked, described), _ = documents(
        corpus, Setting(kind="desc", forms=("plausible",)), {"yard": ["T"]}.__getitem__, {}
    )
    assert "refers to" not in asked["prompt"]
    assert "-- The word 'lofty' refers to a height above 30.\n" in described["prompt"]


def test_support_rows_are_shown_and_not_asked(tmp_path: Path, database: Path) -> None:
    shown = ROW.replace("which masts are", "name the masts that are")
    corpus = own.read(
        write(tmp_path, HEADER + "\tsupport\tform", f"{shown}\tyes\tforeign", f"{ROW}\t\tforeign"),
        database,
    )
    assert [one.form for one in corpus.examples] == ["base", "foreign"]
    docs, _ = documents(
        corpus, Setting(kind="fewshot", forms=("foreign",)), {"yard": ["T"]}.__getitem__, {}
    )
    assert "-- name the masts that are lofty?\nselect name" in docs[1]["prompt"]


def test_few_shot_without_support_is_direct(tmp_path: Path, database: Path) -> None:
    corpus = own.read(write(tmp_path, HEADER, ROW), database)
    few, direct = (
        documents(corpus, Setting(kind=kind), {"yard": ["T"]}.__getitem__, {})[0]
        for kind in ("fewshot", "direct")
    )
    assert few == direct


def test_several_databases_lie_in_a_folder(tmp_path: Path, database: Path) -> None:
    file = write(tmp_path, HEADER + "\tdb_id", f"{ROW}\tyard", f"{ROW}\tdock")
    corpus = own.read(file, tmp_path)
    assert set(corpus.databases) == {"yard"}
    docs, left_out = documents(corpus, Setting(), {"yard": ["T"]}.__getitem__, {})
    assert {doc["db_id"] for doc in docs} == {"yard"}
    assert left_out == {"database_missing": ["tall/1/base", "tall/1/plausible"]}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER.replace("\tquery", ""), ROW], "no column 'query'; the first line must name"),
        ([HEADER + "\tnote", ROW + "\tx"], "unknown column 'note'"),
        ([HEADER, ROW.replace("a height above 30", " ")], r"mine\.tsv:2: meaning is empty"),
        ([HEADER, ROW + "\textra"], r"mine\.tsv:2: too many cells"),
        ([HEADER, ROW.replace("\tlofty\t", "\tproud\t")], "does not contain the word 'proud'"),
        ([HEADER, ROW, ROW.replace("above 30\t", "above 40\t", 1)], r":3: tall has another word"),
        ([HEADER + "\tform", ROW + "\tnonsense"], "the form is 'nonsense'; use plausible, "),
        ([HEADER + "\tsupport", ROW + "\tyes"], "no examples to ask"),
        ([HEADER], "no examples to ask"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, database: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        own.read(write(tmp_path, *lines), database)


def test_missing_files_are_named(tmp_path: Path, database: Path) -> None:
    with pytest.raises(OptionError, match=r"magnifico_file=.*nowhere\.tsv"):
        own.read(tmp_path / "nowhere.tsv", database)
    with pytest.raises(OptionError, match=r"magnifico_databases=.*nowhere\.sqlite"):
        own.read(write(tmp_path, HEADER, ROW), tmp_path / "nowhere.sqlite")
    with pytest.raises(DataError, match=r"mine\.tsv:2: no database; add a column db_id"):
        own.read(write(tmp_path, HEADER, ROW), tmp_path)


def test_the_digest_is_that_of_the_content(tmp_path: Path, database: Path) -> None:
    file = write(tmp_path, HEADER, ROW)
    before = own.digest(own.read(file, database).databases)
    assert before == own.digest(own.read(file, database).databases)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO mast VALUES ('mizzen', 21)")
        connection.commit()
    assert own.digest(own.read(file, database).databases) != before
