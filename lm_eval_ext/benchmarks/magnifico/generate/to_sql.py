"""A tree as SQL."""

import re
from dataclasses import replace
from functools import cache

from sqlglot import exp, select

from lm_eval_ext.benchmarks.magnifico.generate.profile import Link
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    Aggregate,
    Average,
    Compare,
    During,
    Exceeds,
    Extreme,
    Filter,
    Linked,
    OneOf,
    Plain,
    Question,
    Shorter,
    Term,
    Top,
)
from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.values import Value

Path = tuple[Link, ...]

_OPERATORS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "<>": exp.NEQ, ">": exp.GT, ">=": exp.GTE, "<": exp.LT, "<=": exp.LTE,
    "LIKE": exp.Like,
}  # fmt: skip
_FUNCTIONS: dict[str, type[exp.AggFunc]] = {
    "MAX": exp.Max, "MIN": exp.Min, "AVG": exp.Avg, "SUM": exp.Sum, "COUNT": exp.Count,
}  # fmt: skip


def query(question: Question) -> str:
    """The gold query, in SQLite's dialect."""
    return to_sql(_tree(question))


def _tree(question: Question) -> exp.Query:
    if question.versus is None:
        return _Select(question).tree()
    both = exp.Intersect if question.versus.also else exp.Except
    first, second = (
        _tree(replace(question, where=where, versus=None))
        for where in (question.where, (question.versus.condition,))
    )
    return both(this=first, expression=second, distinct=True)


@cache
def _name(name: str) -> exp.Identifier:
    """A table or column, quoted where SQLite or sqlglot would not read it as a name."""
    from sqlglot.dialects.sqlite import SQLite

    tokens = SQLite().tokenize(name) if re.fullmatch(r"[A-Za-z_]\w*", name) else []
    plain = len(tokens) == 1 and tokens[0].token_type.name == "VAR" and name.isascii()
    return exp.Identifier(this=name, quoted=not plain or name.upper() in _RESERVED)


