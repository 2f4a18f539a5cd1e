"""Finds statements that are no queries in answers: INSERT, UPDATE, CREATE TABLE ... AS, DESCRIBE.

Many of them hold a SELECT, which is not what the answer says. Answers are hostile input: every
repetition is bounded, and nothing is raised.
"""

import re
from dataclasses import replace
from itertools import islice
from typing import Final

from lm_eval_ext.benchmarks.magnifico.query_spans import closing_mark
from lm_eval_ext.benchmarks.magnifico.sql_text import (
    QuerySpan,
    query_as_written,
    raw_tokens,
    tokens,
)

_REACH: Final = 5_000
"""Characters before a SELECT in which the beginning of its statement is looked for."""

_MAX_HEADS: Final = 50
"""Number of beginnings of statements that are tried before a SELECT, and in a text."""

_COMMENT: Final = r"--[^\n]{0,500}\n|/\*[^*]{0,500}(?:\*(?!/)[^*]{0,500}){0,20}\*/"
_GAP: Final = rf"(?:\s|{_COMMENT}){{1,200}}"
_MAYBE_GAP: Final = rf"(?:\s|{_COMMENT}){{0,200}}"
_PART: Final = r"""(?:[^\W\d][\w$]{0,128}|"[^"\n]{1,128}"|`[^`\n]{1,128}`|\[[^\]\n]{1,128}\])"""
_NAME: Final = rf"{_PART}(?:\.{_PART}){{0,3}}"
_COLUMNS: Final = rf"(?:{_MAYBE_GAP}\([^();]{{0,2000}}\))?"

