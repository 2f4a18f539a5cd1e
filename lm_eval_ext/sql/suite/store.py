"""Makes suites: once per original and golds, from shipped seeds where there are some."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.schema import ROWID_NAMES, Table
from lm_eval_ext.sql.suite.build import (
    SUITE_VERSION,
    Original,
    Seed,
    choose,
    gold_cases,
    judgeable_golds,
    small_connection,
)
from lm_eval_ext.sql.suite.checks import STEPS, Runner
from lm_eval_ext.sql.suite.files import (
    COPY,
    NOTHING_SHIPPED,
    AddedRows,
    JsonValue,
    Shipped,
    ShippedSeeds,
    Suite,
    complete_suite,
    content_hash,
    gold_id,
    read_suite,
    short_hashes,
    suite_key,
    write_suite,
)
from lm_eval_ext.sql.suite.original import in_memory
from lm_eval_ext.sql.values import Value, quoted
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_MAX_NAMED = 5
"""Tables that a warning names."""


@dataclass(frozen=True)
class _BuiltSuite:
    """A suite in memory.

    Attributes:
        databases: By name.
        hashes: Of their content, by name.
        judges: As :attr:`Suite.judges`.
        seeds: As :attr:`Suite.seeds`.
    """

    databases: Mapping[str, sqlite3.Connection]
    hashes: Mapping[str, str]
    judges: Mapping[str, Sequence[str]]
    seeds: Sequence[Seed]

    def close(self) -> None:
        """Free the memory."""
        for connection in self.databases.values():
            connection.close()


def populate(
    db_id: str,
    original: Path,
    golds: Sequence[str],
    folder: Path,
    shipped: Shipped = NOTHING_SHIPPED,
) -> Suite:
    """Make the suite of a database, or find it complete in its folder.

    Args:
        db_id: The name of the folder within ``folder``.
        original: A file of SQLite, which is only read.
        golds: The queries that it is made for.
        folder: The folder of suites.
        shipped: Rows of a populated copy, and seeds; without seeds they are searched for.

    Raises:
        DataError: The original cannot be read.
        OptionError: A file cannot be written.
    """
    try:
        digest = sha256_of(original)
    except OSError as error:
        raise DataError(f"cannot read the database {original}: {error.strerror}") from None
    rows = shipped.rows.get(digest)
    golds = sorted(set(golds))
    key = suite_key(digest, golds, rows)
    seeds = shipped.seeds_of(key)
    complete = complete_suite(folder, db_id, key, seeds)
    if complete is not None:
        return complete
    source = Original(original, golds)
    with closing(source.connection):
        built = None
        if seeds is not None:
            built = _rebuild_suite(source, rows, seeds)
            if built is None:
                _log.info("%s: other rows than shipped ones; its checks run anew", db_id)
        if built is None:
            built = _search_suite(source, rows)
        record = {
            "version": SUITE_VERSION,
            "key": key,
            "original": digest,
            "databases": built.hashes,
            "golds": built.judges,
            "seeds": built.seeds,
            "excluded": source.excluded,
        }
        with closing(built):
            write_suite(folder / db_id, built.databases, record)
    return read_suite(folder, db_id)


def _search_suite(source: Original, rows: AddedRows | None) -> _BuiltSuite:
    """Search for seeds, and check which golds each database may judge."""
    cases = gold_cases(source)
    judges: dict[str, list[str]] = {gold_id(case.gold): [] for case in cases}
    databases = {}
    if rows is not None:
        databases[COPY] = _populated_copy(source, rows)
        _, judged_by_copy = judgeable_golds(source, databases[COPY], cases, steps=STEPS)
        for gold in judged_by_copy:
            judges[gold_id(gold)].append(COPY)
    seeds = []
    for number, small in enumerate(choose(source, cases)):
        name = _small_name(number)
        databases[name] = small.runner.connection
        seeds.append(small.seed)
        for gold in small.judges:
            judges[gold_id(gold)].append(name)
    return _BuiltSuite(databases, _hashes(source, databases), judges, seeds)


def _rebuild_suite(
    source: Original, rows: AddedRows | None, shipped: ShippedSeeds
) -> _BuiltSuite | None:
    """Draw the databases of shipped seeds; return None if they have other rows than shipped."""
    databases = {}
    if rows is not None:
        databases[COPY] = _populated_copy(source, rows)
    for number, seed in enumerate(shipped.seeds):
        databases[_small_name(number)] = small_connection(source, seed)
    names = list(databases)
    judges = {}
    for gold, numbers in shipped.golds.items():
        judges[gold] = [names[number] for number in numbers]
    built = _BuiltSuite(databases, _hashes(source, databases), judges, shipped.seeds)
    if short_hashes(built.hashes) != list(shipped.hashes):
        built.close()
        return None
    return built


def _small_name(number: int) -> str:
    return f"small-{number}"


def _hashes(source: Original, databases: Mapping[str, sqlite3.Connection]) -> dict[str, str]:
    hashes = {}
    for name, connection in databases.items():
        hashes[name] = content_hash(connection, source.schema)
    return hashes


def _populated_copy(source: Original, rows: AddedRows) -> sqlite3.Connection:
    """Return the populated copy in memory: the original's rows, and then the added ones."""
    connection = in_memory(source.path)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {quoted(name)}")
    for name, added in rows.items():
        _add_rows(connection, source.schema[name], added)
    return connection


