"""Rules that write one condition in another way."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import COMPARISONS, conjuncts
from lm_eval_ext.sql.rewrites.base import (
    Change,
    Facts,
    Needs,
    Rule,
    affinity,
    all_of,
    any_of,
    bracketed_operand,
    call,
    changed,
    collation,
    declared,
    number,
    string,
    together,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "step_of_one": "x >= n + 1 for x > n, x <= n - 1 for x < n, and the other way round",
        "sides_exchanged": "30000 < x for x > 30000",
        "comparison_negated": "NOT x <= n for x > n, likewise for the other comparisons",
        "list_as_or": "x = a OR x = b for x IN (a, b)",
        "list_as_and": "x <> a AND x <> b for x NOT IN (a, b)",
        "or_as_list": "x IN (a, b) for x = a OR x = b",
        "between_as_comparisons": "x >= a AND x <= b for x BETWEEN a AND b",
        "comparisons_as_between": "x BETWEEN a AND b for x >= a AND x <= b",
        "operands_commuted": "b AND a for a AND b, b OR a for a OR b, all of them reversed",
        "arithmetic_commuted": "b * a for a * b, b + a for a + b",
        "not_before": "NOT x LIKE p for x NOT LIKE p",
        "equality_as_like": "x LIKE 'text' for x = 'text'",
        "equality_nocase": "x = 'text' COLLATE NOCASE for x = 'text'",
        "equality_lowered": "LOWER(x) = 'text' for x = 'Text'",
        "equality_trimmed": "TRIM(x) = 'text' for x = 'text'",
        "like_as_instr": "INSTR(LOWER(x), 'text') > 0 for x LIKE '%text%'",
        "like_as_substr": "SUBSTR(LOWER(x), 1, 4) = 'text' for x LIKE 'text%'",
        "concatenation_as_or": "x LIKE '%c%' OR y LIKE '%c%' for x || y LIKE '%c%'",
        "number_quoted": "x = '4' for x = 4",
        "number_unquoted": "x = 4 for x = '4'",
        "cast_to_integer": "CAST(x AS INTEGER) > n for x > n",
    }
)
"""The rules, with a description each."""

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "step_of_one": "x is an integer: a count, a length, or built of columns of integers",
        "sides_exchanged": "both sides compare by the same collation",
        "comparison_negated": "always: both are unknown where a side is NULL",
        "list_as_or": "the list holds literals",
        "list_as_and": "the list holds literals",
        "or_as_list": "the same value is compared with literals each time",
        "between_as_comparisons": "x is no subquery",
        "comparisons_as_between": "x is no subquery",
        "operands_commuted": "always",
        "arithmetic_commuted": "always",
        "not_before": "always",
        "equality_as_like": "the column holds texts, none of which differs from the literal in its "
        "case only; the literal has no wildcard",
        "equality_nocase": "no value of the column differs from the literal in its case only",
        "equality_lowered": "the column holds texts, none of which differs from the literal in its "
        "case only",
        "equality_trimmed": "the column holds texts, none of which has blanks around it",
        "like_as_instr": "the pattern has no other wildcard; the column holds texts",
        "like_as_substr": "the pattern has no other wildcard; the column holds texts",
        "concatenation_as_or": "the pattern asks for one character; neither column holds NULL",
        "number_quoted": "x is a column whose affinity converts the text, and the result is the "
        "same number",
        "number_unquoted": "x is a column whose affinity converts the one to the other",
        "cast_to_integer": "the column is numeric and holds integers",
    }
)
"""When each rule is sound."""

_DIGITS = 15
"""Up to so many digits a float and an integer are the same number."""

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}  # fmt: skip
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.LTE: exp.GT, exp.NEQ: exp.EQ,
}  # fmt: skip


def step_of_one(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The next integer and the other comparison."""
    steps: dict[type[exp.Expr], tuple[type[exp.Expr], int]] = {
        exp.GT: (exp.GTE, 1), exp.LT: (exp.LTE, -1), exp.GTE: (exp.GT, -1), exp.LTE: (exp.LT, 1),
    }  # fmt: skip
    value = integer(node.args.get("expression"))
    if type(node) not in steps or value is None:
        return
    needs = facts.integers(node.this)
    if needs is not None and affinity(node.this, facts.schema) != "TEXT":
        other, step = steps[type(node)]
        new = other(this=node.this.copy(), expression=number(value + step))
        yield changed("step_of_one", node, new, needs)


def integer(node: exp.Expr | None) -> int | None:
    """Returns the value of an integer literal."""
    if isinstance(node, exp.Neg) and (inner := integer(node.this)) is not None:
        return -inner
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        return int(node.this)
    return None


