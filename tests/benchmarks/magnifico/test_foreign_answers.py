"""Answers to prompts of other people: no SELECT is put before them, and nothing is lost."""

import pytest

from lm_eval_ext.benchmarks.magnifico.answers import query_of
from lm_eval_ext.benchmarks.magnifico.foreign_answers import read_foreign_answer
from lm_eval_ext.sql.values import EngineName

QUERY = "SELECT name FROM singer WHERE age > 30"

WRAPPED = {
    "alone": "{q}",
    "with a semicolon": "{q};",
    "behind a comment": "-- singers\n{q}",
    "in a fence": "```sql\n{q}\n```",
    "in a fence without a language": "```\n{q};\n```",
    "in a fence among sentences": "Here is the query:\n\n```sql\n{q}\n```\n\nIt lists the names.",
    "behind a label": "SQL: {q}",
    "behind a label in Markdown": "**Answer:** {q}",
    "in a sentence": "You can use `{q}` to list them.",
    "in JSON": '{"sql": "{q}"}',
    "behind reasoning": "<think>name FROM singer?</think>{q}",
    "in parentheses": "({q})",
    "before another query": "{q};\nSELECT 1 FROM singer",
    "behind statements that prepare": "CREATE TABLE t (a INT);\nINSERT INTO t VALUES (1);\n{q}",
    "behind an imperative": "Explain the filter first.\n\n{q}",
}
"""A family of answers with a right query, which stays right."""

AS_WRITTEN = {
    "SELECT misspelled": "SELEC name FROM singer",
    "SELECT misspelled with a condition": "SELCT count(*) FROM singer WHERE age > 3",
    "SELECT without a space": "SELECTname FROM singer",
    "no SELECT": "name FROM singer WHERE age > 30",
    "no SELECT, an aggregate": "count(*) FROM singer",
    "a DISTINCT": "DISTINCT name FROM singer",
    "a deletion": "DELETE FROM singer WHERE id = 1",
    "an update": "UPDATE singer SET age = (SELECT max(age) FROM singer)",
    "an insertion": "INSERT INTO singer SELECT name FROM singer",
    "a replacement": "REPLACE INTO singer SELECT name FROM singer",
    "a table": "CREATE TABLE x AS SELECT name FROM singer",
    "a plan": "EXPLAIN QUERY PLAN SELECT name FROM singer",
    "parentheses that SQLite lacks": "(SELECT a FROM b) UNION (SELECT c FROM d)",
    "an empty list": "SELECT FROM singer",
}
"""A family of answers that are no query or a broken one, which stay as they are."""


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("wrapping", WRAPPED)
def test_a_right_query_stays_right(wrapping: str, engine: EngineName) -> None:
    assert read_foreign_answer(WRAPPED[wrapping].replace("{q}", QUERY), engine) == QUERY


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("fence", ["{q}", "{q};", "```sql\n{q}\n```"], ids=["bare", "end", "fence"])
@pytest.mark.parametrize("name", AS_WRITTEN)
def test_what_is_no_query_stays_as_it_is(name: str, fence: str, engine: EngineName) -> None:
    text = AS_WRITTEN[name]
    assert read_foreign_answer(fence.replace("{q}", text), engine) == text


@pytest.mark.parametrize("text", ["", "I do not know.", "Delete the row first.", "42"])
def test_prose_has_no_query(text: str) -> None:
    assert read_foreign_answer(text, "sqlite") is None


def test_our_prompts_are_still_continued() -> None:
    """The tasks' prompts end in SELECT."""
    assert query_of("name FROM singer") == "SELECT name FROM singer"
