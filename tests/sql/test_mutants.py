"""Mutants: one small mistake each, in a fixed order, and SQLite runs them."""

import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from support.databases import opened

from lm_eval_ext.benchmarks.magnifico import populating
from lm_eval_ext.sql.mutants import RULES, mutants
from lm_eval_ext.sql.mutations import other_string
from lm_eval_ext.sql.parsing import parse, to_sql
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema, schema_of

ONE_IN = 1 if os.environ.get("LM_EVAL_EXT_TEST_ALL") == "1" else 8
"""Of MAGNIFICo's golds, one in so many is written again, unless LM_EVAL_EXT_TEST_ALL=1."""

PAIRS = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "mutants.yaml").read_text(encoding="utf-8")
)
CASES = {case["gold"]: case["mutants"] for case in PAIRS["cases"]}


@pytest.fixture(scope="module")
def library() -> Iterator[sqlite3.Connection]:
    with opened(PAIRS["schema"]) as connection:
        register(connection)
        yield connection


@pytest.mark.parametrize("gold", CASES)
def test_all_mutants_of_a_gold(library: sqlite3.Connection, gold: str) -> None:
    gold_mutants = mutants(gold, schema_of(library))
    assert [f"{mutant.kind}: {mutant.sql}" for mutant in gold_mutants] == CASES[gold]
    for mutant in gold_mutants:
        library.execute(mutant.sql)


def test_every_kind_is_shown() -> None:
    shown = set()
    for mutant_texts in CASES.values():
        shown |= {text.partition(": ")[0] for text in mutant_texts}
    assert shown == set(RULES)


def kinds(gold: str, schema: Schema) -> Counter[str]:
    return Counter(mutant.kind for mutant in mutants(gold, schema))


@pytest.mark.parametrize("gold", PAIRS["absent"])
def test_a_kind_of_mistake_that_a_gold_cannot_have_is_absent(
    library: sqlite3.Connection, gold: str
) -> None:
    absent = PAIRS["absent"][gold]
    named = set(RULES) - {"column_swapped"} if isinstance(absent, str) else set(absent)
    assert named <= set(RULES)
    assert not named & set(kinds(gold, schema_of(library)))


@pytest.mark.parametrize("gold", PAIRS["present"])
def test_a_kind_of_mistake_that_a_gold_can_have_is_present(
    library: sqlite3.Connection, gold: str
) -> None:
    assert PAIRS["present"][gold] in kinds(gold, schema_of(library))


def test_a_kind_has_a_bounded_number_of_mutants(library: sqlite3.Connection) -> None:
    gold = "SELECT title FROM book WHERE " + " OR ".join(f"pages > {n}" for n in range(30))
    assert max(kinds(gold, schema_of(library)).values()) == 24


def test_a_count_is_a_mistake_where_the_rows_say_so() -> None:
    """COUNT(x) for COUNT(*) is a mistake where x has NULL, COUNT(DISTINCT x) where it repeats."""
    gold = "SELECT COUNT(*) FROM jar"
    kept = []
    for values in ("SELECT 1, 1 WHERE 0", "VALUES (1, 1)", "VALUES (1, 1), (2, NULL)",
                   "VALUES (1, 1), (1, 2)"):  # fmt: skip
        with opened(f"CREATE TABLE jar (a, b); INSERT INTO jar {values};") as connection:
            of = kinds(gold, schema_of(connection))
        kept.append((of["count_of_nullable"], of["count_of_distinct"]))
    assert kept == [(0, 0), (0, 0), (1, 0), (0, 1)]


def test_a_dates_neighbour_is_a_date() -> None:
    assert other_string("2019-12-31 08:00") == "2020-01-01 08:00"
    assert other_string("9999-12-31") == "9999-12-31x"
    assert other_string("%a%%") == "%ax%%"


@pytest.mark.parametrize(
    "condition",
    [
        "pages <> NULL", "NOT (NOT (pages > 2.5))", "title IS NOT '2020-01-31'", "isbn LIKE -1",
        'title NOT LIKE "sea"', "bought IS NULL OR bought NOT BETWEEN '2020-01-31' AND NULL",
        "shelf_id IN (SELECT shelf_id FROM book WHERE shelf_id > 'sea')", "pages BETWEEN 3 AND -1",
        "NOT ((pages = 3) AND NOT (pages <= 3)) OR title >= '2020-01-31'", "title = 'sea' = 3",
        "(NOT (isbn IN (SELECT isbn FROM book WHERE isbn > NULL))) AND (title < \"sea\")",
        "(((pages > 3) OR pages > 3) AND pages > 3) OR NOT (pages > 3)",
    ],
)  # fmt: skip
def test_mutants_of_any_condition_run(library: sqlite3.Connection, condition: str) -> None:
    gold = f"SELECT title FROM book WHERE {condition} ORDER BY title LIMIT 2"
    schema = schema_of(library)
    gold_mutants = mutants(gold, schema)
    assert gold_mutants == mutants(gold, schema)
    texts = [mutant.sql for mutant in gold_mutants]
    assert len(set(texts)) == len(texts)
    assert to_sql(parse(gold, schema)) not in texts
    for text in texts:
        library.execute(text)
        assert to_sql(parse(text, schema)) == text


@pytest.mark.slow
def test_real_golds_and_their_mutants_written_again(real_data: Path) -> None:
    """Golds give the same rows, and mutants are compiled: EXPLAIN does not run them.

    What cannot be read is what SQLite cannot read either.
    """
    count = 0
    for path, golds in populating.databases_with_golds(real_data / "spider_databases").values():
        uri = f"{path.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            register(connection)
            schema = schema_of(connection)
            connection.text_factory = bytes
            for gold in golds:
                if zlib.crc32(gold.encode()) % ONE_IN:
                    continue
                try:
                    rows = connection.execute(gold).fetchall()
                except sqlite3.Error:
                    continue
                assert connection.execute(to_sql(parse(gold, schema))).fetchall() == rows, gold
                gold_mutants = mutants(gold, schema)
                if not {"distinct_added", "limit_raised"} & {
                    mutant.kind for mutant in gold_mutants
                }:
                    assert len(set(rows)) == len(rows) or "distinct" in gold.lower(), gold
                for mutant in gold_mutants:
                    connection.execute(f"EXPLAIN {mutant.sql}")
                    count += 1
    assert count > 5_000 // ONE_IN
