"""Queries beside a gold that the package never sees: neighbours, which are wrong, and rewrites.

Both change a gold's words, and those count that run on the original. Neighbours are of kinds that
nobody listed (Zhong et al. 2020, section 4), less those that are mutants of the package, too.
Rewrites say the same wherever a database keeps what the original promises: keys, no NULL where a
column has none, values of a column's kind, no tie where a LIMIT cuts.
"""

import random
import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, parse, to_sql
from lm_eval_ext.sql.suite import Original
from lm_eval_ext.sql.suite.build import gold_cases
from lm_eval_ext.sql.suite.columns import Domain
from lm_eval_ext.sql.values import Rows

WORD = re.compile(r"""'[^']*'|"[^"]*"|[\w.]+|[<>!=]+|\S""")
QUOTAS = {
    "column": 6,
    "span": 5,
    "join": 3,
    "string": 3,
    "number": 4,
    "group": 2,
    "rank": 2,
}  # most neighbours of a kind
EXCHANGED = (["count", "sum", "avg", "min", "max"], ["=", "<>", "<", "<=", ">", ">="])
JOINS = {"join": ("LEFT JOIN", "CROSS JOIN"), "on": ("ON 1 OR",)}
# What a condition may stand before; the last one is a gold's end.
BOUNDS = {"where", "group", "order", "limit", "intersect", "except", "union", ")", ""}


def windowed(found: re.Match[str]) -> str:
    """ORDER BY with LIMIT as the rows of the first ranks."""
    names = [f"c{i}" for i in range(found[1].count(",") + 1)]
    items = (f"{one} AS {name}" for one, name in zip(found[1].split(","), names, strict=True))
    inner = f"SELECT {', '.join(items)}, rank() OVER (ORDER BY {found[3]}) AS place FROM {found[2]}"
    return f"SELECT {', '.join(names)} FROM ({inner}) WHERE place <= {found[4]} ORDER BY place"


# By name: a pattern of words, what replaces it everywhere, the kind of the column that comes first.
TURNED = r"\1 (SELECT * FROM \2 ORDER BY rowid DESC) AS "
RIGHT: dict[str, tuple[str, str | Callable[[re.Match[str]], str], str]] = {
    "day_by_date": (r"([\w.]+) ([<>]=?) ('[\d-]{10}')", r"date(\1) \2 date(\3)", "date"),
    "day_before": (r"([\w.]+) < ('[\d-]{10}')", r"date(\1) <= date(\2, '-1 day')", "date"),
    "equal_as_like": (r"([\w.]+) = (['\"][^'\"%_]*['\"])", r"\1 LIKE \2", "text"),
    "equal_trimmed": (r"([\w.]+) = ('[^']*')", r"trim(lower(\1)) = trim(lower(\2))", "text"),
    "next_above": (r"([\w.]+) > (\d+)\b", r"\1 >= \2 + 1", "integer"),
    "next_below": (r"([\w.]+) <= (\d+)\b", r"\1 < \2 + 1", "integer"),
    "average_parts": (r"avg \( ([\w.]+) \)", r"(1.0 * SUM(\1) / COUNT(\1))", "integer"),
    "sign_turned": (r"order by ([\w.]+) desc", r"ORDER BY -\1", "integer"),
    "greatest_as_first": (
        r"\( select max \( ([\w.]+) \) ([^()]+) \)", r"(SELECT \1 \2 ORDER BY \1 DESC LIMIT 1)", ""
    ),
    "above_all": (
        r"([\w.]+) > \( select max \( ([\w.]+) \) ([^()]+) \)",
        r"NOT EXISTS (SELECT 1 FROM (SELECT \2 AS highest \3) WHERE highest >= \1)", "integer"
    ),
    "in_as_nested": (r"\bin \( (select [^()]+) \)", r"IN (SELECT * FROM (\1))", ""),
    "aliases_reversed": (r"\b(from|join) (\w+) as (\w+)", TURNED + r"\3", ""),
    "tables_reversed": (r"\b(from|join) (\w+)\b(?! as)", TURNED + r"\2", ""),
    "top_by_window": (r"^select ([^()]+?) from (.+) order by (.+) limit (\d+)$", windowed, ""),
}  # fmt: skip


