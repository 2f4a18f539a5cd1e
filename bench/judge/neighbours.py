"""Neighbours of a gold: queries like it that a model could write and that nobody listed.

Kinds as Zhong et al. (2020, section 4) modify golds: another column, a span dropped or taken from
another query, another join, another piece of a text, another number, operator or aggregate. Each
gold gets at most :data:`MOST`, chosen by a hash, that run on the original.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sqlglot import exp

from bench.judge.query import (
    Edit,
    Facts,
    Of,
    Query,
    answer,
    at,
    clause,
    is_day,
    joined,
    joins,
    normal,
    parts,
    replace,
    sources,
)

QUOTAS = {"column": 6, "span": 5, "join": 3, "string": 3, "number": 4}
"""Most neighbours of a kind."""

MOST = sum(QUOTAS.values())

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
            if not left:
                break
            sql = query.edited(edit)
            if normal(sql) in seen:
                continue
            seen.add(normal(sql))
            if answer(query.facts.connection, sql) is not None:
                found.append(Neighbour(kind, sql))
                left -= 1
    return found


def columns(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """Another column of the same or a joined table, in one place or wherever the column stands."""
    facts = query.facts
    for place, node, of, select in query.columns:
        same = [p for p, _, o, s in query.columns if o == of and s is select]
        for alias, table in query.tables(select):
            for other in facts.columns(table):
                if other == of or not compatible(facts, of, other):
                    continue
                if meets(query, select, of, other) or counts_rows(query, node, of, other):
                    continue
                elsewhere = table != of.table and len(sources(select)) > 1
                new = exp.column(other.column, alias if node.table or elsewhere else None)
                yield at(place, replace, new)
                if len(same) > 1:
                    yield _everywhere(same, new)


def _everywhere(places: Sequence[int], new: exp.Expr) -> Edit:
    def edit(nodes: list[exp.Expr]) -> None:
        for place in places:
            replace(nodes[place], new)

    return edit


def compatible(facts: Facts, one: Of, other: Of) -> bool:
    """Whether a reader could take one column for the other."""
    kinds = {facts.kind(one), facts.kind(other)}
    return "none" not in kinds and (len(kinds) == 1 or kinds == {"integer", "number"})


def meets(query: Query, select: exp.Select, one: Of, other: Of) -> bool:
    """Whether an inner join or condition of the SELECT makes two columns equal."""
    if any(join.side for join in joins(select)):
        return False
    pairs = {frozenset(pair) for pair in query.equated()}
    return frozenset((one, other)) in pairs


def counts_rows(query: Query, node: exp.Expr, one: Of, other: Of) -> bool:
    """Whether both are counted, and neither is ever NULL."""
    facts = query.facts
    plain = isinstance(node.parent, exp.Count)
    return plain and facts.never_null(one) and facts.never_null(other)


def spans(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """A clause, condition, select item or operand dropped, doubled or taken from elsewhere."""
    for place, node in enumerate(query.nodes):
        if isinstance(node, exp.Select):
            yield from _clauses_lost(query, place, node)
            yield from _conditions_borrowed(query, place, node, pool)
        elif isinstance(node, exp.SetOperation | exp.Or | exp.Sub | exp.Mul | exp.Add | exp.DPipe):
            for side in ("this", "expression"):
                yield at(place, replace, node.args[side])
        elif isinstance(node, AGGREGATES) and isinstance(node.this, exp.Column):
            yield at(place, replace, node.this)


def _clauses_lost(query: Query, place: int, select: exp.Select) -> Iterator[Edit]:
    for name in ("where", "having", "order", "limit", "group", "distinct"):
        if select.args.get(name) is not None and not _plain(query, select, name):
            yield at(place, exp.Select.set, name, None)
    for name in ("where", "having"):
        conditions = parts(clause(select, name))
        for i in range(len(conditions)):
            if len(conditions) > 1:
                yield at(place, _set, name, conditions[:i] + conditions[i + 1 :])
    for name in ("", "group", "order"):
        own = select if not name else select.args.get(name)
        if own is not None and len(own.expressions) > 1:
            for i in range(len(own.expressions)):
                yield at(query.at[id(own)], _drop, "expressions", i)


def _conditions_borrowed(
    query: Query, place: int, select: exp.Select, pool: Sequence[Span]
) -> Iterator[Edit]:
    tables = {table: alias for alias, table in query.tables(select)}
    own = parts(clause(select, "where"))
    known = {normal(condition.sql()) for condition in own}
    for condition in pool:
        new = _moved(condition, tables, qualify=len(sources(select)) > 1)
        if new is not None and normal(new.sql()) not in known:
            yield at(place, _set, "where", [*own, new])
            for i in range(len(own)):
                yield at(place, _set, "where", [*own[:i], new, *own[i + 1 :]])


def _plain(query: Query, select: exp.Select, name: str) -> bool:
    """DISTINCT over a key says nothing; neither does ORDER BY of an inner query without LIMIT."""
    if name == "order":
        return select is not query.tree and select.args.get("limit") is None
    if name != "distinct" or len(sources(select)) != 1:
        return False
    owners = [query.owner(c) for c in select.selects if isinstance(c, exp.Column)]
    return any(owner is not None and query.facts.is_key(owner[0]) for owner in owners)


def borrowed(queries: Sequence[Query]) -> list[Span]:
    """Conditions of golds of one database on one table each, without subqueries."""
    found: dict[str, Span] = {}
    for query in queries:
        for select in query.tree.find_all(exp.Select):
            for condition in parts(clause(select, "where")):
                if condition.find(exp.Select) is not None:
                    continue
                owners = {
                    i: query.owner(node)
                    for i, node in enumerate(condition.walk())
                    if isinstance(node, exp.Column)
                }
                of = {i: owner[0] for i, owner in owners.items() if owner is not None}
                if len(of) == len(owners) and len({one.table for one in of.values()}) == 1:
                    found.setdefault(f"{normal(condition.sql())} {of}", (condition, of))
    return [found[key] for key in sorted(found)]


def _moved(given: Span, tables: dict[str, str], *, qualify: bool) -> exp.Expr | None:
    """A condition of another gold, with this SELECT's names for its table."""
    condition, of = given
    if any(one.table not in tables for one in of.values()):
        return None
    new = condition.copy()
    for i, node in enumerate(list(new.walk())):
        if i in of:
            alias = tables[of[i].table] if qualify else None
            node.replace(exp.column(of[i].column, alias)) if node is not new else None
    return new


