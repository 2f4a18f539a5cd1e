"""Tells a query from the sentences around it.

Answers are hostile input: all of this takes linear time and raises nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from lm_eval_ext.benchmarks.magnifico.sql_text import (
    COMPOUND,
    KEYWORDS,
    WIDE_COMMAS,
    QuerySpan,
    parses,
    query_at,
    tokens,
)

_MAX_ENDS: Final = 20
"""Positions per span at which prose may begin; each is one call of SQLite's parser."""

_BEFORE_SELECT: Final = COMPOUND | {"(", ")"}
_SIGNS: Final = frozenset("()*+,-./%|&<>=~") | {"!="}
_PROSE_WORDS: Final = 3
"""Words in a row, none of them a keyword, that only prose has."""

_GLUED_SELECT = re.compile(r"[^\x00-\x7f](?:SELECT|WITH)\Z")
"""A script without spaces, and a query right behind its last letter."""


def reads_as_sql(span: QuerySpan) -> bool:  # noqa: PLR0911 (one reason after the other)
    """Return whether the text in a span is SQL and no prose (rule 5)."""
    previous = ""
    words = depth = 0
    certain = has_from = False
    for token in tokens(span.opening):
        piece = token[0].upper()
        is_keyword = piece in KEYWORDS
        if not previous:
            certain = not span.prose and token[0] in ("SELECT", "select")
            if piece == "FROM":
                return False
        elif has_from and (is_keyword or certain):
            return True
        elif piece in ("SELECT", "WITH") and previous not in _BEFORE_SELECT:
            return certain
        is_apostrophe = piece[0] == "'" and words and span.text[token.start() - 1] > " "
        is_wide = token["wide"] and not (certain and piece in WIDE_COMMAS)
        if is_apostrophe or is_wide or (token["sign"] and piece not in _SIGNS):
            return False
        if token["word"] and _GLUED_SELECT.search(token[0]):
            return False
        if token["word"] and not is_keyword:
            words += 1
        else:
            words = 0
        if words == _PROSE_WORDS and depth <= 0:
            return False
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        has_from = has_from or piece == "FROM"
        previous = piece
    # A lone SELECT is no query, and a full stop ends a sentence.
    return (has_from or (certain and previous != "SELECT")) and previous != "."


_MAX_NAME_WORDS: Final = 12

