"""Converted databases: DuckDB files in a folder, or schemas of a PostgreSQL database.

A database has one or two parts, the ``original`` and its ``populated`` copy. What is there already
under the same key is not written again.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.convert.drafts import Plan, Tally, plan
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.engines.places import databases_at
from lm_eval_ext.sql.engines.writing import write_duckdb, write_postgresql
from lm_eval_ext.sql.values import EngineName, Place, quoted
from lm_eval_ext.text import one_line

CONVERT_VERSION = 4
"""Rises whenever a database could be converted otherwise; in signatures."""

ORIGINAL, POPULATED = "original", "populated"

_REPORT: Final = "report.json"
_MARK: Final = "lm-eval-ext"


@dataclass(frozen=True)
class Source:
    """A database to convert.

    Attributes:
        db_id: Its id, in lower case.
        parts: The SQLite files by part.
        key: A text that is the same only for the same files; made of them if it is empty.
    """

    db_id: str
    parts: Mapping[str, Path]
    key: str = ""

    def key_for(self, engine: EngineName) -> str:
        """The same only for conversions that are the same."""
        key = self.key or [[part, sha256_of(path)] for part, path in sorted(self.parts.items())]
        text = json.dumps([CONVERT_VERSION, engine, sorted(self.parts), key])
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Report:
    """How a database was converted.

    Attributes:
        key: See :meth:`Source.key_for`.
        digest: SHA-256 of all tables, types and rows.
        tables: How many, of one part.
        rows: How many, of all parts.
        notes: What is not as SQLite declares it.
    """

    key: str
    digest: str
    tables: int
    rows: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Report":
        """Reads what :func:`dataclasses.asdict` gave."""
        return cls(**{**values, "notes": tuple(values["notes"])})


class Target(ABC):
    """Where converted databases lie."""

    engine: ClassVar[EngineName]

    @abstractmethod
    def reports(self) -> dict[str, Report]:
        """The reports of all databases that are there, by id."""

    @abstractmethod
    def place(self, db_id: str, part: str) -> Place:
        """Where a part is, or would be."""

    @abstractmethod
    def write(self, db_id: str, part: str, planned: Plan, path: Path, tally: Tally) -> None:
        """Writes one part."""

    @abstractmethod
    def finish(self, db_id: str, parts: Iterable[str], report: Report) -> None:
        """Notes that all parts of a database are written."""

    def share(self, db_id: str, parts: Iterable[str]) -> None:  # noqa: B027 (files need none)
        """Lets others read a database that is there."""


class DuckDBFolder(Target):
    """DuckDB files: ``<db_id>/<db_id>.duckdb`` and ``populated/<db_id>/<db_id>.duckdb``."""

    engine = "duckdb"

    def __init__(self, folder: Path) -> None:
        DIALECTS["duckdb"].require()
        self.folder = folder

    def reports(self) -> dict[str, Report]:
        """The reports of all databases that are there, by id."""
        try:
            noted = json.loads((self.folder / _REPORT).read_text(encoding="utf-8"))
            return {db_id: Report.of(one) for db_id, one in noted.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def place(self, db_id: str, part: str) -> Place:
        """Where a part is, or would be."""
        home = self.folder if part == ORIGINAL else self.folder / part
        return Place("duckdb", str(home / db_id / f"{db_id}.duckdb"))

    def write(self, db_id: str, part: str, planned: Plan, path: Path, tally: Tally) -> None:
        """Writes one part."""
        if db_id == POPULATED:
            raise OptionError(f"a database cannot be called {db_id!r} here; rename it")
        file = Path(self.place(db_id, part).address)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"cannot write {file.parent}: {error.strerror}") from None
        write_duckdb(file, list(planned.drafts(path, tally)))

    def finish(self, db_id: str, parts: Iterable[str], report: Report) -> None:
        """Notes that all parts of a database are written."""
        write_report(self.folder, {**self.reports(), db_id: report})


class Server(Target):
    """Schemas of a PostgreSQL database: ``<prefix><db_id>`` and the same with ``_populated``.

    A comment on the last schema that is written holds the report.

    Args:
        url: The database. To write there the role must be allowed to create schemas; to score,
            it must be one that may only read.
        prefix: Of the schemas' names.
        readers: Roles that may read what is written.
    """

    engine = "postgresql"

    def __init__(self, url: str, *, prefix: str = "", readers: Sequence[str] = ()) -> None:
        self.url, self.prefix, self.readers = _checked(url), prefix, tuple(readers)

    def reports(self) -> dict[str, Report]:
        """The reports of all databases that are there, by id.

        Raises:
            DataError: There is no connection.
        """
        found = {}
        with self._connected() as connection:
            comments = connection.execute(
                "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace"
            ).fetchall()
        for name, comment in comments:
            if (comment or "").startswith(_MARK):
                db_id, report = json.loads(comment.removeprefix(_MARK))
                # Conversions with other prefixes may be there, too.
                if name in {self.schema(db_id, part) for part in (ORIGINAL, POPULATED)}:
                    found[db_id] = Report.of(report)
        return found

    def place(self, db_id: str, part: str) -> Place:
        """Where a part is, or would be: a URL whose search path is its schema alone."""
        parts = urlsplit(self.url)
        given = dict(parse_qsl(parts.query))
        schema = re.sub(r"([\\\s])", r"\\\1", quoted(self.schema(db_id, part)))
        given["options"] = f"{given.get('options', '')} -csearch_path={schema}".strip()
        query = urlencode(given, quote_via=quote)
        return Place("postgresql", urlunsplit(parts._replace(query=query)))

    def schema(self, db_id: str, part: str) -> str:
        """The name of a part's schema."""
        return f"{self.prefix}{db_id}" + ("" if part == ORIGINAL else f"_{part}")

    def write(self, db_id: str, part: str, planned: Plan, path: Path, tally: Tally) -> None:
        """Writes one part."""
        drafts = list(planned.drafts(path, tally))
        write_postgresql(self.url, self.schema(db_id, part), drafts)

    def finish(self, db_id: str, parts: Iterable[str], report: Report) -> None:
        """Notes that all parts of a database are written."""
        from psycopg import sql

        *_, last = parts
        statement = sql.SQL("COMMENT ON SCHEMA {} IS {}").format(
            sql.Identifier(self.schema(db_id, last)), _MARK + json.dumps([db_id, asdict(report)])
        )
        with self._connected() as connection:
            connection.execute(statement)

    def share(self, db_id: str, parts: Iterable[str]) -> None:
        """Lets the readers read, also what was there before."""
        from psycopg import sql

        if not self.readers:
            return
        schemas = sql.SQL(", ").join(sql.Identifier(self.schema(db_id, one)) for one in parts)
        readers = sql.SQL(", ").join(map(sql.Identifier, self.readers))
        with self._connected() as connection:
            for what in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
                statement = sql.SQL(f"GRANT {what} {{}} TO {{}}").format(schemas, readers)
                connection.execute(statement)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        import psycopg

        try:
            with psycopg.connect(self.url) as connection:
                yield connection
        except psycopg.Error as error:
            raise DataError(one_line(f"{self.url}: {error}", limit=400)) from None


