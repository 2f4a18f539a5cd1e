"""What a question is derived from: a typed tree that is rendered to SQL and to words.

A node whose ``kind`` is not empty is what a novel word expresses. Rendered to SQL it is the
meaning; rendered to words it is either the meaning or the word, and nothing else changes. So the
base question and the novel ones are exact pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lm_eval_ext.benchmarks.magnifico.generate.profile import Entity, Field, Link
from lm_eval_ext.sql.values import Value

Way = Literal["joined", "difference", "days", "product"]
Operator = Literal["=", "<>", ">", ">=", "<", "<=", "LIKE"]
Function = Literal["MAX", "MIN", "AVG", "SUM", "COUNT"]


@dataclass(frozen=True)
class Plain:
    """A column of the entity asked about, or of the one that links lead to."""

    field: Field
    links: tuple[Link, ...] = ()

    @property
    def phrase(self) -> str:
        """What it is called: "salary", "department name", "department's branch name"."""
        *nouns, last = [link.noun for link in self.links] or [""]
        if self.field.role != "name" and last:
            nouns, last = [*nouns, last], ""
        if self.field.phrase.startswith(last):  # "staff name" of the staff
            last = ""
        return " ".join(filter(None, [*(f"{one}'s" for one in nouns), last, self.field.phrase]))


@dataclass(frozen=True)
class Pair:
    """Two columns of the entity as one: joined texts, a difference, days between, a product."""

    way: Way
    first: Plain
    second: Plain
    kind: str = ""


@dataclass(frozen=True)
class Aggregate:
    """A function of a column over the rows; of the rows themselves if there is no column."""

    function: Function
    of: "Plain | Pair | None" = None
    kind: str = ""


Term: TypeAlias = Plain | Pair | Aggregate


@dataclass(frozen=True)
class Compare:
    """A column and a value."""

    term: Plain | Pair
    operator: Operator
    value: Value
    kind: str = ""

    def term_name(self) -> str:
        """The column's name; only for a column itself."""
        assert isinstance(self.term, Plain)
        return self.term.field.name


@dataclass(frozen=True)
class OneOf:
    """A column that has one of two values."""

    term: Plain
    values: tuple[Value, ...]
    kind: str = ""


@dataclass(frozen=True)
class Average:
    """A column above (or below) its average over the whole table, less the deviation if so."""

    term: Plain
    above: bool = True
    less_deviation: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Exceeds:
    """A column above its maximum among those that a condition holds for."""

    term: Plain
    those: Compare
    kind: str = ""


@dataclass(frozen=True)
class Extreme:
    """A column that has its highest or lowest value in the table."""

    term: Plain
    highest: bool
    kind: str = ""


@dataclass(frozen=True)
class Mode:
    """A column that has its most frequent value in the table."""

    term: Plain
    kind: str = ""


@dataclass(frozen=True)
class Linked:
    """Rows that a child's link leads to (or none does); ``where`` is about the child."""

    link: Link
    child: Entity
    where: Compare | None = None
    negated: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Shorter:
    """A text with fewer characters."""

    term: Plain
    characters: int
    kind: str = ""


@dataclass(frozen=True)
class During:
    """A date from the first day to before the last, which are two whole months."""

    term: Plain
    first: str
    behind: str
    months: str
    kind: str = ""


Filter: TypeAlias = (
    Compare | OneOf | Average | Exceeds | Extreme | Mode | Linked | Shorter | During
)  # fmt: skip


@dataclass(frozen=True)
class Having:
    """Groups of which an aggregate is above or below a number."""

    term: Aggregate
    operator: Operator
    value: int | float


@dataclass(frozen=True)
class Versus:
    """What is shown must also occur among the rows of another condition, or must not."""

    condition: Filter
    also: bool


@dataclass(frozen=True)
class Top:
    """The row at a rank by a column, or the group at a rank by its number of rows."""

    term: Term
    descending: bool = True
    rank: int = 1
    kind: str = ""


@dataclass(frozen=True)
class Question:
    """The whole tree.

    Attributes:
        entity: What it asks about.
        show: The columns of the result, without ``by``.
        where: Conditions that all hold.
        by: What rows are grouped by; it is the result's first column.
        top: Only this row or group.
        having: Only these groups; ``by`` alone is shown then.
        versus: A second set, for what is shown once.
        distinct: Whether equal rows are shown once.
        style: Which of several ways to say it.
    """

    entity: Entity
    show: tuple[Term, ...]
    where: tuple[Filter, ...] = ()
    by: Plain | None = None
    top: Top | None = None
    having: Having | None = None
    versus: Versus | None = None
    distinct: bool = False
    style: int = 0

    def terms(self) -> Iterator[Term]:
        """All columns that it mentions, those of conditions included."""
        yield from self.show
        yield from (self.by,) if self.by else ()
        yield from (self.top.term,) if self.top else ()
        yield from (self.having.term,) if self.having else ()
        for one in self.where:
            if not isinstance(one, Linked):
                yield one.term
            if isinstance(one, Exceeds):
                yield one.those.term

    def plain(self) -> Iterator[Plain]:
        """All columns themselves, as often as they are mentioned."""
        for term in self.terms():
            inner = term.of if isinstance(term, Aggregate) else term
            if isinstance(inner, Pair):
                yield from (inner.first, inner.second)
            elif inner is not None:
                yield inner
