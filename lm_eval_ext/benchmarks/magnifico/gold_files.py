"""Gold queries and databases that ``populate`` is asked about."""

from pathlib import Path

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.records import BASE, Corpus, Example, rows_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Databases, OneDatabase, databases_at, sqlite_path
from lm_eval_ext.sql.engines.places import check_id

_COLUMNS = ("db_id", "query")

Wanted = dict[str, tuple[Path, tuple[str, ...]]]
"""SQLite files with their gold queries, by the database's id."""


def wanted(source: str | Path, golds: Path | None) -> tuple[Corpus, Wanted]:
    """The corpus, and the databases that it asks about.

    Args:
        source: A SQLite database or a folder of them.
        golds: A file of gold queries; None: MAGNIFICo's.

    Raises:
        OptionError: There is no such database, it is of another engine, or a gold query's is not
            named by a plain name.
        DataError: A file cannot be read, or there is none of the databases.
    """
    known = databases_at(source, data.cache_dir(), option="--databases")
    corpus = texts(golds, known.db_id if isinstance(known, OneDatabase) else "")
    return corpus, _available(corpus, known, source)


def texts(golds: Path | None = None, only: str = "") -> Corpus:
    """The published corpus without dialogues and databases, or that of a file of gold queries.

    Args:
        golds: The file.
        only: The database of rows that name none.

    Raises:
        DataError: As :func:`golds_in`, or the published corpus is unavailable.
    """
    if golds is None:
        return corpora.read(data.require_all(corpora.SOURCE).path, dialogues=False)
    examples = (
        Example(str(number), (), BASE, db_id, "", query)
        for number, (db_id, query) in enumerate(golds_in(golds, only), 1)
    )
    return Corpus({}, tuple(examples), {})


def golds_in(file: Path, only: str = "") -> list[tuple[str, str]]:
    """Reads gold queries: a file with a header and the columns ``db_id`` and ``query``.

    ``.tsv`` is separated by tabs, ``.csv`` by commas; ``.jsonl`` has an object per line. Where
    there is an ``only`` database, rows need no ``db_id``, and those without a query define words
    (:mod:`.own`).

    Raises:
        DataError: It cannot be read, or a row has no database or query.
    """
    found = []
    for place, row in rows_of(file):
        db_id, query = (row.get(name) if isinstance(row, dict) else None for name in _COLUMNS)
        if only and not query:
            continue
        if not (isinstance(query, str) and query and isinstance(db_id or only, str)):
            raise DataError(f"{place}: needs a db_id and a query")
        found.append((db_id or only, query))
    if not found:
        raise DataError(
            f"{file}: no gold queries; it needs a header with db_id and query, and rows"
        )
    return found


def _available(corpus: Corpus, known: Databases | OneDatabase, source: str | Path) -> Wanted:
    """The databases that the corpus asks about and that are there, with their gold queries."""
    golds = corpus.golds()
    for db_id in golds:
        check_id(db_id)  # copies and reports are named by it
    # A single database, such as a copy, may have any name.
    only = known.place if isinstance(known, OneDatabase) and len(golds) == 1 else None
    found = {
        db_id: (sqlite_path(place), golds[db_id])
        for db_id in golds
        if (place := known.find(db_id) or only)
    }
    if not found:
        raise DataError(
            f"{source} has none of the {len(golds)} databases that are asked about; it must have "
            "<db_id>/<db_id>.sqlite, like Spider's folder `database`"
        )
    return found
