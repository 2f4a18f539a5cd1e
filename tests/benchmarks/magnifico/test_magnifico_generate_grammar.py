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
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer, ImpossibleDraw, meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.english import grammar as words
from lm_eval_ext.benchmarks.magnifico.generate.make import GeneratedQuestion
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    COUNT,
    Aggregate,
    Clause,
    ColumnTerm,
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
def factory_profile(factory: Path) -> Profile:
    return profile.read_profile(factory)


def column(database: Profile, table: str, phrase: str, parent: str = "") -> ColumnTerm:
    """Return a column of a table, or of the one that a link leads to."""
    link = None
    for candidate in database.links:
        if link is None and (candidate.child, candidate.parent) == (table, parent):
            link = candidate
    fields = database.entities[parent or table].fields
    (field,) = [field for field in fields if field.phrase == phrase]
    return ColumnTerm(field, link)


def examples(database: Profile) -> Iterator[tuple[Question, str, str, str]]:
    """Yield trees about hefty vehicles, queries, and questions without the new word and with it."""
    vehicles = database.entities["VEHICLE"]
    hefty = Clause(">", column(database, "VEHICLE", "number of seats"), (4,), kind="above")
    branch = column(database, "VEHICLE", "name", "BRANCH")
    city = column(database, "VEHICLE", "city", "BRANCH")
    mileage = column(database, "VEHICLE", "mileage")
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


def test_one_tree_gives_the_query_and_both_questions(
    factory: Path, factory_profile: Profile
) -> None:
    """The query runs, and each question says what it does, with the new word and without."""
    with closing(sqlite3.connect(factory)) as connection:
        for tree, query, base, novel in examples(factory_profile):
            assert tree.sql() == query
            connection.execute(query).fetchall()
            assert tree.words({}) == base
            assert tree.words({"above": "hefty"}) == novel


def test_all_tables_and_meanings_are_found(factory_profile: Profile) -> None:
    """Each kind of meaning is possible on the schema."""
    assert len(factory_profile.entities) == 40
    assert len(factory_profile.links) == 53
    assert set(meanings_of(factory_profile, 4)) == set(words()["meanings"])


def trees(database: Profile, count: int) -> Iterator[tuple[Question, str, str]]:
    """Yield questions, with the name of their meaning and its plausible word."""
    meanings = meanings_of(database, 4)
    rng = random.Random(4)
    drawer = Drawer(database, rng)
    for kind in rng.choices(list(meanings), k=count):
        with suppress(ImpossibleDraw):
            yield drawer.question(kind, meanings[kind]), kind, meanings[kind].words["plausible"]


def test_every_shape_is_drawn_and_passes_the_first_check(
    factory: Path, factory_profile: Profile
) -> None:
    """Each shape comes often enough, and most tables are asked about."""
    shapes = Counter[str]()
    tables = set[str]()
    with closing(in_memory(factory)) as connection:
        maker = make.Maker(factory_profile, 4, Runner(connection))
        for tree, kind, word in trees(factory_profile, 500):
            text = tree.words({kind: word})
            assert word in text
            assert text != tree.words({})
            question = GeneratedQuestion(kind, tree, tree.sql(), {BASE: text})
            if maker.problem(question) is not None:
                continue
            tables.add(tree.entity.table)
            shapes["link"] += any(column.link for column in tree.columns())
            shapes["groups"] += tree.group_by is not None
            shapes["top"] += tree.top is not None
            shapes["distinct"] += tree.distinct
    assert min(shapes.values()) >= 2, shapes
    assert len(tables) > 20


def profile_of(folder: Path, script: str) -> Profile:
    """Return the profile of a database that a script makes."""
    return profile.read_profile(written(folder / "small.sqlite", script))


NUMBERS = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
    INSERT INTO {table} SELECT {values} FROM n;
"""


def test_is_not_is_asked_of_columns_without_null_only(tmp_path: Path) -> None:
    """One of two columns of words has NULL, and is never denied a value."""
    script = "CREATE TABLE nurse (name TEXT, city TEXT, grade TEXT, salary INTEGER);"
    city, grade = "iif(i % 7, char(65 + i % 5) || 'ton', NULL)", "char(70 + i % 4) || 'x'"
    values = f"'Nurse ' || i, {city}, {grade}, i * 37 % 61"
    clinic = profile_of(tmp_path, script + NUMBERS.format(table="nurse", values=values))
    columns = Counter[str]()
    for tree, _, _ in trees(clinic, 2000):
        for clause in tree.where:
            if clause.rule == "<>" and isinstance(clause.column, ColumnTerm):
                columns[clause.column.phrase] += 1
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
    university = profile_of(tmp_path, script + rows + links)
    phrases = [field.phrase for field in university.entities["student"].fields]
    assert phrases == ["first name", "last name", "age", "city"]
    assert meanings_of(university, 1).keys() >= {"linked", "place"}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table of 80 nurses; an index lists their cities in another order."""
    script = "CREATE TABLE nurse (name TEXT, city TEXT, pay INTEGER, bonus INTEGER);"
    values = "'Nurse ' || i, char(70 - i % 5 * i % 7) || 'ton', i, nullif(i % 9, 0)"
    rows = NUMBERS.format(table="nurse", values=values)
    path = tmp_path_factory.mktemp("hospital") / "hospital.sqlite"
    return written(path, f"{script}{rows}CREATE INDEX by_pay ON nurse (pay DESC);")


def distinct_values(hospital: Path, shown: str, highest_pay: int, text: str) -> GeneratedQuestion:
    """Return a question for the different values of a column among nurses of low pay."""
    (nurse,) = profile.read_profile(hospital).entities.values()
    columns = {field.phrase: ColumnTerm(field) for field in nurse.fields}
    condition = Clause("<=", columns["pay"], (highest_pay,))
    tree = Question(nurse, (columns[shown],), (condition,), distinct=True)
    return GeneratedQuestion("", tree, tree.sql(), {BASE: text})


@pytest.mark.parametrize(
    ("shown", "highest_pay", "reason"),
    [
        ("city", 2, None),
        ("city", 80, "a condition changes nothing"),
        ("bonus", 20, "shows NULL"),
        ("name", 70, "too many rows"),
        ("name", 0, "empty"),
    ],
    ids=["asked", "all rows", "NULL", "70 rows", "no row"],
)
def test_a_question_that_would_be_a_bad_one_has_a_reason(
    hospital: Path, shown: str, highest_pay: int, reason: str | None
) -> None:
    """DISTINCT cities of all rows come in another order through the index: that is no change."""
    question = distinct_values(hospital, shown, highest_pay, "which?")
    with closing(in_memory(hospital)) as connection:
        maker = make.Maker(profile.read_profile(hospital), 4, Runner(connection))
        assert maker.problem(question) == reason


def test_the_text_of_another_question_is_not_asked_again(hospital: Path) -> None:
    """Two queries under one text would make one of two right answers wrong."""
    with closing(in_memory(hospital)) as connection:
        maker = make.Maker(profile.read_profile(hospital), 4, Runner(connection))
        maker.kept = [distinct_values(hospital, "city", 2, "which?")]
        same_text = distinct_values(hospital, "name", 2, "which?")
        assert maker.problem(same_text) == "another question has the same text"
        other_text = distinct_values(hospital, "name", 2, "which name?")
        assert maker.problem(other_text) is None
