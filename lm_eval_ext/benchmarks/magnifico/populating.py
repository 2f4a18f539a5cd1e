"""``lm-eval-ext magnifico populate``: the databases it is asked about, and what suites miss.

A mutant is a wrong query that differs from the gold by one mistake. It is missed if no database of
the suite distinguishes it from the gold.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.records import rows_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Databases, OneDatabase, Place, databases_at, sqlite_path
from lm_eval_ext.sql.engines.places import check_id
from lm_eval_ext.sql.suite import Original, Suite, SuiteRunners, gold_id
from lm_eval_ext.sql.suite.build import mutants_of
from lm_eval_ext.sql.values import Mutant

_log = get_logger(__name__)

GoldsByDatabase = dict[str, tuple[Path, tuple[str, ...]]]
"""SQLite files with their gold queries, by the database's id."""


def databases_with_golds(source: str | Path, golds: Path | None = None) -> GoldsByDatabase:
    """Return the databases that are asked about, with their gold queries.

    One of several databases that cannot be used is left out with a warning.

    Args:
        source: A SQLite database or a folder of them.
        golds: A file of gold queries; None: MAGNIFICo's.

    Raises:
        OptionError: There is no such database, it is of another engine, or a gold query's is not
            named by a plain name.
        DataError: A file cannot be read, or there is none of the databases.
    """
    databases = databases_at(source, option="--databases")
    single = databases if isinstance(databases, OneDatabase) else None
    if golds is None:
        corpus = corpora.read(data.require_all(corpora.SOURCE).path)
        queries = corpus.golds()
    else:
        queries = _read_golds(golds, single.db_id if single else "")
    for db_id in queries:
        check_id(db_id)  # copies and reports are named by it
    golds_by_database = {}
    for db_id in queries:
        location = _find(databases, db_id)
        if location is None and single is not None and len(queries) == 1:
            location = single.place  # a single database, such as a copy, may have any name
        if location is not None:
            golds_by_database[db_id] = (sqlite_path(location), queries[db_id])
    if not golds_by_database:
        raise DataError(
            f"{source} has none of the {len(queries)} databases that are asked about; it must have "
            "<db_id>/<db_id>.sqlite, like Spider's folder `database`"
        )
    return golds_by_database


def _find(databases: Databases | OneDatabase, db_id: str) -> Place | None:
    try:
        return databases.find(db_id)
    except DataError as error:
        if isinstance(databases, OneDatabase):
            raise
        _log.warning("%s: no test suite: %s", db_id, error)
        return None


def _read_golds(file: Path, only_id: str) -> dict[str, tuple[str, ...]]:
    """Read gold queries: a table with the columns ``query`` and, unless there is one, ``db_id``.

    Args:
        file: The table.
        only_id: The id of the only database, about which rows without a query define words
            (:mod:`.own`); "" if there are several.
    """
    queries: dict[str, set[str]] = {}
    for line, row in rows_of(file):
        cells = row if isinstance(row, dict) else {}
        db_id = cells.get("db_id") or only_id
        query = cells.get("query")
        if query and db_id and isinstance(query, str) and isinstance(db_id, str):
            queries.setdefault(db_id.casefold(), set()).add(query)
        elif query or not only_id:
            raise DataError(f"{line}: needs a db_id and a query")
    if not queries:
        raise DataError(
            f"{file}: no gold queries; it needs a header with db_id and query, and rows"
        )
    return {db_id: tuple(sorted(golds)) for db_id, golds in sorted(queries.items())}


def examine(golds_by_database: GoldsByDatabase, suites: Mapping[str, Suite]) -> str:
    """Report what suites distinguish, in numbers of distinct golds; with a progress bar.

    Raises:
        DataError: A database cannot be read.
    """
    from tqdm import tqdm

    golds = Counter[str]()
    missed_kinds = Counter[str]()
    for db_id, suite in tqdm(suites.items(), desc="examining", unit="db", disable=None):
        path, queries = golds_by_database[db_id]
        original = Original(path, queries)
        with closing(original.connection), closing(SuiteRunners(suite, path)) as runners:
            for gold in original.golds:
                if gold_id(gold) not in suite.judges:
                    golds["broken"] += 1
                    continue
                mutants = mutants_of(gold, original.schema)
                missed = _missed_kinds(gold, mutants, runners)
                golds["run"] += 1
                golds["mutants"] += len(mutants)
                if not suite.judges_of(gold):
                    golds["alone"] += 1
                if missed:
                    golds["missed"] += 1
                missed_kinds.update(missed)
    missed_list = ", ".join(f"{kind} {count}" for kind, count in missed_kinds.most_common())
    return (
        f"{golds['run']:,} golds ({golds['broken']:,} more do not run), "
        f"{golds['alone']:,} of them judged by the original alone\n"
        f"{golds['missed']:,} golds with a mutant that is missed ({missed_list or 'none'}), of "
        f"{golds['mutants']:,} mutants"
    )


def _missed_kinds(gold: str, mutants: Sequence[Mutant], runners: SuiteRunners) -> set[str]:
    """Return the kinds of the mutants that no database of a suite distinguishes from the gold."""
    return {mutant.kind for mutant in mutants if runners.wrong_on(gold, mutant.sql) is None}
