r"""Finds the SQL query in a model's answer.

The prompt ends in "SELECT" (paper, section 4). A base model continues it and is stopped at ";", a
blank line, "--" or "#"; a chat model is not stopped. The same rules serve both. They select a part
of the answer without changing it, and add nothing except the prompt's own SELECT. In order:

1. *Length.* Only the first million characters are read.
2. *Thinking.* Text before the last ``</think>`` or ``</thinking>`` is dropped, unless the tag
   touches a quotation mark. An answer that opens the tag and never closes it has no query.
3. *Quoted answer.* If the whole answer is in one pair of quotation marks (', " or \`), they are
   removed.
4. *Start.* The query begins at the first of these places where the text reads as SQL:

   a. the start of the answer;
   b. the start of a fenced block, after its language; fenced blocks precede prose because models
      talk about parts of a query before they show it;
   c. in prose, a SELECT or WITH in capitals, or one in other letters that does not follow a word
      or a comma, where it is English. One after "(", UNION, EXCEPT or INTERSECT is excluded: it
      belongs to a query that began earlier.

   Comments before the query are skipped. At (a) and (b), text that does not begin with SELECT or
   WITH continues the prompt: "SELECT " is put before it.
5. *Reading as SQL.* Text is not SQL if, up to the first keyword after FROM, it has anything that
   only prose has: three words in a row (outside parentheses) that are not keywords, a character
   that SQL lacks (":", "?", "!", "{", ...), an apostrophe in a word, a SELECT where none is legal,
   or a full stop as the last token. At (a) and (b), text that begins with SELECT or select (not
   Select) is checked only up to FROM and needs no FROM. All other text needs one: otherwise "42"
   would become a query that returns the expected number.
6. *End.* The query ends before the first of these outside strings, quoted names and comments:

   - ";", "#", a fence, "\*\*", "</", "<|";
   - a blank line, except in parentheses, beside UNION, EXCEPT or INTERSECT, and before the main
     SELECT of a WITH;
   - a line, except in parentheses, that begins with SELECT or WITH (not after UNION etc.), with a
     label such as "User1:", or with a list number such as "2.";
   - for a query in prose (c), a full stop at the end of a line, and the closing quotation mark
     (', " or \`) if there is an opening one before the query.

   Trailing comments are dropped. A truncated query ends where it was cut off.

So the first query counts (fenced before prose), right or wrong. Base models are stopped after
their first query, and choosing among several would give verbose models more attempts. SQL is not
repaired: a query with an error is the answer and fails when it is executed.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

MAX_CHARS = 1_000_000
"""Length of answers that is read; the executor refuses much shorter queries."""

_MAX_PLACES = 200
_OPENING_CHARS = 20_000
"""Number of places that are tried, and characters checked at each: keeps the time linear."""

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
_THOUGHT = re.compile(r"(?<!['\"`])</think(?:ing)?>(?!['\"`])", re.IGNORECASE)
_THINKING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_WRAPPED = re.compile(r"""\s*(?:'([^']+)'|"([^"]+)"|`([^`]+)`)[\s;.]*""")
_FENCE = re.compile(r"`{3,}[ \t]*(?:(?:sqlite3?|sql)\b|[\w+-]*[ \t\r]*(?=\n))?", re.IGNORECASE)
_BEGIN = re.compile(r"\b(?:select|with)\b", re.IGNORECASE)
_INSIDE_QUERY = re.compile(r"(?:\(|\b(?:union(?:\s+all)?|except|intersect))\s*\Z", re.IGNORECASE)
_INSIDE_ENGLISH = re.compile(r"[\w,][ \t]*\Z")
_NEW_TEXT = re.compile(r"\w+:(?!:)|\d+[.)][ \t]|(?:select|with)\b", re.IGNORECASE)
_COMPOUND_NEXT = re.compile(r"(?:union|except|intersect)\b", re.IGNORECASE)
_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")
_FULL_STOP = re.compile(r"\.[ \t\r]*(?:\n|\Z)")

_COMPOUND = frozenset(("UNION", "ALL", "EXCEPT", "INTERSECT"))
_BEFORE_SELECT = _COMPOUND | {"(", ")"}
_SIGNS = frozenset("()*+,-./%|&<>=~") | {"!="}
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """SELECT WITH FROM WHERE GROUP BY HAVING ORDER ASC DESC NULLS LIMIT UNION ALL EXCEPT
        INTERSECT DISTINCT AS ON USING JOIN LEFT RIGHT FULL INNER OUTER CROSS NATURAL INDEXED
        AND OR NOT IN IS LIKE GLOB REGEXP MATCH ESCAPE BETWEEN ISNULL NOTNULL NULL EXISTS COLLATE
        CASE WHEN THEN ELSE END OVER PARTITION FILTER WINDOW ROWS RANGE GROUPS EXCLUDE""",
    )
)
_PROSE_WORDS = 3


