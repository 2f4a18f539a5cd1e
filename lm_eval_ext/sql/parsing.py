"""From SQL to sqlglot's trees and back, and which column a name in a tree refers to.

SQLite reads "double quoted" text as a string where no column has that name; sqlglot, which knows
no schema, always reads a column. Spider's queries use such strings often.
"""

from collections.abc import Callable, Iterator, Set
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar

import sqlglot.parser
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.sql.schema import ROWID_NAMES, Column, Schema, Table, fold
from lm_eval_ext.text import one_line

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
"""The operators of comparisons."""

_KEPT_FUNCTIONS = frozenset({"COUNT", "MIN", "MAX", "AVG", "SUM", "LENGTH"})


class UnparsedQuery(ValueError):  # noqa: N818 (public under this name)
    """The text is not a query that can be read; the message is one line."""


def parse(sql: str, schema: Schema) -> exp.Expr:
    """Read one query.

    Args:
        sql: A query in SQLite's dialect; a semicolon may end it.
        schema: Decides whether text in double quotes is a column or a string.

    Returns:
        The tree, in which strings in double quotes are string literals.

    Raises:
        UnparsedQuery: It is not exactly one SELECT or set operation that sqlglot reads.
    """
    tree: exp.Expr = _parsed(sql, schema).copy()
    return tree


