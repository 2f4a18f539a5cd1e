"""Queries of SQLite in the dialect of DuckDB or PostgreSQL.

sqlglot translates the syntax. What it leaves as it is though the engines differ is rewritten
before, by rules that hold for any rows of these types. Whether the whole is right is not believed
but tried (:mod:`.golds`).
"""

import re
from collections.abc import Iterator
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lm_eval_ext.sql.convert.columns import Type
from lm_eval_ext.sql.convert.grouping import complete_groups
from lm_eval_ext.sql.convert.naming import INTEGRAL, MOMENTS, Names
from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.parsing import COMPARISONS, UnparsedQuery, parse, sources, table_of, to_sql
from lm_eval_ext.text import one_line

_OF_TEXT = (exp.Substring, exp.Length, exp.Upper, exp.Lower, exp.DPipe, exp.StrPosition, exp.Trim)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Sum, exp.Avg)
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"\s*[+-]?\d{1,15}(?:\.\d{1,15})?\s*")


def translate(sql: str, names: Names, *, nulls: Literal["dialect", "sqlite"] = "dialect") -> str:
    """Translates one query.

    Args:
        sql: In SQLite's dialect.
        names: Of its database.
        nulls: Where sorting puts NULL: where the dialect does if nothing is said, or first, as
            SQLite does.

    Raises:
        UnparsedQuery: It cannot be read.
    """
    # Strings in double quotes are strings after this, and names are names.
    plain = to_sql(parse(sql, names.schema))
    try:
        tree = sqlglot.parse_one(plain, read="sqlite")
        for rule in (_joins, complete_groups, _affinities, _numbers, _texts, _likes, _divisions):
            rule(tree, names)
        if nulls == "dialect":
            _orders(tree, names)
        _spellings(tree, names)
        return str(tree.sql(dialect=DIALECTS[names.engine].sqlglot, comments=False))
    except (SqlglotError, RecursionError, ValueError) as error:
        raise UnparsedQuery(one_line(f"cannot be translated: {error}", limit=300)) from error


def _joins(tree: exp.Expr, _: Names) -> None:
    """A JOIN without a condition is CROSS JOIN; a subquery in FROM has a name."""
    for join in tree.find_all(exp.Join):
        free = not (join.args.get("on") or join.args.get("using"))
        if free and not (join.side or join.kind or join.method):
            join.set("kind", "CROSS")
    for number, subquery in enumerate(tree.find_all(exp.Subquery)):
        if isinstance(subquery.parent, exp.From | exp.Join) and not subquery.alias:
            subquery.set("alias", exp.TableAlias(this=exp.to_identifier(f"subquery_{number}")))


def _affinities(tree: exp.Expr, names: Names) -> None:
    """Constants in comparisons get the type that the column's affinity gives them in SQLite.

    https://sqlite.org/datatype3.html, 4.2. Where a DATE or the like is compared with a text of
    another form, the texts are compared, as they are in SQLite.
    """
    for node in list(tree.find_all(*COMPARISONS, exp.Between, exp.In)):
        first = node.this
        others = _others(node)
        if isinstance(node, tuple(COMPARISONS)) and isinstance(first, exp.Literal):
            first, others = node.expression, [node.this]
        kind = names.type_of(first)
        if kind is None:
            continue
        if kind.family in MOMENTS:
            apart = [one for one in others if _is_text(one, names) and not _fits(one, kind, names)]
            if apart:
                first.replace(_as_text(first))
            continue
        known = names.column(first) if isinstance(first, exp.Column) else None
        if known is None:
            continue
        _, column = known
        for one in others:
            if not isinstance(one, exp.Literal | exp.Neg):
                continue
            text = f"-{one.this.name}" if isinstance(one, exp.Neg) else one.name
            string = isinstance(one, exp.Literal) and one.is_string
            if kind.family == "boolean" and text in ("0", "1"):
                one.replace(exp.Boolean(this=text == "1"))
            elif kind.family == "text" and column.affinity == "TEXT" and not string:
                if _WHOLE.fullmatch(text):
                    one.replace(exp.Literal.string(str(int(text))))
            elif kind.numeric and column.numeric and string and _NUMBER.fullmatch(text):
                one.replace(exp.Literal.number(text.strip().removeprefix("+")))


