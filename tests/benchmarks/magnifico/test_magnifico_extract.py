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
CASES = [
    *yaml.safe_load((FIXTURES / "magnifico_answers.yaml").read_text(encoding="utf-8")),
    *chain(
        *yaml.safe_load((FIXTURES / "magnifico_wrapped_answers.yaml").read_text("utf-8")).values()
    ),
]
PIECES = yaml.safe_load((FIXTURES / "answer_pieces.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["why"])
def test_cases(case: dict[str, str | None]) -> None:
    found = query_of(str(case["answer"]))
    assert found == case["expected"]
    assert found is None or query_of(found) == found


# --- how chat models write it ---------------------------------------------------------------

FORMS = yaml.safe_load((FIXTURES / "magnifico_chat_answers.yaml").read_text(encoding="utf-8"))
QUERY = "SELECT name FROM boat"
LINES = "SELECT name\nFROM boat\n\nWHERE mast = 1\n\nORDER BY name"


def cases_of(kinds: dict[str, list[str]]) -> list[Any]:
    """Return a case for each answer, named by its kind and number."""
    return [
        pytest.param(answer, id=f"{kind} {number}")
        for kind, answers in kinds.items()
        for number, answer in enumerate(answers, start=1)
    ]


@pytest.mark.parametrize("answer", cases_of(FORMS["read"]))
def test_a_form_that_a_person_reads(answer: str) -> None:
    found = query_of(answer.replace("{q}", QUERY, 1))
    assert found == QUERY


@pytest.mark.parametrize("answer", FORMS["lines"])
def test_blank_lines_within_a_query_do_not_end_it(answer: str) -> None:
    assert query_of(answer.replace("{lines}", LINES, 1)) == LINES


@pytest.mark.parametrize(("answer", "expected"), FORMS["broken"])
def test_a_query_with_mistakes_is_a_query(answer: str, expected: str) -> None:
    """It fails when it is executed: an error of the query, not an answer without a query."""
    assert query_of(answer) == expected


@pytest.mark.parametrize("answer", cases_of(FORMS["unread"]))
def test_a_form_that_no_person_takes_for_the_answer(answer: str) -> None:
    assert query_of(answer.replace("{q}", QUERY, 1)) is None


@pytest.mark.parametrize("answer", cases_of(FORMS["read"]))
def test_the_dialects_read_the_same_forms(answer: str) -> None:
    assert query_in_dialect(answer.replace("{q}", QUERY, 1)) == QUERY


def test_the_steps_of_reading() -> None:
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

strings = st.lists(st.sampled_from(PIECES["hard"]), max_size=4).map(lambda p: f"'{''.join(p)}'")
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
    with opened(SCHEMA) as connection:
        yield lambda sql: connection.execute(sql).fetchall()


def wrapped(name: str, query: str) -> str:
    text: str = {**PIECES["wrappings"], **PIECES["in_prose"]}[name]
    assume("{q}" in text or query[:6].upper() == "SELECT")
    rest = query[6:]
    return text.replace("{bare}", rest.lstrip()).replace("{rest}", rest).replace("{q}", query)


@pytest.mark.parametrize("name", [*PIECES["wrappings"], *PIECES["in_prose"]])
@given(query=queries())
@example(query="SELECT 'a\n\nb;' FROM boat")
def test_a_query_survives_what_stands_around_it(
    execute: Callable[[str], list[Any]], name: str, query: str
) -> None:
    # Behind prose, a fence is taken for one wherever it stands.
    assume("```" not in query or name in PIECES["wrappings"])
    found = query_of(wrapped(name, query))
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
        st.sampled_from([*PIECES["hard"], *PIECES["words"], *PIECES["hostile"]]), max_size=14
    ).map("".join),
)


@given(texts)
@example('{"sql": "SELECT name FROM boat This returns the')
@example("select a from b, with this, select name FROM boat It's the end.")
def test_any_text_gives_a_part_of_itself_or_nothing(text: str) -> None:
    found = query_of(text)
    if found is None:
        return
    visible = remove_invisible(text)
    assert found in visible or found.removeprefix("SELECT ") in visible
    assert found[:6].upper() == "SELECT" or found[:4].upper() == "WITH"
    assert query_of(found) == found


@pytest.mark.parametrize("piece", PIECES["hostile"])
def test_hostile_text_is_read_in_a_moment(piece: str) -> None:
    """One that took quadratic time would need many minutes, and meet pytest's own limit."""
    found = query_of(piece * (MAX_CHARS // 10 // len(piece)))
    assert found is None or query_of(found) == found


def test_the_parser_does_not_compile() -> None:
    """Each expression reads the one before twice: compiled, this has a million million joins."""
    steps = [f"c{n} AS (SELECT p.x FROM c{n - 1} p, c{n - 1} q)" for n in range(1, 40)]
    assert parses(f"WITH c0 AS (SELECT 1 x), {', '.join(steps)} SELECT * FROM c39")


def test_what_stands_beyond_the_limit_is_not_read() -> None:
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
    path = shared_data / "magnifico/recorded_predictions/runs.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_recorded_queries_come_back_as_they_are(recorded: list[dict[str, str]]) -> None:
    """The predictions and their golds; only a comment at the end may go."""
    queries = {row[key] for row in recorded for key in ("predicted_sql", "gold_sql")}
    assert len(queries) > 4_000
    ((sql, found),) = (
        (sql, found) for sql in queries if (found := query_of(sql)) != sql.strip().rstrip("; ")
    )
    assert found == re.sub(r"/\*.*\*/$", "", sql).strip()


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
