"""Rewrites: the gold's result in other words, where a rule's condition holds, and only there."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.rewrites import CONDITIONS, KINDS, Facts, rewrites
from lm_eval_ext.sql.schema import schema_of

SCRIPT = """
CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT NOT NULL);
INSERT INTO shelf VALUES (1, 'hall'), (2, 'attic');
CREATE TABLE book (isbn INTEGER PRIMARY KEY, title TEXT, pages INTEGER, shelf_id INTEGER);
INSERT INTO book VALUES (1, 'Sea', 90, 1), (2, 'Sand', 120, 1), (3, 'Sun', 200, 2);
"""


@pytest.fixture(scope="module")
def library() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCRIPT)
        register(connection)
        yield connection


def test_every_rule_has_a_description_and_a_condition() -> None:
    assert set(KINDS) == set(CONDITIONS)


def test_a_gold_with_its_rewrites(library: sqlite3.Connection) -> None:
    schema = schema_of(library)
    facts = Facts(schema, lambda sql: library.execute(sql).fetchall(), sqlite3.Error)
    gold = "SELECT title FROM book WHERE pages > 100"
    found = {rewrite.kind: rewrite for rewrite in rewrites(gold, schema, facts)}
    assert found["step_of_one"].sql == "SELECT title FROM book WHERE pages >= 101"
    assert [need.kind for need in found["step_of_one"].needs] == ["integers"]
    for rewrite in found.values():
        assert library.execute(rewrite.sql).fetchall() == [("Sand",), ("Sun",)]
        assert all(facts.holds(need) for need in rewrite.needs)
