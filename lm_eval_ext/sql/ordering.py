"""The order that a gold's outermost ORDER BY asks for, read from its tokens.

``ORDER BY age`` leaves open the order of rows of the same age, and with ``LIMIT 1`` even which of
them is the answer. So the strict semantics need each row's sort key and the rows that the LIMIT
cut off: :func:`order_of` derives a helper query that gives both.

Predictions are never read this way, only run. Worker processes import this module, so it does
without sqlglot.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

TokenKind = Literal["word", "quoted", "string", "number", "sign"]


class Token(NamedTuple):
    """A token other than a space or comment.

    Attributes:
        kind: Its kind.
        text: Its text, with its quotation marks.
        start: Where it starts in the query.
        end: Where it ends in the query.
        depth: Number of parentheses open around it; a parenthesis does not count itself.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    depth: int

    def is_word(self, *words: str) -> bool:
        """Return whether this is one of the words (in upper case), outside of quotes."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def name(self) -> str | None:
        """The identifier without quotes; None if this is no identifier."""
        if self.kind == "word":
            return self.text
        if self.kind != "quoted":
            return None
        mark, inner = self.text[0], self.text[1:-1]
        if mark == "[":
            return inner
        return inner.replace(mark * 2, mark)


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
    """Return the tokens of any text, without spaces and comments."""
    result: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        token_kind, text = match.lastgroup, match.group()
        if token_kind == "skip":
            continue
        if text == ")":
            depth -= 1
        result.append(Token(token_kind, text, match.start(), match.end(), depth))  # type: ignore[arg-type]
        if text == "(":
            depth += 1
    return result


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
    """Return the order that a query asks for, or None if it has no outermost ORDER BY.

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
    limit_at = _find_limit(outer, by)
    offset_and_limit = _read_limit(outer[limit_at + 1 :])
    terms = _split(outer[by:limit_at])
    if offset_and_limit is None or not all(terms):
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
    return Order(helper, tuple(keys), len(ranks), *offset_and_limit)


def _at_top(token: Token, *words: str) -> bool:
    """Return whether a token is one of the words, outside of all parentheses."""
    return token.depth == 0 and token.is_word(*words)


def _find_order_by(outer: list[Token]) -> int | None:
    """Return where the terms of the outermost ORDER BY begin."""
    for position in range(len(outer) - 2, -1, -1):
        if _at_top(outer[position], "ORDER") and _at_top(outer[position + 1], "BY"):
            return position + 2
    return None


def _find_limit(outer: list[Token], start: int) -> int:
    """Return where the outermost LIMIT is, or where the query ends."""
    for position in range(start, len(outer)):
        if _at_top(outer[position], "LIMIT"):
            return position
    return len(outer)


_INTEGER_DIGITS = 18
"""Digits that every integer of SQLite can have: the largest is 9,223,372,036,854,775,807."""


def _read_limit(numbers: list[Token]) -> tuple[int, int | None] | None:
    """Return offset and limit of ``n``, ``n OFFSET m`` or ``m, n``; None if they are computed.

    Without any tokens there is no limit.
    """
    match [token.text.upper() for token in numbers]:
        case []:
            return 0, None
        case [limit]:
            offset = "0"
        case [limit, "OFFSET", offset] | [offset, ",", limit]:
            pass
        case ["-", limit] if limit.isdecimal():  # below 0: no limit
            return 0, None
        case _:
            return None
    skipped_rows, max_rows = _read_integer(offset), _read_integer(limit)
    if skipped_rows is None or max_rows is None:
        return None
    return skipped_rows, max_rows


def _read_integer(text: str) -> int | None:
    """Return a whole number without a sign; None for any other text, and for a longer number.

    SQLite reads longer numbers as REAL, and Python refuses to convert very long ones.
    """
    if text.isdecimal() and len(text) <= _INTEGER_DIGITS:
        return int(text)
    return None


def _split(terms: list[Token]) -> list[list[Token]]:
    """Split the terms at the commas between them."""
    result: list[list[Token]] = [[]]
    for token in terms:
        if token.text == "," and token.depth == 0:
            result.append([])
        else:
            result[-1].append(token)
    return result


def _result_column(term: list[Token], columns: tuple[str, ...]) -> int | None:
    """Return the result column that a sort term names, by number or by name, as SQLite does.

    None: it is an expression. A number out of range is returned as it is.
    """
    operand = _without_modifiers(term)
    if len(operand) != 1:
        return None
    if operand[0].kind == "number":
        number = _read_integer(operand[0].text)
        return number - 1 if number else len(columns)
    name = operand[0].name
    names = [column.lower() for column in columns]
    if name is None or name.lower() not in names:
        return None
    return names.index(name.lower())


def _without_modifiers(term: list[Token]) -> list[Token]:
    """Return a sort term without COLLATE, ASC, NULLS FIRST, and parentheses around it."""
    operand = list(term)
    if _ends_with_pair(operand, "NULLS"):
        operand = operand[:-2]
    if len(operand) > 1 and operand[-1].is_word("ASC", "DESC"):
        operand.pop()
    if _ends_with_pair(operand, "COLLATE"):
        operand = operand[:-2]
    # SQLite's parser drops parentheses and plus signs before it reads a term.
    while len(operand) > 1:
        if operand[0].text == "+":
            operand = operand[1:]
        elif _is_wrapped(operand):
            operand = operand[1:-1]
        else:
            break
    return operand


def _ends_with_pair(term: list[Token], word: str) -> bool:
    """Return whether a term has the word and another token behind its operand."""
    return len(term) > 2 and term[-2].is_word(word)  # noqa: PLR2004 (an operand and the pair)


def _is_wrapped(term: list[Token]) -> bool:
    """Return whether one pair of parentheses surrounds the whole term."""
    opening, closing = term[0], term[-1]
    all_inside = all(token.depth > opening.depth for token in term[1:-1])
    return opening.text == "(" and closing.text == ")" and all_inside


def _end_of_columns(outer: list[Token]) -> int | None:
    """Return where a column can be added to a simple SELECT; None for a compound one."""
    if any(_at_top(token, *_COMPOUND) for token in outer):
        return None
    selects = [position for position, token in enumerate(outer) if _at_top(token, "SELECT")]
    if not selects:
        return None
    after_select = outer[selects[0] :]
    for previous_token, token in pairwise(after_select):
        # IS DISTINCT FROM is an operator.
        if _at_top(token, *_AFTER_COLUMNS) and not previous_token.is_word("DISTINCT"):
            return token.start
    return None
