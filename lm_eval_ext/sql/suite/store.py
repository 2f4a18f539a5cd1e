"""Makes suites: once per original and golds, from shipped seeds where there are some."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.compare import Expected
from lm_eval_ext.sql.schema import ROWID_NAMES
from lm_eval_ext.sql.suite.build import (
    SUITE_VERSION,
    Original,
    choose,
    gold_cases,
    judgeable_golds,
    small_connection,
)
from lm_eval_ext.sql.suite.checks import STEPS, Runner
from lm_eval_ext.sql.suite.files import (
    COPY,
    NOTHING,
    AddedRows,
    Shipped,
    ShippedSeeds,
    Suite,
    complete_suite,
    content_hash,
    gold_id,
    key_of,
    read,
    short_hashes,
    write,
)
from lm_eval_ext.sql.suite.original import in_memory
from lm_eval_ext.sql.values import Value, quoted
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

_MAX_NAMED = 5
"""Tables that a warning names."""


@dataclass(frozen=True)
class _Built:
    """A suite in memory, as :class:`Suite` but for files."""

    databases: Mapping[str, sqlite3.Connection]
    judges: Mapping[str, Sequence[str]]
    seeds: Sequence[Sequence[Any]]


def populate(
    db_id: str,
    original: Path,
    golds: Sequence[str],
    folder: Path,
    shipped: Shipped = NOTHING,
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
    key = key_of(digest, golds, rows)
    seeds = shipped.seeds_of(key)
    complete = complete_suite(folder, db_id, key, seeds)
    if complete is not None:
        return complete
    source = Original(original, golds)
    with ExitStack() as stack:
        stack.callback(source.connection.close)
        built, hashes = None, dict[str, str]()
        if seeds is not None:
            built, hashes = _build(stack, source, _rebuild(source, original, rows, seeds))
            if short_hashes(hashes) != list(seeds.hashes):
                _log.info("%s: other rows than shipped ones; its checks run anew", db_id)
                built = None
        if built is None:
            built, hashes = _build(stack, source, _search(source, original, rows))
        record = {
            "version": SUITE_VERSION,
            "key": key,
            "original": digest,
            "databases": hashes,
            "golds": built.judges,
            "seeds": built.seeds,
            "excluded": source.excluded,
        }
        write(folder / db_id, built.databases, record)
    return read(folder, db_id)


def _build(stack: ExitStack, source: Original, built: _Built) -> tuple[_Built, dict[str, str]]:
    """Return what was built with its hashes; the stack closes its databases."""
    for connection in built.databases.values():
        stack.callback(connection.close)
    hashes = {
        name: content_hash(connection, source.schema)
        for name, connection in built.databases.items()
    }
    return built, hashes


def _search(source: Original, original: Path, rows: AddedRows | None) -> _Built:
    """Search for seeds, and check which golds each database may judge."""
    cases = gold_cases(source)
    judges: dict[str, list[str]] = {gold_id(case.gold): [] for case in cases}
    databases = {}
    if rows is not None:
        databases[COPY] = copied(original, source, rows)
        _, by_copy = judgeable_golds(source, databases[COPY], cases, steps=STEPS)
        for gold in by_copy:
            judges[gold_id(gold)].append(COPY)
    seeds = []
    for number, small in enumerate(choose(source, cases)):
        name = f"small-{number}"
        databases[name] = small.runner.connection
        seeds.append([small.seed, list(small.first)])
        for gold in small.judges:
            judges[gold_id(gold)].append(name)
    return _Built(databases, judges, seeds)


def _rebuild(
    source: Original, original: Path, rows: AddedRows | None, shipped: ShippedSeeds
) -> _Built:
    """Draw the databases of shipped seeds."""
    databases = {}
    if rows is not None:
        databases[COPY] = copied(original, source, rows)
    for number, (seed, first) in enumerate(shipped.seeds):
        databases[f"small-{number}"] = small_connection(source, seed, first)
    names = list(databases)
    judges = {
        gold: [names[number] for number in numbers] for gold, numbers in shipped.golds.items()
    }
    return _Built(databases, judges, shipped.seeds)


def copied(original: Path, source: Original, rows: AddedRows) -> sqlite3.Connection:
    """Return the populated copy in memory: the original's rows, and then the added ones."""
    connection = in_memory(original)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {quoted(name)}")
    for name, added in rows.items():
        table = source.schema[name]
        columns = [quoted(column.name) for column in table.columns if not column.generated]
        if table.rowid:
            rowid = next(word for word in ROWID_NAMES if table.column(word) is None)
            columns.insert(0, rowid)
        marks = ", ".join("?" * len(columns))
        records = []
        for rowid_and_values in added:
            values = rowid_and_values if table.rowid else rowid_and_values[1:]
            records.append([_read_value(value) for value in values])
        connection.executemany(
            f"INSERT INTO {quoted(table.name)} ({', '.join(columns)}) VALUES ({marks})", records
        )
    return connection


def _read_value(value: Any) -> Value:
    return bytes.fromhex(value["blob"]) if isinstance(value, dict) else value


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
    shipped: Shipped = NOTHING,
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
    return stack.enter_context(pool).map(_populate_or_explain, *zip(*work, strict=True))


def _listed(excluded: Mapping[str, str]) -> str:
    """Name some tables with the reason why they are left out."""
    named = [f"{one_line(name)} ({reason})" for name, reason in excluded.items()][:_MAX_NAMED]
    if len(excluded) > _MAX_NAMED:
        named.append(f"and {len(excluded) - _MAX_NAMED} more tables")
    return ", ".join(named)


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
        for name in suite.databases:
            self.runners[name] = Runner(in_memory(suite.path(name)))
        self._expected: dict[tuple[str, str], Expected | None] = {}

    def wrong_on(self, gold: str, sql: str) -> str | None:
        """Return the first database on which a query is judged wrong; None if it is right on all.

        "original" is the original. The order of rows counts there only.
        """
        for name in ("", *self._suite.judging(gold)):
            runner = self.runners[name]
            if (name, gold) not in self._expected:
                rule = "sets" if name else "reference"
                self._expected[name, gold] = runner.expected(gold, rule)
            expected = self._expected[name, gold]
            if expected is None or not runner.agrees(expected, sql):
                return name or "original"
        return None

    def close(self) -> None:
        """Free the memory."""
        for runner in self.runners.values():
            runner.connection.close()
