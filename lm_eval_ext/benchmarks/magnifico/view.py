"""How samples look on the leaderboard page: both queries and the rows that they return."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part

MOST_ROWS = 8
_CELL = 80
_RETURNS = "What it returns"


def documents(
    docs: Sequence[Mapping[str, Any]], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Shows the question, the gold query and what it returns."""
    del prompts
    queries = [str(doc["query"]) for doc in docs]
    return [
        DocumentView(
            title=f"{doc['question']} ({doc['form']}: {doc['interpretation'].replace('_', ' ')})",
            gold=query,
            parts=() if result is None else (replace(_part(result), beside=True),),
        )
        for doc, query, result in zip(docs, queries, _results(docs, queries), strict=True)
    ]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Shows the query found in each answer, and its rows, those that the gold lacks marked."""
    queries = [one[0] if one else "" for one in answers]
    golds = _results(docs, [str(doc["query"]) for doc in docs])
    return [
        AnswerView(
            query or "(no query in the answer)",
            () if not query or result is None else (_compared(gold, result),),
        )
        for query, gold, result in zip(queries, golds, _results(docs, queries), strict=True)
    ]


def _results(docs: Sequence[Mapping[str, Any]], queries: Sequence[str]) -> list[Any]:
    """What each query returns on the original database; None where that is not available."""
    from lm_eval_ext.sql import Executor, QueryError

    places = _databases()
    with Executor(workers=1) as executor:

        @cache
        def run(db_id: str, query: str) -> Any:
            """What a query returns, or why it failed, as text."""
            try:
                return executor.query(places[db_id], query)
            except QueryError as error:
                return str(error)

        names = [str(doc["db_id"]).casefold() for doc in docs]
        return [
            run(name, query) if query and name in places else None
            for name, query in zip(names, queries, strict=True)
        ]


def _compared(gold: Any, answer: Any) -> Part:
    if isinstance(gold, str) or isinstance(answer, str):
        return _part(answer)
    lacking = len(_differing(gold.rows, answer.rows))
    part = _part(answer, _differing(answer.rows, gold.rows))
    more = f"; {lacking} of the gold's are missing" if lacking else ""
    return replace(part, title=part.title + more)


def _differing(rows: Sequence[Sequence[Any]], others: Sequence[Sequence[Any]]) -> set[int]:
    """The places of the rows that the others lack; of equal rows, those that are too many."""
    left, found = Counter(others), set()
    for place, row in enumerate(rows):
        left[row] -= 1
        if left[row] < 0:
            found.add(place)
    return found


def _part(result: Any, marked: Collection[int] = ()) -> Part:
    """Shows the first rows of a result, those that are marked before the others."""
    if isinstance(result, str):
        return Part(_RETURNS, text=result)
    count = len(result.rows)
    shown = sorted(sorted(range(count), key=lambda place: place not in marked)[:MOST_ROWS])
    rows = [tuple(str(value)[:_CELL] for value in result.rows[place]) for place in shown]
    title = _RETURNS + (f", {count:,} rows" if count != 1 else ", 1 row")
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
