"""Queries of DuckDB and PostgreSQL in SQLite's dialect, and back.

sqlglot does most of it, and can be wrong in silence. So no translation counts before its result was
compared with the original's on the same rows; what this module adds is only what is worth having.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lm_eval_ext.sql.engines.dialects import DIALECTS
from lm_eval_ext.sql.parsing import COMPARISONS, UnparsedQuery, parse, resolve, to_sql
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import EngineName
from lm_eval_ext.text import one_line

_PARTS = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d"}
_DEVIATIONS = (exp.Stddev, exp.StddevSamp)
_DAYS = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)


def to_sqlite(sql: str, engine: EngineName, schema: Schema) -> str:
    """Writes a query of an engine for SQLite.

    Raises:
        UnparsedQuery: It is not one query that can be read.
    """
    tree = _query(sql, DIALECTS[engine].sqlglot)

    def step(node: exp.Expr) -> exp.Expr:  # noqa: PLR0911 (a table of nodes)
        if isinstance(node, exp.Table):
            node.set("db", None)
            node.set("catalog", None)
        if isinstance(node, _DEVIATIONS):
            return exp.Anonymous(this="STDEV", expressions=[node.this])
        if type(node) in COMPARISONS and (years := _years(node)) is not None:
            return years
        if (part := _part_of(node)) is not None:
            text = exp.Literal.string(_PARTS[part[0]])
            call = exp.Anonymous(this="STRFTIME", expressions=[text, part[1].copy()])
            return exp.Cast(this=call, to=exp.DataType.build("integer"))
        if isinstance(node, exp.Cast) and node.to.this in _DAYS:
            return _day(node)
        if isinstance(node, exp.Cast) and node.is_type("decimal") and node.to.expressions:
            size = node.to.expressions
            digits = size[1].this if len(size) > 1 else exp.Literal.number(0)
            return exp.Round(this=node.this.copy(), decimals=digits.copy())
        if isinstance(node, exp.Sub) and _are_days(node.this, node.expression, schema):
            days = [exp.Anonymous(this="JULIANDAY", expressions=[one.copy()])
                    for one in (node.this, node.expression)]  # fmt: skip
            return exp.Sub(this=days[0], expression=days[1])
        return node

    try:
        tree = tree.transform(step)
        _spell_moments(tree, schema)
        return str(tree.sql(dialect="sqlite", comments=False))
    except (SqlglotError, RecursionError) as error:
        raise UnparsedQuery(one_line(f"cannot be written for SQLite: {error}", limit=200)) from None


def _part_of(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """The part of a day that an expression is, and the day."""
    if isinstance(node, exp.Year | exp.Month | exp.Day):
        return type(node).__name__.upper(), node.this
    if isinstance(node, exp.Extract) and node.name.upper() in _PARTS:
        return node.name.upper(), node.expression
    return None


def _years(node: exp.Expr) -> exp.Expr | None:
    """A column's year compared with a number, as its days: rows can be searched for by those."""
    part, number = _part_of(node.this), node.args["expression"]
    if part is None or part[0] != "YEAR" or not isinstance(part[1], exp.Column):
        return None
    if not isinstance(number, exp.Literal) or not re.fullmatch(r"[1-9]\d{3}", number.name):
        return None
    first, behind = (exp.Literal.string(f"{int(number.name) + later:04}-01-01") for later in (0, 1))
    sides = {"=": (first, behind), ">=": (first, None), "<": (None, first), ">": (behind, None),
             "<=": (None, behind)}.get(COMPARISONS[type(node)])  # fmt: skip
    if sides is None:
        return None
    low, high = sides
    parts: list[exp.Expr] = [exp.GTE(this=part[1].copy(), expression=low)] if low else []
    parts += [exp.LT(this=part[1].copy(), expression=high)] if high else []
    return exp.Paren(this=exp.and_(*parts)) if len(parts) > 1 else parts[0]


def _day(cast: exp.Cast) -> exp.Expr:
    """A day or time: texts in SQLite, where CAST would make a number of them."""
    if isinstance(cast.this, exp.Literal):
        return cast.this.copy()
    name = "DATE" if cast.to.this == exp.DataType.Type.DATE else "DATETIME"
    return exp.Anonymous(this=name, expressions=[cast.this.copy()])


def _spell_moments(tree: exp.Expr, schema: Schema) -> None:
    """Writes times that columns are compared with as the mirror has them: to the second, in UTC."""
    for literal in list(tree.find_all(exp.Literal)):
        around = literal.parent
        if not literal.is_string or not isinstance(around, exp.Predicate):
            continue
        columns = [one for one in around.iter_expressions() if isinstance(one, exp.Column)]
        found = [resolve(column, schema) for column in columns]
        if any(column is not None and column.type == "TIMESTAMP" for column in found):
            text = re.sub(r"([+-]\d\d)$", r"\1:00", re.sub(r"[zZ]$", "+00:00", literal.name))
            with suppress(ValueError):
                moment = datetime.fromisoformat(text if ":" in text else literal.name)
                if moment.tzinfo is not None:
                    moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
                literal.replace(exp.Literal.string(moment.isoformat(" ")))


