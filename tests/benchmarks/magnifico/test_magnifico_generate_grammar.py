"""The grammar on a database of 40 tables: each shape of question, in SQL and in words."""

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from support.databases import written
from support.generated import built

from lm_eval_ext.benchmarks.magnifico.generate import make, profile
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer, Impossible, meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.english import grammar as words
from lm_eval_ext.benchmarks.magnifico.generate.make import GeneratedQuestion
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    COUNT,
    Aggregate,
    Clause,
    Plain,
    Question,
    Top,
)
from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.sql.suite.build import in_memory
from lm_eval_ext.sql.suite.checks import Runner


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("factory", tmp_path_factory.mktemp("factory"))


@pytest.fixture(scope="module")
def known(factory: Path) -> Profile:
    return profile.read(factory)


def column(known: Profile, table: str, phrase: str, parent: str = "") -> Plain:
    """Return a column of a table, or of the one that a link leads to."""
    link = None
    for candidate in known.links:
        if link is None and (candidate.child, candidate.parent) == (table, parent):
            link = candidate
    fields = known.entities[parent or table].fields
    (field,) = [field for field in fields if field.phrase == phrase]
    return Plain(field, link)


def examples(known: Profile) -> Iterator[tuple[Question, str, str, str]]:
    """Trees with a hefty thing, their queries, and their questions with and without the word."""
    vehicles = known.entities["VEHICLE"]
    hefty = Clause(">", column(known, "VEHICLE", "number of seats"), (4,), kind="above")
    branch = column(known, "VEHICLE", "name", "BRANCH")
    city = column(known, "VEHICLE", "city", "BRANCH")
    mileage = column(known, "VEHICLE", "mileage")
    joined = "FROM VEHICLE AS T1 JOIN BRANCH AS T2 ON T1.BRANCH_ID = T2.BRANCH_ID "
    base = "whose number of seats is above 4"
    yield (
        Question(vehicles, (COUNT,), (hefty, Clause("=", city, ("Malmo",)))),
        f"SELECT COUNT(*) {joined}WHERE T1.SEATS > 4 AND T2.CITY = 'Malmo'",
        f"How many vehicles are there {base} and whose branch's city is Malmo?",
        "How many hefty vehicles are there whose branch's city is Malmo?",
    )
    yield (
        Question(vehicles, (Aggregate("AVG", mileage),), (hefty,), branch),
        f"SELECT T2.BRANCH_NAME, AVG(T1.MILEAGE) {joined}WHERE T1.SEATS > 4 "
        "GROUP BY T2.BRANCH_NAME",
        f"For each branch name, what is the average mileage of vehicles {base}?",
        "For each branch name, what is the average mileage of hefty vehicles?",
    )
    yield (
        Question(vehicles, (), (hefty,), branch, Top(COUNT, kind="value_mode")),
        f"SELECT T2.BRANCH_NAME {joined}WHERE T1.SEATS > 4 "
        "GROUP BY T2.BRANCH_NAME ORDER BY COUNT(*) DESC LIMIT 1",
        f"What is the most common branch name among the vehicles {base}?",
        "What is the most common branch name among the hefty vehicles?",
    )
    yield (
        Question(vehicles, (mileage,), (hefty,), top=Top(mileage, rank=2), style=1),
        "SELECT MILEAGE FROM VEHICLE WHERE SEATS > 4 ORDER BY MILEAGE DESC LIMIT 1 OFFSET 1",
        f"What is the second highest mileage of the vehicles {base}?",
        "What is the second highest mileage of the hefty vehicles?",
    )


def test_one_tree_gives_the_query_and_both_questions(factory: Path, known: Profile) -> None:
    """The query runs, and each question says what it does, with the new word and without."""
    with closing(sqlite3.connect(factory)) as connection:
        for tree, query, base, novel in examples(known):
            assert tree.sql() == query
            connection.execute(query).fetchall()
            assert tree.words({}) == base
            assert tree.words({"above": "hefty"}) == novel


def test_all_tables_and_meanings_are_found(known: Profile) -> None:
    """The profile has the whole schema, and each kind of meaning is possible on it."""
    assert len(known.entities) == 40
    assert len(known.links) == 53
    assert set(meanings_of(known, 4)) == set(words()["meanings"])


def trees(known: Profile, count: int) -> Iterator[tuple[Question, str, str]]:
    """Yield questions, with the name of their meaning and its plausible word."""
    meanings = meanings_of(known, 4)
    rng = random.Random(4)
    drawer = Drawer(known, rng)
    for kind in rng.choices(list(meanings), k=count):
        with suppress(Impossible):
            yield drawer.question(kind, meanings[kind]), kind, meanings[kind].words["plausible"]


