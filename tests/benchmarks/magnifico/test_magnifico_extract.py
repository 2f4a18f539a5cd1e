"""Extracting the query from an answer: a table of cases, and properties for any text."""

import csv
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.databases import opened

from lm_eval_ext.answers.tokens import remove_invisible
from lm_eval_ext.benchmarks.magnifico.answers import (
    MAX_CHARS,
    QueryReader,
    query_in_dialect,
    query_of,
)
from lm_eval_ext.benchmarks.magnifico.sql_text import parses

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read_fixture(name: str) -> Any:
    return yaml.safe_load((FIXTURES / name).read_text(encoding="utf-8"))


CASES = [
    *read_fixture("magnifico_answers.yaml"),
    *chain(*read_fixture("magnifico_wrapped_answers.yaml").values()),
]
PIECES = read_fixture("answer_pieces.yaml")


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_the_query_of_an_answer_is_read(case: dict[str, str | None]) -> None:
    """It is as expected, and is its own query."""
    query = query_of(str(case["answer"]))
    assert query == case["expected"]
    assert query is None or query_of(query) == query


# --- how chat models write it ---------------------------------------------------------------

FORMS = read_fixture("magnifico_chat_answers.yaml")
QUERY = "SELECT name FROM boat"
LINES = "SELECT name\nFROM boat\n\nWHERE mast = 1\n\nORDER BY name"


def cases_of(kinds: dict[str, list[str]]) -> list[Any]:
    """Return a case for each answer, named by its kind and number."""
    cases = []
    for form_kind, answers in kinds.items():
        for number, answer in enumerate(answers, start=1):
            cases.append(pytest.param(answer, id=f"{form_kind} {number}"))
    return cases


@pytest.mark.parametrize("answer", cases_of(FORMS["read"]))
def test_a_form_that_a_person_reads_is_read(answer: str) -> None:
    """The query is read out of whatever chat models write around it."""
    assert query_of(answer.replace("{q}", QUERY, 1)) == QUERY


@pytest.mark.parametrize("answer", FORMS["lines"])
def test_blank_lines_within_a_query_do_not_end_it(answer: str) -> None:
    """All its lines are read."""
    assert query_of(answer.replace("{lines}", LINES, 1)) == LINES


@pytest.mark.parametrize(("answer", "expected"), FORMS["broken"])
def test_a_query_with_mistakes_is_a_query(answer: str, expected: str) -> None:
    """It fails when it is executed: an error of the query, not an answer without a query."""
    assert query_of(answer) == expected


@pytest.mark.parametrize("answer", cases_of(FORMS["unread"]))
def test_a_form_that_no_person_takes_for_the_answer_is_not_read(answer: str) -> None:
    """Denied, quoted and hypothetical queries are not read."""
    assert query_of(answer.replace("{q}", QUERY, 1)) is None


@pytest.mark.parametrize("answer", cases_of(FORMS["read"]))
def test_the_dialects_read_the_same_forms(answer: str) -> None:
    """Queries of other engines are read out of the same responses."""
    assert query_in_dialect(answer.replace("{q}", QUERY, 1)) == QUERY


def test_the_reader_names_its_steps() -> None:
    """The reader explains how it came to an answer, or to none."""
    response = f"<think>Hm.</think>Sure:\n```sql\n{QUERY}\n```<end_of_turn>"
    reading = QueryReader().explain(response)
    assert reading.answer == QUERY
    assert reading.summary == "outside of reasoning > special tokens > fenced block"
    assert QueryReader().explain("I do not know.").summary == "no query"
    assert QueryReader().explain(QUERY).summary == "unchanged"


