r"""Finds the SQL query in a model's answer.

The prompt ends in "SELECT" (paper, section 4). A base model continues it and is stopped at ";", a
blank line, "--" or "#"; a chat model is not stopped. The same rules serve both. They select a part
of the answer without changing it (of JSON, a part of a decoded string), and add nothing except the
prompt's own SELECT. In order:

1. *Length.* Only the first million characters are read.
2. *Thinking.* Text in ``<think>`` and the like (thinking, thought, reasoning, reflection,
   scratchpad, analysis) is dropped, unless the tag touches a quotation mark that is no fence.
   What stands behind the last thought is read first. An opening tag that is never closed drops the
   rest, a closing tag that was never opened all before it.
3. *Quoted answer.* If the whole answer is in one pair of quotation marks (', " or \`), they are
   removed; a JSON string is decoded.
4. *Start.* The query begins at the first of these places where the text reads as SQL:

   a. the start of the answer;
   b. the start of a fenced block, after its language; fenced blocks precede prose because models
      talk about parts of a query before they show it;
   c. a string of JSON that is the answer, begins a fenced block, or stands in prose, decoded. The
      strings of keys such as "sql", "query" or "answer" come first. By these rules, a query is
      looked for in the string, but it continues no prompt;
   d. in prose, a SELECT or WITH in capitals, or one in other letters that does not follow a word
      or a comma, where it is English ("with t as (select" never is). One after "(", UNION, EXCEPT
      or INTERSECT is excluded: it belongs to a query that began earlier;
   e. if there is none: the SELECTs and WITHs that were left out in (d) as English, and places whose
      query was not seen for the prose behind it. SQLite must be able to parse these.

   Comments before the query are skipped. At (a) and (b), text that does not begin with SELECT or
   WITH continues the prompt: "SELECT " is put before it. Parentheses are removed if they enclose
   the whole query, and in prose only if they begin a line or follow a colon or a mark.
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
   - for a query in prose (d), a full stop at the end of a line, and the closing quotation mark
     (', " or \`) if there is an opening one before the query.

   Trailing comments are dropped. A truncated query ends where it was cut off.
7. *Prose behind the query.* If SQLite cannot parse all that, the query ends before the first
   sentence, label or full stop before which SQLite can. A sentence has three words or more, one of
   them English ("the", "this", "returns", ...). It begins with a capital letter, a line, or one of
   "which", "this", "these" and "it". A query without prose behind it is never shortened, whatever
   is wrong with it.

So the first query counts (fenced before prose), right or wrong. Base models are stopped after
their first query, and choosing among several would give verbose models more attempts. SQL is not
repaired: a query with an error is the answer and fails when it is executed.
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice

from lm_eval_ext.answers.reasoning import outside_reasoning
from lm_eval_ext.benchmarks.magnifico.sql_text import (
    COMPOUND,
    OPENING_CHARS,
    Place,
    before_prose,
    is_prose,
    parses,
    query_at,
    tokens,
)

MAX_CHARS = 1_000_000
"""Length of answers that is read; the executor refuses much shorter queries."""

_MAX_PLACES = 200
_MAX_DOUBTFUL = 40
"""Number of places that are tried, and of those where prose behind a query is looked for."""

_MAX_ROUNDS = 5

_JSON_LEVELS = 2
"""JSON is read within strings of JSON, as in the arguments of a tool call, but no deeper."""

_WRAPPED = re.compile(r"""\s*(?:'([^']+)'|"([^"]+)"|`([^`]+)`)[\s;.]*""")
_FENCE = re.compile(r"`{3,}[ \t]*(?:(?:sqlite3?|sql)\b|[\w+-]*[ \t\r]*(?=\n))?", re.IGNORECASE)
_BEGIN = re.compile(r"\b(?:select|with)\b", re.IGNORECASE)
_BEGINS = re.compile(r"[\s(]*(?:select|with)\b", re.IGNORECASE)
_TABLE_EXPRESSION = re.compile(r"with\s+\w+\s+as\s*\(", re.IGNORECASE)
_IN_CAPITALS = re.compile(r"\s*(?:SELECT|WITH)\b")
_INSIDE_QUERY = re.compile(r"(?:\(|\b(?:union(?:\s+all)?|except|intersect))\s*\Z", re.IGNORECASE)
_INSIDE_ENGLISH = re.compile(r"[\w,][ \t]*\Z")
_PARENTHESES = re.compile(r"(?:\A|[\n:>*][ \t]*|([`\"']))(\((?:\s*\()*\s*)\Z")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")
_DETERMINED = re.compile(r"\b(?:the|an|this|these|those|their|your)\s+[^\W\d]", re.IGNORECASE)

_BEFORE_SELECT = COMPOUND | {"(", ")"}
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


def query_of(answer: str) -> str | None:
    """Returns the query in an answer by the rules in the module's docstring, or None.

    The query of a query is the query itself: the rules are applied until nothing changes.
    """
    found = _find(answer[:MAX_CHARS])
    for _ in range(_MAX_ROUNDS):
        before, found = found, found and _find(found)
        if found == before:
            return found
    return None


