"""What a question is derived from: a tree of nodes, each of which is said in SQL and in words.

The node that expresses a novel word has the word's name as its ``kind``. In SQL it is always the
meaning; in words it is the meaning, or the word if ``said`` has one for its kind, and nothing else
changes. So the base question and the novel ones are exact pairs.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from lm_eval_ext.benchmarks.magnifico.generate.english import (
    among,
    known,
    listed,
    plural,
    value_text,
)
from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Link
from lm_eval_ext.sql.values import Value, quoted

Tables: TypeAlias = Mapping[Link | None, str]
"""Aliases of joined tables by the link that leads there; empty where nothing is joined."""

Said: TypeAlias = Mapping[str, str]
"""Novel words by kind."""

MODE = "value_mode"


@cache
def name(text: str) -> str:
    """A table or column, quoted where SQLite or sqlglot would not read it as a name."""
    from sqlglot.dialects.sqlite import SQLite

    plain = re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) and text.lower() not in among("keywords")
    tokens = SQLite().tokenize(text) if plain else []
    return text if [token.token_type.name for token in tokens] == ["VAR"] else quoted(text)


def literal(value: Value) -> str:
    """A value in SQL."""
    from sqlglot import exp

    return str(exp.convert(value).sql("sqlite"))


@dataclass(frozen=True)
class Plain:
    """A column of the entity asked about, or of the one that a link leads to."""

    field: Field
    link: Link | None = None

    @property
    def phrase(self) -> str:
        """What it is called: "salary", "department name", "department's budget"."""
        own = self.field.phrase
        if self.link is None or own.startswith(self.link.noun):  # "staff name" of the staff
            return own
        owner = self.link.noun if self.field.role == "name" else f"{self.link.noun}'s"
        return f"{owner} {own}"

    def columns(self) -> tuple["Plain", ...]:
        """The columns in it."""
        return (self,)

    def sql(self, tables: Tables) -> str:
        """The column."""
        return f"{tables[self.link]}.{name(self.field.name)}" if tables else name(self.field.name)

    def words(self, said: Said) -> str:
        """What it is called."""
        return self.phrase


@dataclass(frozen=True)
class Aggregate:
    """A function of a column over the rows; of the rows themselves if there is no column."""

    function: str
    of: Plain | None = None
    kind: str = ""

    def columns(self) -> tuple[Plain, ...]:
        """The columns in it."""
        return self.of.columns() if self.of else ()

    def sql(self, tables: Tables) -> str:
        """The expression."""
        return f"{self.function}({self.of.sql(tables) if self.of else '*'})"

    def words(self, said: Said) -> str:
        """As "average price", or "number"."""
        if self.of is None:
            return said.get(self.kind, "number")
        return f"{said.get(self.kind, known()['functions'][self.function])} {self.of.words(said)}"


Term: TypeAlias = Plain | Aggregate

COUNT = Aggregate("COUNT")


@dataclass(frozen=True)
class Clause:
    """A condition.

    Attributes:
        rule: One of the conditions in ``words.yaml``.
        of: What it is about; the linked key has no phrase.
        values: What it is compared with.
        inner: A condition on the rows that it is compared with, or on the child's rows.
        child: The entity of ``link``, from which ``link`` leads here.
        link: A child's link.
        kind: The novel word's name, if it expresses one.
    """

    rule: str
    of: Plain | None = None
    values: tuple[Value, ...] = ()
    inner: "Clause | None" = None
    child: Entity | None = None
    link: Link | None = None
    kind: str = ""

    def columns(self) -> tuple[Plain, ...]:
        """The columns in it; without those of a child."""
        inner = self.inner.columns() if self.inner and not self.link else ()
        return (self.of.columns() if self.of else ()) + inner

    def sql(self, tables: Tables) -> str:
        """The condition."""
        parts = {"inner": self.inner.sql({}) if self.inner else ""}
        if self.link:
            here = name(self.link.key)
            parts |= {"x": f"{tables[None]}.{here}" if tables else here}
            parts |= {"key": name(self.link.column), "child": name(self.link.child)}
        elif self.of:
            field = self.of.field
            parts |= {"x": self.of.sql(tables), "c": name(field.name), "t": name(field.table)}
        return self._said("sql", literal, **parts)

    def words(self, said: Said, *, many: bool = True) -> str:
        """What is said behind a noun: "whose price is above 30"."""
        are, have, do = ("are", "have", "do") if many else ("is", "has", "does")
        return self._said(
            "novel" if self.kind in said else "base", value_text, are=are, have=have, do=do,
            p=self.of.words(said) if self.of else "", one=self.child.one if self.child else "",
            inner=self.inner.words(said) if self.inner else "", word=said.get(self.kind, ""),
        )  # fmt: skip

    def _said(self, how: str, value: Callable[[Value], str], **parts: str) -> str:
        way: str = known()["conditions"][self.rule].get(how, "that {are} {word}")
        return way.format(
            *map(value, self.values), raw=self.values[-1] if self.values else "", **parts
        )


@dataclass(frozen=True)
class Top:
    """The row at a rank by a column, or the group at a rank by its number of rows."""

    term: Term
    descending: bool = True
    rank: int = 1
    kind: str = ""

    def columns(self) -> tuple[Plain, ...]:
        """The columns in it."""
        return self.term.columns()

    def sql(self, tables: Tables) -> str:
        """The end of a query."""
        end = f" OFFSET {self.rank - 1}" if self.rank > 1 else ""
        order = f"{self.term.sql(tables)} {'DESC' if self.descending else 'ASC'}"
        return f" ORDER BY {order} LIMIT 1{end}"

    def words(self, said: Said) -> str:
        """As "second highest"."""
        where = "second" if self.rank > 1 else "top" if self.descending else "bottom"
        meaning = "most common" if self.kind == MODE else known()["ranked"][where]
        return said.get(self.kind, meaning)


@dataclass(frozen=True)
class Question:
    """The whole tree.

    Attributes:
        entity: What it asks about.
        show: The columns of the result, without ``by``.
        where: Conditions that all hold.
        by: What rows are grouped by; it is the result's first column.
        top: Only this row or group.
        distinct: Whether equal rows are shown once.
        style: Which of several ways to say it.
    """

    entity: Entity
    show: tuple[Term, ...]
    where: tuple[Clause, ...] = ()
    by: Plain | None = None
    top: Top | None = None
    distinct: bool = False
    style: int = 0

    def columns(self) -> Iterator[Plain]:
        """All columns that it mentions, as often as it does."""
        for part in (*self.show, self.by, self.top, *self.where):
            yield from part.columns() if part else ()

    def sql(self) -> str:
        """The gold query, in SQLite's dialect."""
        links = list(dict.fromkeys(one.link for one in self.columns() if one.link))
        tables = {link: f"T{n}" for n, link in enumerate((None, *links), 1)} if links else {}
        shown = ", ".join(one.sql(tables) for one in (self.by, *self.show) if one)
        query = f"SELECT {'DISTINCT ' * self.distinct}{shown} FROM {name(self.entity.table)}"
        query += " AS T1" if tables else ""
        for link in links:
            key = f"{tables[link]}.{name(link.key)}"
            query += (
                f" JOIN {name(link.parent)} AS {tables[link]} ON T1.{name(link.column)} = {key}"
            )
        if self.where:
            query += " WHERE " + " AND ".join(one.sql(tables) for one in self.where)
        if self.by:
            query += f" GROUP BY {self.by.sql(tables)}"
        return query + (self.top.sql(tables) if self.top else "")

    def words(self, said: Said) -> str:
        """One sentence. ``said`` are the novel words by kind; without any, the base question."""
        rows, row = self._noun(said), self._noun(said, many=False)
        parts = {
            "rows": rows,
            "row": row,
            "all": f"{'the' if self.where else 'all'} {rows}",
            "there": self._noun(said, there="are there"),
            "shown": listed([one.words(said) for one in self.show]),
            "many": listed([plural(one.words(said)) for one in self.show]),
            "is": "is" if len(self.show) == 1 else "are",
            "by": self.by.phrase if self.by else "",
        }
        if self.top:
            parts |= {"top": self.top.words(said), "term": self.top.term.words(said)}
        ways: list[str] = known()["sentences"][self._shape()]
        return ways[self.style % len(ways)].format_map(parts)

    def _shape(self) -> str:
        """The key of the sentences that say it."""
        term, way = (*self.show, COUNT)[0], "list"
        if self.top and self.by:
            way = "mode" if self.top.kind == MODE else "top group"
        elif self.top:
            among = "top among" if self.where else "top row"
            way = "top value" if term == self.top.term else among
        elif isinstance(term, Aggregate):
            way = ("count" if term == COUNT else "measure") + " by" * bool(self.by)
        elif self.distinct:
            way = "different"
        elif any(one.rule == "exceeds" for one in self.where):
            way = "list exceeding"
        return way

    def _noun(self, said: Said, *, many: bool = True, there: str = "") -> str:
        """The rows asked about, with their conditions.

        ``there`` goes between the noun and what is said of it: "employees are there whose ...".
        """
        before = [one for one in self.where if one.kind in among("adjectives") and one.kind in said]
        # Clauses with a clause of their own go last, so that none is read as part of another.
        short = ("mode", "highest", "lowest")
        behind = sorted(
            (one for one in self.where if one not in before),
            key=lambda one: (one.rule not in short, bool(one.link or one.inner)),
        )
        clauses = listed([one.words(said, many=many) for one in behind])
        if len(behind) == 1 and behind[0].rule in short:
            clauses = "with the" + clauses.partition(" the")[2]
        noun = self.entity.many if many else self.entity.one
        return " ".join(filter(None, [*(said[one.kind] for one in before), noun, there, clauses]))
