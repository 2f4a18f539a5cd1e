"""What a database holds, in words: what a row of a table is called, what each column is to it.

Roles come from declared types and keys, from the values, and from the last word of the name.
A table or column whose name is no English, and that the user's lexicon does not name, is never
asked about; neither is one of which no question reads well, such as "is_active".

A lexicon is a YAML file::

    tables:
      KND:
        one: customer
        many: customers
        columns:
          GEB: date of birth
          UMS: {name: turnover, role: total}
          X17: ""            # never asked about
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from lm_eval_ext.benchmarks.magnifico.generate.english import (
    among,
    is_spoken,
    plural,
    row_noun,
    singular,
    words_of,
)
from lm_eval_ext.errors import DataError
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.sql import place_of, sqlite_path
from lm_eval_ext.sql.schema import Column, Schema, Table, schema_of
from lm_eval_ext.sql.values import Value, quoted

Role = Literal[
    "key", "name", "first", "last", "amount", "total", "year", "date", "place", "category", "other"
]
"""What a column is to its table. ``total`` is an amount that makes sense when it is summed;
``other`` is never asked about."""

FEWEST_ROWS = 4
"""A table with fewer rows is not asked about: nearly every question on it is trivial."""

_MOST_WORDS, _MOST_TEXT, _MOST_CATEGORIES, _MOST_VALUES, _MOST_EQUAL = 3, 32, 40, 60, 12
_NAMING = frozenset({"category", "place", "name"})


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ColumnEntry(_Entry):
    """What a lexicon calls a column, and what it is if its values do not show it."""

    name: str
    role: Role | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given


class TableEntry(_Entry):
    """What a lexicon calls a row of a table, and its columns."""

    one: str = ""
    many: str = ""
    columns: dict[str, ColumnEntry] = {}


class Lexicon(_Entry):
    """A user's lexicon."""

    tables: dict[str, TableEntry] = {}


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
        common: The values that a condition can name, the most frequent first: of texts, and of few
            whole numbers.
    """

    table: str
    name: str
    phrase: str
    role: Role
    distinct: int = 0
    nulls: int = 0
    values: tuple[Value, ...] = ()
    common: tuple[Value, ...] = ()


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
    unsaid: Mapping[str, int]

    def children(self, entity: Entity) -> list[Link]:
        """The links that lead to an entity from other entities."""
        return [
            link for link in self.links
            if link.parent == entity.table != link.child and link.key == entity.identifier
        ]  # fmt: skip

    def parents(self, entity: Entity) -> list[Link]:
        """The links from an entity to other entities, but those with one noun."""
        links = [link for link in self.links if link.child == entity.table != link.parent]
        nouns = Counter(link.noun for link in links)
        return [link for link in links if nouns[link.noun] == 1]


def read(path: Path, lexicon: Path | None = None) -> Profile:
    """Reads a SQLite database.

    Raises:
        OptionError: There is no such lexicon, or it is a database of another engine.
        DataError: It is missing, locked, no database, or has rows that are not merged; no table has
            rows; or the lexicon is none, or names a table or column that the database lacks.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; name a SQLite database")
    place = sqlite_path(place_of(path)).absolute()
    with closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            schema = schema_of(connection)
            entries = _lexicon(lexicon, schema) if lexicon else {}
            return _Reader(connection, schema, entries).read(path)
        except sqlite3.Error as error:
            raise DataError(
                f"{path}: cannot be read as a SQLite database ({error}); close the program that "
                "writes it, or name a whole file that is not encrypted"
            ) from None


def _lexicon(path: Path, schema: Schema) -> dict[str, TableEntry]:
    """The entries of a lexicon by names as they are declared."""
    found = read_yaml(path, TypeAdapter(Lexicon))
    entries = {}
    for name, entry in found.tables.items():
        if name not in schema:
            raise DataError(f"{path}: the database has no table {name!r}")
        columns = {}
        for column in entry.columns:
            if (declared := schema[name].column(column)) is None:
                raise DataError(f"{path}: the table {name!r} has no column {column!r}")
            columns[declared.name] = entry.columns[column]
        entries[schema[name].name] = entry.model_copy(update={"columns": columns})
    return entries


