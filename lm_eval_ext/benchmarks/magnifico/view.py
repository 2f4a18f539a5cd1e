"""Shows samples in reports: both queries and the rows that they return."""

import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView
from lm_eval_ext.sql.schema import fold
from lm_eval_ext.sql.values import Row, Rows

MOST_ROWS = 8
"""Rows of a result that are shown."""

_CELL_CHARACTERS = 80

_CREATED_TABLE = re.compile(
    r"^CREATE TABLE\s+(?:IF NOT EXISTS\s+)?[\"`\[]?([^\"`\]\n(]+?)[\"`\]]?\s*\(",
    re.IGNORECASE | re.MULTILINE,
)
"""The beginning of a table in a prompt, with its name."""

_RETURNS = "What it returns"

LoggedDocument: TypeAlias = Mapping[str, Any]
"""A document as lm-eval logged it."""

Result: TypeAlias = "Rows | str | None"
"""The rows of a query, or why it failed, as text; None where its database is not available."""


def documents(
    docs: Sequence[LoggedDocument], prompts: Sequence[Sequence[str]]
) -> list[DocumentView]:
    """Show the question, the gold query and what it returns."""
    del prompts
    queries = [str(doc["query"]) for doc in docs]
    views = []
    for doc, query, result in zip(docs, queries, _results(docs, queries), strict=True):
        interpretation = doc["interpretation"].replace("_", " ")
        details: tuple[Detail, ...] = ()
        if result is not None:
            details = (replace(_detail(result), beside=True),)
        title = f"{doc['question']} ({doc['form']}: {interpretation})"
        views.append(DocumentView(title=title, gold=query, details=details))
    return views


def answers(docs: Sequence[LoggedDocument], answers: Sequence[Sequence[str]]) -> list[AnswerView]:
    """Show the query found in each answer, and its rows, those that the gold lacks marked."""
    queries = [texts[0] if texts else "" for texts in answers]
    gold_results = _results(docs, [str(doc["query"]) for doc in docs])
    views = []
    for query, gold_result, result in zip(
        queries, gold_results, _results(docs, queries), strict=True
    ):
        details: tuple[Detail, ...] = ()
        if query and result is not None:
            details = (_compared(gold_result, result),)
        views.append(AnswerView(query or "(no query in the answer)", details))
    return views


def _results(docs: Sequence[LoggedDocument], queries: Sequence[str]) -> list[Result]:
    """Return what each query returns on the original database of its document."""
    from lm_eval_ext.sql import Executor, QueryError

    paths = _databases()
    tables_by_database: dict[str, set[str]] = {}
    results_by_query: dict[tuple[str, str], Result] = {}
    results: list[Result] = []
    with Executor(workers=1) as executor:
        for doc, query in zip(docs, queries, strict=True):
            db_id = str(doc["db_id"]).casefold()
            if not query or db_id not in paths:
                results.append(None)
                continue
            if db_id not in tables_by_database:
                tables_by_database[db_id] = _table_names(paths[db_id])
            # A database of the user's may have the name of one of ours.
            if not _tables_in_prompt(str(doc.get("prompt", ""))) <= tables_by_database[db_id]:
                results.append(None)
                continue
            key = (db_id, query)
            if key not in results_by_query:
                try:
                    results_by_query[key] = executor.query(paths[db_id], query)
                except QueryError as error:
                    results_by_query[key] = str(error)
            results.append(results_by_query[key])
    return results


def _tables_in_prompt(prompt: str) -> set[str]:
    """Return the names of the tables that a prompt shows, in lower case."""
    return {fold(name) for name in _CREATED_TABLE.findall(prompt)}


def _table_names(path: Path) -> set[str]:
    """Return the names of a database's tables and views, in lower case."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        return {fold(name) for (name,) in rows}


def _compared(gold: Result, answer: Rows | str) -> Detail:
    """Return an answer's result with the rows marked that the gold's lacks."""
    if isinstance(answer, str) or not isinstance(gold, Rows):
        return _detail(answer)
    detail = _detail(answer, _surplus(answer.rows, gold.rows))
    missing_count = len(_surplus(gold.rows, answer.rows))
    if missing_count:
        return replace(detail, title=f"{detail.title}; {missing_count} of the gold's missing")
    return detail


def _surplus(rows: Sequence[Row], expected: Sequence[Row]) -> set[int]:
    """Return the numbers of the rows that are not expected; of equal rows, those too many."""
    unmatched = Counter(expected)
    numbers = set()
    for number, row in enumerate(rows):
        unmatched[row] -= 1
        if unmatched[row] < 0:
            numbers.add(number)
    return numbers


def _detail(result: Rows | str, marked: Collection[int] = ()) -> Detail:
    """Show the first rows of a result, those that are marked before the others."""
    if isinstance(result, str):
        return Detail(_RETURNS, text=result)
    count = len(result.rows)
    marked_first = sorted(range(count), key=lambda number: number not in marked)
    shown_numbers = sorted(marked_first[:MOST_ROWS])
    table = [tuple(map(str, result.columns))]
    for number in shown_numbers:
        table.append(tuple(map(_cell_text, result.rows[number])))
    title = f"{_RETURNS}, 1 row" if count == 1 else f"{_RETURNS}, {count:,} rows"
    if count > len(shown_numbers):
        title += f" of which {len(shown_numbers)} are shown"
    marked_rows = tuple(index for index, number in enumerate(shown_numbers) if number in marked)
    return Detail(title, table=tuple(table), marked=marked_rows)


def _cell_text(value: object) -> str:
    """Return the beginning of a value, as SQL writes it if there is none."""
    return "NULL" if value is None else str(value)[:_CELL_CHARACTERS]


def _databases() -> dict[str, Path]:
    """Return the embedded databases and, if available locally, Spider's; by id in lower case."""
    from lm_eval_ext import data
    from lm_eval_ext.benchmarks.magnifico import corpora, mini

    paths = {db_id.casefold(): database.path for db_id, database in mini.databases().items()}
    if data.available(corpora.DATABASES):
        for file in sorted(data.require_all(corpora.DATABASES).path.rglob("*.sqlite")):
            paths.setdefault(file.stem.casefold(), file)
    return paths
