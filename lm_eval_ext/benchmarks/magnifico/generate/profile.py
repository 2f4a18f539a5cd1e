"""Describes a database in words: the noun for a row of a table, and the role of each column.

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
    is_spoken,
    plural,
    row_noun,
    singular,
    word_list,
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
"""The role of a column in its table. ``total`` is an amount that makes sense when it is summed;
``other`` is never asked about."""

MIN_ROWS = 4
"""A table with fewer rows is not asked about: nearly every question on it is trivial."""

_MAX_WORDS = 3
"""Words of a column's name."""
_MAX_CATEGORY_LENGTH = 32
"""Characters of a category."""
_MAX_CATEGORIES = 40
_MAX_VALUES = 60
"""Values of a column that are kept, spread over all."""
_MAX_NAMEABLE_INTEGERS = 12
"""Different whole numbers of a column of which questions may name one."""

_NAMEABLE_ROLES = frozenset({"category", "place", "name"})
"""Roles of columns whose values questions may name."""

_KEY_WORDS = frozenset({"id", "code", "no", "number", "key"})
"""Last words of the names of keys."""

_YEARS = range(1000, 2200)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ColumnEntry(_Entry):
    """The name that a lexicon gives a column, and its role if its values do not show it."""

    name: str
    role: Role | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, content: object) -> object:
        if isinstance(content, str):
            return {"name": content}
        return content


class TableEntry(_Entry):
    """The names that a lexicon gives a row of a table, several rows, and its columns."""

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
        name: Its declared name.
        phrase: Its name in words, in the singular.
        role: Its role in the table.
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

    Attributes:
        child: The table with the column.
        column: The column.
        parent: The table that it leads to.
        key: The parent's key.
        noun: The parent's name to the child: the department of an employee, or the manager.
    """

    child: str
    column: str
    parent: str
    key: str
    noun: str


@dataclass(frozen=True)
class Entity:
    """A table whose rows are things that a question can be about.

    Attributes:
        table: The table.
        singular: The noun for one row.
        plural: The noun for several rows.
        rows: The number of rows.
        fields: The columns that questions may mention.
        identifier: The column that its links lead to; None if there is none.
    """

    table: str
    singular: str
    plural: str
    rows: int
    fields: tuple[Field, ...]
    identifier: str | None

    def with_roles(self, *roles: Role) -> tuple[Field, ...]:
        """Return the fields of these roles, in the order of the table."""
        return tuple(field for field in self.fields if field.role in roles)

    @property
    def naming_fields(self) -> tuple[Field, ...]:
        """The fields that name a row: its name or title, or first and last name; may be empty."""
        names = self.with_roles("name")[:1]
        if names:
            return names
        return self.with_roles("first")[:1] + self.with_roles("last")[:1]


@dataclass(frozen=True)
class Profile:
    """A database in words.

    Attributes:
        entities: The entities by table.
        links: The links between them.
        not_asked: The numbers of tables and columns that are not asked about, by reason.
    """

    entities: Mapping[str, Entity]
    links: tuple[Link, ...]
    not_asked: Mapping[str, int]

    def children(self, entity: Entity) -> list[Link]:
        """Return the links that lead to an entity from other entities."""
        links = [link for link in self.links if link.parent == entity.table != link.child]
        return [link for link in links if link.key == entity.identifier]

    def parents(self, entity: Entity) -> list[Link]:
        """Return the links from an entity to other entities, but not those with the same noun."""
        links = [link for link in self.links if link.child == entity.table != link.parent]
        noun_counts = Counter(link.noun for link in links)
        return [link for link in links if noun_counts[link.noun] == 1]


def read_profile(path: Path, lexicon: Path | None = None) -> Profile:
    """Read a SQLite database.

    Raises:
        OptionError: There is no such lexicon, or it is a database of another engine.
        DataError: It is missing, locked, no database, or has rows that are not merged; no table has
            rows; or the lexicon is none, or names a table or column that the database lacks.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; name a SQLite database")
    file = sqlite_path(place_of(path)).absolute()
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
        connection.text_factory = _decode
        try:
            schema = schema_of(connection)
            entries = _lexicon(lexicon, schema) if lexicon else {}
            return _Reader(connection, schema, entries).profile(path)
        except sqlite3.Error as error:
            raise DataError(
                f"{path}: cannot be read as a SQLite database ({error}); close the program that "
                "writes it, or name a whole file that is not encrypted"
            ) from None


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _lexicon(path: Path, schema: Schema) -> dict[str, TableEntry]:
    """Return the entries of a lexicon by names as they are declared."""
    lexicon = read_yaml(path, TypeAdapter(Lexicon))
    entries = {}
    for name, entry in lexicon.tables.items():
        if name not in schema:
            raise DataError(f"{path}: the database has no table {name!r}")
        columns = {}
        for column, column_entry in entry.columns.items():
            declared = schema[name].column(column)
            if declared is None:
                raise DataError(f"{path}: the table {name!r} has no column {column!r}")
            columns[declared.name] = column_entry
        entries[schema[name].name] = entry.model_copy(update={"columns": columns})
    return entries


