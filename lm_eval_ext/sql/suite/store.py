"""Suites as files: built once per original and golds, from shipped seeds where there are some."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path, sha256_of, sha256_of_json
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.compare import SEMANTICS, Expected
from lm_eval_ext.sql.parsing import ROWID
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.suite.build import SUITE_VERSION, Original, choose, in_memory
from lm_eval_ext.sql.suite.checks import STEPS, Runner
from lm_eval_ext.sql.values import Value, quoted, quoted_all

_log = get_logger(__name__)

COPY = "copy"
"""The name of the populated copy among a suite's databases; the small ones are small-0, ..."""

FILE = "suite.json"
SHORT = 16


def name_of(gold: str) -> str:
    """The name of a gold in files: they hold none of its text."""
    return hashlib.sha256(gold.encode("utf-8", "surrogatepass")).hexdigest()[:SHORT]


@dataclass(frozen=True)
class Suite:
    """The databases that were made for one original.

    Attributes:
        db_id: In lower case; the folder's name.
        folder: That holds it.
        key: Of all that decides about it.
        databases: The content's hash by the database's name, in the order in which they are asked.
        judges: By :func:`name_of`, for golds that run: the databases that may judge it.
        seeds: Of the small databases: a number, and those of the golds that come first.
    """

    db_id: str
    folder: Path
    key: str
    databases: Mapping[str, str]
    judges: Mapping[str, Sequence[str]]
    seeds: Sequence[Sequence[Any]]

    @cached_property
    def content(self) -> str:
        """A hash of all rows, and of which golds they judge by which rule."""
        # Fixed names: semantics that are added later must not change the hashes of suites.
        rules = [SEMANTICS[name].suite_rule for name in ("reference", "strict", "sets")]
        rule = rules, SEMANTICS["sets"].version
        return sha256_of_json([SUITE_VERSION, rule, self.databases, self.judges])

    def path(self, name: str) -> Path:
        """The file of one of its databases."""
        return self.folder / self.db_id / f"{self.db_id if name == COPY else name}.sqlite"

    def judging(self, gold: str) -> tuple[str, ...]:
        """The names of the databases that may judge a gold."""
        return tuple(self.judges.get(name_of(gold), ()))


def read(folder: Path, db_id: str) -> Suite:
    """Reads a suite.

    Raises:
        DataError: There is none, or one of another version.
    """
    file = folder / db_id / FILE
    try:
        noted = json.loads(file.read_text(encoding="utf-8"))
        if (version := noted["version"]) == SUITE_VERSION:
            parts = (noted[part] for part in ("key", "databases", "golds", "seeds"))
            return Suite(db_id, folder, *parts)
        problem = f"it has version {version!r}, not {SUITE_VERSION}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = str(error)
    raise DataError(f"{file}: no suite of databases ({problem}); make one: magnifico populate")


def content_hash(connection: sqlite3.Connection, schema: Schema) -> str:
    """A hash of a database's rows, in no order, that does not depend on the file's bytes.

    Names count in lower case. Of each value its type and its value count.
    """
    total = hashlib.sha256()
    tables = (table for table in schema.values() if not table.view)
    for table in sorted(tables, key=lambda table: table.name.casefold()):
        columns = sorted(table.columns, key=lambda c: c.name.casefold())
        names = quoted_all(column.name for column in columns)
        rows = connection.execute(f"SELECT {names} FROM {quoted(table.name)}")
        written = sorted(map(_WRITER.encode, rows))
        head = [table.name.casefold(), [column.name.casefold() for column in columns]]
        total.update("\n".join([json.dumps(head), *written, ""]).encode())
    return total.hexdigest()


_WRITER = json.JSONEncoder(default=lambda blob: {"blob": blob.hex()})


Added = Mapping[str, Sequence[Sequence[Any]]]
"""Rows of a populated copy by table, each with its rowid before it."""

Made = tuple[dict[str, sqlite3.Connection], dict[str, list[str]], list[list[Any]]]
"""Databases in memory, the golds that each may judge, and the seeds of the small ones."""


@dataclass(frozen=True)
class Shipped:
    """What is published with the package: rows of copies, and seeds with their checks' outcome.

    Attributes:
        rows: By the original's checksum.
        seeds: By :attr:`Suite.key`: small databases, golds, hashes.
    """

    rows: Mapping[str, Added]
    seeds: Mapping[str, Mapping[str, Any]]


