"""SQL within the text of an answer: its tokens, where a query ends, whether SQLite can parse it.

Answers are hostile input: all of this takes linear time and raises nothing.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import NamedTuple

OPENING_CHARS = 20_000
"""Characters that are checked at each place."""

_MAX_ENDS = 20
"""Positions per place at which prose may begin; each is one call of SQLite's parser."""

# Not the tokenizer of lm_eval_ext.sql.ordering, which needs quadratic time for many "[". As in
# SQLite, all characters beyond ASCII are letters.
_TOKEN = re.compile(
    r"""
      (?P<space> [\s\ufeff]+ )
    | (?P<comment> --[^\n]* | /\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)? )
    | (?P<stop> ; | \# | `{3,} | \*\* | </(?!\*) | <\| )
    | (?P<value> [xX]?'[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*`
        | \[[^\]\n]{1,128}\] | \d[\w.]* | \.\d\w* )
    | (?P<word> [A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]* )
    | (?P<sign> != | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NEW_TEXT = re.compile(r"\w+:(?!:)|\d+[.)][ \t]|(?:select|with)\b", re.IGNORECASE)
_COMPOUND_NEXT = re.compile(r"(?:union|except|intersect)\b", re.IGNORECASE)
_FULL_STOP = re.compile(r"\.[ \t\r]*(?:\n|\Z)")

COMPOUND = frozenset(("UNION", "ALL", "EXCEPT", "INTERSECT"))

_KEYWORD = (
    "(?:SELECT|FROM|WHERE|GROUP|ORDER|HAVING|LIMIT|OFFSET|UNION|EXCEPT|INTERSECT|JOIN|LEFT|RIGHT"
    r"|FULL|INNER|OUTER|CROSS|NATURAL|AND|OR|ON|USING|ASC|DESC|BETWEEN|LIKE|GLOB|COLLATE)\b"
)
"""Words that no sentence begins with, since a query goes on with them; one in capitals ends a run
of words, but for what a sentence calls it: "the WHERE clause"."""

_WORD = r"[^\W\d_]+(?:['\u2019][a-z]{1,2}\b)?"
_RUN = re.compile(
    rf"(?!(?i:{_KEYWORD})){_WORD}(?:,?[ \t]{{1,3}}"
    rf"(?!{_KEYWORD}(?!\s(?:clause|condition|part|statement|keyword)\b)){_WORD}){{0,7}}"
)
_LABEL = re.compile(r"[A-Z]\w*(?:[ \t]\w+){0,3}:(?=\s)")
_END_OF_LINE = re.compile(r"[.!][ \t\r]*(?:\n|\Z|</)")
_NEXT_SENTENCE = re.compile(r"\.[ \t\r\n]+(?=[A-Z])")
_QUALIFIER = re.compile(r"(?:[=<>]|\b(?:on|where|and|or))\s*[^\W\d]\w*\Z", re.IGNORECASE)
"""A table's name in a condition: behind it, a full stop was followed by a column."""

_NAME = 80
"""Characters of it that are looked at."""

_MARK = re.compile(r"[-*>(/,]{1,3}[ \t]{0,3}(?=[^\W\d_])")
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        """the an this that these those it its is are was were will would can should which who you
        your we our i they their there here of for to because since returns return gives give shows
        show lists selects finds means me""",
    )
)
_OPENERS = frozenset(("which", "this", "these", "it"))
"""Words that begin a sentence or a clause behind a query even in lower case."""

_LEAST_WORDS = 3


class Place(NamedTuple):
    """Where in a text a query may begin, its last possible end, and whether it is in prose."""

    text: str
    start: int
    end: int
    prose: bool = False

    @property
    def opening(self) -> "Place":
        """Its first characters, by which it is judged."""
        return self._replace(end=min(self.end, self.start + OPENING_CHARS))