def test_every_shape_is_drawn_and_passes_the_first_check(factory: Path, known: Profile) -> None:
    """Each shape comes often enough, and most tables are asked about."""
    shapes = Counter[str]()
    tables = set[str]()
    with closing(in_memory(factory)) as connection:
        maker = make.Maker(known, 4, Runner(connection))
        for tree, kind, word in trees(known, 500):
            text = tree.words({kind: word})
            assert word in text
            assert text != tree.words({})
            question = GeneratedQuestion(kind, tree, tree.sql(), {BASE: text})
            if maker.problem(question) is not None:
                continue
            tables.add(tree.entity.table)
            shapes["link"] += any(column.link for column in tree.columns())
            shapes["groups"] += tree.by is not None
            shapes["top"] += tree.top is not None
            shapes["distinct"] += tree.distinct
    assert min(shapes.values()) >= 2, shapes
    assert len(tables) > 20


def read(tmp_path: Path, script: str) -> Profile:
    return profile.read(written(tmp_path / "made.sqlite", script))


NUMBERS = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
    INSERT INTO {table} SELECT {values} FROM n;
"""


def test_is_not_is_asked_of_columns_without_null_only(tmp_path: Path) -> None:
    """Of two columns of words, the one with NULL is never denied a value."""
    script = "CREATE TABLE nurse (name TEXT, city TEXT, grade TEXT, salary INTEGER);"
    city, grade = "iif(i % 7, char(65 + i % 5) || 'ton', NULL)", "char(70 + i % 4) || 'x'"
    values = f"'Nurse ' || i, {city}, {grade}, i * 37 % 61"
    known = read(tmp_path, script + NUMBERS.format(table="nurse", values=values))
    columns = Counter[str]()
    for tree, _, _ in trees(known, 2000):
        for clause in tree.where:
            if clause.rule == "<>" and isinstance(clause.of, Plain):
                columns[clause.of.phrase] += 1
    assert columns["grade"] > 20
    assert set(columns) == {"grade"}


def test_numbers_that_stand_for_something_are_no_amounts(tmp_path: Path) -> None:
    """Codes are not asked about; a table without a column to ask about may have links to it."""
    script = """CREATE TABLE advisor (id INTEGER PRIMARY KEY);
        CREATE TABLE student (
          id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, major INTEGER, age INTEGER,
          city TEXT, advisor INTEGER REFERENCES advisor (id));"""
    values = (
        "i, 'A' || i, 'B' || i, 100 + i % 9, 18 + i % 11, char(65 + i % 4) || 'ton', i % 13 + 1"
    )
    rows = NUMBERS.format(table="student", values=values)
    links = NUMBERS.format(table="advisor", values="i")
    known = read(tmp_path, script + rows + links)
    assert [field.phrase for field in known.entities["student"].fields] == [
        "first name", "last name", "age", "city",
    ]  # fmt: skip
    assert meanings_of(known, 1).keys() >= {"linked", "place"}


def test_why_a_question_is_not_asked(tmp_path: Path) -> None:
    """DISTINCT cities come in another order through the index, which changes nothing."""
    script = "CREATE TABLE nurse (name TEXT, city TEXT, pay INTEGER, bonus INTEGER);"
    values = "'Nurse ' || i, char(70 - i % 5 * i % 7) || 'ton', i, nullif(i % 9, 0)"
    rows = NUMBERS.format(table="nurse", values=values)
    known = read(tmp_path, f"{script}{rows}CREATE INDEX by_pay ON nurse (pay DESC);")
    (nurse,) = known.entities.values()
    name, city, pay, bonus = map(Plain, nurse.fields)
    reasons = []
    with closing(in_memory(tmp_path / "made.sqlite")) as connection:
        maker = make.Maker(known, 4, Runner(connection))
        for shown, most in ((city, 2), (city, 80), (bonus, 20), (name, 70), (name, 0), (name, 2)):
            tree = Question(nurse, (shown,), (Clause("<=", pay, (most,)),), distinct=True)
            asked = GeneratedQuestion(
                "", tree, tree.sql(), {BASE: "which?" if most == 2 else str(tree)}
            )
            reasons.append(maker.problem(asked))
            maker.kept = [asked] if reasons == [None] else maker.kept
    assert reasons == [
        None, "a condition changes nothing", "shows NULL", "too many rows", "empty",
        "another question has the same text",
    ]  # fmt: skip
