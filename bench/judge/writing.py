"""What rules of rewriting ask of a node, and how they write it."""

from sqlglot import exp

from bench.judge.query import (
    Edit,
    Of,
    Query,
    is_day,
)
from lm_eval_ext.sql.parsing import to_sql

COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
NEGATED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}  # fmt: skip
TURNED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}  # fmt: skip


def put(place: int, text: str) -> Edit:
    """Returns the edit that puts a text in a node's place."""

    def edit(nodes: list[exp.Expr]) -> None:
        nodes[place].replace(exp.Var(this=text))

    return edit


def sql(node: exp.Expr) -> str:
    """A node's text, in brackets where it is not simple."""
    text = to_sql(node)
    simple = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Subquery)
    return text if simple else f"({text})"


def condition(node: exp.Expr) -> bool:
    """Whether a node is a condition of WHERE or HAVING, or a part that AND or OR connects."""
    holders = exp.Where | exp.Having | exp.Connector
    if isinstance(node, exp.Select | exp.Table | exp.Subquery) or node.find_ancestor(exp.Join):
        return False
    return isinstance(node.parent, holders) or (
        isinstance(node.parent, exp.Paren) and isinstance(node.parent.parent, holders)
    )


def of(query: Query, node: exp.Expr | None) -> Of | None:
    """What a plain column means."""
    owner = query.owner(node) if isinstance(node, exp.Column) else None
    return owner[0] if owner else None


def held(query: Query, node: exp.Expr | None, *kinds: str) -> bool:
    """Whether a node is a column without NULL that holds values of these kinds."""
    found = of(query, node)
    if found is None or not query.facts.never_null(found):
        return False
    return query.facts.kind(found) in kinds


def days(query: Query, node: exp.Expr | None) -> bool:
    """Whether a node is a column of ISO days without a time, for most of its rows."""
    found = of(query, node)
    if found is None or query.facts.kind(found) != "date" or query.facts.has_null(found):
        return False
    return all(len(str(value)) == 10 for value in query.facts.values(found))  # noqa: PLR2004


def day(node: exp.Expr | None) -> bool:
    """Whether a node is a literal day."""
    return isinstance(node, exp.Literal) and bool(node.is_string) and is_day(str(node.this))


def whole(node: exp.Expr) -> bool:
    """Whether a node is a whole number."""
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def counts_rows(node: exp.Expr) -> bool:
    """Whether a node is COUNT(*)."""
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
