"""Queries beside a gold that the package never sees: neighbours, which are wrong, and rewrites.

Both change a gold's words, and those count that run on the original. Neighbours are of kinds that
nobody listed (Zhong et al. 2020, section 4), less those that are mutants of the package, too.
Rewrites say the same wherever a database keeps what the original promises: keys, no NULL where a
column has none, values of a column's kind, no tie where a LIMIT cuts.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.parsing import conjuncts, parse, to_sql
from lm_eval_ext.sql.suite import Original
from lm_eval_ext.sql.suite.build import gold_cases
from lm_eval_ext.sql.suite.columns import Domain
from lm_eval_ext.sql.suite.reading import ColumnName
from lm_eval_ext.sql.values import Rows

MAX_NEIGHBOURS = {
    "column": 6,
    "span": 5,
    "join": 3,
    "string": 3,
    "number": 4,
    "group": 2,
    "rank": 2,
}
"""Most neighbours of a gold by kind."""

_WORD = re.compile(r"""'[^']*'|"[^"]*"|[\w.]+|[<>!=]+|\S""")

_EXCHANGEABLE = (["count", "sum", "avg", "min", "max"], ["=", "<>", "<", "<=", ">", ">="])
"""Words that may stand in each other's place."""

_JOINS = {"join": ("LEFT JOIN", "CROSS JOIN"), "on": ("ON 1 OR",)}

_AFTER_CONDITIONS = (
    "where", "group", "order", "limit", "intersect", "except", "union", ")", ""
)  # fmt: skip
"""The words before which a condition may stand; the last one is a gold's end."""


@dataclass(frozen=True)
class Rewrite:
    """A rule that turns a gold into another right query.

    Attributes:
        kind: Its name.
        pattern: A regular expression for the gold's words.
        replacement: What replaces it everywhere.
        column_kind: The kind of values that the column has with which the pattern begins, and
            which is never NULL; "" if it begins with no column.
    """

    kind: str
    pattern: str
    replacement: str | Callable[[re.Match[str]], str]
    column_kind: str = ""


def _as_window(match: re.Match[str]) -> str:
    """Return ORDER BY with LIMIT as a query for the rows of the first ranks."""
    selected, source, order, limit = match.groups()
    terms = selected.split(",")
    names = []
    outputs = []
    for number, term in enumerate(terms):
        names.append(f"c{number}")
        outputs.append(f"{term} AS c{number}")
    outputs.append(f"rank() OVER (ORDER BY {order}) AS place")
    ranked = f"SELECT {', '.join(outputs)} FROM {source}"
    return f"SELECT {', '.join(names)} FROM ({ranked}) WHERE place <= {limit} ORDER BY place"


_REVERSED_TABLE = r"\1 (SELECT * FROM \2 ORDER BY rowid DESC) AS "

REWRITES = (
    Rewrite("day_by_date", r"([\w.]+) ([<>]=?) ('[\d-]{10}')", r"date(\1) \2 date(\3)", "date"),
    Rewrite("day_before", r"([\w.]+) < ('[\d-]{10}')", r"date(\1) <= date(\2, '-1 day')", "date"),
    Rewrite("equal_as_like", r"([\w.]+) = (['\"][^'\"%_]*['\"])", r"\1 LIKE \2", "text"),
    Rewrite("equal_trimmed", r"([\w.]+) = ('[^']*')", r"trim(lower(\1)) = trim(lower(\2))", "text"),
    Rewrite("next_above", r"([\w.]+) > (\d+)\b", r"\1 >= \2 + 1", "integer"),
    Rewrite("next_below", r"([\w.]+) <= (\d+)\b", r"\1 < \2 + 1", "integer"),
    Rewrite("average_parts", r"avg \( ([\w.]+) \)", r"(1.0 * SUM(\1) / COUNT(\1))", "integer"),
    Rewrite("sign_turned", r"order by ([\w.]+) desc", r"ORDER BY -\1", "integer"),
    Rewrite(
        "greatest_as_first",
        r"\( select max \( ([\w.]+) \) ([^()]+) \)",
        r"(SELECT \1 \2 ORDER BY \1 DESC LIMIT 1)",
    ),
    Rewrite(
        "above_all",
        r"([\w.]+) > \( select max \( ([\w.]+) \) ([^()]+) \)",
        r"NOT EXISTS (SELECT 1 FROM (SELECT \2 AS highest \3) WHERE highest >= \1)",
        "integer",
    ),
    Rewrite("in_as_nested", r"\bin \( (select [^()]+) \)", r"IN (SELECT * FROM (\1))"),
    Rewrite("aliases_reversed", r"\b(from|join) (\w+) as (\w+)", _REVERSED_TABLE + r"\3"),
    Rewrite("tables_reversed", r"\b(from|join) (\w+)\b(?! as)", _REVERSED_TABLE + r"\2"),
    Rewrite("top_by_window", r"^select ([^()]+?) from (.+) order by (.+) limit (\d+)$", _as_window),
)


