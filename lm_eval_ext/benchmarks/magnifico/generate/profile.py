"""What a database holds, in words: what a row of a table is called, what each column is to it.

Roles come from declared types and keys, from the values, and from the last word of the name.
A table or column whose name is no English, and that the lexicon does not name, is never asked
about; neither is one of which no question reads well, such as "is_active".
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.generate import english
from lm_eval_ext.benchmarks.magnifico.generate.lexicon import Lexicon, Role
from lm_eval_ext.benchmarks.magnifico.generate.roles import (
    FEWEST_ROWS,
    MOST_CATEGORIES,
    MOST_VALUES,
    MOST_WORDS,
    NO_ROW,
    PLACES,
    UNSAID,
    quantity,
    role_of,
)
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.schema import Column, Schema, Table, schema_of
from lm_eval_ext.sql.values import Value, quoted


@dataclass(frozen=True)
class Field:
    """A column that questions may mention.

    Attributes:
        table: Its table.
        name: As declared.
        phrase: What a person calls it, in the singular.
        role: What it is to its table.
        distinct: Number of different values.
        nulls: Number of NULLs.
        values: Different values, sorted; those of a long column are spread over it.
        common: The most frequent values of a category or place, the most frequent first.
        whole: Whether its numbers have no fraction.
    """

    table: str
    name: str
    phrase: str
    role: Role
    distinct: int = 0
    nulls: int = 0
    values: tuple[Value, ...] = ()
    common: tuple[Value, ...] = ()
    whole: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it can be compared, averaged and sorted as a quantity."""
        return self.role in {"amount", "total"}


@dataclass(frozen=True)
class Link:
    """A declared foreign key of one column, from a child's column to its parent's key.

    ``noun`` is what the parent is to the child: the department of an employee, or the manager.
    """

    child: str
    column: str
    parent: str
    key: str
    noun: str


@dataclass(frozen=True)
class Entity:
    """A table whose rows are things that a question can be about.

    ``identifier`` is the column that its links lead to, None if there is none.
    """

    table: str
    one: str
    many: str
    rows: int
    fields: tuple[Field, ...]
    identifier: str | None

    def having(self, *roles: Role) -> tuple[Field, ...]:
        """The fields of these roles, in the order of the table."""
        return tuple(field for field in self.fields if field.role in roles)

    @property
    def display(self) -> tuple[Field, ...]:
        """What a row is named by: its name or title, or first and last name; may be empty."""
        return self.having("name")[:1] or (self.having("first")[:1] + self.having("last")[:1])


@dataclass(frozen=True)
class Profile:
    """A database's entities by table, and the links between them.

    ``unsaid`` counts tables and columns that are not asked about, by reason.
    """

    entities: Mapping[str, Entity]
    links: tuple[Link, ...]
    keys: int
    unsaid: Mapping[str, int]

    def children(self, entity: Entity) -> tuple[Link, ...]:
        """The links that lead to an entity from other entities."""
        return tuple(
            link for link in self.links
            if link.parent == entity.table and link.child != link.parent
            and link.key == entity.identifier
        )  # fmt: skip

    def parents(self, entity: Entity) -> tuple[Link, ...]:
        """The links from an entity to other entities."""
        return tuple(
            link for link in self.links if link.child == entity.table != link.parent
        )  # fmt: skip


def open_database(path: Path) -> sqlite3.Connection:
    """Opens a database read-only.

    Raises:
        DataError: It is missing, locked, no SQLite database, or has rows that are not merged.
    """
    if not path.is_file():
        problem = "this is a folder" if path.is_dir() else "there is no such file"
        raise DataError(f"{path}: {problem}; name a SQLite database")
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise DataError(
            f"{path} has unmerged changes in {log.name}; close the program that writes it, or run: "
            f'sqlite3 {path.name} "PRAGMA wal_checkpoint(TRUNCATE)"'
        )
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        raise DataError(
            f"{path}: cannot be read ({error}); close the program that writes it"
        ) from None
    except sqlite3.DatabaseError as error:
        connection.close()
        if "malformed" in str(error):
            raise DataError(f"{path}: damaged or cut off ({error}); copy it again") from None
        raise DataError(
            f"{path}: not a SQLite database, or an encrypted one ({error}); export it to a plain "
            "SQLite database first"
        ) from None
    return connection


def read(path: Path, lexicon: Lexicon, *, strict: bool = True) -> Profile:
    """Reads a database.

    ``strict`` leaves out what is not said well; without it every name is taken as it is.

    Raises:
        DataError: As :func:`open_database`, or no table has rows.
    """
    with closing(open_database(path)) as connection:
        try:
            schema = schema_of(connection)
            return _Reader(Runner(connection), schema, lexicon, strict=strict).read(path)
        except (sqlite3.Error, NoResultError) as error:
            raise DataError(f"{path}: cannot be read ({error}); copy it again") from None


