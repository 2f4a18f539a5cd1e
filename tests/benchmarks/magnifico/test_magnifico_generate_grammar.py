"""The grammar on a database of 40 tables: each shape of question, in SQL and in words."""

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.generated import built

from lm_eval_ext.benchmarks.magnifico.generate import make, profile
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer, Impossible, meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.english import known as words
from lm_eval_ext.benchmarks.magnifico.generate.make import Asked
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Clause,
    Having,
    Plain,
    Question,
    Top,
    kind_of,
)
from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.sql.policy import Limits, open_guarded


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("factory", tmp_path_factory.mktemp("factory"))


@pytest.fixture(scope="module")
def known(factory: Path) -> Profile:
    return profile.read(factory)


def column(known: Profile, table: str, phrase: str, *through: str) -> Plain:
    """A column of a table, or of the one that links lead to."""
    links = []
    for parent in through:
        links += [one for one in known.links if (one.child, one.parent) == (table, parent)]
        table = parent
    (field,) = [one for one in known.entities[table].fields if one.phrase == phrase]
    return Plain(field, tuple(links))


def examples(known: Profile) -> Iterator[tuple[Question, str, str, str]]:
    """Trees with a hefty thing, their queries, and their questions with and without the word."""
    vehicles = known.entities["VEHICLE"]
    hefty = Clause(">", column(known, "VEHICLE", "number of seats"), (4,), kind="above")
    branch = column(known, "VEHICLE", "name", "BRANCH")
    climate = column(known, "VEHICLE", "climate", "BRANCH", "REGION")
    yield (
        Question(vehicles, (Aggregate("COUNT"),), (hefty, Clause("=", climate, ("Wet",)))),
        "SELECT COUNT(*) FROM VEHICLE AS T1 JOIN BRANCH AS T2 ON T1.BRANCH_ID = T2.BRANCH_ID "
        "JOIN REGION AS T3 ON T2.REGION_ID = T3.REGION_ID WHERE T1.SEATS > 4 AND "
        "T3.CLIMATE = 'Wet'",
        "How many vehicles are there whose number of seats is above 4 and whose branch's region's "
        "climate is Wet?",
        "How many hefty vehicles are there whose branch's region's climate is Wet?",
    )
    yield (
        Question(vehicles, (), (hefty,), branch, having=Having(Aggregate("COUNT"), ">", 1)),
        "SELECT T2.BRANCH_NAME FROM VEHICLE AS T1 JOIN BRANCH AS T2 ON T1.BRANCH_ID = T2.BRANCH_ID "
        "WHERE T1.SEATS > 4 GROUP BY T2.BRANCH_NAME HAVING COUNT(*) > 1",
        "What are the names of the branches with more than 1 vehicle whose number of seats is "
        "above 4?",
        "What are the names of the branches with more than 1 hefty vehicle?",
    )
    model = column(known, "VEHICLE", "model")
    mileage = column(known, "VEHICLE", "mileage")
    mean = Having(Aggregate("AVG", mileage), "<", 90000)
    yield (
        Question(vehicles, (), (hefty,), model, having=mean),
        "SELECT MODEL FROM VEHICLE WHERE SEATS > 4 GROUP BY MODEL HAVING AVG(MILEAGE) < 90000",
        "For which models is the average mileage below 90000 among the vehicles whose number of "
        "seats is above 4?",
        "For which models is the average mileage below 90000 among the hefty vehicles?",
    )
    most = Top(Aggregate("COUNT"), kind="value_mode")
    yield (
        Question(vehicles, (), (hefty,), branch, most),
        "SELECT T2.BRANCH_NAME FROM VEHICLE AS T1 JOIN BRANCH AS T2 ON T1.BRANCH_ID = T2.BRANCH_ID "
        "WHERE T1.SEATS > 4 GROUP BY T2.BRANCH_NAME ORDER BY COUNT(*) DESC LIMIT 1",
        "What is the name of the most common branch among the vehicles whose number of seats is "
        "above 4?",
        "What is the name of the most common branch among the hefty vehicles?",
    )


def test_one_tree_gives_the_query_and_both_questions(factory: Path, known: Profile) -> None:
    with closing(sqlite3.connect(factory)) as connection:
        for tree, query, base, novel in examples(known):
            assert tree.sql() == query
            connection.execute(query).fetchall()
            assert tree.words({}) == base
            assert tree.words({"above": "hefty"}) == novel


def test_all_tables_and_meanings_are_found(known: Profile) -> None:
    assert (len(known.entities), len(known.links)) == (40, 53)
    found = {kind_of(one.name) for one in meanings_of(known, 4)}
    assert found == set(words()["meanings"])


def trees(known: Profile, count: int) -> Iterator[tuple[Question, str, str]]:
    """Questions, with the name of their meaning and its plausible word."""
    meanings, rng = list(meanings_of(known, 4)), random.Random(4)
    drawer = Drawer(known, rng)
    for _ in range(count):
        meaning = rng.choice(meanings)
        try:
            yield drawer.question(meaning), meaning.name, meaning.words["plausible"]
        except Impossible:
            continue


def test_every_shape_is_drawn_and_passes_the_first_check(factory: Path, known: Profile) -> None:
    shapes, tables = Counter[str](), set[str]()
    with closing(open_guarded(str(factory), Limits())) as connection:
        maker = make.Maker(known, 4, connection)
        for tree, name, word in trees(known, 500):
            said = tree.words({name: word})
            assert word in said
            assert said != tree.words({})
            if maker.problem(Asked((name,), tree, tree.sql(), {BASE: said})) is None:
                tables.add(tree.entity.table)
                far = max((len(one.links) for one in tree.columns()), default=0)
                shapes.update({
                    "having": tree.having is not None, "one link": far == 1, "two links": far == 2,
                    "groups": tree.by is not None, "top": tree.top is not None,
                    "distinct": tree.distinct,
                })  # fmt: skip
    assert min(shapes.values()) >= 2, shapes
    assert len(tables) > 20


