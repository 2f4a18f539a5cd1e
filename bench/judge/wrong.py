"""Neighbours of a gold: queries like it that a model could write and that nobody listed.

Kinds as Zhong et al. (2020, section 4) modify golds: another column, a span dropped or taken from
another query, another join, another piece of a text, another number, operator or aggregate. Each
gold gets at most :data:`QUOTAS`, chosen by a hash, that run on the original.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sqlglot import exp

from bench.judge.query import Edit, Facts, Of, Query, at, clause, is_day, joined, normal, parts
from bench.judge.query import replace as put
from lm_eval_ext.sql.parsing import sources

QUOTAS = {"column": 6, "span": 5, "join": 3, "string": 3, "number": 4}
"""Most neighbours of a kind."""

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)

Span = tuple[exp.Expr, dict[int, Of]]
"""A condition, and what its columns mean, by their place in its walk."""


class Neighbour(NamedTuple):
    """A query like a gold."""

    kind: str
    sql: str


def neighbours(query: Query, pool: Sequence[Span]) -> list[Neighbour]:
    """Returns a gold's neighbours, the same ones each time; ``pool``: of :func:`borrowed`."""
    chance = random.Random(query.gold)
    seen = {normal(query.gold), normal(query.edited(lambda nodes: None))}
    found: list[Neighbour] = []
    for kind, quota in QUOTAS.items():
        edits = list(EDITS[kind](query, pool, chance))
        chance.shuffle(edits)
        left = quota
        for edit in edits:
            sql = query.edited(edit) if left else query.gold
            if normal(sql) not in seen:
                seen.add(normal(sql))
                if query.facts.answer(sql) is not None:
                    found.append(Neighbour(kind, sql))
                    left -= 1
    return found