class _Reader:
    def __init__(self, runner: Runner, schema: Schema, lexicon: Lexicon, *, strict: bool) -> None:
        self._runner, self._schema, self._lexicon = runner, schema, lexicon
        self._strict = strict
        self._unsaid: dict[str, int] = {}

    def read(self, path: Path) -> Profile:
        sizes = {
            name: int(str(self._runner.rows(f"SELECT count(*) FROM {quoted(name)}")[0][0]))
            for name, table in self._schema.items() if not table.view
        }  # fmt: skip
        if not any(sizes.values()):
            raise DataError(f"{path}: no table has rows; questions are about rows")
        links = tuple(self._links())
        entities = {}
        for name, rows in sizes.items():
            if self._strict and rows < FEWEST_ROWS:
                self._leave("table with too few rows")
            elif entity := self._entity(self._schema[name], rows, links):
                entities[name] = entity
        found = tuple(k for k in links if k.child in sizes and k.parent in sizes)
        usable = tuple(k for k in found if k.child in entities and k.parent in entities)
        return Profile(entities, usable, len(found), self._unsaid)

    def _leave(self, reason: str) -> None:
        self._unsaid[reason] = self._unsaid.get(reason, 0) + 1

    def _links(self) -> list[Link]:
        links = []
        for table in self._schema.values():
            for key in table.foreign_keys:
                if key.parent in self._schema and len(key.columns) == len(key.parent_columns) == 1:
                    parent = self._schema[key.parent]
                    target = parent.column(key.parent_columns[0])
                    column = table.column(key.columns[0])
                    if target is not None and column is not None:
                        noun = self._link_noun(table, column, parent)
                        links.append(Link(table.name, column.name, parent.name, target.name, noun))
        return links

    def _link_noun(self, table: Table, column: Column, parent: Table) -> str:
        """``manager_id`` is a manager; other keys are named after the table they lead to."""
        entry = self._lexicon.table(table.name).column(column.name)
        if entry is not None and entry.name:
            return entry.name
        words = english.words_of(column.name)
        while words and words[-1] in {"id", "code", "no", "number", "key"}:
            words.pop()
        one = self._nouns(parent)[0]
        own = one.split()
        if english.is_spoken(words) and not set(own) <= set(words) and words[-1] not in UNSAID:
            return " ".join(words)
        return one

    def _nouns(self, table: Table) -> tuple[str, str]:
        entry = self._lexicon.table(table.name)
        if entry.one:
            return entry.one, entry.many or english.plural(entry.one)
        words = english.words_of(table.name)
        if not words:
            return "", ""
        if self._strict and (not english.is_spoken(words) or NO_ROW & set(words)):
            return "", ""
        one = " ".join([*words[:-1], english.singular(words[-1])])
        return one, english.plural(one)

    def _entity(self, table: Table, rows: int, links: tuple[Link, ...]) -> Entity | None:
        one, many = self._nouns(table)
        if not one:
            self._leave("table whose name says nothing")
            return None
        keyed = {key.column for key in links if key.child == table.name}
        fields: dict[str, Field] = {}
        for column in table.columns:
            field = self._field(table, column, one, rows, linked=column.name in keyed)
            if field is None:
                continue
            if field.phrase in fields or {one, many, table.name.lower()} & {
                field.phrase,
                field.phrase.removeprefix("number of "),
            }:
                self._leave("column with another one's name")
                continue
            fields[field.phrase] = field
        targets = [key.key for key in links if key.parent == table.name]
        primary = [column.name for column in table.columns if column.primary_key]
        own = primary[0] if len(primary) == 1 else None
        identifier = own or (targets[0] if targets else None)
        return Entity(table.name, one, many, rows, tuple(fields.values()), identifier)

    def _field(
        self, table: Table, column: Column, one: str, rows: int, *, linked: bool
    ) -> Field | None:
        entry = self._lexicon.table(table.name).column(column.name)
        phrase = entry.name if entry else self._phrase(column, one)
        if entry is not None and not entry.name:
            self._leave("column that the lexicon leaves out")
            return None
        if not phrase:
            self._leave("column whose name says nothing")
            return None
        asked = f"SELECT {quoted(column.name)}, count(*) FROM {quoted(table.name)} GROUP BY 1"
        counted = self._runner.rows(f"{asked} ORDER BY 1")
        counts: dict[Value, int] = {
            value: int(str(count)) for value, count in counted if value is not None
        }
        nulls = rows - sum(counts.values())
        role = (entry.role if entry else None) or role_of(
            column, phrase, counts, rows, entry, linked=linked
        )
        if (role == "other" or (self._strict and 2 * nulls > rows)) and self._strict:
            self._leave("column that no question is asked about")
            return None
        common = sorted(counts, key=lambda value: (-counts[value], str(value)))[:MOST_CATEGORIES]
        values = sorted(counts, key=lambda value: (isinstance(value, str), value))  # type: ignore[type-var,unused-ignore]
        if role in {"amount", "total"} and entry is None:
            phrase = quantity(phrase)
        elif entry is None:  # "languages" of a song has one value in each row
            front, _, noun = phrase.rpartition(" ")
            phrase = f"{front} {english.singular(noun)}".strip()
        step = max(1, len(values) // MOST_VALUES)
        return Field(
            table.name, column.name, phrase, role, len(counts), nulls,
            values=tuple(values[::step]),
            common=tuple(common) if role in {"category", "place"} else (),
            whole=all(isinstance(value, int) for value in counts),
        )  # fmt: skip

    def _phrase(self, column: Column, one: str) -> str:
        """The column's words without the table's: ``customer_name`` of a customer is "name"."""
        words = english.words_of(column.name)
        own = one.split()
        for start in (own, own[-1:]):
            if words[: len(start)] == start and len(words) > len(start):
                words = words[len(start) :]
                break
        if self._strict and (
            not english.is_spoken(words) or len(words) > MOST_WORDS or len(PLACES & set(words)) > 1
        ):
            return ""
        return " ".join(words)
