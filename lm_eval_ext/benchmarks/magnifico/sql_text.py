"""SQL within the text of an answer: its tokens, where a query ends, whether SQLite can parse it.

Answers are hostile input: all of this takes linear time and raises nothing.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

OPENING_CHARS: Final = 20_000
"""Characters that are checked of each span."""

KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """SELECT WITH FROM WHERE GROUP BY HAVING ORDER ASC DESC NULLS LIMIT UNION ALL EXCEPT
        INTERSECT DISTINCT AS ON USING JOIN LEFT RIGHT FULL INNER OUTER CROSS NATURAL INDEXED
        AND OR NOT IN IS LIKE GLOB REGEXP MATCH ESCAPE BETWEEN ISNULL NOTNULL NULL EXISTS COLLATE
        CASE WHEN THEN ELSE END OVER PARTITION FILTER WINDOW ROWS RANGE GROUPS EXCLUDE""",
    )
)
COMPOUND: Final = frozenset(("UNION", "ALL", "EXCEPT", "INTERSECT"))

_WIDE_ENDS: Final = "。．！？：；「」『』“”«»《》【】…؟؛۔।॥"  # noqa: RUF001 (other scripts are meant)
"""Marks of other scripts that no query holds: a sentence ends or a quotation begins."""

WIDE_COMMAS: Final = "，、（）،"  # noqa: RUF001
"""Marks that end a query only behind a character of ASCII: other names may be joined by mistake."""

# Not the tokenizer of lm_eval_ext.sql.ordering, which needs quadratic time for many "[". As in
# SQLite, characters beyond ASCII are letters; other than in SQLite, marks of other scripts are not.
_LETTER: Final = r"A-Za-z_\x80-\U0010ffff"
_TOKEN = re.compile(
    rf"""
      (?P<space> [\s\ufeff]+ )
    | (?P<comment> --[^\n]* | /\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)? )
    | (?P<stop> ; | \# | `{{3,}} | ~{{3,}} | \*\* | </(?!\*) | <\| | \[/[A-Za-z] | \\end\{{ )
    | (?P<value> [xX]?'[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*`
        | \[[^\]\n]{{1,128}}\] | \d[\w.]* | \.\d\w* )
    | (?P<wide> [{_WIDE_ENDS}{WIDE_COMMAS}] )
    | (?P<word> (?:(?![{_WIDE_ENDS}{WIDE_COMMAS}])[{_LETTER}])
        (?:(?![{_WIDE_ENDS}{WIDE_COMMAS}])[\w$\x80-\U0010ffff])* )
    | (?P<sign> != | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NEW_TEXT = re.compile(
    r"\w+:(?!:)|\d+[.)][ \t]|(?:select|with)\b|\${2}[ \t\r]*(?:\n|\Z)", re.IGNORECASE
)
_GOES_ON = re.compile(
    r"""
      (?:union|except|intersect|where|(?:group|order)\s+by|(?:inner|left|right|full|cross)\s+
        (?:outer\s+)?join)\b
    | from\s+[\w".`]+ (?=\s*(?:\Z|[;,\n`~]|\b(?:as|where|join|inner|left|order|group|limit)\b))
    | (?-i: (?:FROM|JOIN|ON|AND|OR|HAVING|LIMIT|OFFSET|WINDOW)\b )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Text that continues a query after a blank line."""
_FULL_STOP = re.compile(r"[.|][ \t\r]*(?:\n|\Z)")
"""The end of a sentence, or of a cell of a table."""

_TABLE_OF_RESULTS = re.compile(
    r"\|[^\n]{0,2000}\|[ \t\r]*\n[ \t]*\|?[ \t]*:?-{2,}|\+-{2,}[+-]*\+?[ \t\r]*(?:\n|\Z)"
)
"""The head of a table in Markdown or of a database's shell: a result behind the query."""

_SENTENCE_OF_OTHER_SCRIPT = re.compile(
    r"[^\x00-\x7f][^\n=<>(),;'\"`]{0,400}(?:[.!?:。！？：؟۔।][ \t\r]*(?:\n|\Z)|[。！？：])"  # noqa: RUF001
)
_CONTINUES: Final = frozenset("=<>,(+-/|%&~.")
"""Signs after which a line goes on with the query, whatever it begins with."""


@dataclass(frozen=True)
class QuerySpan:
    """A stretch of a text in which a query may stand.

    Attributes:
        text: The text.
        start: Where the query may begin.
        end: The last possible end of the query.
        prose: Whether sentences stand around it.
        source: What marks it in the text, for a reader.
    """

    text: str
    start: int
    end: int
    prose: bool = False
    source: str = ""

    @property
    def opening(self) -> "QuerySpan":
        """The first characters, by which the span is judged."""
        return replace(self, end=min(self.end, self.start + OPENING_CHARS))

    @property
    def checked_chars(self) -> int:
        """The number of characters by which the span is judged."""
        return max(0, min(self.end - self.start, OPENING_CHARS))


def raw_tokens(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield all tokens of a stretch, also spaces, comments and what ends a query."""
    return _TOKEN.finditer(text, start, end)


def tokens(span: QuerySpan) -> Iterator[re.Match[str]]:
    """Yield a query's tokens up to its end, without spaces and comments (rule 6)."""
    text = span.text
    depth = 0
    previous = ""
    in_main_query = first_of_line = False
    for token in _TOKEN.finditer(text, span.start, span.end):
        piece = token[0].upper()
        may_end = in_main_query and depth <= 0 and previous not in COMPOUND
        if token["comment"]:
            continue
        if token["space"]:
            first_of_line = first_of_line or "\n" in piece
            if may_end and piece.count("\n") > 1 and not _goes_on(text, token.end(), previous):
                return
            continue
        if may_end and first_of_line and _begins_new_text(text, token.start(), previous):
            return
        if token["stop"] or (span.prose and _FULL_STOP.match(text, token.start())):
            return
        if token["wide"] and _is_wide_end(text, token.start()):
            return
        yield token
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        begins_main_query = piece == "SELECT" and depth <= 0
        if begins_main_query or (not previous and piece != "WITH"):
            in_main_query = True
        first_of_line = False
        previous = piece


def _goes_on(text: str, start: int, previous: str) -> bool:
    """Return whether a query goes on behind a blank line.

    Args:
        text: The text.
        start: Where the line behind it begins, without spaces.
        previous: The token before it, in capitals.
    """
    return previous in _CONTINUES or _GOES_ON.match(text, start) is not None


def _begins_new_text(text: str, start: int, previous: str) -> bool:
    """Return whether a line is no part of the query above it.

    Args:
        text: The text.
        start: Where the line begins, without spaces.
        previous: The token before it, in capitals.
    """
    if _NEW_TEXT.match(text, start) or _TABLE_OF_RESULTS.match(text, start):
        return True
    if previous in KEYWORDS or previous in _CONTINUES:
        return False
    return _SENTENCE_OF_OTHER_SCRIPT.match(text, start) is not None


def _is_wide_end(text: str, position: int) -> bool:
    return text[position] in _WIDE_ENDS or text[max(0, position - 1)].isascii()


def query_at(span: QuerySpan) -> str:
    """Return the query in a span, with the prompt's SELECT if it lacks one; "" without any."""
    query = query_as_written(span)
    first = next(tokens(span), None)
    if first is None or first[0].upper() in ("SELECT", "WITH"):
        return query
    return f"SELECT {query}"


def query_as_written(span: QuerySpan) -> str:
    """Return the query in a span, which may lack a SELECT; "" without any."""
    first = last = None
    for token in tokens(span):
        first = first or token
        last = token
    if first is None or last is None:
        return ""
    return span.text[first.start() : last.end()]


def parses(query: str) -> bool:
    """Return whether SQLite's parser accepts a query; what it names need not exist.

    The query is neither run nor compiled: a view keeps it as text. So a query that would take
    SQLite hours takes no time here.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(f"EXPLAIN CREATE TEMP VIEW v AS {query}")
        except sqlite3.OperationalError as error:
            # Anything else than the syntax is the business of whoever runs the query.
            message = str(error)
            is_cut_off = message.startswith(("incomplete input", "unrecognized token"))
            return "syntax error" not in message and not is_cut_off
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError):
            return False  # a null character, half a character, or more than SQLite reads
    return True
