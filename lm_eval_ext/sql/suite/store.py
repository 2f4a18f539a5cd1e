"""Suites as files: built once per original and golds, from shipped seeds where there are some."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_ext.atomic import atomic_path, sha256_of, sha256_of_json
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.compare import SEMANTICS, Expected
from lm_eval_ext.sql.schema import ROWID_NAMES, Schema, fold
from lm_eval_ext.sql.suite.build import (
    SUITE_VERSION,
    Original,
    choose,
    gold_cases,
    judgeable_golds,
    small_connection,
)
from lm_eval_ext.sql.suite.checks import STEPS, Runner
from lm_eval_ext.sql.suite.original import in_memory
from lm_eval_ext.sql.values import Value, quoted, quoted_all
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

COPY = "copy"
"""The name of the populated copy among a suite's databases; the small ones are small-0, ..."""

COPY_VERSION = 3
"""Stands for :data:`SUITE_VERSION` in the hash of a populated copy alone, which no draw changes."""

FILE = "suite.json"
SHORT = 16
"""Digits of the hashes of golds, and of databases in shipped files."""

_MAX_NAMED = 5
"""Tables that a warning names."""


def gold_id(gold: str) -> str:
    """Return the id of a gold in files: a hash, since they hold none of its text."""
    return hashlib.sha256(gold.encode("utf-8", "surrogatepass")).hexdigest()[:SHORT]


name_of = gold_id
"""The former name."""


@dataclass(frozen=True)
class Suite:
    """The databases that were made for one original.

    Attributes:
        db_id: The database's id in lower case; the folder's name.
        folder: The folder of suites.
        key: A hash of all that decides about it.
        databases: The content's hash by the database's name, in the order in which they are asked.
        judges: By :func:`gold_id`, for golds that run: the databases that may judge it.
        seeds: Of the small databases: a number, and those of the golds that come first.
        excluded: Why tables are not in the small databases, by name.
    """

    db_id: str
    folder: Path
    key: str
    databases: Mapping[str, str]
    judges: Mapping[str, Sequence[str]]
    seeds: Sequence[Sequence[Any]]
    excluded: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def content(self) -> str:
        """A hash of all rows, and of which golds they judge by which rule."""
        # Fixed names: semantics that are added later must not change the hashes of suites.
        rules = [SEMANTICS[name].suite_rule for name in ("reference", "strict", "sets")]
        rule = rules, SEMANTICS["sets"].version
        version = SUITE_VERSION if self.seeds else COPY_VERSION
        return sha256_of_json([version, rule, self.databases, self.judges])

    def path(self, name: str) -> Path:
        """Return the file of one of its databases."""
        return self.folder / self.db_id / _file_name(self.db_id, name)

    def judging(self, gold: str) -> tuple[str, ...]:
        """Return the names of the databases that may judge a gold."""
        return tuple(self.judges.get(gold_id(gold), ()))


def _file_name(db_id: str, name: str) -> str:
    return f"{db_id}.sqlite" if name == COPY else f"{name}.sqlite"


def read(folder: Path, db_id: str) -> Suite:
    """Read a suite.

    Raises:
        DataError: There is none, or one of another version.
    """
    file = folder / db_id / FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        version = record["version"]
        if version == SUITE_VERSION:
            return Suite(
                db_id=db_id,
                folder=folder,
                key=record["key"],
                databases=record["databases"],
                judges=record["golds"],
                seeds=record["seeds"],
                excluded=record.get("excluded", {}),
            )
        problem = f"it has version {version!r}, not {SUITE_VERSION}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = str(error)
    raise DataError(f"{file}: no suite of databases ({problem}); make one: magnifico populate")


