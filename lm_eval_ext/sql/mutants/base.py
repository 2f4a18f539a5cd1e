"""The interface of rules: functions from a node of the gold's tree to its replacements."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.schema import Schema


@dataclass(frozen=True)
class Change:
    """One small change: ``new`` replaces the node that the rule was applied to."""

    kind: str
    new: exp.Expr
    text: str


Rule = Callable[[exp.Expr, Schema], Iterator[Change]]
"""Yields the changes at one node, which must not itself be changed."""


def changed(kind: str, old: exp.Expr, new: exp.Expr) -> Change:
    """Returns a change described by the text before and after."""
    return Change(kind, new, f"{to_sql(old)} -> {to_sql(new)}")


def wrapped(node: exp.Expr) -> exp.Expr:
    """Returns a copy with the brackets that it needs as an operand."""
    copy = node.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Connector | exp.Not) else copy


def joins_tables(node: exp.Expr) -> bool:
    """Whether a condition is an equality of columns of two tables."""
    if not isinstance(node, exp.EQ):
        return False
    sides = (node.this, node.expression)
    return all(isinstance(side, exp.Column) for side in sides) and (
        sides[0].args.get("table") != sides[1].args.get("table")
    )
