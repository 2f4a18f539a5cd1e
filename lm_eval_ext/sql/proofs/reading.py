"""Finding out the facts: from the schema's keys, and from the conditions of ON and WHERE.

Foreign keys are not relied on: SQLite does not enforce them unless told, and Spider's own data
break many.
"""

from sqlglot import exp

from lm_eval_ext.sql.mutants.base import conjuncts
from lm_eval_ext.sql.parsing import is_cte, select_of, sources
from lm_eval_ext.sql.proofs.facts import Facts, Key, Name, Source
from lm_eval_ext.sql.proofs.places import is_aggregate, is_aggregate_call, limit_of, place_of
from lm_eval_ext.sql.schema import Column, Schema, Table


def facts_of(select: exp.Select, schema: Schema, *, inner: Facts | None = None) -> Facts:
    """Returns what is known of a SELECT's rows.

    Args:
        select: The SELECT, within its tree.
        schema: What the database declares.
        inner: Facts of one of its subqueries, to look at conditions there on the outer row.
    """
    facts = Facts(select, _read_sources(select, schema), inner)
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
    strict = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Like
    for condition in conjuncts(whole):
        bare = condition.unnest()
        sides: list[exp.Expr] = []
        if isinstance(bare, strict):  # neither side can be NULL
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
    """Takes note that a column, if it is one, equals something."""
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
    """Whether a subquery gives one value, the same for all rows, that fixes a column."""
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
    # A number compared with a text column would be looked for in all its spellings.
    fits = is_aggregate_call(value) if name is None else _alike(facts.column(name), column)
    return fits and column.collation == "BINARY" and is_closed(select, schema)


def is_closed(select: exp.Select, schema: Schema) -> bool:
    """Whether all columns in a subquery are its own, so that it is the same for all rows."""
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
        if isinstance(source, exp.Table) and source.name in schema and not is_cte(source):
            read = _of_table(schema[source.name])
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
    # What is behind a view's columns is not looked at, nor an index on an expression.
    indexed = frozenset(columns) if table.view else table.indexed
    return Source(columns, keys, indexed=indexed)


def _of_subquery(select: exp.Select, schema: Schema) -> Source | None:
    """A subquery's columns by their names, and the columns that it groups by as a key."""
    facts = facts_of(select, schema)
    if not facts.sources or select.is_star:
        return None
    # An aggregate of no rows is a row all the same: its plain columns are NULL.
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
