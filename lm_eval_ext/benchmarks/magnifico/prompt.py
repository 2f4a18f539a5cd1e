"""MAGNIFICo's prompts, in the format "Create Table + Select 3" (paper, section 4, figures 20-22).

A prompt shows how each table was created and its first rows. Prompts are never shortened: if they
do not fit into the model's window, lm-eval truncates them.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.records import Database, Example, Position
from lm_eval_ext.errors import DataError

INSTRUCTION = "-- Using valid SQLite, answer the following questions for the tables provided above."
START = "SELECT"
"""The end of every prompt."""

SPEAKERS = ("User1", "User2")
"""The speakers who ask and who answer in dialogues."""

SHOWN_ROWS = 3
"""Rows of each table ("Select 3", paper section 4)."""

_COMMENTS = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)
_CREATE = re.compile(
    r"create\s+table\s+(?:if\s+not\s+exists\s+)?"
    r"""(?:"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|'([^']+)'|([\w$]+))""",
    re.IGNORECASE,
)
_KEPT = (
    "SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
)


def for_question(
    blocks: Sequence[str],
    question: str,
    *,
    descriptions: Sequence[str] = (),
    position: Position = "end",
    support: Iterable[Example] = (),
) -> str:
    """Renders a direct, a description or a few-shot prompt from the blocks of :func:`schema`.

    Descriptions are before the tables ("start"), after the middle table (of an odd number, more
    tables precede them), or after the instruction. Support examples follow.
    """
    parts = list(blocks)
    if position == "start":
        parts = [*descriptions, *parts]
    elif position == "mid":
        middle = (len(parts) + 1) // 2
        parts = [*parts[:middle], *descriptions, *parts[middle:]]
    parts.append(INSTRUCTION)
    if position == "end":
        parts += descriptions
    for example in support:
        parts += [f"-- {example.question}", example.query]
    return "\n".join([*parts, f"-- {question}", START])


def in_dialogue(dialogue: str, blocks: Sequence[str], question: str) -> str:
    """Renders a prompt that continues a dialogue (paper, figure 22)."""
    asks, answers = SPEAKERS
    turn = "\n".join(
        [
            f"{asks}: Suppose you are given the following schema:",
            *blocks,
            "Using valid SQLite, answer the following question with the corresponding SQL query:",
            question,
        ]
    )
    return "\n\n".join([dialogue.strip(), turn, f"{answers}: {START}"])


def description(form: str, meaning: str) -> str:
    """The line that describes a word (paper, figure 20)."""
    kind = "phrase" if " " in form else "word"
    return f"-- The {kind} '{form}' refers to {meaning}."


@dataclass(frozen=True)
class Table:
    """A table as prompts show it.

    Attributes:
        name: As the database spells it.
        create: Its CREATE TABLE statement, without a semicolon.
        header: The names of its columns.
        rows: The cells of its first rows, as text.
    """

    name: str
    create: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def schema(tables: Iterable[Table]) -> list[str]:
    """Renders each table as a block of text."""
    blocks = []
    for table in tables:
        lines = ["\t".join(table.header), *("\t".join(row) for row in table.rows)]
        blocks.append(
            f"{table.create}\n/*\n{SHOWN_ROWS} example rows:\n"
            f"SELECT * FROM {_spelt(table.name)} LIMIT {SHOWN_ROWS};\n" + "\n".join(lines) + "\n*/"
        )
    return blocks


def _spelt(name: str) -> str:
    """A name as SQL spells it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def tables_of(database: Database) -> tuple[Table, ...]:
    """Reads what prompts show, in the order in which the tables were created.

    The statements come from the database's script if it has one, as in the paper's prompts, else
    from SQLite. Rows come from the original database, never from a populated copy.

    Raises:
        DataError: A file cannot be read.
    """
    try:
        with closing(_open(database.path)) as connection:
            kept = {
                str(name): str(sql)
                for name, sql, kind in connection.execute(_KEPT).fetchall()
                if kind == "table" or _is_readable(connection, name)
            }
            written = _written(database.schema) if database.schema else {}
            by_name = {name.casefold(): name for name in kept}
            # The script's order; tables that it lacks follow.
            order = [by_name[name] for name in written if name in by_name]
            order += [name for name in kept if name not in order]
            return tuple(
                _table(connection, name, written.get(name.casefold(), kept[name])) for name in order
            )
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{database.path}: cannot be read ({error})") from None


def _is_readable(connection: sqlite3.Connection, view: str) -> bool:
    """Whether a view works: one of a table that is gone stays in the database."""
    try:
        _table(connection, view, "")
    except sqlite3.Error:
        return False
    return True


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    # Some texts in Spider's databases are not UTF-8.
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    return connection


def _table(connection: sqlite3.Connection, name: str, create: str) -> Table:
    quoted = name.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}" LIMIT {SHOWN_ROWS}')
    rows = tuple(tuple(map(_cell, row)) for row in cursor)
    header = tuple(column[0] for column in cursor.description)
    return Table(name, create.strip().rstrip(";").rstrip(), header, rows)


def _cell(value: object) -> str:
    """A value without line breaks and tabs, which would break the table."""
    text = "NULL" if value is None else value.hex() if isinstance(value, bytes) else str(value)
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _written(script: Path) -> dict[str, str]:
    """The CREATE TABLE statements of a script by name in lower case, in the script's order."""
    text = script.read_text(encoding="utf-8", errors="replace")
    found: dict[str, str] = {}
    for statement in _statements(text):
        match = _CREATE.match(statement)
        if match:
            name = next(group for group in match.groups() if group)
            found.setdefault(name.casefold(), statement)
    return found


def _statements(text: str) -> Iterator[str]:
    """Yields the statements of a script, without leading comments."""
    statement = ""
    for piece in text.split(";"):
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            yield _COMMENTS.sub("", statement)
            statement = ""
