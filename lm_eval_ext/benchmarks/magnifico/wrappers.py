r"""What models put around a query: JSON, parentheses.

Answers are hostile input: all of this takes linear time and raises nothing.
"""

import json
import re
from collections import deque
from collections.abc import Iterator

from lm_eval_ext.benchmarks.magnifico.sql_text import OPENING_CHARS, Place, is_prose, tokens

# --- JSON (rule 4c) ---

_JSON = re.compile(r'\s*(?:\[\s*)?\{\s*"|\s*\[\s*"')
_OBJECT = re.compile(r'\{\s*"[^"\\\n]{0,60}"\s*:')
_JSON_TOKEN = re.compile(
    r"""\s+ | [{}\[\]:,] | "(?P<string> [^"\\]*(?:\\.[^"\\]*)* )(?:"|\\?\Z)
    | -?\d[\d.eE+-]* | true\b | false\b | null\b""",
    re.VERBOSE | re.DOTALL,
)
_KEY = re.compile(r"\s*:")
_VALUE_ENDS = re.compile(r"\s*(?:[,}\]]|\Z)")
_NAMES_QUERY = re.compile(r"sql|query|answer|result|output|response|code|final", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_PLAIN["'"] = "'"  # not JSON, but models write it


def json_begins(text: str, start: int) -> bool:
    """Whether JSON with strings begins at a position."""
    return _JSON.match(text, start) is not None


def json_in_prose(text: str) -> Iterator[int]:
    """Yields where JSON objects begin, none within another."""
    position = 0
    while found := _OBJECT.search(text, position):
        yield found.start()
        position = max(found.end(), _scan(text, found.start())[1])


def json_strings(text: str, start: int) -> list[str]:
    """The string values of the JSON at a position, decoded, those of keys like "sql" first.

    The JSON may be cut off. Reading stops where it is no JSON, such as behind a quotation mark
    that is not escaped: what stands there is left to the rules for prose.
    """
    found = _scan(text, start)[0]
    decoded = sorted(found, key=lambda member: not _NAMES_QUERY.search(member[0]))
    return [_decoded(value) for _, value in decoded]


def json_string(text: str) -> str | None:
    """The text of an answer that is nothing but one JSON string with escapes."""
    token = _JSON_TOKEN.fullmatch(text.strip())
    return _decoded(token["string"]) if token and "\\" in (token["string"] or "") else None


def _scan(text: str, start: int) -> tuple[list[tuple[str, str]], int]:
    """The last key and the text of each string value, and where the JSON ends."""
    found: list[tuple[str, str]] = []
    key, depth, position = "", 0, start
    while token := _JSON_TOKEN.match(text, position):
        string = token["string"]
        if string is not None:
            if _KEY.match(text, token.end()):
                key = string
            elif _VALUE_ENDS.match(text, token.end()):
                found.append((key, string))
            else:
                break
        position = token.end()
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth <= 0 and not token[0].isspace():
            break
    return found, position


def _decoded(string: str) -> str:
    try:
        return str(json.loads(f'"{string}"', strict=False))
    except ValueError:
        return _ESCAPE.sub(_plain, string)


def _plain(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _PLAIN.get(escape[2], escape[0])


# --- parentheses (rule 4e) ---

_PARENTHESIS = re.compile(r"\s*\(\s*(?=\(|(?:select|with)\b)", re.IGNORECASE)
_MOST_PARENTHESES = 5


def in_parentheses(place: Place) -> Place | None:
    """The query in a pair of parentheses at a place, if nothing but prose stands behind them.

    None if it has a blank line, since outside of parentheses the query would end there.
    """
    inner = place
    for _ in range(_MOST_PARENTHESES):
        opened = _PARENTHESIS.match(inner.text, inner.start, inner.end)
        closed = _closing(inner) if opened else None
        if not opened or closed is None:
            break
        inner = inner._replace(start=opened.end(), end=closed)
    if inner is place or _PARENTHESIS.match(inner.text, inner.start):
        return None
    last = deque(tokens(inner), maxlen=1)
    whole = last and not inner.text[last[0].end() : inner.end].strip()
    return inner if whole else None


def _closing(place: Place) -> int | None:
    """The position of the parenthesis that closes the first one, if it ends the query."""
    depth, closed = 0, None
    opening = place._replace(end=min(place.end, place.start + OPENING_CHARS))
    for token in tokens(opening):
        if closed is not None:
            new_line = "\n" in place.text[closed : token.start()]
            return closed if is_prose(place.text, token.start(), new_line=new_line) else None
        depth += (token[0] == "(") - (token[0] == ")")
        if not depth:
            closed = token.start()
    return closed