def tokens(place: Place) -> Iterator[re.Match[str]]:
    """Yields a query's tokens up to its end, without spaces and comments (rule 6)."""
    text = place.text
    depth, previous = 0, ""
    main = first_of_line = False
    for token in _TOKEN.finditer(text, place.start, place.end):
        piece = token[0].upper()
        may_end = main and depth <= 0 and previous not in COMPOUND
        if token["comment"]:
            continue
        if token["space"]:
            first_of_line = first_of_line or "\n" in piece
            if may_end and piece.count("\n") > 1 and not _COMPOUND_NEXT.match(text, token.end()):
                return
            continue
        new_text = may_end and first_of_line and _NEW_TEXT.match(text, token.start())
        if token["stop"] or new_text or (place.prose and _FULL_STOP.match(text, token.start())):
            return
        yield token
        depth += (piece == "(") - (piece == ")")
        main = main or (piece == "SELECT" and depth <= 0) or (not previous and piece != "WITH")
        first_of_line, previous = False, piece


def query_at(place: Place) -> str:
    """The query at a place, with the prompt's SELECT if it lacks one; "" if there is nothing."""
    first = last = None
    for token in tokens(place):
        first, last = first or token, token
    if first is None or last is None:
        return ""
    query = place.text[first.start() : last.end()]
    return query if first[0].upper() in ("SELECT", "WITH") else f"SELECT {query}"


def parses(query: str) -> bool:
    """Whether SQLite's parser accepts a query; tables, columns and functions need not exist.

    The query is neither run nor compiled: a view keeps it as text. So a query that would take
    SQLite hours takes no time here.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(f"EXPLAIN CREATE TEMP VIEW v AS {query}")
        except sqlite3.OperationalError as error:
            # Anything else than the syntax is the business of whoever runs the query.
            return "syntax error" not in (said := str(error)) and not said.startswith(
                ("incomplete input", "unrecognized token")
            )
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError):
            return False  # a null character, half a character, or more than SQLite reads
    return True


def before_prose(place: Place) -> Place | None:
    """The place with the end at which prose goes on behind a query (rule 7), if it does."""
    opening = place.opening
    ends = list(islice(_prose_begins(opening), _MAX_ENDS))
    if not ends or parses(query_at(opening)):
        return None
    for end in ends:
        shorter = place._replace(end=end)
        if (query := query_at(shorter)) and parses(query):
            return shorter
    return None


def _prose_begins(place: Place) -> Iterator[int]:
    """Yields positions outside parentheses at which a sentence, label or full stop may be."""
    text, depth, behind = place.text, 0, place.start
    for token in tokens(place):
        start, piece = token.start(), token[0]
        if depth <= 0 and is_prose(text, start, new_line="\n" in text[behind:start]):
            yield start
        behind = token.end()
        if len(piece) > 1 and piece[-1] == "." and is_prose(text, behind - 1):
            yield behind - 1  # "1." ends a sentence, too
        depth += (piece == "(") - (piece == ")")


def is_prose(text: str, start: int, *, new_line: bool = False) -> bool:
    """Whether a sentence, a label or a full stop that ends one is at a position (rule 7)."""
    if text[start] == ".":
        following = _NEXT_SENTENCE.match(text, start)
        if following:
            return _RUN.match(text, following.end()) is not None
        cut_off = _QUALIFIER.search(text[max(0, start - _NAME) : start])
        return not cut_off and _END_OF_LINE.match(text, start) is not None
    if mark := _MARK.match(text, start):
        new_line, start = new_line or mark[0].startswith(("(", "//")), mark.end()
    if not (run := _RUN.match(text, start)):
        return False
    words = run[0].split()
    capital = words[0][0].isupper() and (len(words[0]) == 1 or not words[0].isupper())
    if capital and (_LABEL.match(text, start) or _END_OF_LINE.match(text, run.end())):
        return True
    english = not _ENGLISH.isdisjoint(re.split(r"\W", run[0].lower()))
    begins = capital or new_line or words[0].lower() in _OPENERS
    return begins and english and len(words) >= _LEAST_WORDS