def made(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "made.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


NUMBERS = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
    INSERT INTO {table} SELECT {values} FROM n;
"""


def test_is_not_is_asked_of_columns_without_null_only(tmp_path: Path) -> None:
    script = "CREATE TABLE nurse (name TEXT, city TEXT, grade TEXT, salary INTEGER);"
    city, grade = "iif(i % 7, char(65 + i % 5) || 'ton', NULL)", "char(70 + i % 4) || 'x'"
    values = f"'Nurse ' || i, {city}, {grade}, i * 37 % 61"
    known = profile.read(made(tmp_path, script + NUMBERS.format(table="nurse", values=values)))
    asked = Counter(
        one.of.phrase for tree, _, _ in trees(known, 2000) for one in tree.where
        if one.rule == "<>" and isinstance(one.of, Plain)
    )  # fmt: skip
    assert asked["grade"] > 20
    assert set(asked) == {"grade"}


def test_products_are_of_a_price_and_a_quantity(tmp_path: Path) -> None:
    script = """CREATE TABLE player (
        name TEXT, height INTEGER, goals INTEGER, salary INTEGER, total_pay INTEGER,
        ticket_price REAL, quantity INTEGER);"""
    values = "'Player ' || i, " + ", ".join(f"{n} + i * {n} % 83" for n in (37, 41, 43, 47, 53, 59))
    known = profile.read(made(tmp_path, script + NUMBERS.format(table="player", values=values)))
    (player,) = known.entities.values()
    (pair,) = Drawer(known, random.Random(1)).nodes("product", player)
    assert pair.words({}) == "product of ticket price and quantity"


def test_numbers_that_stand_for_something_are_no_amounts(tmp_path: Path) -> None:
    """And a table without a column to ask about may still have links to it."""
    script = """CREATE TABLE advisor (id INTEGER PRIMARY KEY);
        CREATE TABLE student (
          id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, major INTEGER, age INTEGER,
          city TEXT, advisor INTEGER REFERENCES advisor (id));"""
    values = (
        "i, 'A' || i, 'B' || i, 100 + i % 9, 18 + i % 11, char(65 + i % 4) || 'ton', i % 13 + 1"
    )
    rows = NUMBERS.format(table="student", values=values)
    links = NUMBERS.format(table="advisor", values="i")
    known = profile.read(made(tmp_path, script + rows + links))
    assert [field.phrase for field in known.entities["student"].fields] == [
        "first name", "last name", "age", "city",
    ]  # fmt: skip
    assert {one.name for one in meanings_of(known, 1)} >= {"linked", "alias"}
    for tree, _, _ in trees(known, 1500):
        for term in tree.show:
            assert not (isinstance(term, Aggregate) and "followed" in term.words({}))


def bonuses(known: Profile, function: str, name: str, form_word: str) -> Asked:
    (employee,) = known.entities.values()
    (bonus,) = employee.having("amount", "total")
    tree = Question(employee, (Aggregate(function, Plain(bonus), name),))
    texts = {BASE: tree.words({}), "adversarial": tree.words({name: form_word})}
    return Asked((name,), tree, tree.sql(), texts)  # type: ignore[arg-type]


def test_one_text_has_one_query(tmp_path: Path) -> None:
    """The average bonus is no base question where "average" is also a word for the sum."""
    script = "CREATE TABLE employee (name TEXT, bonus INTEGER);"
    values = "'E ' || i, i * 37 % 61"
    database = made(tmp_path, script + NUMBERS.format(table="employee", values=values))
    known = profile.read(database)
    average = bonuses(known, "AVG", "average", "total")
    total = bonuses(known, "SUM", "sum", "average")
    with closing(open_guarded(str(database), Limits())) as connection:
        maker = make.Maker(known, 4, connection)
        assert maker.problem(total) is None
        maker.asked.append(average)
        assert maker.problem(total) == "another question has the same text"


@pytest.mark.parametrize(
    ("limit", "expected"), [(80, "a condition changes nothing"), (2, None)], ids=["all", "some"]
)
def test_rows_are_compared_in_any_order(tmp_path: Path, limit: int, expected: str | None) -> None:
    """DISTINCT cities of all rows come in another order than through an index."""
    script = "CREATE TABLE nurse (name TEXT, city TEXT, salary INTEGER);"
    values = "'Nurse ' || i, char(70 - i % 5 * i % 7) || 'ton', i"
    more = "CREATE INDEX by_salary ON nurse (salary DESC);"
    database = made(tmp_path, script + NUMBERS.format(table="nurse", values=values) + more)
    known = profile.read(database)
    (nurse,) = known.entities.values()
    _, city, salary = (Plain(field) for field in nurse.fields)
    where = Clause("<=", salary, (limit,))
    tree = Question(nurse, (city,), (where,), distinct=True)
    with closing(open_guarded(str(database), Limits())) as connection:
        ordered = [connection.execute(one).fetchall() for one in (
            tree.sql(), tree.sql().partition(" WHERE ")[0])]  # fmt: skip
        assert ordered[0] != ordered[1]
        found = make.Maker(known, 4, connection).problem(
            Asked(("at_least",), tree, tree.sql(), {BASE: "x"})
        )
    assert found == expected