class Beside:
    """Writes queries beside the golds of one database; all of them run on it."""

    def __init__(self, original: Original) -> None:
        self.original = original
        trees = [parse(case.gold, original.schema) for case in gold_cases(original)]
        wheres = [where for tree in trees for where in tree.find_all(exp.Where)]
        lent = [part for where in wheres for part in conjuncts(where.this)]
        self.lent = sorted({to_sql(part) for part in lent if not part.find(exp.Select)})

    def neighbours(self, gold: str, known: set[str]) -> Iterator[tuple[str, str]]:
        """Yields kinds and wrong queries, the same ones each time, none of them known."""
        words = [*WORD.findall(gold.rstrip("; ")), ""]
        seen = {normal(sql) for sql in (*known, gold)}
        others = [(i, *other) for i in range(len(words)) for other in self._others(words, i)]
        for kind, left in QUOTAS.items():
            found = [(i, new) for i, own, new in others if own == kind]
            for i, new in random.Random(gold).sample(found, len(found)):
                sql = " ".join([*words[:i], new, *words[i + 1 :]])
                if left and normal(sql) not in seen and self.runs(sql):
                    seen.add(normal(sql))
                    left -= 1  # noqa: PLW2901
                    yield kind, sql

    def rewrites(self, gold: str) -> Iterator[tuple[str, str]]:
        """Yields kinds and right queries."""
        text = " ".join(WORD.findall(gold.rstrip("; ")))
        for kind, (pattern, new, needed) in RIGHT.items():
            names = [found[1] for found in re.finditer(pattern, text, re.I)] if needed else []
            owners = [domain for name in names for _, domain in self._columns(name, text)]
            sql = re.sub(pattern, new, text, flags=re.I)
            fits = all(domain.kind == needed and not domain.has_nulls for domain in owners)
            if fits and sql != text and self.runs(sql):
                yield kind, sql

    def runs(self, sql: str) -> bool:
        """Whether a query runs on the original."""
        return isinstance(self.original.runner.run(sql), Rows)

    def _columns(self, word: str, text: str) -> list[tuple[tuple[str, str], Domain]]:
        """The columns of a name in the tables that a text names; of no name: all of them."""
        named, name = {*text.casefold().split()}, word.rpartition(".")[2].casefold()
        every = self.original.source.domains.items()
        return [(of, d) for of, d in every if of[0] in named and name in ("", of[1])]

    def _others(self, words: list[str], i: int) -> Iterator[tuple[str, str]]:
        """Kinds, and what may stand in a word's place."""
        word, text, low = words[i], " ".join(words), words[i].casefold()
        read, bare = self._columns("", text), word[1:-1]
        for of, own in self._columns(word, text) if word else ():
            same = {of, *self.original.source.related.get(of, ())}
            for other in [n for n, domain in read if domain.kind == own.kind and n not in same]:
                yield "column", "".join([*word.rpartition(".")[:2], other[1]])
        yield from self._other_groups(words, i, sorted({name for (_, name), _ in read}))
        for one in self.lent if low in BOUNDS else ():
            yield "span", f"WHERE {one} {'AND' if low == 'where' else word}"
        yield from (("join", new) for new in JOINS.get(low, ()))
        if word[:1] in ("'", '"'):
            new = {bare.strip("%"), bare.lstrip("%"), bare.rstrip("%"), bare.upper(), bare.lower()}
            having = [domain for _, domain in read if bare in (*domain.values, *domain.constants)]
            # A piece of a day orders as it does.
            if all(domain.kind != "date" for domain in having):
                new |= {bare[:-1], bare[1:], *bare.split(" "), f"{bare} "}
            new |= {str(value) for domain in having for value in domain.values[:3]}
            yield from sorted(("string", f"'{one}'") for one in new if "'" not in one)
        for one in (str(int(word) * 10), str(int(word) // 2), "0") if word.isdigit() else ():
            yield "number", one
        yield from (("number", new) for same in EXCHANGED if low in same for new in same)

    def _other_groups(
        self, words: list[str], i: int, columns: list[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield one more key of GROUP BY, and values instead of rows in what ranks groups."""
        before = [word.casefold() for word in words[:i]]
        word = words[i].casefold()
        if word == "by" and before[-1:] == ["group"]:
            for column in columns:
                yield "group", f"BY {column} ,"
        if word == "*" and before[-2:] == ["count", "("] and "order" in before:
            for column in columns:
                yield "rank", f"DISTINCT {column}"


def normal(sql: str) -> str:
    """A text without case, spaces and quotes of names."""
    return re.sub(r'[\s"`]', "", sql.rstrip("; ").casefold())