class _Reader:
    def __init__(
        self, connection: sqlite3.Connection, schema: Schema, lexicon: Mapping[str, TableEntry]
    ) -> None:
        self.connection, self.schema, self.lexicon = connection, schema, lexicon
        self.unsaid = Counter[str]()

    def read(self, path: Path) -> Profile:
        tables = {table.name: table for table in self.schema.values() if not table.view}
        sizes = {name: self._rows(f"SELECT count(*) FROM {quoted(name)}")[0][0] for name in tables}
        if not any(sizes.values()):
            raise DataError(f"{path}: no table has rows; questions are about rows")
        links = [link for table in tables.values() for link in self._links(table)]
        entities: dict[str, Entity] = {}
        for name, rows in sizes.items():
            one, many = self._nouns(tables[name])
            if rows < FEWEST_ROWS:
                self.unsaid["table with too few rows"] += 1
            elif not one:
                self.unsaid["table whose name says nothing"] += 1
            else:
                entities[name] = self._entity(tables[name], one, many, rows, links)
        usable = tuple(k for k in links if k.child in entities and k.parent in entities)
        return Profile(entities, usable, self.unsaid)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def _entry(self, table: Table) -> TableEntry:
        return self.lexicon.get(table.name, TableEntry())

    def _links(self, table: Table) -> Iterator[Link]:
        for key in table.foreign_keys:
            parent = self.schema.get(key.parent)
            if parent and not parent.view and len(key.columns) == len(key.parent_columns) == 1:
                column, target = table.column(key.columns[0]), parent.column(key.parent_columns[0])
                if column is not None and target is not None:
                    noun = self._link_noun(table, column, parent)
                    yield Link(table.name, column.name, parent.name, target.name, noun)

    def _link_noun(self, table: Table, column: Column, parent: Table) -> str:
        """``manager_id`` is a manager; other keys are named after the table they lead to."""
        entry = self._entry(table).columns.get(column.name)
        if entry and entry.name:
            return entry.name
        words = words_of(column.name)
        while words and words[-1] in {"id", "code", "no", "number", "key"}:
            words.pop()
        one = self._nouns(parent)[0]
        said = is_spoken(words) and words[-1] not in among("unsaid")
        noun = row_noun(" ".join(words))[0] if said else one
        return one if set(one.split()) <= set(noun.split()) else noun

    def _nouns(self, table: Table) -> tuple[str, str]:
        """What one row and several are called; nothing if the name says nothing."""
        entry, words = self._entry(table), words_of(table.name)
        if entry.one:
            return entry.one, entry.many or plural(entry.one)
        good = is_spoken(words) and among("no_row").isdisjoint(words)
        return row_noun(" ".join(words)) if good else ("", "")

    def _entity(self, table: Table, one: str, many: str, rows: int, links: list[Link]) -> Entity:
        keyed = {link.column for link in links if link.child == table.name}
        taken = {one, many, table.name.lower()}
        fields: dict[str, Field] = {}
        for column in table.columns:
            field = self._field(table, column, one, rows, linked=column.name in keyed)
            if isinstance(field, str):
                self.unsaid[field] += 1
            elif field.phrase in fields or field.phrase.removeprefix("number of ") in taken:
                self.unsaid["column with another one's name"] += 1
            else:
                fields[field.phrase] = field
        primary = [column.name for column in table.columns if column.primary_key]
        targets = [link.key for link in links if link.parent == table.name]
        identifier = primary[0] if len(primary) == 1 else next(iter(targets), None)
        return Entity(table.name, one, many, rows, tuple(fields.values()), identifier)

    def _field(
        self, table: Table, column: Column, one: str, rows: int, *, linked: bool
    ) -> Field | str:
        """A field; or why there is none."""
        entry = self._entry(table).columns.get(column.name)
        phrase = entry.name if entry else _phrase(table, column, one)
        if not phrase:
            return f"column {'that the lexicon leaves out' if entry else 'whose name says nothing'}"
        name = quoted(column.name)
        counted = self._rows(f"SELECT {name}, count(*) FROM {quoted(table.name)} GROUP BY 1")
        counts: dict[Value, int] = {value: count for value, count in counted if value is not None}
        nulls = rows - sum(counts.values())
        role = (entry.role if entry else None) or role_of(
            column, phrase, counts, rows, named=entry is not None, linked=linked
        )
        if role == "other" or 2 * nulls > rows:
            return "column that no question is asked about"
        if entry is None:
            phrase = _said(phrase, number=role in {"amount", "total"})
        common = sorted(counts, key=lambda value: (-counts[value], str(value)))
        few = len(counts) <= min(_MOST_EQUAL, rows // 2) and all(isinstance(v, int) for v in counts)
        values = sorted(counts, key=lambda value: (isinstance(value, str), value))  # type: ignore[type-var,unused-ignore]
        return Field(
            table.name, column.name, phrase, role, len(counts), nulls,
            values=tuple(values[:: max(1, len(values) // _MOST_VALUES)]),
            common=tuple(common[:_MOST_CATEGORIES]) if role in _NAMING or few else (),
        )  # fmt: skip


def _phrase(table: Table, column: Column, one: str) -> str:
    """The column's words without the table's: ``customer_name`` of a customer is "name"."""
    words = words_of(column.name)
    for start in (one.split(), one.split()[-1:], words_of(table.name)):
        if words[: len(start)] == start and len(words) > len(start):
            words = words[len(start) :]
            break
    places = len(among("place") & set(words))
    good = is_spoken(words) and len(words) <= _MOST_WORDS and places <= 1
    return " ".join(words) if good else ""


def _said(phrase: str, *, number: bool) -> str:
    """``adults`` as a number is "number of adults"; "languages" of a song has one in each row."""
    front, _, head = phrase.rpartition(" ")
    if not number:
        return f"{front} {singular(head)}".strip()
    if " of " in phrase or singular(head) == head:
        return phrase
    return f"{'amount' if head in among('money') else 'number'} of {phrase}"


def role_of(  # noqa: PLR0911
    column: Column, phrase: str, counts: Mapping[Value, int], rows: int, *, named: bool,
    linked: bool,
) -> Role:  # fmt: skip
    """The role of a column.

    Args:
        column: As declared.
        phrase: What it is called.
        counts: Its values, with their numbers of rows.
        rows: Of the table.
        named: Whether the lexicon names it.
        linked: Whether it is a foreign key.
    """
    words = phrase.split()
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    texts = [value for value in counts if isinstance(value, str)]
    if phrase in {"first name", "last name"} and texts:
        return "first" if words[0] == "first" else "last"
    if head in {"name", "title"} and len(texts) > 1:
        return "name"
    unsaid = {head, words[0]} & among("unsaid") or head.endswith("ed")
    if column.primary_key or linked or (unsaid and not named):
        return "other"
    numbers = [value for value in counts if isinstance(value, int | float)]
    if counts and len(numbers) == len(counts):
        return _numeric_role(set(words), head, numbers)
    tidy = all(t.strip() == t and t.isprintable() and t and '"' not in t for t in texts)
    if not texts or len(texts) < len(counts) or not tidy:
        return "other"
    if all(_is_day(text) for text in texts):
        return "date"
    if head in among("date") or any(_is_day(text[:10]) for text in texts):
        return "other"  # in a spelling that does not sort
    if head in among("place") and len(counts) < rows:
        return "place"
    short = all(1 < len(text) <= _MOST_TEXT and not text.isdigit() for text in texts)
    few = 1 < len(counts) <= min(_MOST_CATEGORIES, max(2, rows * 6 // 10))
    return "category" if short and few else "other"


def _numeric_role(words: set[str], head: str, numbers: list[int | float]) -> Role:
    if head in {"year", "founded", "since"}:
        years = all(isinstance(value, int) and 1000 <= value < 2200 for value in numbers)  # noqa: PLR2004
        return "year" if years and head == "year" else "other"
    no_amount = among("date") | among("place") | among("stands_for")
    if head in no_amount - {"area"} or len(numbers) < FEWEST_ROWS:
        return "other"
    sums = head in among("total") and not words & among("rate")
    return "total" if sums else "amount"


def _is_day(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