_BROKEN_CONTINUATION = re.compile(
    r"""
    \s*(?!(?:WITH|the|this|that|an?|i|we|you|it|to|here|sure|sorry|none?|not|never
        |cannot|unable|based)\b|SELECT)
    [a-z_] (?:(?!(?:SELECT|not|cannot|can|be|is|are|use)\b)[a-z0-9_ ,.*+/()"-]){0,120}?
    [ ](?-i:FROM)\s+\w+ \s*
    (?:\Z|[;,\n]|(?:AS|WHERE|GROUP|ORDER|LIMIT|JOIN|INNER|LEFT)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Names and signs up to FROM and a table, after which only a query could continue."""


def is_broken_continuation(span: QuerySpan) -> bool:
    """Return whether an answer is a query with mistakes that goes on with the prompt's SELECT."""
    return not span.prose and _BROKEN_CONTINUATION.match(span.text, span.start) is not None


def is_broken_query(span: QuerySpan) -> bool:
    """Return whether the text is a query that only its mistakes hide (rule 8).

    It has SELECT and FROM in the same case, and between them nothing that only a sentence has.
    """
    remaining = tokens(span.opening)
    opening = next(remaining, None)
    if opening is None:
        return False
    select = opening[0]
    if select not in ("SELECT", "select") or (span.prose and select == "select"):
        return False
    words = 0
    for token in remaining:
        piece = token[0]
        if piece.upper() == "FROM":
            return piece.isupper() == select.isupper() and words > 0
        if token["wide"] or piece in (":", "!", "{", "}"):
            return False
        if token["word"]:
            words += 1
        elif piece not in KEYWORDS:
            words = max(words, 1)
        if words > _MAX_NAME_WORDS:
            return False
    return False


# --- prose behind a query (rule 7) ---

_KEYWORD: Final = (
    "(?:SELECT|FROM|WHERE|GROUP|ORDER|HAVING|LIMIT|OFFSET|UNION|EXCEPT|INTERSECT|JOIN|LEFT|RIGHT"
    r"|FULL|INNER|OUTER|CROSS|NATURAL|AND|OR|ON|USING|ASC|DESC|BETWEEN|LIKE|GLOB|COLLATE)\b"
)
"""Words that no sentence begins with, since a query goes on with them; one in capitals ends a run
of words, but for what a sentence calls it: "the WHERE clause"."""

_WORD: Final = r"[^\W\d_]+(?:['\u2019][a-z]{1,2}\b)?"
_RUN = re.compile(
    rf"(?!(?i:{_KEYWORD})){_WORD}(?:,?[ \t]{{1,3}}"
    rf"(?!{_KEYWORD}(?!\s(?:clause|condition|part|statement|keyword)\b)){_WORD}){{0,7}}"
)
_LABEL = re.compile(r"[A-Z]\w*(?:[ \t]\w+){0,3}:(?=\s)")
_END_OF_LINE = re.compile(r"[.!][ \t\r]*(?:\n|\Z|</)")
_NEXT_SENTENCE = re.compile(r"\.[ \t\r\n]+(?=[A-Z])")
_QUALIFIER = re.compile(r"(?:[=<>]|\b(?:on|where|and|or))\s*[^\W\d]\w*\Z", re.IGNORECASE)
"""A table's name in a condition: behind it, a full stop was followed by a column."""

_MAX_NAME_CHARS: Final = 80
"""Characters of a name that are looked at."""

_REST_IN_OTHER_SCRIPT = re.compile(r"[^\x00-\u024f\W\d][^\n!-\-/-~]{0,200}[.]?[ \t\r]*(?:\n|\Z)")
"""The rest of a line, in a script that is not Latin and without any sign of SQL."""

_LAST_WORD = re.compile(r"(\w+)\s*\Z")
_MARK = re.compile(r"[-*>(/,]{1,3}[ \t]{0,3}(?=[^\W\d_])")
_ENGLISH: Final = frozenset(
    re.findall(
        r"\w+",
        """the an this that these those it its is are was were will would can should which who you
        your we our i they their there here of for to because since returns return gives give shows
        show lists selects finds means me""",
    )
)
_OPENERS: Final = frozenset(("which", "this", "these", "it"))
"""Words that begin a sentence or a clause behind a query even in lower case."""

_MIN_WORDS: Final = 3


def before_prose(span: QuerySpan) -> QuerySpan | None:
    """Return the span with the end at which prose goes on behind a query, if it does."""
    opening = span.opening
    ends = list(islice(_prose_begins(opening), _MAX_ENDS))
    if not ends or parses(query_at(opening)):
        return None
    for end in ends:
        shorter = replace(span, end=end)
        query = query_at(shorter)
        if query and parses(query) and not _is_cut_before_from(query, opening, end):
            return shorter
    return None


_FROM = re.compile(r"\bFROM\b")


def _is_cut_before_from(query: str, span: QuerySpan, end: int) -> bool:
    """Return whether the FROM of a query stands behind its end, so that no prose begins there.

    An unquoted name with spaces looks like prose: "MAX(Days to Harvest) FROM Variety".
    """
    rest_of_line = span.text[end : span.end].partition("\n")[0]
    if not rest_of_line.lstrip().startswith("("):
        return False
    return _FROM.search(query.upper()) is None and _FROM.search(rest_of_line) is not None


def _prose_begins(span: QuerySpan) -> Iterator[int]:
    """Yield positions outside parentheses at which a sentence, label or full stop may be."""
    text = span.text
    depth = 0
    token_end = span.start
    for token in tokens(span):
        start = token.start()
        piece = token[0]
        if depth <= 0 and is_prose(text, start, new_line="\n" in text[token_end:start]):
            yield start
        token_end = token.end()
        if len(piece) > 1 and piece[-1] == "." and is_prose(text, token_end - 1):
            yield token_end - 1  # "1." ends a sentence, too
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1


def is_prose(text: str, start: int, *, new_line: bool = False) -> bool:
    """Return whether a sentence, a label or a full stop that ends one is at a position."""
    if text[start] == ".":
        following = _NEXT_SENTENCE.match(text, start)
        if following:
            return _RUN.match(text, following.end()) is not None
        cut_off = _QUALIFIER.search(text[max(0, start - _MAX_NAME_CHARS) : start])
        return not cut_off and _END_OF_LINE.match(text, start) is not None
    if _REST_IN_OTHER_SCRIPT.match(text, start):
        word_before = _LAST_WORD.search(text[max(0, start - _MAX_NAME_CHARS) : start])
        # Behind a keyword or a name of the same script, it is a name.
        return word_before is None or (
            word_before[1].isascii() and word_before[1].upper() not in KEYWORDS
        )
    mark = _MARK.match(text, start)
    if mark:
        new_line = new_line or mark[0].startswith(("(", "//"))
        start = mark.end()
    run = _RUN.match(text, start)
    if not run:
        return False
    words = run[0].split()
    is_capital = words[0][0].isupper() and (len(words[0]) == 1 or not words[0].isupper())
    if is_capital and (_LABEL.match(text, start) or _END_OF_LINE.match(text, run.end())):
        return True
    has_english = not _ENGLISH.isdisjoint(re.split(r"\W", run[0].lower()))
    begins_sentence = is_capital or new_line or words[0].lower() in _OPENERS
    return begins_sentence and has_english and len(words) >= _MIN_WORDS


# --- words before a query that deny it or call it an example (rule 4) ---

_FILLER: Final = (
    r"(?:an?|the|this|that|as|is|be|it|use|using|write|run|try|do|say|just|simply|like|like\ this"
    r"|query|sql|statement|answer|one|version|approach|way|following|correct|right)"
)
_LEAD: Final = rf"(?:\s+{_FILLER}){{0,5}}\s*[,:：]?[\s`\"'“‘*_>(]*(?:[`~]{{3}}\w*\s*)?\Z"  # noqa: RUF001
_DENIED = re.compile(
    r"(?:(?<!why )\bnot|n['’]t|\bnever|\bavoid(?:\s+using)?|\binstead\s+of|\brather\s+than"  # noqa: RUF001
    r"|(?<!not )\b(?:wrong|incorrect|bad)(?:\s+(?:query|answer|sql|version))?"
    r"(?:\s+(?:is|would\s+be))?)"
    rf"{_LEAD}"
    r"|(?:不是|不要(?:使用|用|写)?|请勿使用|不能(?:使用|用)?|而不是|错误的?(?:查询|答案)?是?"
    r"|ではなく|아닌|ليس)[\s\uff1a:`]*\Z",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"(?:\bfor\s+(?:example|instance)|\be\.g\.|\bsuch\s+as|\b(?:an\s+)?example(?:\s+of\s+\w+)?"
    rf"|例えば|例如|比如|예를\s*들어|مثلا){_LEAD}|(?:例如|比如|例えば)[\s，、：:`]*\Z",  # noqa: RUF001
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"[\s;.`~\"'*)]{0,40}(?:,\s*)?(?:\b(?:or|or\s+else|or\s+maybe)\b|或者?|または|또는|أو)[\s:：,]{0,9}"  # noqa: RUF001
    r"[`~\"'*(]{0,4}(?:sql)?\s{0,4}(?:select|with)\b",
    re.IGNORECASE,
)
_WAVERS = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|possibly|unsure|not\s+sure)\b[^.\n]*"
    r"(?::\s*)?(?:[`~]{3}\w*\s*)?\Z",
    re.IGNORECASE,
)
_MAX_LEAD: Final = 120
"""Characters before a query among which a denial or an example is looked for."""


def is_dismissed(span: QuerySpan) -> bool:
    """Return whether the words right before a query deny it, or call it an example."""
    text_before = span.text[max(0, span.start - _MAX_LEAD) : span.start]
    return bool(_DENIED.search(text_before) or _EXAMPLE.search(text_before))


def has_alternative(span: QuerySpan) -> bool:
    """Return whether the text wavers between the query in a span and another: "could be A or B".

    Two queries that are offered side by side ("use A or B") are no such case: the first counts.
    """
    last: re.Match[str] | None = None
    for token in tokens(span):
        if last is not None and last[0].upper() == "OR" and token[0].upper() in ("SELECT", "WITH"):
            return True  # no SQL, so it is English
        last = token
    text_before = span.text[max(0, span.start - _MAX_LEAD) : span.start]
    if last is None or not _WAVERS.search(text_before):
        return False
    return _ALTERNATIVE.match(span.text, last.end()) is not None