def join_edits(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """INNER or LEFT, ON lost, another pair of key columns, a joined table lost."""
    for place, node in enumerate(query.nodes):
        for i, join in enumerate(joins(node) if isinstance(node, exp.Select) else ()):
            own = query.table(join.this)
            if own is None or not isinstance(node, exp.Select):
                continue
            if not join.side and not _always_joined(query, node, join):
                yield at(place, _side, i, "LEFT")
            if join.args.get("on") is not None or join.args.get("using"):
                yield at(place, _other_on, i, None)
            alias = join.this.alias_or_name
            for other_alias, other in query.tables(node):
                if other_alias != alias:
                    yield at(place, _lost, i, alias, other_alias)
                    for one, two in _keys(query, node, own, other):
                        left = exp.column(one.column, alias)
                        right = exp.column(two.column, other_alias)
                        yield at(place, _other_on, i, exp.EQ(this=left, expression=right))


def _keys(query: Query, select: exp.Select, table: str, other: str) -> Iterator[tuple[Of, Of]]:
    """Pairs of columns that could be taken for the keys of a join, and are not."""
    facts = query.facts
    for one in facts.columns(table):
        for two in facts.columns(other):
            alike = facts.kind(one) == facts.kind(two) in ("integer", "text")
            if alike and not meets(query, select, one, two):
                yield one, two


def _always_joined(query: Query, select: exp.Select, join: exp.Join) -> bool:
    """Whether LEFT JOIN is the same: a declared reference without NULL, or WHERE asks for it."""
    alias = join.this.alias_or_name.casefold()
    where = select.args.get("where")
    asked = where is not None and any(
        column.table.casefold() == alias and not isinstance(column.parent, exp.Is)
        for part in parts(where.this)
        if isinstance(part, (*COMPARISONS, exp.Like, exp.Between, exp.In))
        for column in part.find_all(exp.Column)
    )
    on = join.args.get("on")
    if asked or not isinstance(on, exp.EQ):
        return asked
    owners = [query.owner(s) for s in (on.this, on.expression) if isinstance(s, exp.Column)]
    if len(owners) != 2 or not all(owners):  # noqa: PLR2004
        return False
    ofs = [owner[0] for owner in owners if owner is not None]
    for child, parent in (ofs, ofs[::-1]):
        for key in query.facts.schema[child.table].foreign_keys:
            if (
                [c.casefold() for c in key.columns] == [child.column]
                and key.parent.casefold() == parent.table == query.table(join.this)
                and query.facts.never_null(child)
            ):
                return True
    return False


def strings(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """A shorter text, another value of the column, another case, other wildcards."""
    for place, node in enumerate(query.nodes):
        if not isinstance(node, exp.Literal) or not node.is_string:
            continue
        text, like = str(node.this), isinstance(node.parent, exp.Like)
        bare = text.strip("%")
        changed = _values(query, node, chance)
        if not is_day(text):  # a piece of a day orders days as the day does
            words = text.split(" ")
            changed += [text[:-1], text[1:], words[0], words[-1], text + " "]
        if like:
            changed += [bare, f"%{bare}", f"{bare}%", f"%{bare}%", f"{bare[:-1]}%", f"%{bare[1:]}"]
        elif not is_day(text):
            changed += [text.upper(), text.lower(), text.title(), text.swapcase()]
        for new in dict.fromkeys(changed):
            if new != text and not (like and new.lower() == text.lower()):
                yield at(place, replace, exp.Literal.string(new))
        if isinstance(node.parent, exp.EQ) and bare and not is_day(text):
            for pattern in (f"%{text}%", f"{text}%"):
                new_node = exp.Like(
                    this=node.parent.this.copy(), expression=exp.Literal.string(pattern)
                )
                yield at(query.at[id(node.parent)], replace, new_node)


def _values(query: Query, node: exp.Expr, chance: random.Random) -> list[str]:
    """Other texts of the column that a literal is compared with."""
    column = node.parent.find(exp.Column) if node.parent is not None else None
    owner = query.owner(column) if isinstance(column, exp.Column) else None
    texts = [v for v in query.facts.values(owner[0]) if isinstance(v, str)] if owner else []
    return chance.sample(texts, min(3, len(texts)))


def numbers(query: Query, pool: Sequence[Span], chance: random.Random) -> Iterator[Edit]:
    """Another number, operator of comparison, direction, or aggregate."""
    for place, node in enumerate(query.nodes):
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            for number in _numbers(query, node, chance):
                yield at(place, replace, exp.Literal.number(number))
        elif isinstance(node, COMPARISONS) and node.find_ancestor(exp.Join) is None:
            for kind in COMPARISONS:
                if kind is not type(node):
                    other = kind(this=node.this.copy(), expression=node.expression.copy())
                    yield at(place, replace, other)
        elif isinstance(node, AGGREGATES) and isinstance(node.this, exp.Column):
            for aggregate in AGGREGATES:
                if aggregate is not type(node):
                    yield at(place, replace, aggregate(this=node.this.copy()))
        elif isinstance(node, exp.Ordered):
            yield at(place, reverse)


def _numbers(query: Query, node: exp.Literal, chance: random.Random) -> list[int]:
    """Other numbers: near, of another size, of the column."""
    value, cut = int(node.this), isinstance(node.parent, exp.Limit | exp.Offset)
    new = [value + 1, value - 1]
    if not cut:
        column = node.parent.find(exp.Column) if node.parent is not None else None
        owner = query.owner(column) if isinstance(column, exp.Column) else None
        own = query.facts.values(owner[0]) if owner else []
        whole = [v for v in own if isinstance(v, int)]
        new += [value * 10, value // 2, 0, *chance.sample(whole, min(2, len(whole)))]
    return [n for n in dict.fromkeys(new) if n != value and n >= cut]


EDITS: dict[str, Callable[[Query, Sequence[Span], random.Random], Iterator[Edit]]] = {
    "column": columns,
    "span": spans,
    "join": join_edits,
    "string": strings,
    "number": numbers,
}


def reverse(ordered: exp.Expr) -> None:
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
    select.args["joins"][i].set("using", None)
    select.args["joins"][i].set("on", None if on is None else on.copy())


def _lost(select: exp.Expr, i: int, alias: str, kept: str) -> None:
    """A join left out; columns of its table are sought in another one."""
    _drop(select, "joins", i)
    for column in select.find_all(exp.Column):
        if column.table.casefold() == alias.casefold():
            column.set("table", exp.to_identifier(kept))
