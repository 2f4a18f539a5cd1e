"""Answers in the dialects of DuckDB and PostgreSQL: queries are read, and prose stays prose."""

import pytest

from lm_eval_ext.benchmarks.magnifico.answers import query_in_dialect, query_of

QUERIES = [
    "SELECT count(*)::int FROM mast",
    "SELECT name FROM mast WHERE made::text LIKE '19%'",
    "SELECT DISTINCT ON (owner) owner, kind FROM pets ORDER BY owner",
    "SELECT data->>'a' FROM t WHERE x::numeric > 3",
    "SELECT a FROM t WHERE d > now() - INTERVAL '1 day'",
    "SELECT {'a': 1, 'b': [2, 3]} FROM t",
    "SELECT * EXCLUDE (a) FROM t QUALIFY row_number() OVER () = 1",
    "SELECT name FROM mast FETCH FIRST 1 ROW ONLY",
    "SELECT name FROM mast WHERE name SIMILAR TO 'm%' AND name !~ 'x'",
    "SELECT d AT TIME ZONE 'UTC' FROM t",
    "SELECT a FROM t WHERE tags @> ARRAY['x'] AND b ILIKE E'a\\n%'",
    "SELECT CAST(x AS double precision) FROM t",
    "SELECT count(*) FILTER (WHERE height > 30) FROM mast",
]
WRAPPINGS = {
    "alone": "{}",
    "fenced": "```sql\n{};\n```",
    "fenced in prose": "Here is the query:\n\n```sql\n{}\n```\nIt returns the names.",
    "announced": "The answer is:\n\n{};",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_read_and_not_changed(query: str, wrapping: str) -> None:
    """Words of the dialect do not end it, whatever stands around it."""
    assert query_in_dialect(WRAPPINGS[wrapping].format(query)) == query


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_may_go_on_from_the_prompts_select(query: str) -> None:
    """The prompt ends with its first word."""
    assert query_in_dialect(query.removeprefix("SELECT")) == query


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot answer: there is no such table.",
        "42",
        "",
        "The word means: {'tall': above 30}.",
        "Well::it depends on the data",
        "Use E'x' or @> for it!",
    ],
)
def test_prose_is_no_query(answer: str) -> None:
    """Signs of the dialect alone make none."""
    assert query_in_dialect(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        '{"sql": "SELECT a FROM t WHERE b = 1"}',
        "SELECT a \x1f FROM t",
        " a FROM t -- no\n\nWell.",
        "<think>SELECT 1</think>SELECT name FROM mast",
    ],
    ids=["JSON", "a control character", "a comment", "a thought"],
)
def test_an_answer_without_words_of_the_dialect_is_read_as_on_sqlite(answer: str) -> None:
    """The reader of queries for SQLite gives the same."""
    assert query_in_dialect(answer) == query_of(answer)
