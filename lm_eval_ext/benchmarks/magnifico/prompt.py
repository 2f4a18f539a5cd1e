"""MAGNIFICo's prompts, in the format "Create Table + Select 3" (paper, section 4, figures 20-22).

The layout is that of the authors' released code, which their published numbers rest on. Prompts are
never shortened: if they do not fit into the model's window, lm-eval truncates them.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.records import Database, Example, Position
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql import values as sql
from lm_eval_ext.sql.described import describe_tables

_log = get_logger(__name__)

INSTRUCTION = "-- Using valid {}, answer the following questions for the tables provided above."
"""The instruction, with a slot for the name of the database's engine."""

SQLITE = "SQLite"
START = "SELECT"
"""The end of every prompt."""

SPEAKERS = ("User1", "User2")
"""The speakers who ask and who answer in dialogues."""

SHOWN_ROWS = 3
"""Rows of each table ("Select 3", paper section 4)."""


def for_question(
    blocks: Sequence[str],
    question: str,
    *,
    descriptions: Sequence[str] = (),
    position: Position = "end",
    support: Iterable[Example] = (),
    dialect: str = SQLITE,
) -> str:
    """Return a prompt made from the blocks of :func:`schema`.

    Descriptions are before the tables ("start"), after half of them, rounded down, but at least
    one ("mid"), or after the instruction ("end"). Support examples follow.
    """
    paragraphs = [*blocks, INSTRUCTION.format(dialect)]
    text = " ".join(descriptions)
    if text and position == "end":
        paragraphs.append(f"-- {text}")
    elif text:
        index = 0 if position == "start" else max(1, len(blocks) // 2)
        paragraphs.insert(index, text)
    for example in support:
        paragraphs.append(f"-- {example.question}\n{example.query}")
    paragraphs.append(f"-- {question}\n{START}")
    return "\n\n".join(paragraphs)


def in_dialogue(
    dialogue: str, blocks: Sequence[str], question: str, *, dialect: str = SQLITE
) -> str:
    """Return a prompt that continues a dialogue (paper, figure 22)."""
    asks, answers = SPEAKERS
    turns = [
        dialogue.strip(),
        f"{asks}: Suppose you are given the following schema:",
        *blocks,
        f"Using valid {dialect}, answer the following question with the corresponding SQL query:\n"
        f"{question}",
        f"{answers}: {START}",
    ]
    return "\n\n".join(turns)


def description(form: str, meaning: str) -> str:
    """Return our own description of a word (in the manner of the paper's figure 20)."""
    noun = "phrase" if " " in form else "word"
    return f"The {noun} '{form}' refers to {meaning}."


# --- the tables of a database: how each was created, and its first rows ---

_CREATE = re.compile(
    r"(?P<create>create)\s+table\s+(?:if\s+not\s+exists\s+)?"
    r"""(?P<spelt>"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|'([^']+)'|([\w$]+))""",
    re.IGNORECASE,
)
_TABLES_AND_VIEWS = (
    "SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
)


@dataclass(frozen=True)
class _Table:
    """A table or view of a SQLite database.

    Attributes:
        is_view: Whether it is a view.
        statement: SQLite's own CREATE statement.
        columns: The names of its columns.
        rows: Its first rows.
    """

    is_view: bool
    statement: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class _ListedTable:
    """A table as prompts show it.

    Attributes:
        name: Its name in the database.
        spelling: Its spelling in the SELECT statement.
        create: The CREATE statement; None if prompts show none.
    """

    name: str
    spelling: str
    create: str | None


def schema(database: Database) -> list[str]:
    """Return the tables as blocks of text, in their order; rows are those of the original database.

    Views that do not work, and tables that SQLite cannot read, are left out. Of DuckDB and
    PostgreSQL the engine's own statements are shown, and values as the engine writes them.

    Raises:
        DataError: A file cannot be read.
    """
    if database.location.engine != "sqlite":
        with Executor(workers=1) as executor:
            return [
                _block(table.name, table.create, table.header, table.rows)
                for table in describe_tables(executor, database.location, SHOWN_ROWS)
            ]
    try:
        tables = _read_tables(database.path)
        blocks = []
        for listed_table in _listed_tables(database, tables):
            table = tables[listed_table.name]
            blocks.append(
                _block(listed_table.spelling, listed_table.create, table.columns, table.rows)
            )
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{database.path}: cannot be read ({error})") from None
    return blocks


def _read_tables(path: Path) -> dict[str, _Table]:
    """Return the tables of a SQLite file that can be read, and its views that work, by name."""
    tables = {}
    with closing(_open(path)) as connection:
        for name, statement, object_type in connection.execute(_TABLES_AND_VIEWS).fetchall():
            is_view = object_type == "view"
            try:
                columns, rows = _first_rows(connection, name, is_table=not is_view)
            except sqlite3.OperationalError as error:
                if not is_view:
                    _log.warning("the table %s is not shown: %s", name, error)
                continue
            plain_statement = statement.strip().rstrip(";").rstrip()
            tables[name] = _Table(is_view, plain_statement, columns, rows)
    return tables


def _first_rows(
    connection: sqlite3.Connection, name: str, *, is_table: bool
) -> tuple[list[str], list[Sequence[object]]]:
    """Return the names of the columns and the first rows of a table or view.

    A column that a function of the application computes keeps the rows of its table unknown.

    Raises:
        sqlite3.OperationalError: It cannot be read: a view of a table that is gone, or a virtual
            table of a module that is not there.
    """
    table = sql.quoted(name)
    try:
        cursor = connection.execute(f"SELECT * FROM {table} LIMIT {SHOWN_ROWS}")
        return [column[0] for column in cursor.description], cursor.fetchall()
    except sqlite3.OperationalError:
        if not is_table:
            raise
        columns = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
        return [column[1] for column in columns], []


def _listed_tables(database: Database, tables: Mapping[str, _Table]) -> Iterator[_ListedTable]:
    """Yield the tables in the order and spelling of prompts.

    The script is split at every semicolon, even one in a comment or a text, and a table is spelt
    as its statement spells it, without double quotes. Without a script, the tables are those that
    the dataset's questions list. A database of one's own that has neither, and views, are shown
    with SQLite's own statements.
    """
    seen_names = set()
    for listed_table in _tables_in_script(database, tables):
        seen_names.add(listed_table.name)
        yield listed_table
    if not seen_names:
        by_name = {name.casefold(): name for name in tables}
        spellings = {table.casefold(): table for table in database.listed_tables}
        listed_names = [folded for folded in spellings if folded in by_name]
        for folded in listed_names:
            yield _ListedTable(by_name[folded], _quoted_if_needed(spellings[folded]), None)
        if listed_names:
            return
    for name, table in tables.items():
        if name not in seen_names:
            shows_statement = table.is_view or not database.script
            create = table.statement if shows_statement else None
            yield _ListedTable(name, _quoted_if_needed(name), create)


def _tables_in_script(database: Database, tables: Mapping[str, _Table]) -> Iterator[_ListedTable]:
    """Yield the tables that a database's script creates, each once."""
    if database.script is None:
        return
    by_name = {name.casefold(): name for name in tables}
    seen_names = set()
    text = database.script.read_text(encoding="utf-8", errors="replace")
    for statement in text.split(";"):
        match = _CREATE.search(statement)
        if match is None:
            continue
        _, _, *unquoted_names = match.groups()
        unquoted = next(name for name in unquoted_names if name)
        name = by_name.get(unquoted.casefold())
        if name is None or name in seen_names:
            continue
        seen_names.add(name)
        spelling = match["spelt"]
        if spelling.startswith('"'):
            spelling = _quoted_if_needed(unquoted)
        definition = statement[match.end("create") :].strip()
        yield _ListedTable(name, spelling, f"{match['create']} {definition}")


def _quoted_if_needed(name: str) -> str:
    return name if name.isidentifier() else sql.quoted(name)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = _decoded
    return connection


def _decoded(text: bytes) -> str:
    """Return a text of a database; some in Spider's databases are not UTF-8."""
    return text.decode("utf-8", errors="replace")


def _block(
    spelling: str, create: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]
) -> str:
    """Return a table as prompts show it.

    Values are Python's ``str()``; blanks at the ends of a line are gone, as with the authors. A
    table without rows has an empty line in their place.
    """
    lines = []
    title = f"{SHOWN_ROWS} example rows:"
    if create is None:
        title = f"{SHOWN_ROWS} example rows of table {spelling}:"
    else:
        lines.append(create)
    row_lines = ["\t".join(map(str, row)).strip() for row in rows]
    lines += [
        f"/*\n{title}",
        f"SELECT * FROM {spelling} LIMIT {SHOWN_ROWS};",
        "\t".join(header).strip(),
        "\n".join(row_lines).strip(),
        "*/",
    ]
    return "\n".join(lines)
