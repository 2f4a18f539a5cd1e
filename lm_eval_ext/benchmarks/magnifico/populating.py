"""``lm-eval-ext magnifico populate``: the databases it is asked about, and what suites miss.

A mutant is a wrong query that differs from the gold by one mistake. It is missed if no database of
the suite distinguishes it from the gold.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.records import rows_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import OneDatabase, databases_at, sqlite_path
from lm_eval_ext.sql.engines.places import check_id
from lm_eval_ext.sql.suite import Original, Suite, SuiteRunners, gold_id
from lm_eval_ext.sql.suite.build import mutants_of

Wanted = dict[str, tuple[Path, tuple[str, ...]]]
"""SQLite files with their gold queries, by the database's id."""


def wanted(source: str | Path, golds: Path | None = None) -> Wanted:
    """The databases that are asked about, with their gold queries.

    Args:
        source: A SQLite database or a folder of them.
        golds: A file of gold queries; None: MAGNIFICo's.

    Raises:
        OptionError: There is no such database, it is of another engine, or a gold query's is not
            named by a plain name.
        DataError: A file cannot be read, or there is none of the databases.
    """
    known = databases_at(source, option="--databases")
    one = known if isinstance(known, OneDatabase) else None
    if golds is None:
        asked = corpora.read(data.require_all(corpora.SOURCE).path).golds()
    else:
        asked = _golds_in(golds, one.db_id if one else "")
    for db_id in asked:
        check_id(db_id)  # copies and reports are named by it
    # A single database, such as a copy, may have any name.
    only = one.place if one and len(asked) == 1 else None
    places = {db_id: known.find(db_id) or only for db_id in asked}
    found = {db_id: (sqlite_path(place), asked[db_id]) for db_id, place in places.items() if place}
    if not found:
        raise DataError(
            f"{source} has none of the {len(asked)} databases that are asked about; it must have "
            "<db_id>/<db_id>.sqlite, like Spider's folder `database`"
        )
    return found


def _golds_in(file: Path, only: str) -> dict[str, tuple[str, ...]]:
    """Reads gold queries: a table with the columns ``query`` and, unless there is one, ``db_id``.

    Where there is an ``only`` database, rows without a query define words (:mod:`.own`).
    """
    found: dict[str, set[str]] = {}
    for place, row in rows_of(file):
        db_id, query = (row.get(one) if isinstance(row, dict) else "" for one in ("db_id", "query"))
        db_id = db_id or only
        if query and db_id and isinstance(query, str) and isinstance(db_id, str):
            found.setdefault(db_id.casefold(), set()).add(query)
        elif query or not only:
            raise DataError(f"{place}: needs a db_id and a query")
    if not found:
        raise DataError(
            f"{file}: no gold queries; it needs a header with db_id and query, and rows"
        )
    return {db_id: tuple(sorted(queries)) for db_id, queries in sorted(found.items())}


def examine(found: Wanted, suites: Mapping[str, Suite]) -> str:
    """Says what suites distinguish, in numbers of distinct golds; with a progress bar.

    Raises:
        DataError: A database cannot be read.
    """
    from tqdm import tqdm

    golds, kinds = Counter[str](), Counter[str]()
    for db_id, suite in tqdm(suites.items(), desc="examining", unit="db", disable=None):
        original = Original(*found[db_id])
        with closing(original.connection), closing(SuiteRunners(suite, found[db_id][0])) as judge:
            for gold in original.golds:
                if gold_id(gold) not in suite.judges:
                    golds["broken"] += 1
                    continue
                wrong = mutants_of(gold, original.schema)
                missed = {one.kind for one in wrong if judge.wrong_on(gold, one.sql) is None}
                golds["run"] += 1
                golds["alone"] += not suite.judging(gold)
                golds["mutants"] += len(wrong)
                golds["missed"] += bool(missed)
                kinds.update(missed)
    listed = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    return (
        f"{golds['run']:,} golds ({golds['broken']:,} more do not run), "
        f"{golds['alone']:,} of them judged by the original alone\n"
        f"{golds['missed']:,} golds with a mutant that is missed ({listed or 'none'}), of "
        f"{golds['mutants']:,} mutants"
    )