def columns(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """Another column of the same or a joined table, in one place or wherever the column stands."""
    for place, node, of, select in query.columns:
        same = [p for p, _, o, s in query.columns if o == of and s is select]
        for alias, table in query.tables(select):
            for other in query.facts.columns(table):
                if other == of or not compatible(query.facts, of, other):
                    continue
                if frozenset((of, other)) in equated(query):
                    continue
                elsewhere = table != of.table and len(list(sources(select))) > 1
                new = exp.column(other.column, alias if node.table or elsewhere else None)
                yield at(place, put, new)
                yield partial(_put_all, same, new)


def _put_all(places: Sequence[int], new: exp.Expr, nodes: list[exp.Expr]) -> None:
    for place in places:
        put(nodes[place], new)


def compatible(facts: Facts, one: Of, other: Of) -> bool:
    """Whether a reader could take one column for the other."""
    kinds = {facts.kind(one), facts.kind(other)}
    return "none" not in kinds and (len(kinds) == 1 or kinds == {"integer", "number"})


def equated(query: Query) -> set[frozenset[Of]]:
    """Pairs of columns that conditions make equal."""
    pairs = ((query.of(n.this), query.of(n.expression)) for n in query.tree.find_all(exp.EQ))
    return {frozenset((one, two)) for one, two in pairs if one and two}


def spans(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """A clause, condition, select item or operand dropped, doubled or taken from elsewhere."""
    for place, node in enumerate(query.nodes):
        if isinstance(node, exp.Select):
            yield from _clauses_lost(query, place, node)
            yield from _conditions_borrowed(query, place, node, pool)
        elif isinstance(node, exp.SetOperation | exp.Or | exp.Sub | exp.Mul | exp.Add | exp.DPipe):
            for side in ("this", "expression"):
                yield at(place, put, node.args[side])
        elif isinstance(node, AGGREGATES) and isinstance(node.this, exp.Column):
            yield at(place, put, node.this)


def _clauses_lost(query: Query, place: int, select: exp.Select) -> Iterator[Edit]:
    for name in ("where", "having", "order", "limit", "group", "distinct"):
        inner_order = name == "order" and select.parent and not select.args.get("limit")
        if select.args.get(name) is not None and not inner_order:
            yield at(place, exp.Select.set, name, None)
    for name in ("where", "having"):
        own = parts(clause(select, name))
        for i in range(len(own) if len(own) > 1 else 0):
            yield at(place, _set, name, own[:i] + own[i + 1 :])
    for holder in (select, select.args.get("group"), select.args.get("order")):
        for i in range(len(holder.expressions) if holder and len(holder.expressions) > 1 else 0):
            yield at(query.at[id(holder)], _drop, "expressions", i)


def _conditions_borrowed(
    query: Query, place: int, select: exp.Select, pool: Sequence[Span]
) -> Iterator[Edit]:
    tables = {table: alias for alias, table in query.tables(select)}
    own = parts(clause(select, "where"))
    known = {normal(condition.sql()) for condition in own}
    for condition in pool:
        new = _moved(condition, tables, qualify=len(list(sources(select))) > 1)
        if new is not None and normal(new.sql()) not in known:
            yield at(place, _set, "where", [*own, new])
            for i in range(len(own)):
                yield at(place, _set, "where", [*own[:i], new, *own[i + 1 :]])


def borrowed(queries: Sequence[Query]) -> list[Span]:
    """Conditions of golds of one database on one table each, without subqueries."""
    found: dict[str, Span] = {}
    for query in queries:
        for select in query.tree.find_all(exp.Select):
            for condition in parts(clause(select, "where")):
                nodes = [n for n in enumerate(condition.walk()) if isinstance(n[1], exp.Column)]
                of = {i: one for i, node in nodes if (one := query.of(node)) is not None}
                one_table = len({one.table for one in of.values()}) == 1 and len(of) == len(nodes)
                if condition.find(exp.Select) is None and one_table:
                    found.setdefault(f"{normal(condition.sql())} {of}", (condition, of))
    return [found[key] for key in sorted(found)]


def _moved(given: Span, tables: dict[str, str], *, qualify: bool) -> exp.Expr | None:
    """A condition of another gold, with this SELECT's names for its table."""
    condition, of = given
    if any(one.table not in tables for one in of.values()):
        return None
    new = condition.copy()
    for i, node in enumerate(list(new.walk())):
        if i in of and node is not new:
            node.replace(exp.column(of[i].column, tables[of[i].table] if qualify else None))
    return new


def join_edits(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """INNER or LEFT, ON lost, another pair of key columns, a joined table lost."""
    for place, node in enumerate(query.nodes):
        tables = query.tables(node) if isinstance(node, exp.Select) else []
        for i, join in enumerate(node.args.get("joins") or () if tables else ()):
            alias = join.this.alias_or_name
            own = dict(tables).get(alias)
            if own is None:
                continue
            if not join.side:
                yield at(place, _side, i, "LEFT")
            if join.args.get("on") is not None:
                yield at(place, _other_on, i, None)
            for other_alias, other in tables:
                if other_alias != alias:
                    yield at(place, _lost, i, alias, other_alias)
                    for one, two in _keys(query, own, other):
                        left = exp.column(one.column, alias)
                        right = exp.column(two.column, other_alias)
                        yield at(place, _other_on, i, exp.EQ(this=left, expression=right))


def _keys(query: Query, table: str, other: str) -> Iterator[tuple[Of, Of]]:
    """Pairs of columns that could be taken for the keys of a join, and are not."""
    facts = query.facts
    for one in facts.columns(table):
        for two in facts.columns(other):
            alike = facts.kind(one) == facts.kind(two) in ("integer", "text")
            if alike and frozenset((one, two)) not in equated(query):
                yield one, two


def strings(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """A shorter text, another value of the column, another case, other wildcards."""
    for place, node in enumerate(query.nodes):
        if not isinstance(node, exp.Literal) or not node.is_string:
            continue
        text, like = str(node.this), isinstance(node.parent, exp.Like)
        bare, of = text.strip("%"), query.compared_with(node)
        texts = [v for v in query.facts.values(of) if isinstance(v, str)] if of else []
        changed = chance.sample(texts, min(3, len(texts)))
        if not is_day(text):  # a piece of a day orders days as the day does
            words = text.split(" ")
            changed += [text[:-1], text[1:], words[0], words[-1], text + " "]
        if like:
            changed += [bare, f"%{bare}", f"{bare}%", f"%{bare}%", f"{bare[:-1]}%", f"%{bare[1:]}"]
        elif not is_day(text):
            changed += [text.upper(), text.lower(), text.title(), text.swapcase()]
        for new in dict.fromkeys(changed):
            if new != text and not (like and new.lower() == text.lower()):
                yield at(place, put, exp.Literal.string(new))
        if isinstance(node.parent, exp.EQ) and bare and not is_day(text):
            for pattern in (f"%{text}%", f"{text}%"):
                value = exp.Literal.string(pattern)
                other = exp.Like(this=node.parent.this.copy(), expression=value)
                yield at(query.at[id(node.parent)], put, other)


def numbers(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """Another number, operator of comparison, direction, or aggregate."""
    for place, node in enumerate(query.nodes):
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            for number in _numbers(query, node, chance):
                yield at(place, put, exp.Literal.number(number))
        elif isinstance(node, COMPARISONS) and node.find_ancestor(exp.Join) is None:
            for kind in COMPARISONS:
                if kind is not type(node):
                    yield at(place, put, kind(**node.copy().args))
        elif isinstance(node, AGGREGATES) and isinstance(node.this, exp.Column):
            for aggregate in AGGREGATES:
                if aggregate is not type(node):
                    yield at(place, put, aggregate(this=node.this.copy()))
        elif isinstance(node, exp.Ordered):
            yield at(place, _reverse)


def _numbers(query: Query, node: exp.Literal, chance: random.Random) -> list[int]:
    """Other numbers: near, of another size, of the column."""
    value, cut = int(node.this), isinstance(node.parent, exp.Limit | exp.Offset)
    new = [value + 1, value - 1]
    if not cut:
        of = query.compared_with(node)
        whole = [v for v in (query.facts.values(of) if of else []) if isinstance(v, int)]
        new += [value * 10, value // 2, 0, *chance.sample(whole, min(2, len(whole)))]
    return [n for n in dict.fromkeys(new) if n != value and n >= cut]


EDITS: dict[str, Callable[[Query, Sequence[Span], random.Random], Iterator[Edit]]] = {
    "column": columns, "span": spans, "join": join_edits, "string": strings, "number": numbers,
}  # fmt: skip


def _reverse(ordered: exp.Expr) -> None:
    """ASC for DESC and the other way round."""
    down = not ordered.args.get("desc")
    ordered.set("desc", down)
    ordered.set("nulls_first", not down)  # SQLite's own place for them


def _set(select: exp.Expr, name: str, conditions: list[exp.Expr]) -> None:
    kind = exp.Where if name == "where" else exp.Having
    select.set(name, kind(this=joined(conditions)))


def _drop(node: exp.Expr, name: str, i: int) -> None:
    own = node.args[name]
    node.set(name, own[:i] + own[i + 1 :])


def _side(select: exp.Expr, i: int, side: str) -> None:
    select.args["joins"][i].set("side", side)
    select.args["joins"][i].set("kind", None)


def _other_on(select: exp.Expr, i: int, on: exp.Expr | None) -> None:
    select.args["joins"][i].set("on", None if on is None else on.copy())


def _lost(select: exp.Expr, i: int, alias: str, kept: str) -> None:
    """A join left out; columns of its table are sought in another one."""
    _drop(select, "joins", i)
    for column in select.find_all(exp.Column):
        if column.table.casefold() == alias.casefold():
            column.set("table", exp.to_identifier(kept))