def _add_rows(
    connection: sqlite3.Connection, table: Table, rows: Sequence[Sequence[JsonValue]]
) -> None:
    """Add rows to a table of a populated copy, each with its rowid before it."""
    columns = [quoted(column.name) for column in table.columns if not column.generated]
    if table.rowid:
        rowid = next(name for name in ROWID_NAMES if table.column(name) is None)
        columns.insert(0, rowid)
    records = []
    for rowid_and_values in rows:
        values = rowid_and_values if table.rowid else rowid_and_values[1:]
        records.append([_read_value(value) for value in values])
    marks = ", ".join("?" * len(columns))
    connection.executemany(
        f"INSERT INTO {quoted(table.name)} ({', '.join(columns)}) VALUES ({marks})", records
    )


def _read_value(value: JsonValue) -> Value:
    if isinstance(value, Mapping):
        return bytes.fromhex(value["blob"])
    return value


class _Outcome(NamedTuple):
    """The suite of a database, or why there is none."""

    db_id: str
    suite: Suite | None
    problem: str = ""


def _populate_or_explain(
    db_id: str, original: Path, golds: Sequence[str], folder: Path, shipped: Shipped
) -> _Outcome:
    """Make a suite; whatever goes wrong with one database is no reason to stop the others."""
    try:
        return _Outcome(db_id, populate(db_id, original, golds, folder, shipped))
    except OptionError:
        raise  # the folder, which is the same for all
    except DataError as error:
        return _Outcome(db_id, None, str(error))
    except Exception as error:  # noqa: BLE001 (a defect, which must not end a run)
        return _Outcome(db_id, None, one_line(f"{type(error).__name__}: {error}", limit=300))


def populate_all(
    jobs: Mapping[str, tuple[Path, Sequence[str]]],
    folder: Path,
    shipped: Shipped = NOTHING_SHIPPED,
    *,
    workers: int = 1,
) -> dict[str, Suite]:
    """Make the suites of many databases, with a progress bar.

    A database whose suite cannot be built has none, with a warning: its golds are judged by the
    original alone. Another warning names tables that are not in the small databases.

    Args:
        jobs: Originals and golds by database id.
        folder: The folder of suites.
        shipped: As :func:`populate`.
        workers: Processes; more than one must not be used by a program without a main guard.

    Raises:
        OptionError: A file cannot be written.
    """
    from tqdm import tqdm

    # Those with the most golds take longest.
    order = sorted(jobs, key=lambda db_id: -len(jobs[db_id][1]))
    work = [(db_id, jobs[db_id][0], tuple(jobs[db_id][1]), folder, shipped) for db_id in order]
    suites = {}
    with ExitStack() as stack:
        outcomes = _run_all(work, workers, stack)
        for outcome in tqdm(outcomes, total=len(work), desc="test suites", unit="db", disable=None):
            if outcome.suite is None:
                _log.warning(
                    "%s: no test suite, so the original alone judges its golds: %s",
                    outcome.db_id,
                    outcome.problem,
                )
                continue
            suites[outcome.db_id] = outcome.suite
            if outcome.suite.excluded:
                _log.warning(
                    "%s: not in its test suite: %s; the original alone judges golds that read it",
                    outcome.db_id,
                    _listed(outcome.suite.excluded),
                )
    return {db_id: suites[db_id] for db_id in jobs if db_id in suites}


def _run_all(
    work: Sequence[tuple[str, Path, Sequence[str], Path, Shipped]], workers: int, stack: ExitStack
) -> Iterator[_Outcome]:
    if workers == 1 or not work:
        return starmap(_populate_or_explain, work)
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    # An interruption waits for what has begun, not for what is queued.
    stack.callback(pool.shutdown, cancel_futures=True)
    return pool.map(_populate_or_explain, *zip(*work, strict=True))


def _listed(excluded: Mapping[str, str]) -> str:
    """Name some tables with the reason why they are left out."""
    tables = [f"{one_line(name)} ({reason})" for name, reason in excluded.items()]
    if len(tables) > _MAX_NAMED:
        tables[_MAX_NAMED:] = [f"and {len(tables) - _MAX_NAMED} more tables"]
    return ", ".join(tables)


class SuiteRunners:
    """Judges queries on a suite, in process; for mutants and the like, not for models' queries.

    Args:
        suite: The databases.
        original: The file that it was made for.

    Attributes:
        runners: Run queries on the databases by name; the original's is "".
    """

    def __init__(self, suite: Suite, original: Path) -> None:
        self._suite = suite
        self.runners = {"": Runner(in_memory(original))}
        for name in suite.names:
            self.runners[name] = Runner(in_memory(suite.path(name)))
        self._expected: dict[tuple[str, str], Expected | None] = {}

    def wrong_on(self, gold: str, sql: str) -> str | None:
        """Return the first database on which a query is judged wrong; None if it is right on all.

        "original" is the original. The order of rows counts there only.
        """
        for name in ("", *self._suite.judges_of(gold)):
            expected = self._expected_on(name, gold)
            if expected is None or not self.runners[name].agrees(expected, sql):
                return name or "original"
        return None

    def _expected_on(self, name: str, gold: str) -> Expected | None:
        """Return a gold's result on a database, prepared once."""
        if (name, gold) not in self._expected:
            rule = "sets" if name else "reference"
            self._expected[name, gold] = self.runners[name].expected(gold, rule)
        return self._expected[name, gold]

    def close(self) -> None:
        """Free the memory."""
        for runner in self.runners.values():
            runner.connection.close()
