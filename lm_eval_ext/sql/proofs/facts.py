"""What keys and conditions say about a SELECT's rows, before they are grouped.

Everything here holds on every database that satisfies its declared keys and NOT NULLs. Two
values are *the same* if SQLite's ``=`` with binary collation says so, or if both are NULL.

Foreign keys are not relied on: SQLite does not enforce them by default, and many of Spider's
databases violate theirs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    COMPARISONS,
    conjuncts,
    find_source,
    select_of,
    sources,
    table_of,
)
from lm_eval_ext.sql.proofs.places import is_aggregate, is_aggregate_call, limit_of, place_of
from lm_eval_ext.sql.schema import Column, Schema, Table

Name = tuple[str, str]
"""A column: its source's alias and its own name, both in lower case."""


@dataclass(frozen=True)
class Key:
    """Columns in which no two rows of a source agree; ``nulls``: not even where all are NULL."""

    columns: frozenset[str]
    nulls: bool


@dataclass(frozen=True)
class Source:
    """A table or subquery in FROM; ``indexed`` are the columns that stand in an index."""

    columns: dict[str, Column]
    keys: tuple[Key, ...]
    most_rows: int | None = None
    indexed: frozenset[str] = frozenset()


@dataclass
class Facts:
    """What is known of one SELECT's rows; :func:`facts_of` builds it.

    Attributes:
        select: The SELECT.
        schema: What the tables declare.
        sources: By alias; empty if the SELECT reads something unsupported (outer joins, common
            table expressions) or nothing: then little is concluded.
        inner: The facts of a subquery that may also refer to columns of this SELECT.
        constants: Columns that WHERE or ON set equal to a literal.
        pinned: Columns that WHERE or ON set equal to one value, the same for all rows.
        listed: Columns that WHERE or ON ask to be IN a list of one such value.
        not_null: Columns that are NULL in none of the rows.
        equal: Pairs of columns that are the same in each row.
    """

    select: exp.Select
    schema: Schema
    sources: dict[str, Source]
    inner: "Facts | None" = None
    constants: dict[Name, exp.Literal] = field(default_factory=dict)
    pinned: set[Name] = field(default_factory=set)
    listed: set[Name] = field(default_factory=set)
    not_null: set[Name] = field(default_factory=set)
    equal: list[tuple[Name, Name]] = field(default_factory=list)

    def name(self, node: exp.Expr | None) -> Name | None:
        """Returns the column of this SELECT's sources that a node refers to, or None.

        None also for a name that is the alias of a result as well: which of the two SQLite
        takes depends on the clause.
        """
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        owner = select_of(node)
        if not node.table and self.hides(node.name):
            return None
        if owner is not self.select:
            inner = self.inner
            if inner is None or owner is not inner.select:
                return None
            if not inner.sources or inner.hides(node.name):
                return None
        return self._find(node)

    def hides(self, name: str) -> bool:
        """Whether a result has that alias, so that the name may refer to it."""
        return name.casefold() in {s.alias.casefold() for s in self.select.expressions if s.alias}

    def column(self, name: Name) -> Column:
        """Returns the declaration of a column."""
        return self.sources[name[0]].columns[name[1]]

    def fixed(self, given: Iterable[Name] = ()) -> set[Name]:
        """Returns the columns that are the same in any two rows that agree in ``given``.

        Columns that equal a literal or a subquery's only value, columns that equal a fixed
        column, and all columns of a source with a fixed key.
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
        """Whether SQLite itself notices that a column is fixed, and reads no index for its order.

        It concludes nothing from IN, nor from one table to another.
        """
        seen = given | set(self.constants) | self.pinned
        source = self.sources[name[0]]
        if name in seen or name[1] not in source.indexed:
            return True
        return any({(name[0], column) for column in key.columns} <= seen for key in source.keys)

    def one_row(self, given: Iterable[Name] = ()) -> bool:
        """Whether at most one row has the same values of ``given`` (without any: at all)."""
        known = self.fixed(given)
        return bool(self.sources) and all(self._has_fixed_key(a, known) for a in self.sources)

    def group_names(self) -> list[Name] | None:
        """Returns the columns of GROUP BY; None without one, or if a term is not a column."""
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
                found.add(name)  # aliases are not visible in the list of results
        return found

    def _find(self, column: exp.Column) -> Name | None:
        name = column.name.casefold()
        found = find_source(column.table.casefold(), name, select_of(column), self.schema)
        if found is None or found[0] is not self.select:
            return None
        source = self.sources.get(alias := found[1].alias_or_name.casefold())
        return None if source is None or name not in source.columns else (alias, name)

    def _has_fixed_key(self, alias: str, known: set[Name]) -> bool:
        for key in self.sources[alias].keys:
            names = {(alias, column) for column in key.columns}
            if names <= known and (key.nulls or names <= self.not_null):
                return True
        return False


def facts_of(select: exp.Select, schema: Schema, *, inner: Facts | None = None) -> Facts:
    """Reads the schema's keys and the conditions of ON and WHERE.

    ``inner``: facts of one of its subqueries, to read conditions there on the outer row.
    """
    facts = Facts(select, schema, _read_sources(select, schema), inner)
    for alias, source in facts.sources.items():
        facts.not_null |= {(alias, name) for name, c in source.columns.items() if c.not_null}
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            _learn(facts, join.args["on"], schema)
    if (where := select.args.get("where")) is not None:
        _learn(facts, where.this, schema)
    return facts


def at_most_one_row(select: exp.Select, schema: Schema, *, facts: Facts | None = None) -> bool:
    """Whether a SELECT, its LIMIT apart, gives at most one row on every database."""
    facts = facts or facts_of(select, schema)
    if select.args.get("group") is None:
        return is_aggregate(select) or facts.one_row()
    names = facts.group_names()
    return names is not None and set(names) <= facts.fixed()


def most_rows(select: exp.Select, schema: Schema) -> int | None:
    """Returns how many rows a SELECT gives at most, its LIMIT apart; None: any number."""
    facts = facts_of(select, schema)
    if at_most_one_row(select, schema, facts=facts):
        return 1
    if not facts.sources:
        return None
    product = 1
    for source in facts.sources.values():
        if source.most_rows is None:
            return None
        product *= source.most_rows
    return product


def _learn(facts: Facts, whole: exp.Expr, schema: Schema) -> None:
    for condition in conjuncts(whole):
        bare = condition.unnest()
        sides: list[exp.Expr] = []
        if isinstance(bare, (*COMPARISONS, exp.Like)):  # neither side can be NULL
            sides = [bare.this, bare.expression]
        elif isinstance(bare, exp.In | exp.Between):
            sides = [bare.this]
        names = [facts.name(side) for side in sides]
        facts.not_null |= {name for name in names if name is not None}
        if isinstance(bare, exp.EQ):
            _learn_equality(facts, names[0], bare.expression, schema)
            _learn_equality(facts, names[1], bare.this, schema)
        elif isinstance(bare, exp.In) and (name := names[0]) is not None:
            query = bare.args.get("query")
            if query is not None and _is_one_value(query, facts.column(name), schema):
                facts.listed.add(name)


def _learn_equality(facts: Facts, name: Name | None, other: exp.Expr, schema: Schema) -> None:
    """Notes what a column equals; does nothing if ``name`` is None."""
    if name is None or facts.column(name).collation != "BINARY":
        return
    if isinstance(other, exp.Literal):
        facts.constants[name] = other
    elif (found := facts.name(other)) is not None:
        if _alike(facts.column(name), facts.column(found)):
            facts.equal.append((name, found))
    elif _is_one_value(other, facts.column(name), schema):
        facts.pinned.add(name)


def _is_one_value(query: exp.Expr, column: Column, schema: Schema) -> bool:
    """Whether a subquery has one value, the same for all rows, and equality fixes the column."""
    select = query.this if isinstance(query, exp.Subquery) else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return False
    facts = facts_of(select, schema)
    limit = limit_of(select)
    one = place_of(select) == "scalar" or limit == 1
    if not one and not (limit is None and at_most_one_row(select, schema, facts=facts)):
        return False
    value = select.expressions[0].unalias()
    name = facts.name(value)
    # Conversion by affinity makes a number equal to several spellings in a text column.
    fits = is_aggregate_call(value) if name is None else _alike(facts.column(name), column)
    return fits and column.collation == "BINARY" and is_closed(select, schema)


def is_closed(select: exp.Select, schema: Schema) -> bool:
    """Whether all columns in a subquery are its own, so that it does not depend on outer rows."""
    for column in select.find_all(exp.Column):
        owner = select_of(column)
        if owner is None or facts_of(owner, schema).name(column) is None:
            return False
    return True


def _alike(one: Column, other: Column) -> bool:
    """Whether ``=`` between two columns means the same value: no conversion, no folding."""
    return one.affinity == other.affinity and {one.collation, other.collation} == {"BINARY"}


def _read_sources(select: exp.Select, schema: Schema) -> dict[str, Source]:
    for join in select.args.get("joins") or ():
        if any(join.args.get(key) for key in ("side", "using", "method")):
            return {}
        if join.args.get("kind") not in (None, "", "INNER", "CROSS"):
            return {}
    found: dict[str, Source] = {}
    for source in sources(select):
        alias = source.alias_or_name.casefold()
        read: Source | None = None
        table = table_of(source, schema)
        if table is not None:
            read = _of_table(table)
        elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            read = _of_subquery(source.this, schema)
        if read is None or alias in found or source.args.get("joins"):
            return {}
        found[alias] = read
    return found


def _of_table(table: Table) -> Source:
    keys = tuple(
        Key(frozenset(c.casefold() for c in key), nulls=False) for key in table.unique_keys
    )
    columns = {c.name.casefold(): c for c in table.columns}
    # Any index may stand behind a view's columns.
    indexed = frozenset(columns) if table.view else table.indexed
    return Source(columns, keys, indexed=indexed)


def _of_subquery(select: exp.Select, schema: Schema) -> Source | None:
    """Returns a subquery's columns by name, with the columns that it groups by as a key."""
    facts = facts_of(select, schema)
    if not facts.sources or select.is_star:
        return None
    # An aggregate of no rows is still one row, whose plain columns are NULL.
    made_up = select.args.get("group") is None and is_aggregate(select)
    columns: dict[str, Column] = {}
    outside: dict[Name, str] = {}
    for selected in select.expressions:
        output = selected.alias_or_name.casefold()
        if not output or output in columns:
            return None
        name = facts.name(selected.unalias())
        inner = None if name is None else facts.column(name)
        columns[output] = Column(
            output,
            inner.type if inner else "",
            inner.affinity if inner else "BLOB",
            not_null=name in facts.not_null and not made_up,
            primary_key=0,
            default=None,
            collation=inner.collation if inner else "BINARY",
        )
        if name is not None:
            outside[name] = output
    groups = facts.group_names()
    keys: list[Key] = []
    if groups is not None and all(name in outside for name in groups):
        keys.append(Key(frozenset(outside[name] for name in groups), nulls=True))
    limit = limit_of(select)
    if limit == 1 or at_most_one_row(select, schema, facts=facts):
        keys.append(Key(frozenset(), nulls=True))
    most = None if limit in (None, -1) else limit
    return Source(columns, tuple(keys), most, indexed=frozenset(columns))
