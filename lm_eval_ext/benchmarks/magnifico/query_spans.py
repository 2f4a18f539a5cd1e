"""Finds the places in an answer at which a query may begin (rules 3 and 4).

Answers are hostile input: all of this takes linear time and raises nothing.
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lm_eval_ext.answers.markdown import closing_brace
from lm_eval_ext.benchmarks.magnifico.sql_prose import is_prose
from lm_eval_ext.benchmarks.magnifico.sql_text import OPENING_CHARS, QuerySpan, tokens

_MAX_LEVELS: Final = 2
"""JSON, boxes and quotations are read within strings of JSON, as in the arguments of a tool call,
but no deeper."""

_MAX_BOXES: Final = 20

BEGINS = re.compile(r"[\s(]*(?:select|with)\b", re.IGNORECASE)
_BEGIN = re.compile(r"\b(?i:select|with)\b|(?<=[^\x00-\x7f])(?:SELECT|WITH)\b")
_TABLE_EXPRESSION = re.compile(r"with\s+\w+\s+as\s*\(", re.IGNORECASE)
_INSIDE_QUERY = re.compile(r"(?:\(|\b(?:union(?:\s+all)?|except|intersect))\s*\Z", re.IGNORECASE)
_INSIDE_ENGLISH = re.compile(r"[\w,][ \t]*\Z")
_PARENTHESES = re.compile(r"(?:\A|[\n:>*][ \t]*|([`\"']))(\((?:\s*\()*\s*)\Z")
QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")

_BLOCK = re.compile(
    r"""
      (?P<fence> (?P<fence_mark>`{3,}|~{3,}) [ \t]*
        (?:(?:sqlite3?|sql|duckdb|postgres(?:ql)?)\b|[\w+-]*[ \t\r]*(?=\n))? )
    | (?P<tag> \[(?:SQL|QUERY|ANSWER|CODE)\] (?=[\s(]*(?:select|with)\b) )
    | (?P<box> \\(?:boxed|fbox|text(?:tt|bf|rm)?|mathtt|mathrm)\s{0,3}\{ )
    | (?P<environment> \\begin\{(?:verbatim|lstlisting|minted|alltt|quote|sql)\*?\}
        (?:\[[^\]\n]{0,200}\])?(?:\{[^}\n]{0,40}\})? )
    | (?P<quotes> (?P<quote_mark>\"{3}|'{3}) (?:sql\b)? (?=[\s(]*(?:select|with)\b) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WRAPPING_TAG = re.compile(
    r"\s*\[(?P<name>SQL|QUERY|ANSWER|CODE)\](?=.*\[/(?P=name)\])", re.IGNORECASE | re.DOTALL
)
"""A tag that begins an answer and is closed. Without the closing one it may be a column's name."""
_QUOTATION = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_QUOTATION_MARK = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_LATEX_TEXT = re.compile(r"\s*\\(?:text|texttt|mathrm|mathtt|textbf)\s?\{")
_LATEX_ESCAPE = re.compile(r"\\([_%&#$])")


def query_spans(text: str, level: int = 0) -> Iterator[QuerySpan]:
    """Yield the spans of rule 4, (a) to (d).

    Args:
        text: The text.
        level: In how many strings of JSON, boxes or quotations it stands.
    """
    if level == 0 or BEGINS.match(text):
        tag = _WRAPPING_TAG.match(text)
        if tag:
            yield QuerySpan(text, tag.end(), len(text), source="tag")
        else:
            yield QuerySpan(text, 0, len(text), source="start of the answer")
    yield from _json_spans(text, 0, level)
    yield from _blocks(text, level)
    if level < _MAX_LEVELS and ">" in text:
        for quotation in _QUOTATION.finditer(text):
            yield from query_spans(_QUOTATION_MARK.sub("", quotation[0]), level + 1)
    json_object = _OBJECT.search(text)
    if json_object:
        yield from _json_spans(text, json_object.start(), level)
    for begin in _BEGIN.finditer(text):
        start = begin.start()
        text_before = text[max(0, start - 50) : start]
        parentheses = _PARENTHESES.search(text_before)
        if parentheses:
            end = closing_mark(text, start, parentheses[1] or "")
            start -= len(parentheses[2])
            yield QuerySpan(text, start, end, prose=True, source="prose")
        elif not _is_english(begin, text_before) and not _INSIDE_QUERY.search(text_before):
            end = closing_mark(text, start, text_before[-1:])
            yield QuerySpan(text, start, end, prose=True, source="prose")


def english_spans(text: str) -> Iterator[QuerySpan]:
    """Yield the spans of rule 4e: what (d) leaves out as English."""
    for begin in _BEGIN.finditer(text):
        start = begin.start()
        text_before = text[max(0, start - 50) : start]
        if _is_english(begin, text_before) and not _INSIDE_QUERY.search(text_before):
            end = min(len(text), start + OPENING_CHARS)
            yield QuerySpan(text, start, end, prose=True, source="sentence")


def _is_english(begin: re.Match[str], text_before: str) -> bool:
    in_sentence = not begin[0].isupper() and _INSIDE_ENGLISH.search(text_before)
    return bool(in_sentence) and not _TABLE_EXPRESSION.match(begin.string, begin.start())


def closing_mark(text: str, start: int, mark: str) -> int:
    """Return the position that closes the quotation mark before ``start``, if it is one.

    A mark that opens a quoted name or string in the query does not count.
    """
    if mark == "‘":  # noqa: RUF001
        closing = text.find("’", start)  # noqa: RUF001
        return closing if closing >= 0 else len(text)
    if not mark or mark not in "'\"`":
        return len(text)
    end_of_quotation = start
    for quoted in QUOTED.finditer(text, start, start + OPENING_CHARS):
        opened = quoted.start()
        if text[opened] == mark and text[opened - 1] not in " \t\n(,.=<>|+-/":
            return opened
        closing = text.find(mark, end_of_quotation, opened)
        if closing >= 0:
            return closing
        end_of_quotation = quoted.end()
    closing = text.find(mark, end_of_quotation)
    return closing if closing >= 0 else len(text)


def _blocks(text: str, level: int) -> Iterator[QuerySpan]:
    """Yield the spans in blocks: fences, tags, environments, boxes and triple quotation marks."""
    open_mark = ""
    boxes = 0
    for block in _BLOCK.finditer(text):
        start = block.end()
        if block["fence"]:
            mark = block["fence_mark"][0]
            if open_mark == mark:  # it closes a block
                open_mark = ""
                continue
            open_mark = open_mark or mark
            yield QuerySpan(text, start, len(text), source="fenced block")
            yield from _json_spans(text, start, level)
        elif block["box"]:
            boxes += 1
            if boxes <= _MAX_BOXES:
                yield from _box_spans(text, start, level)
        else:
            yield from _other_block(text, block)


def _box_spans(text: str, start: int, level: int) -> Iterator[QuerySpan]:
    """Yield the spans in a box of LaTeX, unless it is nested too deep or not closed."""
    if level >= _MAX_LEVELS:
        return
    end = closing_brace(text, start)
    if end is not None:
        yield from query_spans(_without_latex(text[start:end]), level + 1)


def _other_block(text: str, block: re.Match[str]) -> Iterator[QuerySpan]:
    """Yield the span in a tag, an environment or triple quotation marks."""
    start = block.end()
    if block["quotes"]:
        end = text.find(block["quote_mark"], start)
        if end >= 0:
            yield QuerySpan(text, start, end, source="quotation marks")
        return
    source = "tag" if block["tag"] else "environment"
    yield QuerySpan(text, start, len(text), source=source)


def _without_latex(text: str) -> str:
    r"""Return the content of a box without ``\text{...}`` around it, and without escapes."""
    command = _LATEX_TEXT.match(text)
    if command:
        end = closing_brace(text, command.end())
        text = text[command.end() : end]
    return _LATEX_ESCAPE.sub(r"\1", text)


# --- JSON (rule 4c) ---

_JSON = re.compile(r'\s*(?=[\[{][\s\[{]*")')
"""The beginning of JSON with strings."""

_OBJECT = re.compile(r'\{\s*"[^"\\\n]{0,60}"\s*:')
_NAMES_QUERY = re.compile(r"sql|query|answer|result|output|response|code|final", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(\\\\)|\\'")
_DECODER = json.JSONDecoder(strict=False)
_WRAPPED = re.compile(r"""\s*(?:'([^']+)'|"([^"]+)"|`([^`]+)`)[\s;.]*""")


def without_quotation_marks(text: str) -> str:
    """Return an answer without the quotation marks around all of it (rule 3)."""
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        return str(wrapped[wrapped.lastindex or 0])
    if not text.startswith('"'):
        return text
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _json_spans(text: str, start: int, level: int) -> Iterator[QuerySpan]:
    if level >= _MAX_LEVELS:
        return
    for string in _strings_of(text, start):
        for span in query_spans(string, level + 1):
            yield replace(span, source=f"JSON, {span.source}")


def _strings_of(text: str, start: int) -> list[str]:
    """Return the strings of JSON at a position, those of keys like "sql" first."""
    begin = _JSON.match(text, start)
    if not begin:
        return []
    try:
        # "\\'" is not JSON, but models write it.
        plain = _APOSTROPHE.sub(lambda escape: escape[1] or "'", text[begin.end() :])
        value, _ = _DECODER.raw_decode(plain)
    except (ValueError, RecursionError):
        return []  # left to the rules for prose
    members = sorted(_members("", value), key=lambda member: not _NAMES_QUERY.search(member[0]))
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


# --- parentheses around a query (rule 4) ---

_PARENTHESIS = re.compile(r"\s*\(\s*(?=\(|(?:select|with)\b)", re.IGNORECASE)
_MAX_PARENTHESES: Final = 5


def in_parentheses(span: QuerySpan) -> QuerySpan | None:
    """Return the query in a pair of parentheses in a span, if only prose stands behind them.

    None if it has a blank line, since outside of parentheses the query would end there.
    """
    inner = span
    for _ in range(_MAX_PARENTHESES):
        opened = _PARENTHESIS.match(inner.text, inner.start, inner.end)
        closed = _last_parenthesis(inner) if opened else None
        if not opened or closed is None:
            break
        inner = replace(inner, start=opened.end(), end=closed)
    if inner is span or _PARENTHESIS.match(inner.text, inner.start):
        return None
    last = deque(tokens(inner), maxlen=1)
    if not last or inner.text[last[0].end() : inner.end].strip():
        return None
    return inner


def _last_parenthesis(span: QuerySpan) -> int | None:
    """Return the position of the parenthesis that closes the first one, if it ends the query."""
    depth = 0
    closed: int | None = None
    for token in tokens(span.opening):
        if closed is not None:
            new_line = "\n" in span.text[closed : token.start()]
            return closed if is_prose(span.text, token.start(), new_line=new_line) else None
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        if depth == 0:
            closed = token.start()
    return closed
