"""Extracting the query from an answer: a table of cases, and properties for any text."""

import csv
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.magnifico.extract import MAX_CHARS, query_of
from lm_eval_ext.sql import Executor

pytestmark = pytest.mark.slow

CASES = yaml.safe_load(
    (Path(__file__).parents[2] / "fixtures/magnifico_answers.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["why"])
def test_cases(case: dict[str, str | None]) -> None:
    assert query_of(str(case["answer"])) == case["expected"]


# --- valid queries ---------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE boat (name TEXT, "home port" TEXT, mast INTEGER);
CREATE TABLE crew (name TEXT, boat TEXT, pay REAL);
INSERT INTO boat VALUES ('Gull', 'Bank', 1), ('Tern', 'a;b', 2), ('Skua', NULL, 3);
INSERT INTO crew VALUES ('Ada', 'Gull', 10), ('Bo', 'Tern', 20.5), ('Cy', 'Tern', 5);
"""

HARD_PIECES = [
    ";", "--", "#", "select", "SELECT name FROM boat", "`", '"', "''", "\n\n", "```", "\n```\n",
    "\nUser1: ", "</sql>", "<|", "**", "/*", "*/", "it''s", ".\n", "\n2. ", "(", ")", " ", "x", "é",
]  # fmt: skip
strings = st.lists(st.sampled_from(HARD_PIECES), max_size=4).map(lambda p: f"'{''.join(p)}'")
aliases = st.sampled_from(["a", '"a;b"', "`a--b`", "[a#b]", '"select"', "to_port"])
columns = st.one_of(
    st.sampled_from(
        [
            "name",
            "*",
            '"home port"',
            "boat.name",
            "`mast`",
            "[mast]",
            "count(*)",
            "COUNT(DISTINCT name)",
            "-mast + .5 * 2.",
            "CASE WHEN mast > 1 THEN 'tall' ELSE 'low' END kind",
            "CAST(mast AS unsigned big int)",
            "(SELECT MAX(pay) FROM crew)",
            "EXISTS (SELECT 1 FROM crew)",
            "row_number() OVER (ORDER BY mast ROWS UNBOUNDED PRECEDING)",
            "mast IS NOT NULL AND name LIKE 'G%' ESCAPE '!'",
        ]
    ),
    st.builds("{} AS {}".format, strings, aliases),
)
conditions = st.one_of(
    st.sampled_from(
        [
            "mast >= 2",
            "name IN (SELECT boat FROM crew)",
            "name NOT IN (\nselect boat\nFROM crew\n)",
            "mast BETWEEN 1 AND 2",
            '"home port" IS NULL',
        ]
    ),
    st.builds('"home port" != {}'.format, strings),
)
endings = st.sampled_from(
    [
        "",
        "ORDER BY mast DESC LIMIT 1",
        "GROUP BY mast HAVING count(*) > 0",
        "UNION SELECT * FROM (SELECT 1) WHERE 0",
        "-- done; SELECT 2",
        "/* done */",
    ]
)


@st.composite
def queries(draw: Any) -> str:
    """A query that SQLite accepts, laid out without blank lines between its words."""
    gap = draw(st.sampled_from([" ", "\n", "\n  ", " /* gap; */ ", " -- gap;\n"]))
    case = draw(st.sampled_from([str.upper, str.lower]))
    ending = draw(endings)
    chosen = draw(st.lists(columns, min_size=1, max_size=1 if "UNION" in ending else 3))
    source = draw(st.sampled_from(["boat", "boat LEFT OUTER JOIN crew c ON c.boat = boat.name"]))
    if "UNION" in ending or "*" in chosen or "JOIN" in source:
        source = "boat"
    if "UNION" in ending:
        chosen = ["mast"]
    parts = [case("select"), ", ".join(chosen), case("from"), source]
    if draw(st.booleans()):
        parts += [case("where"), draw(conditions)]
    query = gap.join([*parts, *([ending] if ending else [])])
    if draw(st.integers(0, 4)) == 0:
        space = draw(st.sampled_from([" ", "\n\n"]))
        return f"{case('with')} t(x) AS (SELECT 1){space}{query}"
    return query


@pytest.fixture(scope="module")
def execute() -> Iterator[Callable[[str], list[Any]]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        yield lambda sql: connection.execute(sql).fetchall()


def continued(query: str) -> str:
    assume(query[:6].upper() == "SELECT")
    return query[6:]


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda q: q,
    "semicolon": lambda q: f"{q}\n;\n",
    "continuation": continued,
    "continuation, no space": lambda q: continued(q).lstrip(),
    "continuation, next line": lambda q: f"\n{continued(q)}",
    "continuation, next question": lambda q: (
        f"{continued(q)}\n;\n\n-- more?\nSELECT name FROM crew"
    ),
    "second query": lambda q: f"{q}\n;\nSELECT name FROM crew;",
    "explained": lambda q: f"{q}\n\nIt's what you asked for: select, from; done.",
    "fence": lambda q: f"```sql\n{q}\n;\n```",
    "fence, no semicolon": lambda q: f"```\n{q}\n```",
    "fence in prose": lambda q: f"Sure! Let's select from boat:\n```sql\n{q}\n```\nIt's done; bye.",
    "continuation in a fence": lambda q: f"```sql\n{continued(q)}\n```",
    "thought": lambda q: f"<think>SELECT 1 FROM boat; no, it's\n</think>\n{q}",
}
IN_PROSE: dict[str, Callable[[str], str]] = {
    "colon": lambda q: f"You can select what you asked for with: {q}",
    "apostrophe": lambda q: f"Here's the query from me:\n\n{q}\n\nLet's go.",
    "turn": lambda q: f"User2: {q}\n\nUser1: And the crew?",
    "list": lambda q: f"1. {q}\n2. SELECT name FROM crew",
}


@pytest.mark.parametrize("name", [*WRAPPINGS, *IN_PROSE])
@given(query=queries())
@example(query="SELECT 'a\n\nb;' FROM boat")
def test_a_query_survives_what_stands_around_it(
    execute: Callable[[str], list[Any]], name: str, query: str
) -> None:
    # Behind prose, a fence is taken for one wherever it stands.
    assume("```" not in query or name in WRAPPINGS)
    found = query_of({**WRAPPINGS, **IN_PROSE}[name](query))
    assert found is not None
    assert execute(found) == execute(query)
    kept = found[6:].strip()
    assert kept in query
    assert query_of(found) == found


@pytest.mark.parametrize("mark", ["`", '"'])
@given(query=queries())
def test_a_query_survives_marks(execute: Callable[[str], list[Any]], mark: str, query: str) -> None:
    assume(not re.search(rf"--|/\*|```|[^ ]{mark}[^, ]", query))
    found = query_of(f"Use {mark}{query}{mark}, it's {mark}right{mark}.")
    assert found is not None
    assert execute(found) == execute(query)


# --- any text --------------------------------------------------------------------------------

texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            [*HARD_PIECES, "SELECT", "select ", " FROM ", "FROM boat", "name", ",", "'", "WITH ",
             "WITH t AS (", "UNION ", "\n", "\r\n", "</think>", "<think>", ":", ".", "\ud800",
             "\0", "\ufeff", "\xa0", "-- c\n", "User2: ", "*", "[", "]", "1."]
        ),
        max_size=14,
    ).map("".join),
)  # fmt: skip


@given(texts)
def test_any_text_gives_a_part_of_itself_or_nothing(text: str) -> None:
    found = query_of(text)
    if found is None:
        return
    assert found in text or found.removeprefix("SELECT ") in text
    assert found[:6].upper() == "SELECT" or found[:4].upper() == "WITH"
    assert query_of(found) == found


@pytest.mark.parametrize(
    "piece",
    ["[", "'", '"', "`", "(", "```", "select ", "SELECT(", "SELECT /*", "`SELECT `", '"SELECT "',
     "SELECT a.", "WITH a AS (", "-", "/*", "a:", "\n1. ", "<think>", "</think>", "\n\n",
     "((SELECT ", "\n(SELECT a FROM b", ":(SELECT a FROM b)", '\\"', "{", '{"', '{"a":', '["', "[[",
     '{"sql":"SELECT ', '{"a":"{\\"a\\":\\"', "<think></think>", "SELECT a FROM b This is the ",
     "<thought>SELECT a FROM b</thought>", "SELECT a FROM b\nthe the the ", ". This is the",
     ", select a from b", "x, with t as (select ", "a select a from b. It is the ",
     "SELECT a FROM b. A", '```json\n{"a": "', "The the ", "\\u00"],
)  # fmt: skip
def test_hostile_text_is_read_in_a_moment(piece: str) -> None:
    """One that took quadratic time would need hours here, and meet pytest's own limit."""
    found = query_of(piece * (MAX_CHARS // len(piece)))
    assert found is None or query_of(found) == found


def test_what_stands_beyond_the_limit_is_not_read() -> None:
    query = "SELECT name FROM boat"
    assert query_of(" " * (MAX_CHARS - len(query)) + query) == query
    assert query_of(" " * MAX_CHARS + query) is None


# --- the recorded predictions ----------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> list[dict[str, str]]:
    path = shared_data / "magnifico/recorded_predictions/runs.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_recorded_queries_come_back_as_they_are(
    shared_data: Path, recorded: list[dict[str, str]]
) -> None:
    """The predictions and their golds; only a comment at the end may go."""
    queries = {
        (row["db_id"], row[key]) for row in recorded for key in ("predicted_sql", "gold_sql")
    }
    changed = [
        (db_id, sql, found)
        for db_id, sql in sorted(queries)
        if (found := query_of(sql)) != sql.strip().rstrip("; ")
    ]
    assert len(queries) > 4_000
    assert len(changed) == 1
    with Executor(shared_data / "spider_databases") as executor:
        for db_id, sql, found in changed:
            assert re.search(r"/\*.*\*/$", sql)
            assert found is not None
            assert executor.query(db_id, found) == executor.query(db_id, sql)


def test_recorded_queries_are_found_as_continuations(recorded: list[dict[str, str]]) -> None:
    """Those cut off before FROM apart, none of which was right."""
    for row in recorded:
        sql = row["predicted_sql"]
        found = query_of(re.sub(r"^select\b", "", sql, flags=re.IGNORECASE))
        if re.search(r"\bfrom\b", sql, re.IGNORECASE):
            assert found is not None
            assert sql[6:].strip().startswith(found[6:].strip())
        else:
            assert (found, row["recorded_correct"]) == (None, "0")
