"""The grammar on a database of 40 tables: each shape of question, in SQL and in words."""

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.generated import built

from lm_eval_ext.benchmarks.magnifico.generate import profile, to_sql, to_words
from lm_eval_ext.benchmarks.magnifico.generate.check import Check
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer
from lm_eval_ext.benchmarks.magnifico.generate.lexicon import Lexicon
from lm_eval_ext.benchmarks.magnifico.generate.make import meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.meanings import WORDS, kind_of
from lm_eval_ext.benchmarks.magnifico.generate.parts import Impossible
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Compare,
    Having,
    Plain,
    Question,
    Versus,
)
from lm_eval_ext.sql.distill.scratch_db import Runner
from lm_eval_ext.sql.policy import Limits, open_guarded


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("factory", tmp_path_factory.mktemp("factory"))


@pytest.fixture(scope="module")
def known(factory: Path) -> Profile:
    return profile.read(factory, Lexicon())


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
    hefty = Compare(column(known, "VEHICLE", "number of seats"), ">", 4, "above")
    branch = column(known, "VEHICLE", "name", "BRANCH")
    climate = column(known, "VEHICLE", "climate", "BRANCH", "REGION")
    yield (
        Question(vehicles, (Aggregate("COUNT"),), (hefty, Compare(climate, "=", "Wet"))),
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
    few = Compare(mileage, "<", 5000)
    for also, operator, says in ((True, "INTERSECT", "both among {} and among {}"),
                                 (False, "EXCEPT", "among {} but not among {}")):  # fmt: skip
        base = says.format(
            "the vehicles whose number of seats is above 4", "the vehicles whose mileage is below "
            "5000"
        )  # fmt: skip
        yield (
            Question(vehicles, (model,), (hefty,), versus=Versus(few, also)),
            f"SELECT MODEL FROM VEHICLE WHERE SEATS > 4 {operator} SELECT MODEL FROM VEHICLE "
            "WHERE MILEAGE < 5000",
            f"Which models occur {base}?",
            f"Which models occur {base}?".replace(
                "the vehicles whose number of seats is above 4", "the hefty vehicles"
            ),
        )
    mean = Having(Aggregate("AVG", mileage), "<", 90000)
    yield (
        Question(vehicles, (), (hefty,), model, having=mean),
        "SELECT MODEL FROM VEHICLE WHERE SEATS > 4 GROUP BY MODEL HAVING AVG(MILEAGE) < 90000",
        "For which models is the average mileage below 90000 among the vehicles whose number of "
        "seats is above 4?",
        "For which models is the average mileage below 90000 among the hefty vehicles?",
    )


def test_one_tree_gives_the_query_and_both_questions(factory: Path, known: Profile) -> None:
    with closing(sqlite3.connect(factory)) as connection:
        for tree, query, base, novel in examples(known):
            assert to_sql.query(tree) == query
            connection.execute(query).fetchall()
            assert to_words.question(tree, {}) == base
            assert to_words.question(tree, {"above": "hefty"}) == novel


def test_all_tables_and_meanings_are_found(known: Profile) -> None:
    assert (len(known.entities), known.keys) == (40, 53)
    found = {kind_of(name) for name, _ in meanings_of(known, 4)}
    assert found == set(WORDS)


def test_every_shape_is_drawn_and_passes_the_first_check(factory: Path, known: Profile) -> None:
    meanings, rng = dict(meanings_of(known, 4)), random.Random(4)
    drawer, shapes, tables = Drawer(known, rng), Counter[str](), set[str]()
    with closing(open_guarded(str(factory), Limits())) as connection:
        check = Check(Runner(connection))
        for _ in range(400):
            meaning = meanings[rng.choice(list(meanings))]
            try:
                tree = drawer.question(meaning)
            except Impossible:
                continue
            plausible = meaning.words["plausible"]
            said = to_words.question(tree, {meaning.kind: plausible})
            assert plausible in said
            assert said != to_words.question(tree, {})
            if check.problem(tree, to_sql.query(tree)) is None:
                tables.add(tree.entity.table)
                far = max((len(one.links) for one in tree.plain()), default=0)
                shapes.update({
                    "having": tree.having is not None, "two sets": tree.versus is not None,
                    "one link": far == 1, "two links": far == 2, "groups": tree.by is not None,
                })  # fmt: skip
    assert min(shapes.values()) >= 2, shapes
    assert len(tables) > 20
