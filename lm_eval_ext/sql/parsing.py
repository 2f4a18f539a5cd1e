"""Reading a query into a tree, and writing a tree as a query that SQLite takes for the same.

SQLite takes "double quoted" text for a string where there is no column of that name; sqlglot,
which knows no schema, takes it for a column always. Golds of MAGNIFICo rely on it often.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.sql.schema import Column, Schema
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

ROWID = frozenset({"rowid", "oid", "_rowid_"})
_KEPT_FUNCTIONS = frozenset({"COUNT", "MIN", "MAX", "AVG", "SUM", "LENGTH"})


class UnparsedQuery(ValueError):  # noqa: N818 (the name that the interface gives it)
    """A text that is no query that we can read; the message is one line."""


def parse(sql: str, schema: Schema) -> exp.Expr:
    """Reads one query.

    Args:
        sql: A query in SQLite's dialect; a semicolon may end it.
        schema: What tells a column from a string in double quotes.

    Returns:
        The tree, in which strings in double quotes are string literals.

    Raises:
        UnparsedQuery: It is not exactly one SELECT or set operation that sqlglot reads.
    """
    tree: exp.Expr = _parsed(sql, schema).copy()
    return tree


@lru_cache(maxsize=4096)
def _parsed(sql: str, schema: Schema) -> exp.Expr:
    """The tree, which is not to be changed: each question about a query reads it again."""
    from sqlglot.errors import SqlglotError

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
            string = exp.Literal.string(column.name)
            column.replace(string)
    return tree


def to_sql(tree: exp.Expr) -> str:
    """Writes a tree as SQL that SQLite runs with the result of what was read."""
    return str(tree.sql(dialect=_dialect(), comments=False))


@lru_cache(maxsize=1)
def _dialect() -> "type[Dialect]":
    """SQLite's dialect, but every function other than the aggregates keeps its own name.

    sqlglot would write stdev as STDDEV, which nobody has registered, and knows more such pairs.

    Raises:
        LmEvalExtError: sqlglot is compiled: nobody can add to its classes then.
    """
    import sqlglot.parser
    from sqlglot.dialects.sqlite import SQLite

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


def select_of(node: exp.Expr) -> exp.Select | None:
    """Returns the SELECT whose names a node sees first: the nearest one around it."""
    found = node.parent
    while found is not None and not isinstance(found, exp.Select):
        found = found.parent
    return found


def sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Yields what a SELECT reads: tables and subqueries, in the order of FROM and JOIN."""
    first = select.args.get("from_")
    if first is not None:
        yield first.this
    for join in select.args.get("joins") or ():
        yield join.this


def resolve(column: exp.Column, schema: Schema) -> Column | None:
    """Returns the declared column that a reference means.

    None where it is none of a table: a column of a subquery, an alias, or unknown.
    """
    name, table = column.name.casefold(), column.table.casefold()
    select = select_of(column)
    while select is not None:
        for source in sources(select):
            if table and source.alias_or_name.casefold() != table:
                continue
            found = _declared(source, schema)
            if found is None:
                if table or name in _names_of(source, schema):
                    return None
            elif (declared := found.get(name)) is not None or table:
                return declared
        select = select_of(select)
    return None


def _declared(source: exp.Expr, schema: Schema) -> dict[str, Column] | None:
    if isinstance(source, exp.Table) and source.name in schema and not is_cte(source):
        return {column.name.casefold(): column for column in schema[source.name].columns}
    return None


def is_cte(table: exp.Expr) -> bool:
    """Whether a table's name is that of a common table expression around it."""
    node = table.parent
    while node is not None:
        if isinstance(node, exp.Query) and any(
            cte.alias.casefold() == table.name.casefold() for cte in node.ctes
        ):
            return True
        node = node.parent
    return False


_ANY = "*"
"""Stands among names for: there may be others, that we do not know."""


def _names_of(source: exp.Expr, schema: Schema) -> set[str]:
    if isinstance(source, exp.Subquery):
        return _output_names(source.this, schema)
    declared = _declared(source, schema)
    return {_ANY} if declared is None else set(declared)


def _output_names(query: exp.Expr, schema: Schema) -> set[str]:
    if isinstance(query, exp.SetOperation):
        return _output_names(query.this, schema)
    if isinstance(query, exp.Subquery):
        return _output_names(query.this, schema)
    if not isinstance(query, exp.Select):
        return {_ANY}
    names = {selected.alias_or_name.casefold() for selected in query.selects}
    if query.is_star:
        for source in sources(query):
            names |= _names_of(source, schema)
    return names


def _is_string(column: exp.Column, schema: Schema) -> bool:
    """Whether SQLite finds no column behind quotes, in any SELECT around, and so a string."""
    identifier = column.this
    if column.table or not isinstance(identifier, exp.Identifier) or not identifier.quoted:
        return False
    name = column.name.casefold()
    select = select_of(column)
    if select is None:  # ORDER BY of a set operation: nothing but columns may stand there
        return False
    while select is not None:
        names = {s.alias.casefold() for s in select.selects if isinstance(s, exp.Alias)}
        for source in sources(select):
            names |= _names_of(source, schema)
        if name in names or _ANY in names:
            return False
        select = select_of(select)
    return name not in ROWID