def sides_exchanged(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The comparison read from right to left."""
    if type(node) not in _MIRRORED:
        return
    left, right = node.this, node.expression
    one, two = collation(left, facts.schema), collation(right, facts.schema)
    fits = None in (one, two) or (one == two != "unknown")
    if fits and not isinstance(left, exp.Literal):
        new = _MIRRORED[type(node)](this=right.copy(), expression=left.copy())
        yield changed("sides_exchanged", node, new)


def comparison_negated(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """NOT and the opposite comparison."""
    if type(node) in _NEGATED and not isinstance(node.parent, exp.Not | exp.Join):
        new = exp.Not(this=_NEGATED[type(node)](**node.copy().args))
        yield changed("comparison_negated", node, new)


def list_as_comparisons(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A list taken apart."""
    negated = isinstance(node, exp.Not) and isinstance(node.this, exp.In)
    found = node.this if negated else node
    if not isinstance(found, exp.In) or (not negated and isinstance(node.parent, exp.Not)):
        return
    values = found.expressions
    if not values or not all(_is_literal(value) for value in values):
        return
    kind, operator = ("list_as_and", exp.NEQ) if negated else ("list_as_or", exp.EQ)
    parts = [operator(this=found.this.copy(), expression=value.copy()) for value in values]
    if not negated:
        yield changed(kind, node, any_of(parts))
    elif len(parts) == 1:
        yield changed(kind, node, parts[0])
    else:
        yield changed(kind, node, exp.Paren(this=all_of(parts)))


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) or integer(node) is not None


