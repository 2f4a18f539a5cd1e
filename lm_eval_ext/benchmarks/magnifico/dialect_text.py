r"""Queries of DuckDB and PostgreSQL in answers, by the rules of :mod:`.extract`.

Those rules know SQLite's syntax, and take anything else for prose. So what only the other dialects
have is replaced by single characters that SQLite reads as a letter or a space, and put back in the
query that was found: casts (``x::int``), structs (``{'a': 1}``), ``E'\n'``, ``@>``, ``!~``, and
phrases of words that SQLite lacks. Dollar quotes, ``#>`` and ``**`` stay unknown.
"""

import re

from lm_eval_ext.benchmarks.magnifico.extract import query_of

_GLUE = "\ue000"
_CHARS = {"\ue001": "::", "\x1c": "{", "\ue003": "}", "\ue004": ":", "\x1f": "E", "\x1e": "@",
          "\x1d": "!", _GLUE: " "}  # fmt: skip
_SPACES = tuple(char for char in _CHARS if char.isspace())
_STRUCT = re.compile(r"\{'[^{}\n]*\}")
_PHRASE = re.compile(
    r"\b(?:FETCH\s+(?:FIRST|NEXT)(?:\s+\d+)?\s+ROWS?\s+(?:ONLY|WITH\s+TIES)|SIMILAR\s+TO"
    r"|AT\s+TIME\s+ZONE|WITH(?:OUT)?\s+TIME\s+ZONE|DOUBLE\s+PRECISION|QUALIFY\s(?=\s*\w))",
    re.IGNORECASE,
)
_SIGNS = (
    (re.compile("::"), "\ue001"),
    (re.compile(r"(?<![\w'])E(?=')"), "\x1f"),
    (re.compile(r"@(?=>)|(?<=<)@"), "\x1e"),
    (re.compile(r"!(?=~)"), "\x1d"),
)


def query_in_dialect(answer: str) -> str | None:
    """As :func:`~.extract.query_of`, for an answer in the dialect of DuckDB or PostgreSQL."""
    if any(char in answer for char in _CHARS):
        return query_of(answer)
    masked = _STRUCT.sub(
        lambda found: found[0].replace("{", "\x1c").replace("}", "\ue003").replace(":", "\ue004"),
        _PHRASE.sub(lambda found: re.sub(r"\s+", _GLUE, found[0]), answer),
    )
    for pattern, char in _SIGNS:
        masked = pattern.sub(char, masked)
    begin = masked.lstrip(" \t\r\n")
    if begin.startswith(_SPACES):  # would be dropped where an answer begins
        masked = f"SELECT {begin}"
    query = query_of(masked)
    if query is not None:
        for char, text in _CHARS.items():
            query = query.replace(char, text)
    return query
