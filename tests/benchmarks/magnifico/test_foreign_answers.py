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
    "an insertion with a semicolon in a string": "INSERT INTO t SELECT a FROM b WHERE a <> 'x;y'",
    "an insertion in a paragraph of its own": "INSERT INTO t\n\nSELECT name FROM singer",
    "an insertion of columns": "INSERT OR IGNORE INTO t (a, b) SELECT a, b FROM singer",
    "an insertion from a named query": (
        "WITH a AS (SELECT name FROM singer) INSERT INTO t SELECT name FROM a"
    ),
    "a view": "CREATE MATERIALIZED VIEW v AS SELECT name FROM singer",
    "an analysis": "EXPLAIN ANALYZE VERBOSE SELECT name FROM singer",
    "a description": "DESCRIBE SELECT name FROM singer",
    "a short description": "DESC SELECT name FROM singer",
    "a summary": "SUMMARIZE SELECT name FROM singer",
    "a summary in parentheses": "SUMMARIZE (SELECT name FROM singer)",
    "a summary of a named query": "SUMMARIZE WITH a AS (SELECT b FROM c) SELECT b FROM a",
    "columns": "SHOW SELECT name FROM singer",
    "a macro": "CREATE MACRO m() AS TABLE SELECT name FROM singer",
    "a macro that replaces one": "CREATE OR REPLACE MACRO m(x) AS (SELECT name FROM singer)",
    "a cursor": "DECLARE c CURSOR FOR SELECT name FROM singer",
    "parentheses that SQLite lacks": "(SELECT a FROM b) UNION (SELECT c FROM d)",
    "an empty list": "SELECT FROM singer",
}
"""A family of answers that are no query or a broken one, which stay as they are."""

STATEMENTS = [
    name
    for name, text in AS_WRITTEN.items()
    if text.startswith(
        ("DEL", "UPD", "INS", "REP", "CRE", "EXP", "WITH", "DESC", "SUM", "SHOW", "DECLARE")
    )
]
"""Those that are no queries."""

IN_PARENTHESES = (
    "a deletion",
    "an update",
    "a summary in parentheses",
    "a macro that replaces one",
)
"""Those in which no SELECT could be the answer."""

NEIGHBOURS = {
    "before another query": "SELECT 1 FROM singer",
    "behind statements that prepare": "CREATE TABLE t (a INT)",
}
"""What is read beside one of these."""


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


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("wrapping", WRAPPED)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_taken_whole(name: str, wrapping: str, engine: EngineName) -> None:
    """Also where the reader would choose the SELECT in it."""
    text = AS_WRITTEN[name]
    written = text.replace("\n", "\\n") if wrapping == "in JSON" else text
    query = read_foreign_answer(WRAPPED[wrapping].replace("{q}", written), engine)
    if name in IN_PARENTHESES:
        assert query == NEIGHBOURS.get(wrapping, text)
    else:
        assert query == text


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", ["a deletion", "an update", "an insertion with a semicolon"])
def test_a_query_in_a_second_fence_is_read(name: str, engine: EngineName) -> None:
    """A statement that prepares it is none that holds it, and two fences are no single one."""
    statement = "INSERT INTO t VALUES ('x;y');" if "semicolon" in name else AS_WRITTEN[name]
    answer = f"```sql\n{statement}\n```\nThen the query:\n```sql\n{QUERY}\n```"
    assert read_foreign_answer(answer, engine) == QUERY


ANSWERS = {
    "a sentence before it": ("Sure, here it is:\n```sql\n{q};\n```", ""),
    "a sentence behind it": ("```sql\n{q};\n```\nThis copies all names.", ""),
    "the query in a sentence behind it": (
        "```sql\n{q};\n```\nIt copies the result of SELECT name FROM pet.",
        "",
    ),
    "reasoning on its own line": ("<think>hm</think>\n{q}", ""),
    "a comment": ("-- copy\n{q}", ""),
    "a quotation": ("`{q}`", ""),
    "a second statement": ("{q};\nSELECT name FROM t;", ""),
    "small letters": ("{q}", "insert into t select name from pet"),
    "small letters in a fence": ("Sure:\n```sql\n{q}\n```", "insert into t select name from pet"),
    "comments within": ("{q}", "INSERT /* all */ INTO t -- copy\nSELECT name FROM pet"),
    "parentheses": ("{q}", "INSERT INTO t (SELECT name FROM pet)"),
    "a condition": ("{q}", "DELETE FROM t WHERE name IN\n(SELECT name FROM pet)"),
    "a union": ("{q}", "CREATE VIEW v AS SELECT name FROM pet UNION SELECT a FROM b"),
    "options": ("{q}", "EXPLAIN (ANALYZE, BUFFERS) SELECT name FROM pet"),
    "a description in small letters": ("{q}", "describe select name from pet"),
    "a summary on two lines": ("SQL:\n{q}", "SUMMARIZE\nSELECT name FROM pet"),
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_statement_that_writes_is_never_its_select(name: str, engine: EngineName) -> None:
    answer, text = ANSWERS[name]
    text = text or "INSERT INTO t SELECT name FROM pet"
    assert read_foreign_answer(answer.replace("{q}", text), engine) == text


RIGHT = {
    "a comment about a statement": "-- not: INSERT INTO t\n{q}",
    "a comment above": "/* INSERT INTO t */ {q}",
    "a heading": "Explain:\n\n{q}",
    "a request": "To create a view or insert into a table is not needed.\n\n{q}",
    "an explanation": "Let me explain\n\n{q}",
    "a request to describe": "Describe the singers:\n\n{q}",
    "a request to summarize": "To summarize:\n\n{q}",
    "a request to show": "Show the names of all singers.\n{q}",
    "a sentence that shows it": "These results show: {q}",
    "the end of a query": "ORDER BY name DESC\n\n{q}",
    "the end of a query in quotation marks": 'ORDER BY "name" DESC\n{q}',
    "a description of a table": "DESCRIBE singer;\n{q}",
    "a deletion before it": "DELETE FROM t WHERE name = ';';\n{q};",
    "a statement in a sentence behind it": "{q};\n\nDo not run INSERT INTO t SELECT 1 FROM b.",
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", RIGHT)
def test_words_about_statements_do_no_harm(name: str, engine: EngineName) -> None:
    assert read_foreign_answer(RIGHT[name].replace("{q}", QUERY), engine) == QUERY


@pytest.mark.parametrize(
    "query",
    [
        "SELECT column_name FROM (DESCRIBE SELECT name FROM singer)",
        "SELECT avg FROM (SUMMARIZE singer)",
    ],
)
def test_a_query_may_ask_about_a_description(query: str) -> None:
    """DuckDB has it as a table."""
    assert read_foreign_answer(f"```sql\n{query}\n```", "duckdb") == query


@pytest.mark.parametrize("text", ["", "I do not know.", "Delete the row first.", "42"])
def test_prose_has_no_query(text: str) -> None:
    assert read_foreign_answer(text, "sqlite") is None


def test_our_prompts_are_still_continued() -> None:
    """The tasks' prompts end in SELECT."""
    assert query_of("name FROM singer") == "SELECT name FROM singer"
