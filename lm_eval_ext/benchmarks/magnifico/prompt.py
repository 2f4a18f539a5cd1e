"""MAGNIFICo's prompts, in the format "Create Table + Select 3" (paper, section 4, figures 20-22).

The layout is that of the authors' released code, which their published numbers rest on. Prompts are
never shortened: if they do not fit into the model's window, lm-eval truncates them.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.records import Database, Example, Position
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql import values as sql
from lm_eval_ext.sql.described import described

_log = get_logger(__name__)

INSTRUCTION = "-- Using valid {}, answer the following questions for the tables provided above."
"""With the name of the database's engine."""

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
    """Renders a prompt from the blocks of :func:`schema`.

    Descriptions are before the tables ("start"), after half of them, rounded down, but at least
    one ("mid"), or after the instruction ("end"). Support examples follow.
    """
    parts = [*blocks, INSTRUCTION.format(dialect)]
    if text := " ".join(descriptions):
        place = {"start": 0, "mid": max(1, len(blocks) // 2), "end": len(parts)}[position]
        parts.insert(place, f"-- {text}" if position == "end" else text)
    parts += [f"-- {example.question}\n{example.query}" for example in support]
    return "\n\n".join([*parts, f"-- {question}\n{START}"])


def in_dialogue(
    dialogue: str, blocks: Sequence[str], question: str, *, dialect: str = SQLITE
) -> str:
    """Renders a prompt that continues a dialogue (paper, figure 22)."""
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
    """Our own description of a word (in the manner of the paper's figure 20)."""
    kind = "phrase" if " " in form else "word"
    return f"The {kind} '{form}' refers to {meaning}."


# --- the tables of a database: how each was created, and its first rows ---

_CREATE = re.compile(
    r"(?P<create>create)\s+table\s+(?:if\s+not\s+exists\s+)?"
    r"""(?P<spelt>"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|'([^']+)'|([\w$]+))""",
    re.IGNORECASE,
)
_KEPT = (
    "SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
)


def schema(database: Database) -> list[str]:
    """The tables as blocks of text, in their order; rows are those of the original database.

    Views that do not work, and tables that SQLite cannot read, are left out. Of DuckDB and
    PostgreSQL the engine's own statements are shown, and values as the engine writes them.

    Raises:
        DataError: A file cannot be read.
    """
    if database.location.engine != "sqlite":
        with Executor(workers=1) as executor:
            return [
                _block(one.name, one.create, one.header, one.rows)
                for one in described(executor, database.location, SHOWN_ROWS)
            ]
    try:
        with closing(_open(database.path)) as connection:
            kept: dict[str, tuple[str, str]] = {}
            found = {}
            for name, statement, kind in connection.execute(_KEPT).fetchall():
                try:
                    found[name] = _first_rows(connection, name, is_table=kind == "table")
                except sqlite3.OperationalError as error:
                    if kind == "table":
                        _log.warning("the table %s is not shown: %s", name, error)
                    continue
                kept[name] = (kind, statement.strip().rstrip(";").rstrip())
            return [
                _block(spelt, create, *found[name])
                for name, spelt, create in _listed(database, kept)
            ]
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{database.path}: cannot be read ({error})") from None


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


def _listed(
    database: Database, kept: dict[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str | None]]:
    """Yields the name of each table, its spelling in the SELECT statement, and its statement.

    The script is split at every semicolon, even one in a comment or a text, and a table is spelt
    as its statement spells it, without double quotes. Without a script, the tables are those that
    the dataset's questions list. A database of one's own that has neither, and views, are shown
    with SQLite's own statements (``kept``).
    """
    by_name = {name.casefold(): name for name in kept}
    shown = set()
    script = database.script
    text = script.read_text(encoding="utf-8", errors="replace") if script else ""
    for piece in text.split(";"):
        match = _CREATE.search(piece)
        found = next(filter(None, match.groups()[2:])) if match else ""
        name = by_name.get(found.casefold())
        if match and name and name not in shown:
            shown.add(name)
            spelt = match["spelt"]
            if spelt.startswith('"'):
                spelt = _spelt(found)
            yield name, spelt, f"{match['create']} {piece[match.end('create') :].strip()}"
    listed = {one.casefold(): one for one in database.listed_tables if one.casefold() in by_name}
    if not shown and listed:
        for folded, spelt in listed.items():
            yield by_name[folded], _spelt(spelt), None
        return
    for name, (kind, statement) in kept.items():
        if name not in shown:
            yield name, _spelt(name), statement if kind == "view" or not script else None


def _spelt(name: str) -> str:
    return name if name.isidentifier() else sql.quoted(name)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    # Some texts in Spider's databases are not UTF-8.
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    return connection


def _block(
    spelt: str, create: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]
) -> str:
    """Values are Python's ``str()``; blanks at the ends of a line are gone, as with the authors.

    A table without rows has an empty line in their place.
    """
    of = f" of table {spelt}" if create is None else ""
    lines = [
        *([create] if create else []),
        f"/*\n{SHOWN_ROWS} example rows{of}:",
        f"SELECT * FROM {spelt} LIMIT {SHOWN_ROWS};",
        "\t".join(header).strip(),
        "\n".join("\t".join(map(str, row)).strip() for row in rows).strip(),
        "*/",
    ]
    return "\n".join(lines)