def _find(answer: str) -> str | None:
    texts = [_unquoted(answer[start:end]) for start, end in outside_reasoning(answer)]
    doubtful: list[Place] = []
    for place in islice(chain.from_iterable(map(_places, texts)), _MAX_PLACES):
        inner = _in_parentheses(place)
        if inner is None and place.prose and place.text[place.start] == "(":
            continue
        found = inner or place
        if _reads_as_sql(found):
            return query_at(before_prose(found) or found)
        if len(doubtful) < _MAX_DOUBTFUL:
            if _IN_CAPITALS.match(found.text, found.start) and (query := _before_prose(found)):
                return query
            doubtful.append(found)
    english = islice(chain.from_iterable(map(_english_places, texts)), _MAX_DOUBTFUL)
    queries = chain(map(_before_prose, doubtful), map(_among_english, english))
    return next(filter(None, queries), None)


def _unquoted(text: str) -> str:
    """Rule 3."""
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        return wrapped[wrapped.lastindex or 0]
    try:
        found = _DECODER.decode(text) if text[:1] == '"' else None
    except ValueError:
        return text
    return found if isinstance(found, str) else text


def _places(text: str, level: int = 0) -> Iterator[Place]:
    """Rule 4, (a) to (d); ``level`` counts the strings of JSON that the text stands in."""
    if not level or _BEGINS.match(text):
        yield Place(text, 0, len(text))
    yield from _json_places(text, 0, level)
    for block in islice(_FENCE.finditer(text), 0, None, 2):  # every other fence closes a block
        yield Place(text, block.end(), len(text))
        yield from _json_places(text, block.end(), level)
    if found := _OBJECT.search(text):
        yield from _json_places(text, found.start(), level)
    for begin in _BEGIN.finditer(text):
        start = begin.start()
        before = text[max(0, start - 50) : start]
        if parentheses := _PARENTHESES.search(before):
            end = _closing(text, start, parentheses[1] or "")
            yield Place(text, start - len(parentheses[2]), end, prose=True)
        elif not _is_english(begin, before) and not _INSIDE_QUERY.search(before):
            yield Place(text, start, _closing(text, start, before[-1:]), prose=True)


def _json_places(text: str, start: int, level: int) -> Iterator[Place]:
    for string in _strings_of(text, start) if level < _JSON_LEVELS else ():
        yield from _places(string, level + 1)


def _english_places(text: str) -> Iterator[Place]:
    """Rule 4e: what (d) leaves out as English."""
    for begin in _BEGIN.finditer(text):
        start = begin.start()
        before = text[max(0, start - 50) : start]
        if _is_english(begin, before) and not _INSIDE_QUERY.search(before):
            yield Place(text, start, min(len(text), start + OPENING_CHARS), prose=True)


def _is_english(begin: re.Match[str], before: str) -> bool:
    inside = not begin[0].isupper() and _INSIDE_ENGLISH.search(before)
    return bool(inside) and not _TABLE_EXPRESSION.match(begin.string, begin.start())


def _closing(text: str, start: int, mark: str) -> int:
    """The position that closes the quotation mark before ``start``, if it is one.

    A mark that opens a quoted name or string in the query does not count.
    """
    if not mark or mark not in "'\"`":
        return len(text)
    behind = start
    for quoted in _QUOTED.finditer(text, start, start + OPENING_CHARS):
        opened = quoted.start()
        if text[opened] == mark and text[opened - 1] not in " \t\n(,.=<>|+-/":
            return opened
        if (alone := text.find(mark, behind, opened)) >= 0:
            return alone
        behind = quoted.end()
    closing = text.find(mark, behind)
    return closing if closing >= 0 else len(text)


def _reads_as_sql(place: Place) -> bool:
    """Rule 5."""
    previous, words, depth = "", 0, 0
    certain = has_from = False
    for token in tokens(place.opening):
        piece = token[0].upper()
        keyword = piece in _KEYWORDS
        if not previous:
            certain = not place.prose and token[0] in ("SELECT", "select")
            if piece == "FROM":
                return False
        elif has_from and (keyword or certain):
            return True
        elif piece in ("SELECT", "WITH") and previous not in _BEFORE_SELECT:
            return certain
        apostrophe = piece[0] == "'" and words and place.text[token.start() - 1] > " "
        if apostrophe or (token["sign"] and piece not in _SIGNS):
            return False
        words = words + 1 if token["word"] and not keyword else 0
        if words == _PROSE_WORDS and depth <= 0:
            return False
        depth += (piece == "(") - (piece == ")")
        has_from = has_from or piece == "FROM"
        previous = piece
    # A lone SELECT is no query, and a full stop ends a sentence.
    return (has_from or (certain and previous != "SELECT")) and previous != "."