class QueryVariants:
    """Writes queries beside the golds of one database; all of them run on it."""

    def __init__(self, original: Original) -> None:
        self._original = original
        conditions = set()
        for case in gold_cases(original):
            for where in parse(case.gold, original.schema).find_all(exp.Where):
                for condition in conjuncts(where.this):
                    if not condition.find(exp.Select):
                        conditions.add(to_sql(condition))
        self._conditions = sorted(conditions)
        """Conditions of all golds."""

    def neighbours(self, gold: str, mutants: Set[str]) -> Iterator[tuple[str, str]]:
        """Yield kinds and wrong queries, the same ones each time, none of them a mutant."""
        words = [*_WORD.findall(gold.rstrip("; ")), ""]
        replacements: dict[str, list[tuple[int, str]]] = {kind: [] for kind in MAX_NEIGHBOURS}
        for position in range(len(words)):
            for kind, replacement in self._replacements(words, position):
                replacements[kind].append((position, replacement))
        seen = {normal(sql) for sql in (*mutants, gold)}
        for kind, candidates in replacements.items():
            count = 0
            for position, replacement in random.Random(gold).sample(candidates, len(candidates)):
                if count == MAX_NEIGHBOURS[kind]:
                    break
                sql = " ".join([*words[:position], replacement, *words[position + 1 :]])
                if normal(sql) in seen or not self.runs(sql):
                    continue
                seen.add(normal(sql))
                count += 1
                yield kind, sql

    def rewrites(self, gold: str) -> Iterator[tuple[str, str]]:
        """Yield kinds and right queries."""
        text = " ".join(_WORD.findall(gold.rstrip("; ")))
        for rewrite in REWRITES:
            sql = re.sub(rewrite.pattern, rewrite.replacement, text, flags=re.IGNORECASE)
            if sql != text and self._keeps_meaning(rewrite, text) and self.runs(sql):
                yield rewrite.kind, sql

    def _keeps_meaning(self, rewrite: Rewrite, text: str) -> bool:
        """Return whether the columns with which a rewrite's matches begin are of its kind."""
        if not rewrite.column_kind:
            return True
        for match in re.finditer(rewrite.pattern, text, re.IGNORECASE):
            for _, domain in self._columns(match[1], text):
                if domain.kind != rewrite.column_kind or domain.has_nulls:
                    return False
        return True

    def runs(self, sql: str) -> bool:
        """Return whether a query runs on the original."""
        return isinstance(self._original.runner.run(sql), Rows)

    def _columns(self, word: str, text: str) -> list[tuple[ColumnName, Domain]]:
        """Return the columns of a name in the tables that a text names; without a name, all."""
        words = set(text.casefold().split())
        name = word.rpartition(".")[2].casefold()
        columns = []
        for column, domain in self._original.source.domains.items():
            if column.table in words and name in ("", column.column):
                columns.append((column, domain))
        return columns

    def _replacements(self, words: Sequence[str], position: int) -> Iterator[tuple[str, str]]:
        """Yield kinds, and what may stand in a word's place."""
        word, folded = words[position], words[position].casefold()
        columns = self._columns("", " ".join(words))
        yield from self._other_columns(word, columns, " ".join(words))
        yield from _other_groups(words, position, columns)
        if folded in _AFTER_CONDITIONS:
            end = word
            if folded == "where":
                end = "AND"
            for condition in self._conditions:
                yield "span", f"WHERE {condition} {end}"
        for join in _JOINS.get(folded, ()):
            yield "join", join
        if word.startswith(("'", '"')):
            for string in _other_strings(word[1:-1], columns):
                yield "string", string
        if word.isdigit():
            for number in (int(word) * 10, int(word) // 2, 0):
                yield "number", str(number)
        for exchangeable in _EXCHANGEABLE:
            if folded in exchangeable:
                for other_word in exchangeable:
                    yield "number", other_word

    def _other_columns(
        self, word: str, columns: Sequence[tuple[ColumnName, Domain]], text: str
    ) -> Iterator[tuple[str, str]]:
        """Yield other columns of the same kind of values, less those that golds compare with it."""
        if not word:
            return
        alias, dot, _ = word.rpartition(".")
        for column, domain in self._columns(word, text):
            related = {column, *self._original.source.related.get(column, ())}
            for other_column, other_domain in columns:
                if other_domain.kind == domain.kind and other_column not in related:
                    yield "column", f"{alias}{dot}{other_column.column}"


def _other_groups(
    words: Sequence[str], position: int, columns: Sequence[tuple[ColumnName, Domain]]
) -> Iterator[tuple[str, str]]:
    """Yield one more key of GROUP BY, and values instead of rows in what ranks groups."""
    names = sorted({name.column for name, _ in columns})
    before = [word.casefold() for word in words[:position]]
    word = words[position].casefold()
    if word == "by" and before[-1:] == ["group"]:
        for name in names:
            yield "group", f"BY {name} ,"
    if word == "*" and before[-2:] == ["count", "("] and "order" in before:
        for name in names:
            yield "rank", f"DISTINCT {name}"


def _other_strings(string: str, columns: Sequence[tuple[ColumnName, Domain]]) -> list[str]:
    """Return strings that resemble one, or that the same column has, in quotes."""
    texts = {
        string.strip("%"), string.lstrip("%"), string.rstrip("%"), string.upper(), string.lower()
    }  # fmt: skip
    domains = []
    for _, domain in columns:
        if string in domain.values or string in domain.constants:
            domains.append(domain)
    # A piece of a day orders as it does.
    if all(domain.kind != "date" for domain in domains):
        texts |= {string[:-1], string[1:], *string.split(" "), f"{string} "}
    for domain in domains:
        texts.update(map(str, domain.values[:3]))
    return sorted(f"'{text}'" for text in texts if "'" not in text)


def normal(sql: str) -> str:
    """Return a text without case, spaces and quotes of names."""
    return re.sub(r'[\s"`]', "", sql.rstrip("; ").casefold())