def _are_days(first: exp.Expr, second: exp.Expr, schema: Schema) -> bool:
    """Whether both are columns of days, whose difference is a number of days."""
    sides = (first, second)
    found = [resolve(side, schema) if isinstance(side, exp.Column) else None for side in sides]
    return all(column is not None and column.type == "DATE" for column in found)


def from_sqlite(sql: str, engine: EngineName, schema: Schema) -> str:
    """Writes a query of SQLite for an engine, with the names as ``schema`` spells them.

    Raises:
        UnparsedQuery: It is not one query that can be read.
    """
    tree = _query(to_sql(parse(sql, schema)), "sqlite")
    dialect = DIALECTS[engine].sqlglot
    names = _names(schema)

    def spell(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier):
            name = names.get(node.name.casefold(), node.name)
            return exp.Identifier(this=name, quoted=not _is_plain(name, dialect))
        return node

    def step(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Round) and node.args.get("decimals") and engine == "postgresql":
            number = exp.Cast(this=node.this.copy(), to=exp.DataType.build("decimal"))
            return exp.Round(this=number, decimals=node.args["decimals"].copy())
        if isinstance(node, exp.Sub) and (days := _days(node, schema)) is not None:
            return days
        if isinstance(node, exp.Cast) and (part := _extracted(node)) is not None:
            return part
        return node

    try:
        written = tree.transform(step).transform(spell)
        return str(written.sql(dialect=dialect, comments=False))
    except (SqlglotError, RecursionError) as error:
        raise UnparsedQuery(one_line(f"cannot be written: {error}", limit=200)) from None


def _days(node: exp.Sub, schema: Schema) -> exp.Expr | None:
    """The days between two columns, which SQLite computes by JULIANDAY."""
    sides = [_argument(side, "JULIANDAY") for side in (node.this, node.expression)]
    first, second = sides
    if first is None or second is None:
        return None
    if _are_days(first, second, schema):
        return exp.Sub(this=first.copy(), expression=second.copy())
    moments = [
        exp.Cast(this=one.copy(), to=exp.DataType.build("timestamp")) for one in (first, second)
    ]
    between = exp.Sub(this=moments[0], expression=moments[1])
    seconds = exp.Extract(this=exp.var("EPOCH"), expression=exp.Paren(this=between))
    return exp.Div(this=seconds, expression=exp.Literal.number("86400.0"))


def _argument(node: exp.Expr, function: str) -> exp.Expr | None:
    """The only argument of a call; None if the node is another one."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == function:
        return node.expressions[0] if len(node.expressions) == 1 else None
    return None


def _extracted(node: exp.Cast) -> exp.Expr | None:
    """``EXTRACT`` for ``CAST(STRFTIME('%Y', x) AS INTEGER)``."""
    text = node.this
    if not isinstance(text, exp.TimeToStr) or not node.is_type("int", "bigint"):
        return None
    wanted = {"%Y": "YEAR", "%m": "MONTH", "%d": "DAY"}.get(text.args["format"].name)
    value = text.this
    if isinstance(value, exp.Cast | exp.TsOrDsToTimestamp | exp.TsOrDsToDate):
        value = value.this
    return exp.Extract(this=exp.var(wanted), expression=value.copy()) if wanted else None


def _query(sql: str, dialect: str) -> exp.Expr:
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise UnparsedQuery(one_line(f"cannot be read: {error}", limit=200)) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise UnparsedQuery(one_line(f"not one query: {sql}", limit=200))
    return trees[0]


@lru_cache(maxsize=8)
def _names(schema: Schema) -> Mapping[str, str]:
    """The names of tables and columns as declared, by their names in lower case."""
    names = {column.name.casefold(): column.name for table in schema.values()
             for column in table.columns}  # fmt: skip
    return {**names, **{name.casefold(): name for name in schema}}


def _is_plain(name: str, dialect: str) -> bool:
    """Whether a name needs no quotes; PostgreSQL reads plain ones in lower case."""
    if re.fullmatch(r"T\d+", name):  # an alias of ours
        return True
    known = name.lower() if dialect == "postgres" else name
    plain = name == known and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return bool(plain) and name.lower() not in _RESERVED


_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """all analyse analyze and anti any array as asc asof asymmetric at authorization binary
    both by case cast check columns generated glob map pivot_longer pivot_wider positional semi
    struct try_cast tuple unpack collate collation column concurrently constraint create cross
    current_catalog current_date current_role current_schema current_time current_timestamp
    current_user default deferrable desc describe distinct do else end except false fetch for
    foreign freeze from full grant group having ilike in initially inner intersect into is
    isnull join lambda lateral leading left like limit localtime localtimestamp natural not
    notnull null offset on only or order outer overlaps pivot placing primary qualify references
    returning right select session_user show similar some summarize symmetric table tablesample
    then to trailing true union unique unpivot user using variadic verbose when where window
    with""",
    )
)
"""Reserved words of either engine."""
