"""Proofs of what holds on every populated copy of one original.

A copy has all of the original's rows, unchanged, and valid keys: what is looked up by a key stays.
Its columns hold what the original's columns hold (:mod:`.shapes`): numbers stay numbers.
"""

import re

from sqlglot import exp

from lm_eval_ext.sql.distill.hints import literal, operator_of
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.distill.shape import Shape
from lm_eval_ext.sql.distill.shapes import Shapes
from lm_eval_ext.sql.parsing import (
    UnparsedQuery,
    find_source,
    parse,
    parts_of,
    resolve,
    select_of,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.schema import Schema

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
"""Texts that SQLite compares with numbers as a number."""


class OriginalRows:
    """Proofs that rely on the original's rows, which ``runner`` reads, and on its columns."""

    def __init__(self, runner: Runner, schema: Schema, shapes: Shapes) -> None:
        self._runner = runner
        self._schema = schema
        self._shapes = shapes
        self._known: dict[str, tuple[str, bool] | None] = {}

    def equivalent(self, gold: str, other: str) -> str | None:
        """Returns why no populated copy distinguishes two queries; None if that is not proven."""
        one, two = self._fixed(gold), self._fixed(other)
        if one is None or two is None:
            return None
        if one[0] == two[0]:
            return (
                "they differ in a row that a key finds, or in a text that numbers are compared with"
            )
        if one[1] and two[1]:
            return "both ask what no row has, or what the row of a key does not fulfil"
        return None

    def always_empty(self, gold: str) -> str | None:
        """Returns why a query is empty on every populated copy; None if that is not proven."""
        found = self._fixed(gold)
        if found is None or not found[1]:
            return None
        return "it asks what no row has, or what the row of a key does not fulfil"

    def _fixed(self, sql: str) -> tuple[str, bool] | None:
        """Returns a query with its lookups replaced by what they find, and whether it is empty."""
        if sql not in self._known:
            try:
                self._known[sql] = self._replaced(parse(sql, self._schema))
            except (UnparsedQuery, NoResultError, RecursionError):
                self._known[sql] = None
        return self._known[sql]

    def _replaced(self, tree: exp.Expr) -> tuple[str, bool] | None:
        empty = self._without_texts(tree)
        self._drop_true(tree)
        lookups = [
            select
            for select in tree.find_all(exp.Select)
            if isinstance(select.parent, exp.Subquery) and self._is_lookup(select)
        ]
        for select in lookups:
            rows = self._runner.rows(to_sql(select))
            nothing = not rows or rows[0][0] is None
            place = select.parent
            assert place is not None
            empty = empty or (nothing and self._decides(place, tree))
            place.replace(exp.Literal.string(f"found by key: {rows!r}"))
        return to_sql(tree), empty

    def _without_texts(self, tree: exp.Expr) -> bool:
        """Replaces comparisons of numbers with texts: a number equals none of them.

        Returns whether the whole query is empty by one of them.
        """
        empty = False
        for node in list(tree.find_all(exp.EQ, exp.NEQ)):
            column, text = node.this.unnest(), literal(node.expression)
            if text is None or not isinstance(text[0], str) or _NUMBER.fullmatch(text[0]):
                continue
            shape = self._of_numbers(column)
            if shape is None:
                continue
            null = exp.Is(this=column.copy(), expression=exp.Null())
            if isinstance(node, exp.EQ):  # NULL for NULL, else false
                empty = empty or self._decides(node, tree)
                node.replace(exp.paren(exp.And(this=null, expression=exp.Null()), copy=False))
            elif not (shape.never_null and _dropped(node)):  # NULL for NULL, else true
                either = exp.Or(this=exp.Not(this=null), expression=exp.Null())
                node.replace(exp.paren(either, copy=False))
        return empty

    def _drop_true(self, tree: exp.Expr) -> None:
        """Drops conditions on groups that hold for every group: keys are numbers above 0."""
        for select in list(tree.find_all(exp.Select)):
            parts = parts_of(select, "having")
            kept = [part for part in parts if not self._always_holds(part.unnest())]
            if select.args.get("group") is not None and len(kept) < len(parts):
                select.set("having", exp.Having(this=exp.and_(*kept)) if kept else None)

    def _always_holds(self, part: exp.Expr) -> bool:
        bound = literal(part.expression) if isinstance(part, exp.GT | exp.GTE) else None
        if bound is None or not isinstance(bound[0], int) or not isinstance(part.this, exp.AggFunc):
            return False
        least = 1 if isinstance(part, exp.GTE) else 0
        shape = self._of_numbers(part.this.this)
        known = shape is not None and shape.never_null
        if isinstance(part.this, exp.Count):
            known = known or isinstance(part.this.this, exp.Star)
        elif isinstance(part.this, exp.Sum | exp.Avg | exp.Min | exp.Max):
            known = known and shape is not None and shape.kind == "integer" and shape.positive
        else:
            return False
        return known and bound[0] <= least

    def _of_numbers(self, column: exp.Expr) -> Shape | None:
        """Returns the shape of a column that holds only numbers in every populated copy."""
        if not isinstance(column, exp.Column):
            return None
        source = find_source(
            column.table.casefold(), column.name.casefold(), select_of(column), self._schema
        )
        table = None if source is None else table_of(source[1], self._schema)
        if table is None or table.column(column.name) is None:
            return None
        shape = self._shapes.get((table.name.lower(), column.name.lower()))
        if shape is None or not table[column.name].numeric:
            return None
        return shape if shape.kind in ("integer", "number") else None

    def _is_lookup(self, select: exp.Select) -> bool:
        """Whether it reads one table, and a condition on a key selects an existing row."""
        source = select.args["from_"].this if select.args.get("from_") else None
        if (
            not isinstance(source, exp.Table)
            or source.name not in self._schema
            or select.args.get("joins")
            or any(node is not select for node in select.find_all(exp.Query))
        ):
            return False
        table = self._schema[source.name]
        names = (source.alias_or_name.lower(), "")
        for column in select.find_all(exp.Column):
            if column.table.lower() not in names or table.column(column.name) is None:
                return False
        keys = {key[0].lower() for key in table.unique_keys if len(key) == 1}
        for part in (part.unnest() for part in parts_of(select, "where")):
            if (
                isinstance(part, exp.EQ)
                and isinstance(part.this, exp.Column)
                and part.this.name.lower() in keys
                and literal(part.expression) not in (None, (None,))
                and resolve(part.this, self._schema) is not None
            ):
                count = exp.select("count(*)").from_(source.copy()).where(part.copy())
                return self._runner.rows(to_sql(count)) == [(1,)]
        return False

    def _decides(self, node: exp.Expr, tree: exp.Expr) -> bool:
        """Whether the query has no rows if a subquery finds nothing, or a condition is false."""
        if not isinstance(tree, exp.Select):
            return False
        if tree.args.get("group") is None and any(
            output.find(exp.AggFunc, exp.Anonymous) for output in tree.selects
        ):
            return False
        having = tree.args.get("having")
        if having is not None and tree.args.get("group") is None:
            return False
        return any(
            part is node
            or (
                operator_of(part) is not None
                and any(side is node for side in (part.this, part.expression))
            )
            for part in (part.unnest() for part in parts_of(tree, "where"))
        )


def _dropped(condition: exp.Expr) -> bool:
    """Drops a condition that always holds, if it is one of WHERE's that AND connects."""
    child, parent = condition, condition.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    if isinstance(parent, exp.Where):
        parent.pop()
        return True
    above: exp.Expr | None = parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    if not isinstance(parent, exp.And) or not isinstance(above, exp.Where):
        return False
    parent.replace(parent.right if child is parent.left else parent.left)
    return True
