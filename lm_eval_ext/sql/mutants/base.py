"""What a rule is: from a node of the gold's tree to what a mistaken query has in its place."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.schema import Schema


@dataclass(frozen=True)
class Change:
    """One small change: ``new`` takes the place of the node that the rule was asked about."""

    kind: str
    new: exp.Expr
    text: str


Rule = Callable[[exp.Expr, Schema], Iterator[Change]]
"""Yields the changes of its kinds at one node; it must not change the node, but copies of it."""

Node = TypeVar("Node", bound=exp.Expr)


def changed(kind: str, old: exp.Expr, new: exp.Expr) -> Change:
    """Returns a change described by the text before and after."""
    return Change(kind, new, f"{to_sql(old)} -> {to_sql(new)}")


def wrapped(node: exp.Expr) -> exp.Expr:
    """Returns a copy that keeps its meaning wherever it is put."""
    copy = node.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Connector | exp.Not) else copy


def joins_tables(node: exp.Expr) -> bool:
    """Whether a condition only says which rows of two tables belong together."""
    if not isinstance(node, exp.EQ):
        return False
    sides = (node.this, node.expression)
    return all(isinstance(side, exp.Column) for side in sides) and (
        sides[0].args.get("table") != sides[1].args.get("table")
    )
