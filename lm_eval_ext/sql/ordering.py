"""The order that a gold's outermost ORDER BY asks for, read from its tokens.

``ORDER BY age`` leaves open the order of rows of the same age, and with ``LIMIT 1`` even which of
them is the answer. So the strict semantics need each row's sort key and the rows that the LIMIT
cut off: :func:`order_of` derives a helper query that gives both.

Predictions are never read this way, only run. Worker processes import this module, so it does
without sqlglot.
"""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["word", "quoted", "string", "number", "sign"]


class Token(NamedTuple):
    """A token other than a space or comment; ``text`` includes its quotes."""

    kind: Kind
    text: str
    start: int
    end: int
    depth: int
    """Number of parentheses open around it; a parenthesis does not count itself."""

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the words (given in upper case), outside of quotes."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def name(self) -> str | None:
        """The identifier without quotes; None if it is not one."""
        if self.kind == "word":
            return self.text
        if self.kind == "quoted":
            mark = self.text[0]
            return self.text[1:-1] if mark == "[" else self.text[1:-1].replace(mark * 2, mark)
        return None


_TOKEN = re.compile(
    r"""
      (?P<skip> \s+ | \ufeff | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string> [eE]'(?:[^'\\]|\\.|'')*' | [xX]?'(?:[^']|'')*' | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
    | (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]{0,1000}\] )
    | (?P<number> 0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(sql: str) -> list[Token]:
    """Returns the tokens of any text, without spaces and comments."""
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup, match.group()
        if kind == "skip":
            continue
        if text == ")":
            depth -= 1
        found.append(Token(kind, text, match.start(), match.end(), depth))  # type: ignore[arg-type]
        if text == "(":
            depth += 1
    return found


@dataclass(frozen=True)
class Order:
    """The outermost ORDER BY of a query, and how to find the ties that it leaves open.

    Attributes:
        helper: The query without its LIMIT, with one more column for each sort term that is
            not a result column: the rank of the row's value in the term's order (and so by
            the gold's collation). None if it cannot be derived from the text.
        key_columns: The columns of the helper's result that are the sort key.
        added: How many columns the helper has added, at the end.
        offset: Rows that the gold skips.
        limit: Most rows that the gold gives; None: all.
    """

    helper: str | None
    key_columns: tuple[int, ...] = ()
    added: int = 0
    offset: int = 0
    limit: int | None = None


_UNKNOWN = Order(helper=None)
_AFTER_COLUMNS = ("FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER")
_COMPOUND = ("UNION", "INTERSECT", "EXCEPT", "VALUES")


def order_of(sql: str, columns: tuple[str, ...]) -> Order | None:
    """Returns the order that a query asks for, or None if it has no outermost ORDER BY.

    Args:
        sql: A query that SQLite accepts.
        columns: The names of its result's columns.
    """
    outer = tokens(sql)
    while outer and outer[-1].text == ";":
        outer.pop()
    by = _find_order_by(outer)
    if by is None:
        return None
    limit_at = next((i for i in range(by, len(outer)) if _at_top(outer[i], "LIMIT")), len(outer))
    window = _limit(outer[limit_at + 1 :]) if limit_at < len(outer) else (0, None)
    terms = _split(outer[by:limit_at])
    if window is None or not all(terms):
        return _UNKNOWN

    keys: list[int] = []
    ranks: list[str] = []
    for term in terms:
        column = _result_column(term, columns)
        if column is None:
            keys.append(len(columns) + len(ranks))
            ranks.append(f", dense_rank() OVER (ORDER BY {sql[term[0].start : term[-1].end]})")
        elif column < len(columns):
            keys.append(column)
        else:
            return _UNKNOWN
    end = outer[limit_at - 1].end
    if not ranks:
        helper = sql[:end]
    else:
        insert_at = _end_of_columns(outer)
        if insert_at is None:
            return _UNKNOWN
        helper = sql[:insert_at] + "".join(ranks) + " " + sql[insert_at:end]
    return Order(helper, tuple(keys), len(ranks), *window)


def _at_top(token: Token, *words: str) -> bool:
    return token.depth == 0 and token.is_word(*words)


def _find_order_by(outer: list[Token]) -> int | None:
    """Returns where the terms of the outermost ORDER BY begin."""
    for i in range(len(outer) - 2, -1, -1):
        if _at_top(outer[i], "ORDER") and _at_top(outer[i + 1], "BY"):
            return i + 2
    return None


def _limit(rest: list[Token]) -> tuple[int, int | None] | None:
    """Reads ``n``, ``n OFFSET m`` or ``m, n`` into (offset, limit); None if it is computed."""
    match [token.text.upper() for token in rest]:
        case [limit]:
            offset = "0"
        case [limit, "OFFSET", offset] | [offset, ",", limit]:
            pass
        case ["-", limit] if limit.isdecimal():  # below 0: no limit
            return 0, None
        case _:
            return None
    if not (limit.isdecimal() and offset.isdecimal()):
        return None
    return int(offset), int(limit)


def _split(terms: list[Token]) -> list[list[Token]]:
    """Splits the terms at the commas between them."""
    parts: list[list[Token]] = [[]]
    for token in terms:
        if token.text == "," and token.depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _result_column(term: list[Token], columns: tuple[str, ...]) -> int | None:
    """Returns the result column that a sort term names, by number or by name, as SQLite does.

    None: it is an expression. A number out of range is returned as it is.
    """
    rest = list(term)
    if any(token.is_word("NULLS") for token in rest[1:][-2:-1]):  # NULLS FIRST
        rest = rest[:-2]
    if len(rest) > 1 and rest[-1].is_word("ASC", "DESC"):
        rest.pop()
    if any(token.is_word("COLLATE") for token in rest[1:][-2:-1]):  # COLLATE name
        rest = rest[:-2]
    # SQLite's parser drops parentheses and plus signs before it reads a term.
    while len(rest) > 1 and (rest[0].text == "+" or _wrapped(rest)):
        rest = rest[1:] if rest[0].text == "+" else rest[1:-1]
    if len(rest) != 1:
        return None
    if rest[0].kind == "number":
        text = rest[0].text
        return int(text) - 1 if text.isdecimal() and int(text) else len(columns)
    name = rest[0].name
    names = [column.lower() for column in columns]
    return names.index(name.lower()) if name is not None and name.lower() in names else None


def _wrapped(part: list[Token]) -> bool:
    """Whether one pair of parentheses surrounds the whole part."""
    first, last = part[0], part[-1]
    inner = all(token.depth > first.depth for token in part[1:-1])
    return first.text == "(" and last.text == ")" and inner


def _end_of_columns(outer: list[Token]) -> int | None:
    """Returns where a column can be added to a simple SELECT; None for a compound one."""
    if any(_at_top(token, *_COMPOUND) for token in outer):
        return None
    select = next((i for i, token in enumerate(outer) if _at_top(token, "SELECT")), None)
    if select is None:
        return None
    for before, token in zip(outer[select:], outer[select + 1 :], strict=False):
        # IS DISTINCT FROM is an operator.
        if _at_top(token, *_AFTER_COLUMNS) and not before.is_word("DISTINCT"):
            return token.start
    return None