_COMMENTS = re.compile(_MAYBE_GAP)
_HEAD = re.compile(
    rf"""
    (?<![\w$.])
    (?:
      (?P<before_query>
        (?: (?: INSERT {_GAP} (?:OR {_GAP} \w+ {_GAP})? (?:INTO|OVERWRITE) | REPLACE {_GAP} INTO )
            {_GAP} {_NAME} (?:{_GAP} AS {_GAP} {_NAME})? {_COLUMNS}
            (?:{_GAP} BY {_GAP} (?:NAME|POSITION))?
            (?:{_GAP} OVERRIDING {_GAP} (?:SYSTEM|USER) {_GAP} VALUE)?
          | CREATE {_GAP} (?:(?:OR|REPLACE|TEMP|TEMPORARY|LOCAL|GLOBAL|UNLOGGED|MATERIALIZED
              |RECURSIVE) {_GAP}){{0,5}}
            (?:TABLE|VIEW|MACRO|FUNCTION) {_GAP} (?:IF {_GAP} NOT {_GAP} EXISTS {_GAP})? {_NAME}
            {_COLUMNS} {_GAP} AS (?:{_GAP} (?:(?:NOT {_GAP})? MATERIALIZED|TABLE))?
          | PREPARE {_GAP} {_NAME} {_COLUMNS} {_GAP} AS
          | EXPLAIN (?:{_GAP} QUERY {_GAP} PLAN | (?:{_GAP} (?:ANALYZE|VERBOSE)){{1,2}})?
            {_COLUMNS}
          | DECLARE {_GAP} {_NAME} (?:{_GAP} \w+){{0,3}} {_GAP} CURSOR
            (?:{_GAP} (?:WITH|WITHOUT) {_GAP} HOLD)? {_GAP} FOR
          # Not behind a word: "ORDER BY a DESC" may stand before a query.
          | (?<![\w,)\]"`'][ ]) (?:DESC|DESCRIBE|SUMMARIZE|SHOW)
        )
        (?: {_MAYBE_GAP} \( ){{0,3}} {_MAYBE_GAP} (?=\b(?:SELECT|WITH)\b)
      )
    | (?: INSERT {_GAP} (?:OR {_GAP} \w+ {_GAP})? INTO {_GAP} {_NAME} {_COLUMNS} {_MAYBE_GAP}
          (?:VALUES\b|DEFAULT {_GAP} VALUES\b)
        | REPLACE {_GAP} INTO {_GAP} {_NAME} {_COLUMNS} {_MAYBE_GAP} VALUES\b
        | DELETE {_GAP} FROM {_GAP} {_NAME} (?:{_GAP} AS {_GAP} {_NAME})?
          (?= {_MAYBE_GAP} (?:\Z|[;`~"']|WHERE\b|USING\b|RETURNING\b) )
        | UPDATE {_GAP} (?:OR {_GAP} \w+ {_GAP})? {_NAME} (?:{_GAP} AS {_GAP} {_NAME})? {_GAP}
          SET {_GAP} {_NAME} {_MAYBE_GAP} =
        | MERGE {_GAP} INTO {_GAP} {_NAME} (?:{_GAP} (?:AS {_GAP})? {_NAME})? {_GAP} USING\b
        | CREATE {_GAP} (?:(?:TEMP|TEMPORARY|UNIQUE) {_GAP}){{0,2}} (?:TABLE|INDEX|TRIGGER) {_GAP}
          (?:IF {_GAP} NOT {_GAP} EXISTS {_GAP})? {_NAME}
          (?= {_MAYBE_GAP} (?:\(|ON\b|BEFORE\b|AFTER\b|INSTEAD\b) )
        | (?:DROP|ALTER) {_GAP} (?:TABLE|VIEW|INDEX|TRIGGER) {_GAP}
          (?:IF {_GAP} EXISTS {_GAP})? {_NAME}
        | COPY {_MAYBE_GAP} \(
      )
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""The beginning of a statement that is no query; ``before_query`` ends where its query begins."""

_CLOSING = re.compile(r"[\s)]*\)")
_IN_SENTENCE = re.compile(r"[\w,][ \t]*\Z")
_TABLE_EXPRESSIONS = re.compile(
    rf"\bWITH{_GAP}(?:RECURSIVE{_GAP})?{_NAME}{_COLUMNS}{_GAP}AS\b", re.IGNORECASE
)


def statement_as_written(span: QuerySpan) -> str:
    """Return the query in a span, from the beginning of the statement that it is a part of.

    Args:
        span: A span that holds a query.
    """
    first = next(tokens(span), None)
    if first is None:
        return ""
    start = _statement_start(span.text, first.start())
    if start is None:
        return query_as_written(span)
    end = _end_of_wrapping(span.text, start)
    last = first
    for token in tokens(replace(span, end=min(span.end, end))):
        last = token
    # The span may be the inside of parentheses that are the statement's own.
    closing = _CLOSING.match(span.text, last.end(), end)
    return span.text[start : closing.end() if closing else last.end()]


def is_other_statement(span: QuerySpan) -> bool:
    """Return whether a span has no query but a statement of another kind.

    Args:
        span: A span that reads as SQL, which DELETE FROM does as well.
    """
    query = query_as_written(span)
    return not query[:6].upper().startswith(("SELECT", "WITH")) and bool(first_statement(query))


def first_statement(text: str) -> str:
    """Return the first statement in a text that is no query, without comments before it; or ""."""
    for head in islice(_HEAD.finditer(text), _MAX_HEADS):
        if not _may_begin(head):
            continue
        start = _with_table_expressions(text, max(0, head.start() - _REACH), head.start())
        end = _end_of_wrapping(text, start)
        last_end = start
        for token in raw_tokens(text, start, end):
            is_blank_line = token["space"] and token[0].count("\n") > 1
            if token["stop"] or (is_blank_line and token.start() >= head.end()):
                break
            if not token["space"] and not token["comment"]:
                last_end = token.end()
        return text[start:last_end]
    return ""


def _statement_start(text: str, query_start: int) -> int | None:
    """Return where a statement begins that is no query and holds the one at a position."""
    earliest = max(0, query_start - _REACH)
    for head in islice(_HEAD.finditer(text, earliest, query_start + len("SELECT")), _MAX_HEADS):
        if not _may_begin(head):
            continue
        if head["before_query"]:
            is_whole = head.end() == query_start
        else:
            is_whole = _is_open(text, head.start(), query_start)
        if is_whole:
            return _with_table_expressions(text, earliest, head.start())
    return None


def _with_table_expressions(text: str, earliest: int, start: int) -> int:
    """Return where a statement begins: at the WITH before it, if it has one."""
    for opening in islice(_TABLE_EXPRESSIONS.finditer(text, earliest, start), _MAX_HEADS):
        between = list(raw_tokens(text, opening.start(), start))
        visible = [token[0] for token in between if not token["space"] and not token["comment"]]
        is_closed = visible.count("(") == visible.count(")") and visible[-1] == ")"
        if is_closed and not any(token["stop"] for token in between):
            return opening.start()
    return start


def _end_of_wrapping(text: str, start: int) -> int:
    """Return the position that closes what opens before a statement: a mark or a parenthesis."""
    end = closing_mark(text, start, text[max(0, start - 1) : start])
    depth = 0
    for token in raw_tokens(text, start, end):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        if depth < 0:
            return token.start()
    return end


def _is_open(text: str, start: int, end: int) -> bool:
    """Return whether a parenthesis is open at the end of a stretch of one statement."""
    depth = 0
    for token in raw_tokens(text, start, end):
        if token["stop"]:
            return False
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
    return depth > 0


def _may_begin(head: re.Match[str]) -> bool:
    """Return whether a statement may begin there: in no comment, and not as a part of English."""
    text_before = head.string[max(0, head.start() - 500) : head.start()]
    line_before = text_before.rpartition("\n")[2]
    if "--" in line_before or text_before.rfind("/*") > text_before.rfind("*/"):
        return False
    return head[0][:4].isupper() or _IN_SENTENCE.search(text_before) is None