# --- valid queries ---------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE boat (name TEXT, "home port" TEXT, mast INTEGER);
CREATE TABLE crew (name TEXT, boat TEXT, pay REAL);
INSERT INTO boat VALUES ('Gull', 'Bank', 1), ('Tern', 'a;b', 2), ('Skua', NULL, 3);
INSERT INTO crew VALUES ('Ada', 'Gull', 10), ('Bo', 'Tern', 20.5), ('Cy', 'Tern', 5);
"""

hard_texts = st.lists(st.sampled_from(PIECES["hard"]), max_size=4).map("".join)
strings = st.builds("'{}'".format, hard_texts)
aliases = st.sampled_from(["a", '"a;b"', "`a--b`", "[a#b]", '"select"', "to_port"])
columns = st.one_of(
    st.sampled_from(PIECES["columns"]), st.builds("{} AS {}".format, strings, aliases)
)
conditions = st.one_of(
    st.sampled_from(PIECES["conditions"]), st.builds('"home port" != {}'.format, strings)
)
endings = st.sampled_from(PIECES["endings"])


@st.composite
def queries(draw: Any) -> str:
    """Draw a query that SQLite accepts, laid out without blank lines between its words."""
    gap = draw(st.sampled_from([" ", "\n", "\n  ", " /* gap; */ ", " -- gap;\n"]))
    case = draw(st.sampled_from([str.upper, str.lower]))
    ending = draw(endings)
    selected = draw(st.lists(columns, min_size=1, max_size=1 if "UNION" in ending else 3))
    source = draw(st.sampled_from(["boat", "boat LEFT OUTER JOIN crew c ON c.boat = boat.name"]))
    if "UNION" in ending or "*" in selected or "JOIN" in source:
        source = "boat"
    if "UNION" in ending:
        selected = ["mast"]
    parts = [case("select"), ", ".join(selected), case("from"), source]
    if draw(st.booleans()):
        parts += [case("where"), draw(conditions)]
    if ending:
        parts.append(ending)
    query: str = gap.join(parts)
    if draw(st.integers(0, 4)) == 0:
        space = draw(st.sampled_from([" ", "\n\n"]))
        return f"{case('with')} t(x) AS (SELECT 1){space}{query}"
    return query


@pytest.fixture(scope="module")
def execute() -> Iterator[Callable[[str], list[Any]]]:
    """Return a function that runs a query on a small database."""
    with opened(SCHEMA) as connection:

        def fetch_rows(sql: str) -> list[Any]:
            rows: list[Any] = connection.execute(sql).fetchall()
            return rows

        yield fetch_rows


def wrapped(name: str, query: str) -> str:
    """Put a query into a text, which may have its first word already."""
    text: str = {**PIECES["wrappings"], **PIECES["in_prose"]}[name]
    assume("{q}" in text or query[:6].upper() == "SELECT")
    without_select = query[6:]
    text = text.replace("{bare}", without_select.lstrip())
    text = text.replace("{rest}", without_select)
    return text.replace("{q}", query)


@pytest.mark.parametrize("name", [*PIECES["wrappings"], *PIECES["in_prose"]])
@given(query=queries())
@example(query="SELECT 'a\n\nb;' FROM boat")
def test_a_query_survives_what_stands_around_it(
    execute: Callable[[str], list[Any]], name: str, query: str
) -> None:
    """Whatever wraps it, the same rows come out, and nothing is changed in the text."""
    # Behind prose, a fence is taken for one wherever it stands.
    assume("```" not in query or name in PIECES["wrappings"])
    extracted = query_of(wrapped(name, query))
    assert extracted is not None
    assert execute(extracted) == execute(query)
    assert extracted[6:].strip() in query
    assert query_of(extracted) == extracted


@pytest.mark.parametrize("mark", ["`", '"'])
@given(query=queries())
def test_a_query_survives_marks(execute: Callable[[str], list[Any]], mark: str, query: str) -> None:
    """Backticks and quotation marks of Markdown and prose are none of its own."""
    assume(not re.search(rf"--|/\*|```|[^ ]{mark}[^, ]", query))
    extracted = query_of(f"Use {mark}{query}{mark}, it's {mark}right{mark}.")
    assert extracted is not None
    assert execute(extracted) == execute(query)


# --- any text --------------------------------------------------------------------------------

texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([*PIECES["hard"], *PIECES["words"], *PIECES["hostile"]]), max_size=14
    ).map("".join),
)


@given(texts)
@example('{"sql": "SELECT name FROM boat This returns the')
@example("select a from b, with this, select name FROM boat It's the end.")
def test_any_text_gives_a_part_of_itself_or_nothing(text: str) -> None:
    """A query begins with its word, is in the text, and is its own query."""
    query = query_of(text)
    if query is None:
        return
    visible = remove_invisible(text)
    assert query in visible or query.removeprefix("SELECT ") in visible
    assert query[:6].upper() == "SELECT" or query[:4].upper() == "WITH"
    assert query_of(query) == query


@pytest.mark.parametrize("piece", PIECES["hostile"])
def test_hostile_text_is_read_in_a_moment(piece: str) -> None:
    """Quadratic time would be many minutes, more than pytest's own limit."""
    query = query_of(piece * (MAX_CHARS // 10 // len(piece)))
    assert query is None or query_of(query) == query


def test_the_parser_does_not_compile() -> None:
    """Each expression reads the one before twice: compiled, this has a million million joins."""
    steps = [f"c{n} AS (SELECT p.x FROM c{n - 1} p, c{n - 1} q)" for n in range(1, 40)]
    assert parses(f"WITH c0 AS (SELECT 1 x), {', '.join(steps)} SELECT * FROM c39")


def test_a_query_beyond_the_limit_is_not_read() -> None:
    """Its last character may be the last that is read."""
    query = "SELECT name FROM boat"
    assert query_of("." + " " * (MAX_CHARS - len(query) - 1) + query) == query
    assert query_of("." + " " * MAX_CHARS + query) is None


@pytest.mark.parametrize("read", [query_of, query_in_dialect])
def test_a_thought_of_any_length_stands_before_a_query(read: Callable[[str], str | None]) -> None:
    """The limit holds for what stands outside of reasoning."""
    thought = "Maybe so. " * (MAX_CHARS // 10 + 1)
    assert read(f"<think>{thought}</think>\nSELECT name FROM boat") == "SELECT name FROM boat"


# --- the recorded predictions ----------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> list[dict[str, str]]:
    """Return the authors' recorded predictions."""
    path = shared_data / "magnifico/recorded_predictions/runs.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_recorded_queries_come_back_as_they_are(recorded: list[dict[str, str]]) -> None:
    """The predictions and their golds are read whole; only a comment at the end may go."""
    queries = set()
    for row in recorded:
        queries |= {row["predicted_sql"], row["gold_sql"]}
    assert len(queries) > 4_000
    changed = [sql for sql in queries if query_of(sql) != sql.strip().rstrip("; ")]
    (with_comment,) = changed
    assert query_of(with_comment) == re.sub(r"/\*.*\*/$", "", with_comment).strip()


def test_recorded_queries_are_found_as_continuations(recorded: list[dict[str, str]]) -> None:
    """Those without their first word are read, but for some cut off before FROM, all wrong."""
    for row in recorded:
        sql = row["predicted_sql"]
        continuation = re.sub(r"^select\b", "", sql, flags=re.IGNORECASE)
        query = query_of(continuation)
        if re.search(r"\bfrom\b", sql, re.IGNORECASE):
            assert query is not None
            assert sql[6:].strip().startswith(query[6:].strip())
        else:
            assert query is None
            assert row["recorded_correct"] == "0"