def target_at(to: str, folder: Path, *, readers: Sequence[str] = ()) -> Target:
    """Where to convert to: ``duckdb``, which means files in the folder, or a server's URL.

    Raises:
        OptionError: It is neither.
        DataError: The driver is not installed.
    """
    if to == "duckdb":
        return DuckDBFolder(folder)
    if "://" in to:
        return Server(to, readers=readers)
    raise OptionError(f"cannot convert to {to!r}; use duckdb or postgresql://owner@host/database")


def convert(sources: Sequence[Source], target: Target) -> Iterator[tuple[str, Report]]:
    """Converts databases, and yields their reports as they are there.

    Raises:
        DataError: A file cannot be read, or the engine refuses a table.
        OptionError: The target cannot be written, or holds another conversion of a database.
    """
    known = target.reports()
    for source in sources:
        key = source.key_for(target.engine)
        report = known.get(source.db_id)
        if report is None or report.key != key or not _there(source, target):
            planned, tally = plan(list(source.parts.values()), target.engine), Tally()
            for part, path in source.parts.items():
                target.write(source.db_id, part, planned, path, tally)
            tables = sum(not table.view for table in planned.schema.values())
            report = Report(key, tally.digest, tables, tally.rows, planned.notes)
            target.finish(source.db_id, source.parts, report)
        target.share(source.db_id, source.parts)
        yield source.db_id, report


def _there(source: Source, target: Target) -> bool:
    places = [target.place(source.db_id, part) for part in source.parts]
    return all(one.engine != "duckdb" or Path(one.address).exists() for one in places)


def write_report(folder: Path, reports: Mapping[str, Report]) -> None:
    """Writes ``report.json`` with the report of each database."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_text(folder / _REPORT) as file:
            content = {db_id: asdict(one) for db_id, one in sorted(reports.items())}
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.write("\n")
    except OSError as error:
        raise OptionError(f"cannot write {folder / _REPORT}: {error.strerror}") from None


def _checked(url: str) -> str:
    """A server's URL, refused as :func:`~lm_eval_ext.sql.engines.places.databases_at` does."""
    databases_at(url)
    return url