class _Place(NamedTuple):
    """Where a query may begin, where it ends at the latest, and whether it is in prose."""

    start: int
    end: int
    prose: bool = False


def query_of(answer: str) -> str | None:
    """Returns the query in an answer by the rules in the module's docstring, or None.

    The query of a query is the query itself.
    """
    text = _without_thinking(answer[:MAX_CHARS])
    if wrapped := _WRAPPED.fullmatch(text):
        text = wrapped[wrapped.lastindex or 0]
    for place in islice(_places(text), _MAX_PLACES):
        if _reads_as_sql(text, place):
            return _cut(text, place)
    return None


def _without_thinking(text: str) -> str:
    closed = 0
    for tag in _THOUGHT.finditer(text):
        closed = tag.end()
    return "" if not closed and _THINKING.match(text) else text[closed:]


def _places(text: str) -> Iterator[_Place]:
    """Rule 4."""
    yield _Place(0, len(text))
    for block in islice(_FENCE.finditer(text), 0, None, 2):  # every other fence closes a block
        yield _Place(block.end(), len(text))
    for begin in _BEGIN.finditer(text):
        start = begin.start()
        before = text[max(0, start - 50) : start]
        english = not begin[0].isupper() and _INSIDE_ENGLISH.search(before)
        if not english and not _INSIDE_QUERY.search(before):
            yield _Place(start, _closing(text, start, before[-1:]), prose=True)


def _closing(text: str, start: int, mark: str) -> int:
    """The position that closes the quotation mark before ``start``, if it is one.

    A mark that opens a quoted name or string in the query does not count.
    """
    if not mark or mark not in "'\"`":
        return len(text)
    behind = start
    for quoted in _QUOTED.finditer(text, start, start + _OPENING_CHARS):
        opened = quoted.start()
        if text[opened] == mark and text[opened - 1] not in " \t\n(,.=<>|+-/":
            return opened
        if (alone := text.find(mark, behind, opened)) >= 0:
            return alone
        behind = quoted.end()
    closing = text.find(mark, behind)
    return closing if closing >= 0 else len(text)


def _reads_as_sql(text: str, place: _Place) -> bool:
    """Rule 5."""
    opening = place._replace(end=min(place.end, place.start + _OPENING_CHARS))
    previous, words, depth = "", 0, 0
    certain = has_from = False
    for token in _tokens(text, opening):
        kind, piece = token.lastgroup, token[0].upper()
        keyword = kind == "word" and piece in _KEYWORDS
        if not previous:
            certain = not place.prose and token[0] in ("SELECT", "select")
            if piece == "FROM":
                return False
        elif has_from and (keyword or certain):
            return True
        elif piece in ("SELECT", "WITH") and previous not in _BEFORE_SELECT:
            return certain
        apostrophe = kind == "value" and piece[0] == "'" and words and text[token.start() - 1] > " "
        if apostrophe or (kind == "sign" and piece not in _SIGNS):
            return False
        words = words + 1 if kind == "word" and not keyword else 0
        if words == _PROSE_WORDS and depth <= 0:
            return False
        depth += (piece == "(") - (piece == ")")
        has_from = has_from or piece == "FROM"
        previous = piece
    # A lone SELECT is no query, and a full stop ends a sentence.
    return (has_from or (certain and previous != "SELECT")) and previous != "."


def _cut(text: str, place: _Place) -> str:
    tokens = _tokens(text, place)
    first = last = next(tokens)
    for token in tokens:
        last = token
    query = text[first.start() : last.end()]
    return query if first[0].upper() in ("SELECT", "WITH") else f"SELECT {query}"


def _tokens(text: str, place: _Place) -> Iterator[re.Match[str]]:
    """Rule 6: yields a query's tokens up to its end, without spaces and comments."""
    depth, previous = 0, ""
    main = first_of_line = False
    for token in _TOKEN.finditer(text, place.start, place.end):
        kind, piece = token.lastgroup, token[0].upper()
        may_end = main and depth <= 0 and previous not in _COMPOUND
        if kind == "comment":
            continue
        if kind == "space":
            first_of_line = first_of_line or "\n" in piece
            if may_end and piece.count("\n") > 1 and not _COMPOUND_NEXT.match(text, token.end()):
                return
            continue
        new_text = may_end and first_of_line and _NEW_TEXT.match(text, token.start())
        if kind == "stop" or new_text or (place.prose and _FULL_STOP.match(text, token.start())):
            return
        yield token
        depth += (piece == "(") - (piece == ")")
        main = main or (piece == "SELECT" and depth <= 0) or (not previous and piece != "WITH")
        first_of_line, previous = False, piece
