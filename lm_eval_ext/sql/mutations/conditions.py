"""Mistakes in conditions: comparisons, NOT, AND for OR, the ends of ranges."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lm_eval_ext.sql.mutations.base import Change, Rule, changed, joins_tables, wrapped
from lm_eval_ext.sql.schema import Schema

if TYPE_CHECKING:
    from sqlglot import exp

KINDS = {
    "comparison_loosened": ">= for >, <= for <",
    "comparison_tightened": "> for >=, < for <=",
    "comparison_reversed": "< for >, > for <, <= for >=, >= for <=",
    "equality_negated": "= for <> and <> for =, but in conditions that join two tables",
    "not_toggled": "NOT left out of, or put before, IN, LIKE, EXISTS, BETWEEN or IS NULL",
    "connector_swapped": "AND for OR and OR for AND",
    "bound_excluded": "BETWEEN without one of its two bounds' own values",
}


def comparison_changed(node: "exp.Expr", schema: Schema) -> Iterator[Change]:
    """The wrong comparison."""
    from sqlglot import exp

    del schema
    table: dict[type[exp.Expr], tuple[tuple[str, type[exp.Expr]], ...]] = {
        exp.GT: (("comparison_loosened", exp.GTE), ("comparison_reversed", exp.LT)),
        exp.LT: (("comparison_loosened", exp.LTE), ("comparison_reversed", exp.GT)),
        exp.GTE: (("comparison_tightened", exp.GT), ("comparison_reversed", exp.LTE)),
        exp.LTE: (("comparison_tightened", exp.LT), ("comparison_reversed", exp.GTE)),
        exp.EQ: (("equality_negated", exp.NEQ),),
        exp.NEQ: (("equality_negated", exp.EQ),),
    }
    if type(node) not in table or joins_tables(node) or _in_join(node):
        return
    for kind, other in table[type(node)]:
        yield changed(kind, node, other(**node.copy().args))


def not_toggled(node: "exp.Expr", schema: Schema) -> Iterator[Change]:
    """A NOT forgotten or made up."""
    from sqlglot import exp

    del schema
    if isinstance(node, exp.Not):
        inner = node.this
        if isinstance(inner, exp.In | exp.Exists | exp.Between | exp.Is | exp.Paren):
            yield changed("not_toggled", node, inner.copy())
    elif isinstance(node, exp.Like | exp.Glob):
        new = node.copy()
        new.set("negate", not node.args.get("negate"))
        yield changed("not_toggled", node, new)
    elif isinstance(node, exp.In | exp.Exists | exp.Between | exp.Is) and not isinstance(
        node.parent, exp.Not
    ):
        yield changed("not_toggled", node, exp.Not(this=node.copy()))


def connector_swapped(node: "exp.Expr", schema: Schema) -> Iterator[Change]:
    """AND for OR, OR for AND; what stood together stays together."""
    from sqlglot import exp

    del schema
    if not isinstance(node, exp.And | exp.Or) or _in_join(node):
        return
    other = exp.Or if isinstance(node, exp.And) else exp.And
    new: exp.Expr = other(this=wrapped(node.this), expression=wrapped(node.expression))
    if isinstance(node.parent, exp.Connector | exp.Not):
        new = exp.Paren(this=new)
    yield changed("connector_swapped", node, new)


def bound_excluded(node: "exp.Expr", schema: Schema) -> Iterator[Change]:
    """BETWEEN with a bound that does not count."""
    from sqlglot import exp

    del schema
    if not isinstance(node, exp.Between):
        return
    low, high = node.args["low"], node.args["high"]
    for lower, upper in ((exp.GT, exp.LTE), (exp.GTE, exp.LT)):
        new = exp.And(
            this=lower(this=node.this.copy(), expression=low.copy()),
            expression=upper(this=node.this.copy(), expression=high.copy()),
        )
        yield changed("bound_excluded", node, exp.Paren(this=new))


def _in_join(node: "exp.Expr") -> bool:
    """Whether a node is of an ON clause: near misses there are another table's, not our kind."""
    from sqlglot import exp

    found = node.parent
    while found is not None and not isinstance(found, exp.Query | exp.Join):
        found = found.parent
    return isinstance(found, exp.Join)


RULES: tuple[Rule, ...] = (comparison_changed, not_toggled, connector_swapped, bound_excluded)