def or_as_list(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Alternatives of one value gathered in a list."""
    if not isinstance(node, exp.Or) or isinstance(node.parent, exp.Or):
        return
    parts = [part.unnest() for part in node.flatten()]
    if not all(isinstance(part, exp.EQ) and _is_literal(part.expression) for part in parts):
        return
    if len({part.this for part in parts}) == 1 and isinstance(parts[0].this, exp.Column):
        values = [part.expression.copy() for part in parts]
        yield changed("or_as_list", node, exp.In(this=parts[0].this.copy(), expressions=values))


def between_as_comparisons(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Both bounds written out."""
    if isinstance(node, exp.Between) and node.find(exp.Query) is None:
        parts = (
            exp.GTE(this=node.this.copy(), expression=node.args["low"].copy()),
            exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
        )
        yield changed("between_as_comparisons", node, exp.Paren(this=all_of(parts)))


def comparisons_as_between(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """Two bounds next to each other read as one range."""
    if not isinstance(node, exp.Where | exp.Having):
        return
    parts = conjuncts(node.this)
    for place, (low, high) in enumerate(pairwise(parts)):
        if not (isinstance(low, exp.GTE) and isinstance(high, exp.LTE)):
            continue
        if low.this == high.this and low.find(exp.Query) is None and high.find(exp.Query) is None:
            between = exp.Between(
                this=low.this.copy(), low=low.expression.copy(), high=high.expression.copy()
            )
            rest = [*parts[:place], between, *parts[place + 2 :]]
            yield changed("comparisons_as_between", node, type(node)(this=all_of(rest)))


def operands_commuted(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The conditions in the opposite order."""
    if isinstance(node, exp.Connector) and not isinstance(node.parent, type(node)):
        parts = [bracketed_operand(part) for part in node.flatten(unnest=False)][::-1]
        new = parts[0]
        for part in parts[1:]:
            new = type(node)(this=new, expression=part)
        yield changed("operands_commuted", node, new)


def arithmetic_commuted(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The factors or summands exchanged."""
    # Below another operator brackets might be missing; comparisons take any operand.
    free = not isinstance(node.parent, exp.Binary) or type(node.parent) in COMPARISONS
    if not isinstance(node, exp.Mul | exp.Add) or not free:
        return
    sides = (node.this, node.expression)
    if not any(isinstance(side, exp.Binary) for side in sides) and sides[0] != sides[1]:
        new = type(node)(this=sides[1].copy(), expression=sides[0].copy())
        yield changed("arithmetic_commuted", node, new)


def not_before(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """NOT before the whole condition."""
    if isinstance(node, exp.Like) and node.args.get("negate"):
        new = node.copy()
        new.set("negate", None)
        yield changed("not_before", node, exp.Not(this=new))


def equality_loosened(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A text compared in a way that takes more texts, none of which is there."""
    if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
        return
    value, column = node.expression, node.this
    place = declared(column, facts.schema)
    if place is None or not value.is_string or place[1].collation != "BINARY":
        return
    text = str(value.this)
    spelled = facts.promised("spelled", column, text)
    texts = facts.promised("texts", column)
    both = together(spelled, texts)
    if both is not None and text and not set("%_") & set(text):
        new: exp.Expr = exp.Like(this=column.copy(), expression=value.copy())
        yield changed("equality_as_like", node, new, both)
    if spelled is not None and text.lower() != text.upper():
        folded = exp.Collate(this=value.copy(), expression=exp.Var(this="NOCASE"))
        yield changed(
            "equality_nocase", node, exp.EQ(this=column.copy(), expression=folded), spelled
        )
    if both is not None and text.isascii() and text.lower() != text.upper():
        new = exp.EQ(this=call("LOWER", column), expression=string(text.lower()))
        yield changed("equality_lowered", node, new, both)
    trimmed = together(texts, facts.promised("trimmed", column))
    if trimmed is not None:
        new = exp.EQ(this=call("TRIM", column), expression=value.copy())
        yield changed("equality_trimmed", node, new, trimmed)


def like_as_function(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A pattern without inner wildcards as a search for its text."""
    if not isinstance(node, exp.Like) or node.args.get("negate") or not _plain_pattern(node):
        return
    pattern = str(node.expression.this)
    text, needs = pattern.strip("%"), _texts(node.this, facts)
    if not text or needs is None or set("%_") & set(text) or not text.isascii():
        return
    if pattern == f"%{text}%":
        found = call("INSTR", call("LOWER", node.this), string(text.lower()))
        yield changed("like_as_instr", node, exp.GT(this=found, expression=number(0)), needs)
    elif pattern == f"{text}%":
        start = call("SUBSTR", call("LOWER", node.this), number(1), number(len(text)))
        new = exp.EQ(this=start, expression=string(text.lower()))
        yield changed("like_as_substr", node, new, needs)


def _plain_pattern(node: exp.Like) -> bool:
    return isinstance(node.expression, exp.Literal) and node.expression.is_string


def _texts(node: exp.Expr, facts: Facts) -> Needs | None:
    if isinstance(node, exp.DPipe):
        return together(_texts(node.this, facts), _texts(node.expression, facts))
    return facts.promised("texts", node)


def concatenation_as_or(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A character sought in both parts instead of in the whole."""
    if not isinstance(node, exp.Like) or not _plain_pattern(node) or node.args.get("negate"):
        return
    pattern = str(node.expression.this)
    if not isinstance(node.this, exp.DPipe) or len(pattern.strip("%_")) != 1:
        return
    sides = (node.this.this, node.this.expression)
    needs = together(*map(facts.no_null, sides), *(_texts(side, facts) for side in sides))
    if pattern == f"%{pattern.strip('%')}%" and "_" not in pattern and needs is not None:
        parts = [exp.Like(this=s.copy(), expression=node.expression.copy()) for s in sides]
        yield changed("concatenation_as_or", node, any_of(parts), needs)


def number_quoted(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A number with or without quotes, where the column's affinity makes them the same."""
    if type(node) not in COMPARISONS or not isinstance(node.expression, exp.Literal):
        return
    place = declared(node.this, facts.schema)
    value = str(node.expression.this)
    if place is None or not value.isdigit() or str(int(value)) != value or len(value) > _DIGITS:
        return
    if not (place[1].numeric or place[1].affinity == "TEXT"):
        return
    quoted = node.expression.is_string
    new = type(node)(
        this=node.this.copy(), expression=exp.Literal(this=value, is_string=not quoted)
    )
    yield changed("number_unquoted" if quoted else "number_quoted", node, new)


def cast_to_integer(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A cast that changes nothing."""
    if type(node) not in COMPARISONS or integer(node.expression) is None:
        return
    place = declared(node.this, facts.schema)
    needs = facts.promised("integers", node.this) if place and place[1].numeric else None
    if needs is not None:
        cast = exp.Cast(this=node.this.copy(), to=exp.DataType.build("INT"))
        yield changed(
            "cast_to_integer", node, type(node)(this=cast, expression=node.expression.copy()), needs
        )


RULES: tuple[Rule, ...] = (
    step_of_one,
    sides_exchanged,
    comparison_negated,
    list_as_comparisons,
    or_as_list,
    between_as_comparisons,
    comparisons_as_between,
    operands_commuted,
    arithmetic_commuted,
    not_before,
    equality_loosened,
    like_as_function,
    concatenation_as_or,
    number_quoted,
    cast_to_integer,
)
