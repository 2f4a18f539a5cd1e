"""The tree that a question is derived from: each of its nodes is said in SQL and in words.

The node that expresses a novel word has the word's name as its ``kind``. In SQL it is always the
meaning; in words it is the meaning, or the word if there is one for its kind, and nothing else
changes. So the base question and the novel ones are exact pairs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from lm_eval_ext.benchmarks.magnifico.generate.english import (
    grammar,
    listed,
    plural,
    value_text,
    word_list,
)
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Link
from lm_eval_ext.sql.values import Value, quoted

Tables: TypeAlias = Mapping[Link | None, str]
"""Aliases of joined tables by the link that leads there; empty where nothing is joined."""

NovelWords: TypeAlias = Mapping[str, str]
"""Novel words by kind."""

MODE = "value_mode"
"""The kind of the word for the most common value."""

_SUPERLATIVES = ("mode", "highest", "lowest")
"""Rules of conditions that are said in short: "with the highest price"."""


@cache
def name_sql(text: str) -> str:
    """Return a table or column, quoted where SQLite or sqlglot would not read it as a name."""
    from sqlglot.dialects.sqlite import SQLite

    if not re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) or text.lower() in word_list("keywords"):
        return quoted(text)
    token_types = [token.token_type.name for token in SQLite().tokenize(text)]
    if token_types != ["VAR"]:
        return quoted(text)
    return text


def literal_sql(value: Value) -> str:
    """Return a value in SQL."""
    from sqlglot import exp

    return str(exp.convert(value).sql("sqlite"))


@dataclass(frozen=True)
class ColumnTerm:
    """A column of the entity asked about, or of the one that a link leads to."""

    field: Field
    link: Link | None = None

    @property
    def phrase(self) -> str:
        """The column in words: "salary", "department name", "department's budget"."""
        column = self.field.phrase
        if self.link is None or column.startswith(self.link.noun):  # "staff name" of the staff
            return column
        if self.field.role == "name":
            return f"{self.link.noun} {column}"
        return f"{self.link.noun}'s {column}"

    def columns(self) -> tuple["ColumnTerm", ...]:
        """Return the columns in it."""
        return (self,)

    def sql(self, tables: Tables) -> str:
        """Return the column in SQL."""
        return _qualified(name_sql(self.field.name), self.link, tables)

    def words(self, novel: NovelWords) -> str:
        """Return the column in words."""
        return self.phrase


def _qualified(column: str, link: Link | None, tables: Tables) -> str:
    """Return a column behind the alias of its table, if tables are joined."""
    if not tables:
        return column
    return f"{tables[link]}.{column}"


@dataclass(frozen=True)
class Aggregate:
    """A function of a column over the rows; of the rows themselves if there is no column."""

    function: str
    column: ColumnTerm | None = None
    kind: str = ""

    def columns(self) -> tuple[ColumnTerm, ...]:
        """Return the columns in it."""
        if self.column is None:
            return ()
        return self.column.columns()

    def sql(self, tables: Tables) -> str:
        """Return the expression in SQL."""
        argument = self.column.sql(tables) if self.column else "*"
        return f"{self.function}({argument})"

    def words(self, novel: NovelWords) -> str:
        """Return it in words, as "average price", or "number"."""
        if self.column is None:
            return novel.get(self.kind, "number")
        function = novel.get(self.kind, grammar()["functions"][self.function])
        return f"{function} {self.column.words(novel)}"


Term: TypeAlias = ColumnTerm | Aggregate

COUNT = Aggregate("COUNT")


@dataclass(frozen=True)
class Clause:
    """A condition.

    Attributes:
        rule: One of the conditions in ``words.yaml``.
        column: The column that it is about; None if rows of another table refer to the entity's.
        values: The values that it is compared with.
        inner: A condition on the rows that it is compared with, or on the child's rows.
        child: The entity of ``link``, from which ``link`` leads here.
        link: A child's link.
        kind: The novel word's name, if it expresses one.
    """

    rule: str
    column: ColumnTerm | None = None
    values: tuple[Value, ...] = ()
    inner: "Clause | None" = None
    child: Entity | None = None
    link: Link | None = None
    kind: str = ""

    def columns(self) -> tuple[ColumnTerm, ...]:
        """Return the columns in it; without those of a child."""
        columns: tuple[ColumnTerm, ...] = ()
        if self.column:
            columns += self.column.columns()
        if self.inner and not self.link:
            columns += self.inner.columns()
        return columns

    def sql(self, tables: Tables) -> str:
        """Return the condition in SQL."""
        slots = {"inner": self.inner.sql({}) if self.inner else ""}
        if self.link:
            slots["column"] = _qualified(name_sql(self.link.key), None, tables)
            slots["key"] = name_sql(self.link.column)
            slots["child"] = name_sql(self.link.child)
        elif self.column:
            slots["column"] = self.column.sql(tables)
            slots["name"] = name_sql(self.column.field.name)
            slots["table"] = name_sql(self.column.field.table)
        return self._fill_template("sql", [literal_sql(value) for value in self.values], slots)

    def words(self, novel: NovelWords, *, is_plural: bool = True) -> str:
        """Return what is said behind a noun: "whose price is above 30".

        Args:
            novel: Novel words by kind.
            is_plural: Whether the noun is plural.
        """
        slots = {"are": "is", "have": "has", "do": "does"}
        if is_plural:
            slots = {"are": "are", "have": "have", "do": "do"}
        slots["phrase"] = self.column.words(novel) if self.column else ""
        slots["child_row"] = self.child.singular if self.child else ""
        slots["inner"] = self.inner.words(novel) if self.inner else ""
        slots["word"] = novel.get(self.kind, "")
        wording = "novel" if self.kind in novel else "base"
        return self._fill_template(wording, [value_text(value) for value in self.values], slots)

    def _fill_template(
        self, wording: str, values: Sequence[str], slots: Mapping[str, object]
    ) -> str:
        template: str = grammar()["conditions"][self.rule].get(wording, "that {are} {word}")
        raw = self.values[-1] if self.values else ""
        return template.format(*values, raw=raw, **slots)


@dataclass(frozen=True)
class Top:
    """The row at a rank by a column, or the group at a rank by its number of rows."""

    term: Term
    descending: bool = True
    rank: int = 1
    kind: str = ""

    def columns(self) -> tuple[ColumnTerm, ...]:
        """Return the columns in it."""
        return self.term.columns()

    def sql(self, tables: Tables) -> str:
        """Return the end of a query."""
        direction = "DESC" if self.descending else "ASC"
        end = f" ORDER BY {self.term.sql(tables)} {direction} LIMIT 1"
        if self.rank > 1:
            end += f" OFFSET {self.rank - 1}"
        return end

    def words(self, novel: NovelWords) -> str:
        """Return it in words, as "second highest"."""
        return novel.get(self.kind, self._meaning())

    def _meaning(self) -> str:
        if self.kind == MODE:
            return "most common"
        position = "top" if self.descending else "bottom"
        if self.rank > 1:
            position = "second"
        meaning: str = grammar()["ranked"][position]
        return meaning


@dataclass(frozen=True)
class Question:
    """The whole tree.

    Attributes:
        entity: The table that it asks about.
        show: The columns of the result, without ``group_by``.
        where: Conditions that all hold.
        group_by: The column that rows are grouped by; it is the result's first column.
        top: Only this row or group.
        distinct: Whether equal rows are shown once.
        style: The number of one of several ways to say it.
    """

    entity: Entity
    show: tuple[Term, ...]
    where: tuple[Clause, ...] = ()
    group_by: ColumnTerm | None = None
    top: Top | None = None
    distinct: bool = False
    style: int = 0

    def columns(self) -> Iterator[ColumnTerm]:
        """Yield all columns that it mentions, as often as it does."""
        for node in (*self.show, self.group_by, self.top, *self.where):
            if node:
                yield from node.columns()

    def sql(self) -> str:
        """Return the gold query, in SQLite's dialect."""
        links = list(dict.fromkeys(column.link for column in self.columns() if column.link))
        tables: dict[Link | None, str] = {}
        if links:
            tables = {link: f"T{number}" for number, link in enumerate((None, *links), 1)}
        shown_terms = [term.sql(tables) for term in (self.group_by, *self.show) if term]
        query = "SELECT DISTINCT " if self.distinct else "SELECT "
        query += f"{', '.join(shown_terms)} FROM {name_sql(self.entity.table)}"
        if tables:
            query += " AS T1"
        for link in links:
            alias = tables[link]
            join = f"T1.{name_sql(link.column)} = {alias}.{name_sql(link.key)}"
            query += f" JOIN {name_sql(link.parent)} AS {alias} ON {join}"
        if self.where:
            query += " WHERE " + " AND ".join(clause.sql(tables) for clause in self.where)
        if self.group_by:
            query += f" GROUP BY {self.group_by.sql(tables)}"
        if self.top:
            query += self.top.sql(tables)
        return query

    def words(self, novel: NovelWords) -> str:
        """Return one sentence.

        Args:
            novel: The novel words by kind; without any it is the base question.
        """
        rows = self._noun(novel)
        shown_phrases = [term.words(novel) for term in self.show]
        slots = {
            "rows": rows,
            "row": self._noun(novel, is_plural=False),
            "all": f"the {rows}" if self.where else f"all {rows}",
            "there": self._noun(novel, between="are there"),
            "shown": listed(shown_phrases),
            "many": listed([plural(phrase) for phrase in shown_phrases]),
            "is": "is" if len(self.show) == 1 else "are",
            "by": self.group_by.phrase if self.group_by else "",
        }
        if self.top:
            slots["top"] = self.top.words(novel)
            slots["term"] = self.top.term.words(novel)
        sentences: list[str] = grammar()["sentences"][self._shape()]
        return sentences[self.style % len(sentences)].format_map(slots)

    def _shape(self) -> str:
        """Return the key of the sentences that say it."""
        term = self.show[0] if self.show else COUNT
        if self.top:
            return self._shape_of_top(self.top, term)
        if isinstance(term, Aggregate):
            shape = "count" if term == COUNT else "measure"
            return f"{shape} by" if self.group_by else shape
        if self.distinct:
            return "different"
        if any(clause.rule == "exceeds" for clause in self.where):
            return "list exceeding"
        return "list"

    def _shape_of_top(self, top: Top, term: Term) -> str:
        if self.group_by:
            return "mode" if top.kind == MODE else "top group"
        if term == top.term:
            return "top value"
        return "top among" if self.where else "top row"

    def _noun(self, novel: NovelWords, *, is_plural: bool = True, between: str = "") -> str:
        """Return the rows asked about, with their conditions.

        Args:
            novel: Novel words by kind.
            is_plural: Whether the noun is plural.
            between: Words between the noun and its conditions: "employees are there whose ...".
        """
        adjectives = word_list("adjectives")
        clauses_before: list[Clause] = []
        clauses_behind: list[Clause] = []
        for clause in self.where:
            is_adjective = clause.kind in adjectives and clause.kind in novel
            side = clauses_before if is_adjective else clauses_behind
            side.append(clause)
        clauses_behind.sort(key=_clause_order)
        clauses = listed([clause.words(novel, is_plural=is_plural) for clause in clauses_behind])
        if len(clauses_behind) == 1 and clauses_behind[0].rule in _SUPERLATIVES:
            clauses = "with the" + clauses.partition(" the")[2]
        words = [novel[clause.kind] for clause in clauses_before]
        words += [self.entity.plural if is_plural else self.entity.singular, between, clauses]
        return " ".join(word for word in words if word)


def _clause_order(clause: Clause) -> tuple[bool, bool]:
    """Return the order of clauses behind a noun.

    Clauses with a clause of their own go last, so that none is read as part of another.
    """
    return clause.rule not in _SUPERLATIVES, bool(clause.link or clause.inner)