_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT
        BEFORE BEGIN
    BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS
    CURRENT DEFAULT DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXISTS
    EXPLAIN FAIL FILTER FOR FOREIGN FROM FULL GLOB GROUP HAVING IF IN INDEX INNER INSERT INTERSECT
    INTO IS ISNULL JOIN KEY LEFT LIKE LIMIT MATCH NATURAL NOT NOTNULL NULL OF OFFSET ON OR ORDER
    OUTER OVER PRAGMA PRIMARY QUERY RANGE REFERENCES REGEXP REINDEX RENAME REPLACE RIGHT ROW ROWS
    SELECT SET TABLE TEMP THEN TO TRANSACTION TRIGGER UNION UNIQUE UPDATE USING VALUES VIEW WHEN
    WHERE WINDOW WITH""",
    )
)


def _literal(value: Value) -> exp.Expr:
    if isinstance(value, int | float):
        return exp.Literal.number(f"{value:.10g}" if isinstance(value, float) else value)
    return exp.Literal.string(str(value))


def _table(name: str) -> exp.Table:
    return exp.Table(this=_name(name).copy())


class _Select:
    """One SELECT; its tables have aliases if it joins some."""

    def __init__(self, question: Question) -> None:
        self._question = question
        paths = [plain.links[:end] for plain in question.plain()
                 for end in range(1, len(plain.links) + 1)]  # fmt: skip
        self._aliases: dict[Path, str] = (
            {path: f"T{n}" for n, path in enumerate(dict.fromkeys([(), *paths]), 1)}
            if paths else {}
        )  # fmt: skip

    def tree(self) -> exp.Select:
        q = self._question
        shown = [self._term(term) for term in ((q.by,) if q.by else ()) + q.show]
        made: exp.Select = select(*shown).from_(self._alias(_table(q.entity.table), ()))
        for path in list(self._aliases)[1:]:
            link = path[-1]
            on = exp.EQ(
                this=self._column(link.column, path[:-1]), expression=self._column(link.key, path)
            )
            made = made.join(self._alias(_table(link.parent), path), on=on)
        for one in q.where:
            made = made.where(self._filter(one))
        if q.distinct:
            made = made.distinct()
        if q.by:
            made = made.group_by(self._term(q.by))
        if q.having:
            limit = exp.Literal.number(q.having.value)
            compared = _OPERATORS[q.having.operator]
            made = made.having(compared(this=self._term(q.having.term), expression=limit))
        if q.top:
            made = self._cut(made, q.top)
        return made

    def _cut(self, made: exp.Select, top: Top) -> exp.Select:
        by = exp.Ordered(
            this=self._term(top.term), desc=top.descending, nulls_first=not top.descending
        )
        made = made.order_by(by).limit(1)
        return made.offset(top.rank - 1) if top.rank > 1 else made

    def _alias(self, table: exp.Table, path: Path) -> exp.Expr:
        if self._aliases:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(self._aliases[path])))
        return table

    def _column(self, name: str, path: Path) -> exp.Column:
        table = exp.to_identifier(self._aliases[path]) if self._aliases else None
        return exp.Column(this=_name(name).copy(), table=table)

    def _term(self, term: Term) -> exp.Expr:
        if isinstance(term, Plain):
            return self._column(term.field.name, term.links)
        if isinstance(term, Aggregate):
            of = exp.Star() if term.of is None else self._term(term.of)
            return _FUNCTIONS[term.function](this=of)
        first, second = self._term(term.first), self._term(term.second)
        if term.way == "joined":
            return exp.DPipe(this=first, expression=second, safe=True)
        if term.way == "product":
            return exp.Mul(this=first, expression=second)
        if term.way == "days":
            first, second = (exp.func("JULIANDAY", one) for one in (first, second))
        return exp.Sub(this=first, expression=second)

    def _filter(self, one: Filter) -> exp.Expr:  # noqa: PLR0911
        if isinstance(one, Linked):
            return self._linked(one)
        term = self._term(one.term)
        if isinstance(one, Compare):
            return _compared(term, one)
        if isinstance(one, OneOf):
            return exp.In(this=term, expressions=[_literal(value) for value in one.values])
        if isinstance(one, Shorter):
            length = exp.Length(this=term)
            return exp.LT(this=length, expression=_literal(one.characters))
        if isinstance(one, During):
            return exp.and_(
                exp.GTE(this=term, expression=_literal(one.first)),
                exp.LT(this=term.copy(), expression=_literal(one.behind)),
            )
        # The others compare with what a subquery says about the whole table.
        column = exp.column(_name(one.term.field.name).copy())
        table = _table(one.term.field.table)
        if isinstance(one, Average):
            mean: exp.Expr = exp.Avg(this=column)
            if one.less_deviation:
                deviation = exp.Anonymous(this="STDEV", expressions=[column.copy()])
                mean = exp.Sub(this=mean, expression=deviation)
            operator: type[exp.Binary] = exp.GT if one.above else exp.LT
            return operator(this=term, expression=select(mean).from_(table).subquery())
        if isinstance(one, Extreme):
            best = (exp.Max if one.highest else exp.Min)(this=column)
            return exp.EQ(this=term, expression=select(best).from_(table).subquery())
        if isinstance(one, Exceeds):
            those = _compared(exp.column(_name(one.those.term_name()).copy()), one.those)
            inner = select(exp.Max(this=column)).from_(table).where(those)
            return exp.GT(this=term, expression=inner.subquery())
        most = exp.Ordered(this=exp.Count(this=exp.Star()), desc=True, nulls_first=False)
        inner = select(column).from_(table).group_by(column.copy()).order_by(most).limit(1)
        return exp.EQ(this=term, expression=inner.subquery())

    def _linked(self, one: Linked) -> exp.Expr:
        inner = select(exp.column(_name(one.link.column).copy())).from_(_table(one.link.child))
        if one.where is not None:
            inner = inner.where(
                _compared(exp.column(_name(one.where.term_name()).copy()), one.where)
            )
        found = exp.In(this=self._column(one.link.key, ()), query=inner.subquery())
        return exp.Not(this=found) if one.negated else found


def _compared(term: exp.Expr, one: Compare) -> exp.Expr:
    return _OPERATORS[one.operator](this=term, expression=_literal(one.value))