class _Reader:
    """Reads what a database holds, in words."""

    def __init__(
        self, connection: sqlite3.Connection, schema: Schema, lexicon: Mapping[str, TableEntry]
    ) -> None:
        self.connection = connection
        self.schema = schema
        self.lexicon = lexicon
        self.not_asked = Counter[str]()

    def profile(self, path: Path) -> Profile:
        """Return the profile of the database; its path is for messages."""
        tables = {table.name: table for table in self.schema.values() if not table.view}
        sizes: dict[str, int] = {}
        links: list[Link] = []
        for name, table in tables.items():
            sizes[name] = self._rows(f"SELECT count(*) FROM {quoted(name)}")[0][0]
            links += self._links(table)
        if not any(sizes.values()):
            raise DataError(f"{path}: no table has rows; questions are about rows")
        entities: dict[str, Entity] = {}
        for name, rows in sizes.items():
            nouns = self._nouns(tables[name])
            if rows < MIN_ROWS:
                self.not_asked["table with too few rows"] += 1
            elif nouns is None:
                self.not_asked["table whose name says nothing"] += 1
            else:
                entities[name] = self._entity(tables[name], nouns, rows, links)
        usable = [link for link in links if link.child in entities and link.parent in entities]
        return Profile(entities, tuple(usable), self.not_asked)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def _entry(self, table: Table) -> TableEntry:
        return self.lexicon.get(table.name, TableEntry())

    def _links(self, table: Table) -> Iterator[Link]:
        """Yield the foreign keys of one column that lead to tables."""
        for key in table.foreign_keys:
            parent = self.schema.get(key.parent)
            if parent is None or parent.view:
                continue
            if len(key.columns) != 1 or len(key.parent_columns) != 1:
                continue
            column = table.column(key.columns[0])
            target = parent.column(key.parent_columns[0])
            if column is not None and target is not None:
                noun = self._link_noun(table, column, parent)
                yield Link(table.name, column.name, parent.name, target.name, noun)

    def _link_noun(self, table: Table, column: Column, parent: Table) -> str:
        """Return the noun of a link: ``manager_id`` leads to a manager.

        Other keys are named after the table that they lead to.
        """
        entry = self._entry(table).columns.get(column.name)
        if entry and entry.name:
            return entry.name
        words = words_of(column.name)
        while words and words[-1] in _KEY_WORDS:
            words.pop()
        parent_noun, _ = self._nouns(parent) or ("", "")
        if not is_spoken(words) or words[-1] in word_list("unsaid"):
            return parent_noun
        noun, _ = row_noun(" ".join(words))
        if set(parent_noun.split()) <= set(noun.split()):
            return parent_noun
        return noun

    def _nouns(self, table: Table) -> tuple[str, str] | None:
        """Return the nouns for one row and for several; None if the table's name says nothing."""
        entry = self._entry(table)
        if entry.one:
            return entry.one, entry.many or plural(entry.one)
        words = words_of(table.name)
        if is_spoken(words) and word_list("no_row").isdisjoint(words):
            return row_noun(" ".join(words))
        return None

    def _entity(self, table: Table, nouns: tuple[str, str], rows: int, links: list[Link]) -> Entity:
        row_name, rows_name = nouns
        linked_columns = {link.column for link in links if link.child == table.name}
        names_of_rows = {row_name, rows_name, table.name.lower()}
        fields: dict[str, Field] = {}
        for column in table.columns:
            is_linked = column.name in linked_columns
            field = self._field(table, column, row_name, rows, is_linked=is_linked)
            if isinstance(field, str):
                self.not_asked[field] += 1
            elif field.phrase in fields or field.phrase.removeprefix("number of ") in names_of_rows:
                self.not_asked["column with another one's name"] += 1
            else:
                fields[field.phrase] = field
        identifier = None
        primary_keys = [column.name for column in table.columns if column.primary_key]
        targets = [link.key for link in links if link.parent == table.name]
        if len(primary_keys) == 1:
            identifier = primary_keys[0]
        elif targets:
            identifier = targets[0]
        return Entity(table.name, row_name, rows_name, rows, tuple(fields.values()), identifier)

    def _field(
        self, table: Table, column: Column, row_name: str, rows: int, *, is_linked: bool
    ) -> Field | str:
        """Return a field; or why there is none."""
        entry = self._entry(table).columns.get(column.name)
        phrase = entry.name if entry else _phrase(table, column, row_name)
        if not phrase:
            reason = "that the lexicon leaves out" if entry else "whose name says nothing"
            return f"column {reason}"
        counts = self._value_counts(table, column)
        nulls = rows - sum(counts.values())
        role = entry.role if entry else None
        if role is None:
            role = role_of(
                column, phrase, counts, rows, is_named=entry is not None, is_linked=is_linked
            )
        if role == "other" or 2 * nulls > rows:
            return "column that no question is asked about"
        if entry is None:
            phrase = _spoken_phrase(phrase, is_number=role in {"amount", "total"})
        values = sorted(counts, key=_value_order)
        step = max(1, len(values) // _MAX_VALUES)
        common: list[Value] = []
        if role in _NAMEABLE_ROLES or _has_few_integers(counts, rows):
            common = sorted(counts, key=lambda value: (-counts[value], str(value)))
        return Field(
            table=table.name,
            name=column.name,
            phrase=phrase,
            role=role,
            distinct=len(counts),
            nulls=nulls,
            values=tuple(values[::step]),
            common=tuple(common[:_MAX_CATEGORIES]),
        )

    def _value_counts(self, table: Table, column: Column) -> dict[Value, int]:
        """Return the number of rows with each value but NULL."""
        name = quoted(column.name)
        counted = self._rows(f"SELECT {name}, count(*) FROM {quoted(table.name)} GROUP BY 1")
        return {value: count for value, count in counted if value is not None}


def _value_order(value: Value) -> Any:
    """Return the order of values: numbers before texts."""
    return isinstance(value, str), value


def _has_few_integers(counts: Mapping[Value, int], rows: int) -> bool:
    """Return whether all values are whole numbers, and few enough to name one."""
    if len(counts) > min(_MAX_NAMEABLE_INTEGERS, rows // 2):
        return False
    return all(isinstance(value, int) for value in counts)


def _phrase(table: Table, column: Column, row_name: str) -> str:
    """Return the column's words without the table's; "" if they say nothing.

    ``customer_name`` of a customer is "name".
    """
    words = words_of(column.name)
    row_words = row_name.split()
    for start in (row_words, row_words[-1:], words_of(table.name)):
        if words[: len(start)] == start and len(words) > len(start):
            words = words[len(start) :]
            break
    location_words = word_list("place") & set(words)
    if not is_spoken(words) or len(words) > _MAX_WORDS or len(location_words) > 1:
        return ""
    return " ".join(words)


def _spoken_phrase(phrase: str, *, is_number: bool) -> str:
    """Return a column's phrase as questions say it.

    ``adults`` as a number is "number of adults"; "languages" of a song has one in each row.
    """
    front, _, head = phrase.rpartition(" ")
    if not is_number:
        return f"{front} {singular(head)}".strip()
    if " of " in phrase or singular(head) == head:
        return phrase
    unit = "amount" if head in word_list("money") else "number"
    return f"{unit} of {phrase}"


def role_of(  # noqa: PLR0911
    column: Column, phrase: str, counts: Mapping[Value, int], rows: int, *, is_named: bool,
    is_linked: bool,
) -> Role:  # fmt: skip
    """Return the role of a column.

    Args:
        column: The declared column.
        phrase: Its name in words.
        counts: The number of rows with each of its values.
        rows: The number of rows of the table.
        is_named: Whether the lexicon names it.
        is_linked: Whether it is a foreign key.
    """
    words = phrase.split()
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    texts = [value for value in counts if isinstance(value, str)]
    if phrase in {"first name", "last name"} and texts:
        return "first" if words[0] == "first" else "last"
    if head in {"name", "title"} and len(texts) > 1:
        return "name"
    names_no_property = {head, words[0]} & word_list("unsaid") or head.endswith("ed")
    if column.primary_key or is_linked or (names_no_property and not is_named):
        return "other"
    numbers = [value for value in counts if isinstance(value, int | float)]
    if counts and len(numbers) == len(counts):
        return _numeric_role(set(words), head, numbers)
    if not texts or len(texts) < len(counts) or not all(_is_tidy(text) for text in texts):
        return "other"
    if all(_is_day(text) for text in texts):
        return "date"
    if head in word_list("date") or any(_is_day(text[:10]) for text in texts):
        return "other"  # in a spelling that does not sort
    if head in word_list("place") and len(counts) < rows:
        return "place"
    short = all(1 < len(text) <= _MAX_CATEGORY_LENGTH and not text.isdigit() for text in texts)
    is_small = 1 < len(counts) <= min(_MAX_CATEGORIES, max(2, rows * 6 // 10))
    return "category" if short and is_small else "other"


def _is_tidy(text: str) -> bool:
    """Return whether a text can stand in a sentence, in quotes."""
    return bool(text) and text.strip() == text and text.isprintable() and '"' not in text


def _numeric_role(words: set[str], head: str, numbers: list[int | float]) -> Role:
    if head in {"year", "founded", "since"}:
        years = all(isinstance(value, int) and value in _YEARS for value in numbers)
        return "year" if years and head == "year" else "other"
    no_amount = word_list("date") | word_list("place") | word_list("stands_for")
    if head in no_amount - {"area"} or len(numbers) < MIN_ROWS:
        return "other"
    sums = head in word_list("total") and not words & word_list("rate")
    return "total" if sums else "amount"


def _is_day(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
