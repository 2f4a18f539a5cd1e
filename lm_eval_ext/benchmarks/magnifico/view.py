"""How samples look on the leaderboard page: both queries and the rows that they return."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.results.samples import AnswerView, DocumentView, Part

MOST_ROWS = 8
_CELL = 80
_WHERE = "on the original database"


def documents(docs: Sequence[Mapping[str, Any]]) -> list[DocumentView]:
    """Shows the question and the gold query's rows."""
    parts = _run(docs, [str(doc["query"]) for doc in docs], f"What the gold returns, {_WHERE}")
    return [
        DocumentView(
            title=f"{doc['question']} ({doc['form']}: {doc['interpretation']})",
            gold=str(doc["query"]),
            parts=part,
        )
        for doc, part in zip(docs, parts, strict=True)
    ]


def answers(
    docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
) -> list[AnswerView]:
    """Shows the query found in each answer and its rows."""
    queries = [one[0] if one else "" for one in answers]
    parts = _run(docs, queries, f"What the answer returns, {_WHERE}")
    return [
        AnswerView(query or "(no query in the answer)", part)
        for query, part in zip(queries, parts, strict=True)
    ]


def _run(
    docs: Sequence[Mapping[str, Any]], queries: Sequence[str], title: str
) -> list[tuple[Part, ...]]:
    """Executes the queries in the guarded process; no part where a database is unavailable."""
    from lm_eval_ext.sql import Executor

    places = _databases()
    known: dict[tuple[str, str], tuple[Part, ...]] = {}
    with Executor(workers=1) as executor:
        for doc, query in zip(docs, queries, strict=True):
            key = (str(doc["db_id"]).casefold(), query)
            if key not in known:
                found = key[0] in places and bool(query)
                known[key] = (_part(executor, places[key[0]], query, title),) if found else ()
    return [
        known[str(doc["db_id"]).casefold(), query] for doc, query in zip(docs, queries, strict=True)
    ]


def _part(executor: Any, database: Path, query: str, title: str) -> Part:
    from lm_eval_ext.sql import QueryError

    try:
        result = executor.query(database, query)
    except QueryError as error:
        return Part(title, text=str(error))
    shown = [tuple(str(value)[:_CELL] for value in row) for row in result.rows[:MOST_ROWS]]
    more = len(result.rows) - len(shown)
    if more:
        title = f"{title} ({more:,} more rows)"
    if not shown:
        title = f"{title} (no row)"
    return Part(title, table=(tuple(map(str, result.columns)), *shown))


def _databases() -> dict[str, Path]:
    """The embedded databases and, if available locally, Spider's; by id in lower case."""
    from lm_eval_ext import data
    from lm_eval_ext.benchmarks.magnifico import corpora, mini

    found = {db_id.casefold(): one.path for db_id, one in mini.corpus().databases.items()}
    if data.available(corpora.DATABASES):
        for file in sorted(data.require_all(corpora.DATABASES).path.rglob("*.sqlite")):
            found.setdefault(file.stem.casefold(), file)
    return found
