"""Reads the tables of a database as prompts show them: how each was created, and its first rows.

Rows come from the original database, never from a populated copy.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.records import Database, Layout
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.described import described

SHOWN_ROWS = 3
"""Rows of each table ("Select 3", paper section 4)."""

_COMMENTS = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)
_CREATE = re.compile(
    r"(?P<create>create)\s+table\s+(?:if\s+not\s+exists\s+)?"
    r"""(?P<spelt>"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|'([^']+)'|([\w$]+))""",
    re.IGNORECASE,
)
_KEPT = (
    "SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
)


@dataclass(frozen=True)
class Table:
    """A table as prompts show it.

    Attributes:
        name: As the database spells it.
        spelt: As the SELECT statement of the prompt spells it.
        create: Its CREATE TABLE statement, without a semicolon; None: the prompt shows none.
        header: The names of its columns.
        rows: The values of its first rows.
    """

    name: str
    spelt: str
    create: str | None
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def tables_of(database: Database, layout: Layout) -> tuple[Table, ...]:
    """Reads what the prompts of a layout show, in their order.

    In the layout ``figure``, tables that ``schema.sql`` lacks follow those that it has, and
    without a script the statements are SQLite's own. In ``released``, a script of any name is
    read, and tables without a statement in it are shown without one. Views that do not work are
    left out. Of DuckDB and PostgreSQL both layouts show the engine's own statements, and values as
    the engine writes them.

    Raises:
        DataError: A file cannot be read.
    """
    if database.place.engine != "sqlite":
        with Executor(workers=1) as executor:
            return tuple(
                Table(one.name, one.name, one.create, one.header, one.rows)
                for one in described(executor, database.place, SHOWN_ROWS)
            )
    find = _as_released if layout == "released" else _as_in_figures
    try:
        with closing(_open(database.path)) as connection:
            kept = {
                str(name): str(sql)
                for name, sql, kind in connection.execute(_KEPT).fetchall()
                if kind == "table" or _is_readable(connection, name)
            }
            return tuple(
                _table(connection, name, spelt, create)
                for name, spelt, create in find(database, kept)
            )
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{database.path}: cannot be read ({error})") from None


def _as_in_figures(
    database: Database, kept: dict[str, str]
) -> Iterator[tuple[str, str, str | None]]:
    """Yields name, spelling and statement of each table; ``kept``: SQLite's own statements."""
    written: dict[str, str] = {}
    if database.schema:
        for statement in _statements(_text(database.schema)):
            if match := _CREATE.match(statement):
                written.setdefault(_name(match).casefold(), statement)
    by_name = {name.casefold(): name for name in kept}
    order = [by_name[name] for name in written if name in by_name]
    order += [name for name in kept if name not in order]
    for name in order:
        create = written.get(name.casefold(), kept[name])
        yield name, quoted(name), _bare(create)


def _as_released(database: Database, kept: dict[str, str]) -> Iterator[tuple[str, str, str | None]]:
    """As :func:`_as_in_figures`.

    The script is split at every semicolon, even one in a comment or a text, and a table is spelt
    as its statement spells it, without double quotes. Without a script, the tables are those that
    the dataset's questions list. A database of one's own that has neither, and views, are shown
    with SQLite's own statements.
    """
    by_name = {name.casefold(): name for name in kept}
    shown = set()
    script = database.schema or database.script
    for piece in _text(script).split(";") if script else ():
        match = _CREATE.search(piece)
        name = by_name.get(_name(match).casefold()) if match else None
        if match and name and name not in shown:
            shown.add(name)
            spelt = match["spelt"]
            if spelt.startswith('"'):
                spelt = quoted(spelt.strip('"'))
            yield name, spelt, f"{match['create']} {piece[match.end('create') :].strip()}"
    listed = {one.casefold(): one for one in database.listed if one.casefold() in by_name}
    if not shown and listed:
        for folded, spelt in listed.items():
            yield by_name[folded], quoted(spelt), None
    else:
        for name, statement in kept.items():
            if name not in shown:
                own = not script or _VIEW.match(statement)
                yield name, quoted(name), _bare(statement) if own else None


_VIEW = re.compile(r"\s*create\s+(temp\s+|temporary\s+)?view\b", re.IGNORECASE)


def _bare(statement: str) -> str:
    return statement.strip().rstrip(";").rstrip()


def quoted(name: str) -> str:
    """A name as SQL spells it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _name(match: re.Match[str]) -> str:
    return next(group for group in match.groups()[2:] if group)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    # Some texts in Spider's databases are not UTF-8.
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    return connection


def _is_readable(connection: sqlite3.Connection, view: str) -> bool:
    """Whether a view works: one of a table that is gone stays in the database."""
    try:
        _table(connection, view, view, None)
    except sqlite3.Error:
        return False
    return True


def _table(connection: sqlite3.Connection, name: str, spelt: str, create: str | None) -> Table:
    escaped = name.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{escaped}" LIMIT {SHOWN_ROWS}')
    rows = tuple(cursor.fetchall())
    header = tuple(column[0] for column in cursor.description)
    return Table(name, spelt, create, header, rows)


def _text(script: Path) -> str:
    return script.read_text(encoding="utf-8", errors="replace")


def _statements(text: str) -> Iterator[str]:
    """Yields the statements of a script, without leading comments."""
    statement = ""
    for piece in text.split(";"):
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            yield _COMMENTS.sub("", statement)
            statement = ""
