"""What a SELECT's keys and conditions say about its rows, before they are grouped.

Everything here holds on every database in which declared keys and NOT NULL are kept. Two
values are *the same* here if SQLite's ``=`` with binary collation says so, or if both are NULL.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from lm_eval_ext.sql.parsing import select_of
from lm_eval_ext.sql.schema import Column

Name = tuple[str, str]
"""A column: its source's alias and its own name, both in lower case."""


@dataclass(frozen=True)
class Key:
    """Columns that no two rows of a source share; ``nulls``: not even as NULLs."""

    columns: frozenset[str]
    nulls: bool


@dataclass(frozen=True)
class Source:
    """A table in FROM, or a subquery there with at most so many rows."""

    columns: dict[str, Column]
    keys: tuple[Key, ...]
    most_rows: int | None = None
    indexed: frozenset[str] = frozenset()


@dataclass
class Facts:
    """What is known of one SELECT's rows; :func:`.reading.facts_of` finds it out.

    Attributes:
        select: The SELECT.
        sources: By alias; none if the SELECT reads what we do not understand (outer joins,
            common table expressions), or reads nothing: then little is concluded.
        inner: The facts of a subquery, in which columns of this SELECT are to be seen, too.
        constants: Columns that WHERE or ON set equal to a literal.
        pinned: Columns that WHERE or ON set equal to one value, the same for all rows.
        listed: Columns that WHERE or ON ask to be IN a list of one such value.
        not_null: Columns that are NULL in none of the rows.
        equal: Pairs of columns that are the same in each row.
    """

    select: exp.Select
    sources: dict[str, Source]
    inner: "Facts | None" = None
    constants: dict[Name, exp.Literal] = field(default_factory=dict)
    pinned: set[Name] = field(default_factory=set)
    listed: set[Name] = field(default_factory=set)
    not_null: set[Name] = field(default_factory=set)
    equal: list[tuple[Name, Name]] = field(default_factory=list)

    def name(self, node: exp.Expr | None) -> Name | None:
        """Returns which column of this SELECT's sources a node is, None if it is none.

        A name that is a result's alias, too, is none: which of them SQLite takes depends on
        the clause.
        """
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        if not self._sees(node) or (not node.table and self.hides(node.name)):
            return None
        return self._find(node)

    def hides(self, name: str) -> bool:
        """Whether a result has that alias, so that the name may mean it."""
        return name.casefold() in {s.alias.casefold() for s in self.select.expressions if s.alias}

    def column(self, name: Name) -> Column:
        """Returns the declaration of a column."""
        return self.sources[name[0]].columns[name[1]]

    def fixed(self, given: Iterable[Name] = ()) -> set[Name]:
        """Returns the columns that are the same in any two rows in which ``given`` are.

        Those that equal a literal or a subquery's one value, those that equal a fixed one, and
        all columns of a source of which a key is fixed.
        """
        known = {name for name in given if self.column(name).collation == "BINARY"}
        known |= set(self.constants) | self.pinned | self.listed
        while True:
            more = {b for a, b in self.equal if a in known}
            for alias, source in self.sources.items():
                if self._has_fixed_key(alias, known):
                    more |= {(alias, column) for column in source.columns}
            if more <= known:
                return known
            known |= more

    def is_seen_fixed(self, name: Name, given: set[Name]) -> bool:
        """Whether SQLite sees that a fixed column is, and reads no index for its order.

        It does not see through IN, nor from one table to the other.
        """
        seen = given | set(self.constants) | self.pinned
        source = self.sources[name[0]]
        if name in seen or name[1] not in source.indexed:
            return True
        return any({(name[0], column) for column in key.columns} <= seen for key in source.keys)

    def one_row(self, given: Iterable[Name] = ()) -> bool:
        """Whether at most one row has any values of ``given`` (with none: at all)."""
        known = self.fixed(given)
        return bool(self.sources) and all(self._has_fixed_key(a, known) for a in self.sources)

    def group_names(self) -> list[Name] | None:
        """Returns the columns of GROUP BY; None if one of its terms is none, or there are none."""
        group = self.select.args.get("group")
        if group is None or not group.expressions:
            return None
        names = [self.name(term) for term in group.expressions]
        found = [name for name in names if name is not None]
        return found if len(found) == len(names) else None

    def selected_names(self) -> set[Name]:
        """Returns the columns that the result holds as they are."""
        found: set[Name] = set()
        for selected in self.select.expressions:
            node = selected.unalias()
            if isinstance(node, exp.Star):
                found |= {(a, c) for a, source in self.sources.items() for c in source.columns}
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                alias = node.table.casefold()
                found |= {(a, c) for a, s in self.sources.items() if a == alias for c in s.columns}
            elif isinstance(node, exp.Column) and (name := self._find(node)) is not None:
                found.add(name)  # in the list of results no alias is to be seen
        return found

    def _find(self, column: exp.Column) -> Name | None:
        name, alias = column.name.casefold(), column.table.casefold()
        found = [a for a, s in self.sources.items() if name in s.columns and alias in ("", a)]
        return (found[0], name) if len(found) == 1 else None

    def _sees(self, column: exp.Column) -> bool:
        """Whether a column stands in this SELECT, or in the inner one and is none of its own."""
        owner = select_of(column)
        if owner is self.select or self.inner is None or owner is not self.inner.select:
            return owner is self.select
        inside = self.inner.sources
        if not inside or self.inner.hides(column.name):
            return False
        name, alias = column.name.casefold(), column.table.casefold()
        if alias:
            return alias not in inside
        return not any(name in source.columns for source in inside.values())

    def _has_fixed_key(self, alias: str, known: set[Name]) -> bool:
        for key in self.sources[alias].keys:
            names = {(alias, column) for column in key.columns}
            if names <= known and (key.nulls or names <= self.not_null):
                return True
        return False