def _before_prose(place: Place) -> str | None:
    """The query before the prose that hides it (rule 7), unless it would continue a sentence."""
    shorter = before_prose(place)
    if shorter is None or not _reads_as_sql(shorter):
        return None
    continues = not _BEGINS.match(place.text, place.start)
    return None if continues and place.text[shorter.end] == "." else query_at(shorter)


def _among_english(place: Place) -> str | None:
    """The query that begins with a word of a sentence, if it is no sentence itself (rule 4e)."""
    found = before_prose(place) or place
    query = query_at(found)
    english = not _reads_as_sql(found) or _DETERMINED.search(_QUOTED.sub("", query))
    return query if not english and parses(query) else None


# --- JSON (rule 4c) ---

_JSON = re.compile(r'\s*(?=[\[{][\s\[{]*")')
"""How JSON with strings begins."""

_OBJECT = re.compile(r'\{\s*"[^"\\\n]{0,60}"\s*:')
_NAMES_QUERY = re.compile(r"sql|query|answer|result|output|response|code|final", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(\\\\)|\\'")
_DECODER = json.JSONDecoder(strict=False)


def _strings_of(text: str, start: int) -> list[str]:
    """The strings of JSON at a place, those of keys like "sql" first."""
    if not (begin := _JSON.match(text, start)):
        return []
    try:
        # "\\'" is not JSON, but models write it.
        plain = _APOSTROPHE.sub(lambda found: found[1] or "'", text[begin.end() :])
        found, _ = _DECODER.raw_decode(plain)
    except (ValueError, RecursionError):
        return []  # left to the rules for prose
    members = sorted(_members("", found), key=lambda one: not _NAMES_QUERY.search(one[0]))
    return [string for _, string in members]


def _members(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _members(name, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(key, inner)


# --- parentheses (rule 4e) ---

_PARENTHESIS = re.compile(r"\s*\(\s*(?=\(|(?:select|with)\b)", re.IGNORECASE)
_MOST_PARENTHESES = 5


def _in_parentheses(place: Place) -> Place | None:
    """The query in a pair of parentheses at a place, if nothing but prose stands behind them.

    None if it has a blank line, since outside of parentheses the query would end there.
    """
    inner = place
    for _ in range(_MOST_PARENTHESES):
        opened = _PARENTHESIS.match(inner.text, inner.start, inner.end)
        closed = _last_parenthesis(inner) if opened else None
        if not opened or closed is None:
            break
        inner = inner._replace(start=opened.end(), end=closed)
    if inner is place or _PARENTHESIS.match(inner.text, inner.start):
        return None
    last = deque(tokens(inner), maxlen=1)
    whole = last and not inner.text[last[0].end() : inner.end].strip()
    return inner if whole else None


def _last_parenthesis(place: Place) -> int | None:
    """The position of the parenthesis that closes the first one, if it ends the query."""
    depth, closed = 0, None
    for token in tokens(place.opening):
        if closed is not None:
            new_line = "\n" in place.text[closed : token.start()]
            return closed if is_prose(place.text, token.start(), new_line=new_line) else None
        depth += (token[0] == "(") - (token[0] == ")")
        if not depth:
            closed = token.start()
    return closed


# --- queries of DuckDB and PostgreSQL ---

_FIRST, _MOST = 0xE000, 6_000
"""The first of the characters that Unicode leaves to programs, and how many of them are used."""

_MASKS = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + _MOST)}]")
_FOREIGN = re.compile(
    r"""
      ::                                          # casts
    | \{'[^{}\n]*\}                               # structs
    | (?<![\w'])E'(?:[^'\\]|\\.|'')*'             # strings with escapes
    | \s*(?:@>|<@|!~)\s*                          # operators
    | \b(?:FETCH\s+(?:FIRST|NEXT)(?:\s+\d+)?\s+ROWS?\s+(?:ONLY|WITH\s+TIES)|SIMILAR\s+TO
      |AT\s+TIME\s+ZONE|WITH(?:OUT)?\s+TIME\s+ZONE|DOUBLE\s+PRECISION|QUALIFY\s(?=\s*\w))
    """,
    re.IGNORECASE | re.VERBOSE,
)


def query_in_dialect(answer: str) -> str | None:
    r"""As :func:`query_of`, for an answer in the dialect of DuckDB or PostgreSQL.

    The rules know SQLite's syntax, and take anything else for prose. So what only the other
    dialects have is replaced by single characters that SQLite reads as letters, and put back in the
    query that was found. Dollar quotes, ``#>`` and ``**`` stay unknown.
    """
    kept: list[str] = []

    def mask(found: re.Match[str]) -> str:
        kept.append(found[0])
        return chr(_FIRST + len(kept) - 1)

    if _MASKS.search(answer):
        return query_of(answer)
    query = query_of(_FOREIGN.sub(mask, answer, count=_MOST))
    return query and _MASKS.sub(lambda found: kept[ord(found[0]) - _FIRST], query)