def read_shipped(folder: Path | None, end: str = "") -> Shipped:
    """Reads ``populated.json`` and ``suites.json``, with ``end`` behind their names.

    A missing file of seeds means that the checks are run.

    Raises:
        DataError: A file is of another kind.
    """
    found: list[Mapping[str, Any]] = []
    for name in ("populated", "suites"):
        file = None if folder is None else folder / f"{name}{end}.json"
        if file is None or not file.is_file():
            found.append({})
            continue
        try:
            found.append(json.loads(file.read_text(encoding="utf-8"))["databases"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file}: cannot be read ({error})") from None
    return Shipped({key: entry["rows"] for key, entry in found[0].items()}, found[1])


NOTHING = Shipped({}, {})


def key_of(digest: str, golds: Sequence[str], rows: object) -> str:
    """A suite's :attr:`~Suite.key`, by the original's checksum, sorted golds and rows of a copy."""
    return sha256_of_json([SUITE_VERSION, digest, golds, rows])


def populate(
    db_id: str,
    original: Path,
    golds: Sequence[str],
    folder: Path,
    shipped: Shipped = NOTHING,
) -> Suite:
    """Makes the suite of a database, or finds it complete in its folder.

    Args:
        db_id: Names the folder within ``folder``.
        original: A file of SQLite, which is only read.
        golds: The queries that it is made for.
        folder: Of suites.
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
    target = folder / db_id
    noted = shipped.seeds.get(key)
    try:
        suite = read(folder, db_id)
        there = [content[:SHORT] for content in suite.databases.values()]
        same = suite.key == key and (noted is None or noted["hashes"] == there)
        if same and all(suite.path(name).is_file() for name in suite.databases):
            return suite
    except DataError:
        pass
    source = Original(original, golds)
    with ExitStack() as stack:
        stack.callback(source.connection.close)
        for given in (noted, None):
            databases, judges, seeds = (
                _rebuilt(source, original, rows, given)
                if given
                else _searched(source, original, rows)
            )
            for one in databases.values():
                stack.callback(one.close)
            hashes = {n: content_hash(c, source.schema) for n, c in databases.items()}
            if not given or [one[:SHORT] for one in hashes.values()] == given["hashes"]:
                break
            _log.info("%s: other rows than shipped ones; its checks run anew", db_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if target.exists():
                shutil.rmtree(target)
            with atomic_path(target) as part:
                part.mkdir()
                for name, connection in databases.items():
                    file = part / f"{db_id if name == COPY else name}.sqlite"
                    with closing(sqlite3.connect(file)) as opened:
                        opened.execute("PRAGMA journal_mode = OFF")  # the file is new
                        connection.backup(opened)
                record = {
                    "version": SUITE_VERSION,
                    "key": key,
                    "databases": hashes,
                    "golds": judges,
                    "seeds": seeds,
                }
                (part / FILE).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise OptionError(f"cannot write {target}: {reason}") from None
    return read(folder, db_id)


def _searched(source: Original, original: Path, rows: Added | None) -> Made:
    cases = source.cases()
    judges: dict[str, list[str]] = {name_of(case.gold): [] for case in cases}
    databases = {}
    if rows is not None:
        databases[COPY] = copied(original, source, rows)
        _, found = source.judges(databases[COPY], cases, steps=STEPS)
        for gold in found:
            judges[name_of(gold)].append(COPY)
    seeds = []
    for number, small in enumerate(choose(source, cases)):
        name = f"small-{number}"
        databases[name] = small.runner.connection
        seeds.append([small.seed, list(small.first)])
        for gold in small.judges:
            judges[name_of(gold)].append(name)
    return databases, judges, seeds


def _rebuilt(
    source: Original,
    original: Path,
    rows: Added | None,
    noted: Mapping[str, Any],
) -> Made:
    """The databases of shipped seeds."""
    databases = {} if rows is None else {COPY: copied(original, source, rows)}
    for number, (seed, first) in enumerate(noted["seeds"]):
        databases[f"small-{number}"] = source.drawn(seed, first)
    names = list(databases)
    judges = {gold: [names[n] for n in numbers] for gold, numbers in noted["golds"].items()}
    return databases, judges, noted["seeds"]


def copied(original: Path, source: Original, rows: Added) -> sqlite3.Connection:
    """The populated copy in memory: the original's rows, and then the added ones."""
    connection = in_memory(original)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {quoted(name)}")
    for name, added in rows.items():
        table = source.schema[name]
        names = [quoted(c.name) for c in table.columns if not c.generated]
        if table.rowid:
            names.insert(0, next(n for n in sorted(ROWID) if table.column(n) is None))
        connection.executemany(
            f"INSERT INTO {quoted(table.name)} ({', '.join(names)}) "
            f"VALUES ({', '.join('?' * len(names))})",
            [[_value(value) for value in row[not table.rowid :]] for row in added],
        )
    return connection


def _value(value: Any) -> Value:
    return bytes.fromhex(value["blob"]) if isinstance(value, dict) else value


def populate_all(
    jobs: Mapping[str, tuple[Path, Sequence[str]]],
    folder: Path,
    shipped: Shipped = NOTHING,
    *,
    workers: int = 1,
) -> dict[str, Suite]:
    """Makes suites of many databases, with a progress bar: originals and golds by database id.

    ``workers`` above 1 starts processes, which a program without a main guard must not do.

    Raises:
        DataError, OptionError: As :func:`populate`.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from tqdm import tqdm

    # Those with the most golds take longest.
    order = sorted(jobs, key=lambda db_id: -len(jobs[db_id][1]))
    work = [(db_id, jobs[db_id][0], tuple(jobs[db_id][1]), folder, shipped) for db_id in order]
    with ExitStack() as stack:
        if workers == 1:
            made: Iterable[Suite] = starmap(populate, work)
        else:
            pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
            made = stack.enter_context(pool).map(populate, *zip(*work, strict=True))
        bar = tqdm(made, total=len(work), desc="test suites", unit="db", disable=None)
        suites = {suite.db_id: suite for suite in bar}
    return {db_id: suites[db_id] for db_id in jobs}


class Judge:
    """Judges queries on a suite, in process; for mutants and the like, not for models' queries.

    Args:
        suite: The databases.
        original: The file that it was made for.

    Attributes:
        runners: On the databases by name; the original's is "".
    """

    def __init__(self, suite: Suite, original: Path) -> None:
        self._suite = suite
        self.runners = {"": Runner(in_memory(original))}
        for name in suite.databases:
            self.runners[name] = Runner(in_memory(suite.path(name)))
        self._expected: dict[tuple[str, str], Expected | None] = {}

    def wrong_on(self, gold: str, sql: str) -> str | None:
        """The first database on which a query is judged wrong; None if it is right on all.

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
        """Frees the memory."""
        for runner in self.runners.values():
            runner.connection.close()