@lru_cache(maxsize=4096)
def _parsed(sql: str, schema: Schema) -> exp.Expr:
    """Return the tree, shared by all callers, who must not change it."""
    try:
        trees = [tree for tree in _dialect()().parse(sql) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise UnparsedQuery(one_line(f"cannot be read: {error}", limit=300)) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise UnparsedQuery(one_line(f"not one query: {sql}", limit=300))
    tree = trees[0]
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        raise UnparsedQuery(one_line(f"a SELECT of nothing: {sql}", limit=300))
    for column in list(tree.find_all(exp.Column)):
        if _is_string(column, schema):
            column.replace(exp.Literal.string(column.name))
    return tree


def to_sql(tree: exp.Expr) -> str:
    """Return SQL that has the same result in SQLite as the text that was parsed."""
    return str(tree.sql(dialect=_dialect(), comments=False))


@lru_cache(maxsize=1)
def _dialect() -> type[Dialect]:
    """Return SQLite's dialect, in which all functions but the usual aggregates keep their names.

    sqlglot would write stdev as STDDEV, which SQLite lacks, and renames other functions as well.

    Raises:
        LmEvalExtError: sqlglot is the compiled edition, whose classes cannot be extended.
    """
    if not str(sqlglot.parser.__file__).endswith(".py"):
        raise LmEvalExtError(
            "sqlglot is installed in its compiled edition, whose dialects cannot be extended; "
            "run: pip uninstall sqlglotc"
        )

    class SQLiteAsWritten(SQLite):
        class Parser(SQLite.Parser):  # type: ignore[misc, valid-type, unused-ignore]
            FUNCTIONS: ClassVar[Any] = {
                name: make
                for name, make in SQLite.Parser.FUNCTIONS.items()
                if name in _KEPT_FUNCTIONS
            }

    return SQLiteAsWritten


Change = Callable[[exp.Expr, Schema], Iterator[exp.Expr]]
"""Yield replacements of a node of a query's tree; the node itself must not be changed."""


def applied(tree: exp.Expr, change: Change, schema: Schema) -> Iterator[str]:
    """Yield a query's text with each single replacement that a rule gives for one of its nodes."""
    for position, node in enumerate(list(tree.walk())):
        for replacement in change(node, schema):
            if position == 0:
                yield to_sql(replacement)
                continue
            copy = tree.copy()
            same_node = next(islice(copy.walk(), position, None))
            same_node.replace(replacement)
            yield to_sql(copy)


def sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the tables and subqueries that a SELECT reads, in the order of FROM and JOIN."""
    from_clause = select.args.get("from_")
    if from_clause is not None:
        yield from_clause.this
    for join in select.args.get("joins") or ():
        yield join.this


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that AND connects; brackets around one part stay."""
    if isinstance(condition, exp.And):
        return conjuncts(condition.this) + conjuncts(condition.expression)
    if isinstance(condition, exp.Paren):
        inner = conjuncts(condition.this)
        return inner if len(inner) > 1 else [condition]
    return [condition]


def find_source(column: exp.Column, schema: Schema) -> tuple[exp.Select, exp.Expr] | None:
    """Return what a column's name refers to: a source in FROM, and the SELECT that reads it.

    The only resolver of names in this package. It looks into the nearest SELECT, then into those
    around it, and takes the first source that has such a column.

    sqlglot's own does not serve: ``optimizer.scope`` lists a SELECT's sources but resolves no
    unqualified name, ``optimizer.qualify`` rewrites the tree and refuses what SQLite accepts
    (rowid, strings in double quotes).
    """
    alias, name = fold(column.table), fold(column.name)
    select = column.parent_select
    while select is not None:
        for source in sources(select):
            if alias:
                is_referenced = fold(source.alias_or_name) == alias
            else:
                is_referenced = name in _names_of(source, schema)
            if is_referenced:
                return select, source
        select = select.parent_select
    return None


def resolve(column: exp.Column, schema: Schema) -> Column | None:
    """Return the declared column that a reference means; None if it is not a table's."""
    resolved = find_source(column, schema)
    table = None if resolved is None else table_of(resolved[1], schema)
    return None if table is None else table.column(column.name)


def table_of(source: exp.Expr, schema: Schema) -> Table | None:
    """Return the table or view that a source in FROM is; None for all other sources."""
    if isinstance(source, exp.Table) and source.name in schema and not _is_cte(source):
        return schema[source.name]
    return None


def _is_cte(table: exp.Expr) -> bool:
    """Return whether a table's name is that of a common table expression around it."""
    name = fold(table.name)
    node = table.parent
    while node is not None:
        if isinstance(node, exp.Query) and name in {fold(cte.alias) for cte in node.ctes}:
            return True
        node = node.parent
    return False


def joins_tables(node: exp.Expr | None) -> bool:
    """Return whether a condition is an equality of columns of two tables."""
    if not isinstance(node, exp.EQ):
        return False
    column, other_column = node.this, node.expression
    if not isinstance(column, exp.Column) or not isinstance(other_column, exp.Column):
        return False
    return bool(column.args.get("table") != other_column.args.get("table"))


def columns_read(select: exp.Select, schema: Schema) -> Iterator[tuple[exp.Column, Column]]:
    """Yield the columns of the tables that a SELECT reads, as it can name them."""
    sources_read = list(sources(select))
    for source in sources_read:
        table = table_of(source, schema)
        if table is None:
            continue
        qualifier = source.alias_or_name if len(sources_read) > 1 else None
        for column in table.columns:
            yield exp.column(column.name, table=qualifier, quoted=True), column


_ANY = "*"
"""Among the names of a source: it may have others, which are unknown here."""


def _names_of(source: exp.Expr, schema: Schema) -> Set[str]:
    """Return the folded names of the columns of a source in FROM."""
    if isinstance(source, exp.Subquery):
        return _output_names(source.this, schema)
    table = table_of(source, schema)
    return {_ANY} if table is None else table.by_name.keys()


def _output_names(query: exp.Expr, schema: Schema) -> set[str]:
    """Return the folded names of a query's result columns."""
    if isinstance(query, exp.SetOperation | exp.Subquery):
        return _output_names(query.this, schema)
    if not isinstance(query, exp.Select):
        return {_ANY}
    names = {fold(selected.alias_or_name) for selected in query.selects}
    if query.is_star:
        for source in sources(query):
            names |= _names_of(source, schema)
    return names


def _is_string(column: exp.Column, schema: Schema) -> bool:
    """Return whether a name is a string in double quotes: no SELECT around has such a column."""
    identifier = column.this
    if column.table or not isinstance(identifier, exp.Identifier) or not identifier.quoted:
        return False
    name = fold(column.name)
    select = column.parent_select
    if select is None:  # ORDER BY of a set operation, which allows columns only
        return False
    while select is not None:
        aliases = [output for output in select.selects if isinstance(output, exp.Alias)]
        names = {fold(output.alias) for output in aliases}
        for source in sources(select):
            names |= _names_of(source, schema)
        if name in names or _ANY in names:
            return False
        select = select.parent_select
    return name not in ROWID_NAMES


def is_number(value: exp.Expr, schema: Schema) -> bool:
    """Return whether an aggregate's argument is a number by its declaration or computation."""
    argument = value.expressions[0] if isinstance(value, exp.Distinct) else value.unnest()
    if isinstance(argument, exp.Column):
        column = resolve(argument, schema)
        return column is not None and column.numeric
    return isinstance(
        argument, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Length | exp.Count | exp.Sum | exp.Avg
    )


def rows_differ(select: exp.Select, schema: Schema) -> bool:
    """Return whether no result has two equal rows, by groups, aggregates or a table's keys."""
    outputs: list[exp.Expr] = []
    names = set[str]()
    for selected in select.selects:
        output = selected.unalias()
        outputs.append(output)
        if isinstance(output, exp.Column):
            names.add(fold(output.name))
        if selected.alias:
            names.add(fold(selected.alias))
    group = select.args.get("group")
    if group is not None:
        return all(_is_selected(term, outputs, names) for term in group.expressions)
    if any(output.find(exp.AggFunc) for output in outputs):
        return True
    table = _only_table(select, schema)
    if table is None:
        return False
    if select.is_star:
        return bool(table.unique_keys)
    for key in table.unique_keys:
        if all(fold(column) in names and table[column].not_null for column in key):
            return True
    return False


def _is_selected(term: exp.Expr, outputs: list[exp.Expr], names: Set[str]) -> bool:
    """Return whether a term of GROUP BY is a result, by its expression or its name."""
    if term in outputs:
        return True
    return isinstance(term, exp.Column) and fold(term.name) in names


def _only_table(select: exp.Select, schema: Schema) -> Table | None:
    """Return the table that a SELECT reads, if it reads nothing beside it."""
    sources_read = list(sources(select))
    return table_of(sources_read[0], schema) if len(sources_read) == 1 else None


def groups_are_rows(select: exp.Select | None, schema: Schema) -> bool:
    """Return whether each group is a single row, since it has a key of the only table."""
    group = None if select is None else select.args.get("group")
    if select is None or group is None:
        return False
    table = _only_table(select, schema)
    if table is None:
        return False
    terms = {fold(term.name) for term in group.expressions}
    return table.has_key_among(terms)


def has_own_values(value: exp.Expr, schema: Schema) -> bool:
    """Return whether it is a column of the only table read, in which no value stands twice."""
    if not isinstance(value, exp.Column):
        return False
    column = resolve(value, schema)
    if column is None or column.repeats:
        return False
    select = value.parent_select
    return select is not None and select.args.get("joins") is None
