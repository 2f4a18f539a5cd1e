"""Mutantes: one small mistake each, in a fixed order, and SQLite runs them."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from magnifico_golds import ALL, ONE_IN, a_part

from lm_eval_ext.sql.mutants import RULES, mutants
from lm_eval_ext.sql.mutations import other_string
from lm_eval_ext.sql.parsing import parse, to_sql
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema, schema_of

PAIRS = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "mutants.yaml").read_text(encoding="utf-8")
)
CASES = {case["gold"]: case["mutants"] for case in PAIRS["cases"]}

"""The six that were counted first ("> for <" is in comparison_reversed)."""


@pytest.fixture(scope="module")
def library() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(PAIRS["schema"])
        register(connection)
        yield connection


@pytest.mark.parametrize("gold", CASES)
def test_all_mutants_of_a_gold(library: sqlite3.Connection, gold: str) -> None:
    found = mutants(gold, schema_of(library))
    assert [f"{n.kind}: {n.sql}" for n in found] == CASES[gold]
    for mutant in found:
        library.execute(mutant.sql)


def test_every_kind_is_shown() -> None:
    shown = {text.split(": ", 1)[0] for texts in CASES.values() for text in texts}
    assert shown == set(RULES)


def kinds(gold: str, schema: Schema) -> Counter[str]:
    return Counter(mutant.kind for mutant in mutants(gold, schema))


@pytest.mark.parametrize("gold", PAIRS["absent"])
def test_what_is_no_mistake_of_that_kind(library: sqlite3.Connection, gold: str) -> None:
    absent = PAIRS["absent"][gold]
    named = set(RULES) - {"column_swapped"} if isinstance(absent, str) else set(absent)
    assert named <= set(RULES)
    assert not named & set(kinds(gold, schema_of(library)))


@pytest.mark.parametrize("gold", PAIRS["present"])
def test_what_only_looks_the_same_is_a_mistake(library: sqlite3.Connection, gold: str) -> None:
    assert PAIRS["present"][gold] in kinds(gold, schema_of(library))


def test_a_kind_has_a_bounded_number_of_mutants(library: sqlite3.Connection) -> None:
    gold = "SELECT title FROM book WHERE " + " OR ".join(f"pages > {n}" for n in range(90))
    assert max(kinds(gold, schema_of(library)).values()) == 24


def test_what_only_the_rows_decide() -> None:
    """COUNT(x) for COUNT(*) is a mistake where x has NULL, COUNT(DISTINCT x) where it repeats."""
    gold = "SELECT COUNT(*) FROM jar"
    found = []
    for values in ("", "(1, 1)", "(1, 1), (2, NULL)", "(1, 1), (1, 2)"):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE jar (a, b)")
            if values:
                connection.execute(f"INSERT INTO jar VALUES {values}")
            of = kinds(gold, schema_of(connection))
        found.append((of["count_of_nullable"], of["count_of_distinct"]))
    assert found == [(0, 0), (0, 0), (1, 0), (0, 1)]


def test_a_dates_neighbour_is_a_date() -> None:
    assert other_string("2019-12-31 08:00") == "2020-01-01 08:00"
    assert other_string("9999-12-31") == "9999-12-31x"
    assert other_string("%a%%") == "%ax%%"


COLUMN = st.sampled_from(["title", "pages", "shelf_id", "bought", "isbn"])
LITERAL = st.sampled_from(["3", "'sea'", '"sea"', "'2020-01-31'", "-1", "2.5", "NULL"])
COMPARISON = st.sampled_from(["=", "<>", "<", ">", "<=", ">=", "LIKE", "NOT LIKE", "IS", "IS NOT"])
CONDITION = st.recursive(
    st.builds("{} {} {}".format, COLUMN, COMPARISON, LITERAL)
    | st.builds("{} NOT BETWEEN {} AND {}".format, COLUMN, LITERAL, LITERAL)
    | st.builds("{0} IN (SELECT {0} FROM book WHERE {0} > {1})".format, COLUMN, LITERAL),
    lambda inner: (
        st.builds("({}) {} {}".format, inner, st.sampled_from(["AND", "OR"]), inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=4,
)


@settings(max_examples=100 if ALL else 30)
@given(COLUMN, CONDITION)
@pytest.mark.slow
def test_whatever_the_condition_all_mutants_run(column: str, condition: str) -> None:
    gold = f"SELECT {column} FROM book WHERE {condition} ORDER BY {column} LIMIT 2"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(PAIRS["schema"])
        schema = schema_of(connection)
        found = mutants(gold, schema)
        assert found == mutants(gold, schema)
        texts = [mutant.sql for mutant in found]
        assert len(set(texts)) == len(texts) and to_sql(parse(gold, schema)) not in texts
        for text in texts:
            connection.execute(text)
            assert to_sql(parse(text, schema)) == text


@pytest.mark.slow
def test_mutants_of_real_golds_run_where_the_golds_do(real_data: Path) -> None:
    """EXPLAIN compiles a query without running it."""
    by_file: dict[Path, list[str]] = {}
    for path, gold in a_part(real_data):
        by_file.setdefault(path, []).append(gold)
    count = 0
    for path, golds in by_file.items():
        uri = f"{path.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            register(connection)
            schema = schema_of(connection)
            for gold in golds:
                try:
                    connection.execute(f"EXPLAIN {gold}")
                except sqlite3.Error:
                    continue
                found = mutants(gold, schema)
                if not {"distinct_added", "limit_raised"} & {mutant.kind for mutant in found}:
                    rows = connection.execute(gold).fetchall()
                    assert len(set(rows)) == len(rows) or "distinct" in gold.lower(), gold
                for mutant in found:
                    connection.execute(f"EXPLAIN {mutant.sql}")
                    count += 1
    assert count > 5_000 // ONE_IN
