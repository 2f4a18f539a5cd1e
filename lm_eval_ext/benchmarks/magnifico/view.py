"""How samples look on the leaderboard page: both queries and the rows that they return."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part

MOST_ROWS = 8
_CELL = 80
_DIGITS = 9
"""Of numbers that count as equal here; the scorer's rule is in docs/sql.md."""


def documents(docs: Sequence[Mapping[str, Any]]) -> list[DocumentView]:
    """Shows the question and the gold query."""
    return [
        DocumentView(
            title=f"{doc['question']} ({doc['form']}: {doc['interpretation']})",
            gold=str(doc["query"]),
        )
        for doc in docs
    ]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Shows the query found in each answer, and the rows of both queries, their differences marked.

    Queries run in the guarded process; there are no rows where the database isn't available.
    """
    from lm_eval_ext.sql import Executor

    places = _databases()
    queries = [one[0] if one else "" for one in answers]
    with Executor(workers=1) as executor:

        @cache
        def run(db_id: str, query: str) -> Any:
            return _result(executor, places[db_id], query)

        parts = [
            _both(run(db_id, str(doc["query"])), run(db_id, query))
            if query and (db_id := str(doc["db_id"]).casefold()) in places
            else ()
            for doc, query in zip(docs, queries, strict=True)
        ]
    return [
        AnswerView(query or "(no query in the answer)", part)
        for query, part in zip(queries, parts, strict=True)
    ]


def _result(executor: Any, database: Path, query: str) -> Any:
    """What a query returns, or why it failed, as text."""
    from lm_eval_ext.sql import QueryError

    try:
        return executor.query(database, query)
    except QueryError as error:
        return str(error)


def _both(gold: Any, answer: Any) -> tuple[Part]:
    """The results of both queries on the original database, side by side."""
    marked: tuple[set[int], set[int]] = (set(), set())
    if not isinstance(gold, str) and not isinstance(answer, str):
        marked = _differing(gold.rows, answer.rows), _differing(answer.rows, gold.rows)
    beside = _part("What the answer returns", answer, marked[1])
    return (replace(_part("What the gold returns", gold, marked[0]), beside=beside),)


def _differing(rows: Sequence[Sequence[Any]], others: Sequence[Sequence[Any]]) -> set[int]:
    """The places of the rows that the others lack; of equal rows, those that are too many."""
    left = Counter(map(_key, others))
    found = set()
    for place, row in enumerate(map(_key, rows)):
        if left[row]:
            left[row] -= 1
        else:
            found.add(place)
    return found


def _key(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(float(f"{v:.{_DIGITS}g}") if isinstance(v, (int, float)) else v for v in row)


def _part(title: str, result: Any, marked: set[int]) -> Part:
    """Shows the first rows of a result, those that are marked before the others."""
    if isinstance(result, str):
        return Part(title, text=result)
    order = sorted(range(len(result.rows)), key=lambda place: (place not in marked, place))
    shown = sorted(order[:MOST_ROWS])
    rows = [tuple(str(value)[:_CELL] for value in result.rows[place]) for place in shown]
    count = len(result.rows)
    title += f", {count:,} rows" if count != 1 else ", 1 row"
    if count > len(shown):
        title += f" of which {len(shown)} are shown"
    return Part(
        title,
        table=(tuple(map(str, result.columns)), *rows),
        marked=tuple(place for place, row in enumerate(shown) if row in marked),
    )


def _databases() -> dict[str, Path]:
    """The embedded databases and, if available locally, Spider's; by id in lower case."""
    from lm_eval_ext import data
    from lm_eval_ext.benchmarks.magnifico import corpora, mini

    found = {db_id.casefold(): one.path for db_id, one in mini.databases().items()}
    if data.available(corpora.DATABASES):
        for file in sorted(data.require_all(corpora.DATABASES).path.rglob("*.sqlite")):
            found.setdefault(file.stem.casefold(), file)
    return found