def content_hash(connection: sqlite3.Connection, schema: Schema) -> str:
    """Return a hash of a database's rows, in no order, that does not depend on the file's bytes.

    Names count in lower case. Of each value its type and its value count. Tables that the schema
    has and the database lacks do not count.
    """
    digest = hashlib.sha256()
    present = {
        fold(name)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    tables = [table for table in schema.values() if not table.view and fold(table.name) in present]
    for table in sorted(tables, key=lambda table: fold(table.name)):
        columns = sorted(table.columns, key=lambda column: fold(column.name))
        names = quoted_all(column.name for column in columns)
        rows = connection.execute(f"SELECT {names} FROM {quoted(table.name)}")
        written = sorted(map(_WRITER.encode, rows))
        head = [fold(table.name), [fold(column.name) for column in columns]]
        digest.update("\n".join([json.dumps(head), *written, ""]).encode())
    return digest.hexdigest()


def _write_blob(blob: bytes) -> dict[str, str]:
    return {"blob": blob.hex()}


_WRITER = json.JSONEncoder(default=_write_blob)


AddedRows = Mapping[str, Sequence[Sequence[Any]]]
"""Rows of a populated copy by table, each with its rowid before it."""


class ShippedSeeds(NamedTuple):
    """What a shipped file says of one suite.

    Attributes:
        seeds: As :attr:`Suite.seeds`.
        golds: By :func:`gold_id`: the numbers of the databases that may judge it.
        hashes: The first digits of the databases' content hashes.
    """

    seeds: Sequence[Sequence[Any]]
    golds: Mapping[str, Sequence[int]]
    hashes: Sequence[str]


@dataclass(frozen=True)
class Shipped:
    """What is published with the package: rows of copies, and seeds with their checks' outcome.

    Attributes:
        rows: By the original's checksum.
        seeds: By :attr:`Suite.key`: small databases, golds, hashes.
    """

    rows: Mapping[str, AddedRows]
    seeds: Mapping[str, Mapping[str, Any]]

    def seeds_of(self, key: str) -> ShippedSeeds | None:
        """Return what is shipped for a suite, None if nothing is."""
        entry = self.seeds.get(key)
        if entry is None:
            return None
        return ShippedSeeds(entry["seeds"], entry["golds"], entry["hashes"])


def read_shipped(folder: Path | None, end: str = "") -> Shipped:
    """Read ``populated.json`` and ``suites.json``, with ``end`` behind their names.

    A missing file of seeds means that the checks are run.

    Raises:
        DataError: A file is of another kind.
    """
    populated = _read_databases(folder, f"populated{end}.json")
    seeds = _read_databases(folder, f"suites{end}.json")
    return Shipped({key: entry["rows"] for key, entry in populated.items()}, seeds)


def _read_databases(folder: Path | None, name: str) -> Mapping[str, Any]:
    if folder is None or not (folder / name).is_file():
        return {}
    file = folder / name
    try:
        databases: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))["databases"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
    return databases


NOTHING = Shipped({}, {})


def key_of(digest: str, golds: Sequence[str], rows: object) -> str:
    """Return a suite's key, by the original's checksum, sorted golds and rows of a copy."""
    return sha256_of_json([SUITE_VERSION, digest, golds, rows])


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
    complete = _complete_suite(folder, db_id, key, seeds)
    if complete is not None:
        return complete
    source = Original(original, golds)
    with ExitStack() as stack:
        stack.callback(source.connection.close)
        built, hashes = None, dict[str, str]()
        if seeds is not None:
            built, hashes = _build(stack, source, _rebuild(source, original, rows, seeds))
            if _short(hashes) != list(seeds.hashes):
                _log.info("%s: other rows than shipped ones; its checks run anew", db_id)
                built = None
        if built is None:
            built, hashes = _build(stack, source, _search(source, original, rows))
        record = {
            "version": SUITE_VERSION,
            "key": key,
            "databases": hashes,
            "golds": built.judges,
            "seeds": built.seeds,
            "excluded": source.excluded,
        }
        _write(folder / db_id, built.databases, record)
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


def _short(hashes: Mapping[str, str]) -> list[str]:
    return [content[:SHORT] for content in hashes.values()]


def _complete_suite(folder: Path, db_id: str, key: str, seeds: ShippedSeeds | None) -> Suite | None:
    """Return the suite that a folder has, None if it is not complete or another one."""
    try:
        suite = read(folder, db_id)
    except DataError:
        return None
    if suite.key != key:
        return None
    if seeds is not None and _short(suite.databases) != list(seeds.hashes):
        return None
    return suite if all(suite.path(name).is_file() for name in suite.databases) else None


def _write(
    target: Path, databases: Mapping[str, sqlite3.Connection], record: Mapping[str, Any]
) -> None:
    """Write a suite's folder in one step, in the place of an earlier one."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        with atomic_path(target) as part:
            part.mkdir()
            for name, connection in databases.items():
                with closing(sqlite3.connect(part / _file_name(target.name, name))) as file:
                    file.execute("PRAGMA journal_mode = OFF")  # the file is new
                    connection.backup(file)
            (part / FILE).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OptionError(f"cannot write {target}: {reason}") from None


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