def _others(node: exp.Expr) -> list[exp.Expr]:
    """What a comparison compares its first operand with."""
    if isinstance(node, exp.Between):
        return [node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        return list(node.expressions)
    return [node.expression]


def _is_text(node: exp.Expr, names: Names) -> bool:
    kind = names.type_of(node)
    return kind is not None and kind.family == "text"


def _fits(node: exp.Expr, kind: Type, names: Names) -> bool:
    """Whether a text is a constant that the type itself writes so."""
    found = names.type_of(node)
    return isinstance(node, exp.Literal) and found is not None and kind.holds([node.name])


def _numbers(tree: exp.Expr, names: Names) -> None:
    """Arithmetic with texts that are all whole numbers is done with these numbers."""
    for node in list(tree.find_all(*_ARITHMETIC)):
        for operand in (node.this, node.args.get("expression")):
            kind = names.type_of(operand)
            if operand is not None and kind is not None and kind.whole:
                operand.replace(exp.cast(operand.copy(), "bigint"))


def _texts(tree: exp.Expr, names: Names) -> None:
    """Functions of texts get texts: whole numbers and dates are written the same everywhere."""
    for node in list(tree.find_all(*_OF_TEXT)):
        for operand in [node.this, *([node.expression] if isinstance(node, exp.DPipe) else [])]:
            _cast(operand, names)


def _likes(tree: exp.Expr, names: Names) -> None:
    """SQLite's LIKE ignores the case of ASCII letters, as ILIKE does (of all letters)."""
    for node in list(tree.find_all(exp.Like)):
        _cast(node.this, names)
        node.replace(exp.ILike(**node.args))


def _cast(operand: exp.Expr, names: Names) -> None:
    kind = names.type_of(operand)
    if kind is not None and kind.family in (*MOMENTS, *INTEGRAL):
        operand.replace(_as_text(operand))


def _as_text(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), "text")


def _divisions(tree: exp.Expr, names: Names) -> None:
    """The quotient of whole numbers is one in SQLite and PostgreSQL, not in DuckDB.

    By zero it is NULL in SQLite; sqlglot sees to that where it writes ``/``.
    """
    if names.engine != "duckdb":
        return
    for node in list(tree.find_all(exp.Div)):
        kinds = [names.type_of(one) for one in (node.this, node.expression)]
        if all(kind is not None and kind.family in INTEGRAL for kind in kinds):
            divisor = node.expression.copy()
            if not (isinstance(divisor, exp.Literal) and int(divisor.name)):
                divisor = exp.Nullif(this=divisor, expression=exp.Literal.number(0))
            node.replace(exp.IntDiv(this=node.this.copy(), expression=divisor))


def _orders(tree: exp.Expr, names: Names) -> None:
    """Nothing is said about NULL, as in the gold; SQLite has it first, the others last."""
    for node in tree.find_all(exp.Ordered):
        last = names.engine == "duckdb" or not node.args.get("desc")
        node.set("nulls_first", not last)


def _spellings(tree: exp.Expr, names: Names) -> None:
    """Names are spelt as they are declared, and quoted where the dialect needs it."""
    columns = [(node, names.column(node)) for node in tree.find_all(exp.Column)]
    qualifiers = dict(_qualifiers(tree, names))
    for node, known in columns:
        if known is not None and not _is_alias(node):
            node.set("this", names.identifier(known[1].name))
        elif isinstance(node.this, exp.Identifier) and not node.this.quoted:
            node.set("this", names.identifier(node.name.casefold()))
        if node.table:
            spelt = qualifiers.get(node.table.casefold())
            node.set("table", names.identifier(spelt or node.table.casefold()))
    for table in tree.find_all(exp.Table):
        declared = table_of(table, names.schema)
        if declared is not None:
            table.set("this", names.identifier(declared.name))
        if table.alias:
            table.set("alias", exp.TableAlias(this=names.identifier(table.alias.casefold())))


def _qualifiers(tree: exp.Expr, names: Names) -> Iterator[tuple[str, str]]:
    """Tables without an alias, by name in lower case, as they are declared."""
    for select in tree.find_all(exp.Select):
        for source in sources(select):
            declared = table_of(source, names.schema)
            if declared is not None and not source.alias:
                yield declared.name.casefold(), declared.name


def _is_alias(node: exp.Column) -> bool:
    """Whether ORDER BY names a result column, which has precedence there."""
    if node.table or not node.find_ancestor(exp.Order):
        return False
    select = node.find_ancestor(exp.Select)
    return select is not None and any(
        isinstance(one, exp.Alias) and one.alias.casefold() == node.name.casefold()
        for one in select.selects
    )
