"""Ties of ORDER BY ... LIMIT 1 on Spider's golds: any tied row is right, no other row is.

A gold such as "the city with the most airports" has several right answers if cities tie. The
right family picks each of them by a further sort term; the wrong family picks the first row that
is not tied. ``strict`` accepts all of the first and none of the second. Spider's official rule
accepts the row that SQLite happens to give for the gold, and rejects its equals.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from lm_eval_ext.sql import Prediction, SqlJudge

pytestmark = [pytest.mark.slow]

_TOP_ROW = re.compile(
    r"SELECT (?P<columns>.*?) FROM (?P<rest>.*) ORDER BY (?P<key>[^,]*?)"
    r"(?P<direction>\s+(?:DESC|ASC))?\s+LIMIT 1;?",
    re.IGNORECASE | re.DOTALL,
)


class TopRow(NamedTuple):
    """A gold that asks for the first row by a single key.

    Attributes:
        db_id: Its database.
        sql: The gold.
        body: The gold without its LIMIT.
        tied: How many rows have the first key.
        answers: The different results of the tied rows.
        next_answer: The result of the first row that is not tied; None if there is none.
    """

    db_id: str
    sql: str
    body: str
    tied: int
    answers: frozenset[tuple[object, ...]]
    next_answer: tuple[object, ...] | None


def top_rows(folder: Path) -> Iterator[TopRow]:
    """Yield the golds of the predictions' files that ask for the first row."""
    golds: set[tuple[str, str]] = set()
    for file in sorted((folder / "predictions").iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            golds.add((record["db_id"], record["gold_sql"]))
    for db_id, sql in sorted(golds):
        match = _TOP_ROW.fullmatch(sql.strip())
        if match is None or "SELECT" in match["rest"].upper():
            continue
        direction = match["direction"] or ""
        body = f"SELECT {match['columns']} FROM {match['rest']} ORDER BY {match['key']}{direction}"
        keyed = f"SELECT {match['columns']}, {match['key']} FROM {body.partition(' FROM ')[2]}"
        path = folder / "databases" / db_id / f"{db_id}.sqlite"
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
            rows = connection.execute(keyed).fetchall()
        tied = [row[:-1] for row in rows if row[-1] == rows[0][-1]]
        next_answer = rows[len(tied)][:-1] if len(rows) > len(tied) else None
        yield TopRow(db_id, sql, body, len(tied), frozenset(tied), next_answer)


@pytest.fixture(scope="module")
def golds(shared_data: Path) -> list[TopRow]:
    return list(top_rows(shared_data / "spider_dev"))


def right_family(golds: list[TopRow]) -> list[Prediction]:
    """Return, for each gold with a tie, predictions that pick some tied row."""
    predictions = []
    for gold in golds:
        if len(gold.answers) < 2:
            continue
        for further_term in ("1 ASC", "1 DESC"):
            predicted = f"{gold.body}, {further_term} LIMIT 1"
            predictions.append(Prediction(gold.db_id, gold.sql, predicted))
    return predictions


def wrong_family(golds: list[TopRow]) -> list[Prediction]:
    """Return, for each gold, a prediction that picks the first row that is not tied."""
    predictions = []
    for gold in golds:
        if gold.next_answer is not None and gold.next_answer not in gold.answers:
            predicted = f"{gold.body} LIMIT 1 OFFSET {gold.tied}"
            predictions.append(Prediction(gold.db_id, gold.sql, predicted))
    return predictions


def accepted(folder: Path, predictions: list[Prediction], semantics: str) -> int:
    with SqlJudge(folder / "spider_dev" / "databases", semantics=semantics) as judge:
        verdicts = judge.judge_all(predictions, progress=None)
    assert all(verdict.status in ("correct", "wrong") for verdict in verdicts)
    return sum(verdict.correct for verdict in verdicts)


def test_any_tied_row_is_right(shared_data: Path, golds: list[TopRow]) -> None:
    """Under strict all of the right family are; the official rule rejects many."""
    predictions = right_family(golds)
    assert len(predictions) >= 20
    assert accepted(shared_data, predictions, "strict") == len(predictions)
    assert accepted(shared_data, predictions, "spider-distinct") < len(predictions)


@pytest.mark.parametrize("semantics", ["strict", "sets", "spider-distinct"])
def test_a_row_that_is_not_tied_is_wrong(
    shared_data: Path, golds: list[TopRow], semantics: str
) -> None:
    """None of the wrong family is accepted."""
    predictions = wrong_family(golds)
    assert len(predictions) >= 50
    assert accepted(shared_data, predictions, semantics) == 0
