r"""Markup around an answer: fences, marks of Markdown and LaTeX, tags, and JSON with one text.

:func:`unwrapped` takes one layer after another off a short text, so that a benchmark's grammar can
take the first form that is an answer. Every function here takes time that is linear in the text.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of text with its position: ``text`` is the content, without the markup."""

    start: int
    end: int
    text: str


_OPENING_FENCE = re.compile(r"(?:^|(?<=[\s:>]))(`{3,}|~{3,})[ \t]*([\w+#.-]{0,30})[ \t]*$")
_CLOSING_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*$")


class Block(NamedTuple):
    """A fenced block: its edges with the fences, the start of its content, and its content."""

    start: int
    end: int
    content_start: int
    text: str


def fenced_blocks(text: str) -> list[Block]:
    """Return the fenced blocks that have content; one that is never closed ends with the text."""
    blocks: list[Block] = []
    mark = ""
    start = content_start = position = 0
    for line in text.splitlines(keepends=True):
        bare_line = line.rstrip("\n")
        if mark:
            closing = _CLOSING_FENCE.search(bare_line)
            if closing and closing[1].startswith(mark):
                inner = text[content_start : position + closing.start()]
                blocks.append(Block(start, position + len(bare_line), content_start, inner))
                mark = ""
        else:
            opening = _OPENING_FENCE.search(bare_line)
            if opening:
                mark = opening[1]
                start = position + opening.start()
                content_start = position + len(line)
        position += len(line)
    if mark:
        blocks.append(Block(start, len(text), content_start, text[content_start:]))
    return [block for block in blocks if block.text.strip()]


_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!;,<>|~$&])")


def unescaped(text: str) -> str:
    r"""Return a text without the backslashes that Markdown puts before signs, as in ``\*``."""
    return _ESCAPED.sub(r"\1", text)


_LEADING = (
    re.compile(r"\A(?:>[ \t]*)+"),
    re.compile(r"\A#{1,6}[ \t]+"),
    re.compile(r"\A[-*+•–▪◦·‣—][ \t]+(?:\[[ xX]\][ \t]+)?"),  # noqa: RUF001
    re.compile(r"\A[(\[]?\d{1,3}[.)\]][ \t]+"),
    re.compile(r"\A(?:(?:[✅☑✔👉→➜➡⇒][\ufe0f \t]*)+|[=-]{1,2}>[ \t]*)"),
)
"""Marks before a line: quotation, heading, bullet, number, arrow."""

_PAIRS = (
    ("***", "***"), ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("```", "```"),
    ("``", "``"), ("`", "`"), ('"""', '"""'), ("'''", "'''"), ('"', '"'), ("'", "'"),
    ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u201e", "\u201c"), ("«", "»"), ("「", "」"),
    ("『", "』"), ("《", "》"), ("【", "】"), ("[[", "]]"), ("[", "]"), ("$$", "$$"), ("$", "$"),
    (r"\(", r"\)"), (r"\[", r"\]"),
)  # fmt: skip
"""Marks that enclose a text; the longer ones come first."""

_COMMAND = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|texttt|mathbf|mathrm|mathit|emph|underline|framebox)\s*\{"
)
_TAGGED = re.compile(r"<([A-Za-z][\w:-]{0,40})(?:\s[^<>\n]{0,80})?>(.*)</\1\s*>\Z", re.DOTALL)
_TRAILING = re.compile(r"(?:[.。!;；]|\\\\|<br ?/?>)\Z")  # noqa: RUF001
_HALF = re.compile(r"\A\*\*(?!\s.*\*\.?\Z)(?!.*\*\*)|(?<!\s)(?<!\*)\*{2,3}\Z")
"""Bold type that was cut off, or begun before the text."""

_LANGUAGE = re.compile(r"\A(?:text|plaintext|txt|plain|sql|json|python|xml|md|markdown)\n")

_MAX_LAYERS = 10
_MAX_WRAPPED = 20_000
"""Layers of markup that are taken off, and characters of a text that may have any."""


def unwrapped(text: str) -> Iterator[str]:
    """Yield a text, and again each time that one layer of markup has been taken off it.

    Args:
        text: A line, a paragraph or the content of a block.
    """
    text = text.strip()
    yield text
    if len(text) > _MAX_WRAPPED:
        return
    for _ in range(_MAX_LAYERS):
        inner = _without_layer(text)
        if inner == text or not inner:
            return
        text = inner
        yield text


def bare(text: str) -> str:
    """Return a text with all layers of markup around it taken off."""
    return list(unwrapped(text))[-1]


def _without_layer(text: str) -> str:
    """Return a text without its outermost layer, or unchanged if it has none."""
    for opening, closing in _PAIRS:
        if _is_wrapped(text, opening, closing):
            return text[len(opening) : -len(closing)].strip()
    inner = _in_command(text)
    if inner is not None:
        return inner
    tagged = _TAGGED.match(text)
    if tagged and not _REJECTED.search(tagged[1]):
        return tagged[2].strip()
    # A star may begin a logical form instead of being a bullet. Grammars stop where it is taken
    # off (FormalGrammar.accept_any), so what stands behind the form must go first.
    patterns = [_LANGUAGE, _TRAILING, *_LEADING]
    if text.count("**") == 1:
        patterns.insert(0, _HALF)
    for pattern in patterns:
        shorter = pattern.sub("", text, count=1).strip()
        if shorter != text:
            return shorter
    return unescaped(text).strip()


def _is_wrapped(text: str, opening: str, closing: str) -> bool:
    """Return whether a pair of marks encloses all of a text, and not two parts of it."""
    if len(text) <= len(opening) + len(closing):
        return False
    if not (text.startswith(opening) and text.endswith(closing)):
        return False
    inner = text[len(opening) : -len(closing)]
    # A star or an underscore beside a space is none of Markdown's: "* dog ( x _ 1 )".
    if opening in ("*", "_") and (inner[0].isspace() or inner[-1].isspace()):
        return False
    if opening in ("*", "_"):
        # Nor is one between two spaces.
        inner = _SIGN_ALONE.sub("", inner)
    return opening not in inner and closing not in inner


_SIGN_ALONE = re.compile(r"(?<!\S)[*_](?=\s)")
"""A star or an underscore that is a sign of the text, and no mark of Markdown."""


def _in_command(text: str) -> str | None:
    r"""Return the argument of a command of LaTeX that is the whole text: ``\boxed{ice}``."""
    command = _COMMAND.match(text)
    if command is None:
        return None
    end = closing_brace(text, command.end())
    if end is None or text[end + 1 :].strip(" .$"):
        return None
    return text[command.end() : end].strip()


_MAX_BRACES = 5_000


def closing_brace(text: str, start: int) -> int | None:
    """Return the position of the brace that closes one opened before ``start``, or None."""
    depth = 1
    for position in range(start, min(len(text), start + _MAX_BRACES)):
        if text[position] == "{":
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    return None


_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_MAX_BOXES = 20


def boxes(text: str) -> list[Span]:
    r"""Return the arguments of the last ``\boxed{...}`` in a text, in their order."""
    spans = []
    for opening in list(_BOX.finditer(text))[-_MAX_BOXES:]:
        end = closing_brace(text, opening.end())
        if end is not None:
            spans.append(Span(opening.start(), end + 1, text[opening.end() : end]))
    return spans


_ANSWER_TAG = re.compile(
    r"<(/?)((?:final[_ -]?)?(?:answer|output|result|response|prediction|label|solution|option"
    r"|choice|logical[_ -]?form|lf|form|name|dish|dish[_ -]name|query|sql)"
    r"|final|菜名|答案|最终答案)"
    r"\s{0,3}>",
    re.IGNORECASE,
)


def tagged_texts(text: str) -> list[Span]:
    """Return what stands in tags named for an answer: ``<answer>ice</answer>``.

    A tag that is never closed holds the rest of its line.
    """
    spans = []
    opened: re.Match[str] | None = None
    for tag in _ANSWER_TAG.finditer(text):
        if not tag[1]:
            opened = tag
        elif opened is not None and opened[2].lower() == tag[2].lower():
            spans.append(Span(opened.start(), tag.end(), text[opened.end() : tag.start()]))
            opened = None
    if opened is not None:
        line = text[opened.end() :].strip().partition("\n")[0]
        spans.append(Span(opened.start(), len(text), line))
    return spans


_TABLE_ROW = re.compile(r"^[ \t]*\|([^\n]{1,4000})\|[ \t]*$")
_ANSWER_CELL = re.compile(
    r"(?:(?:the|my)\s)?(?:(?:final|correct|best)\s)?(?:answer|output|result|response|prediction"
    r"|logical\sform|form|lf|dish|name(?:\sof\sthe\sdish)?|dish\sname)"
    r"|(?:最终)?(?:菜名|菜品名称|名称|答案)",
    re.IGNORECASE,
)
"""What a cell says beside or above the cell with the answer."""


def table_texts(text: str) -> list[Span]:
    """Return the cells of Markdown tables that hold the answer.

    In a row of two cells it is the cell beside one such as "Answer". In a table of one row it is
    the cell below such a heading, or below the only heading.
    """
    spans: list[Span] = []
    rows: list[tuple[int, list[str]]] = []
    has_heading = False
    position = 0
    for line in [*text.splitlines(keepends=True), ""]:
        row = _TABLE_ROW.match(line.rstrip("\n"))
        if row is None:
            spans.extend(_answers_in_table(rows, has_heading=has_heading))
            rows = []
            has_heading = False
        elif "-" in row[1] and not row[1].strip("|:- \t"):
            has_heading = len(rows) == 1
        else:
            rows.append((position, [cell.strip() for cell in row[1].split("|")]))
        position += len(line)
    return spans


_TABLE = re.compile(
    r"^[ \t]*\|[^\n]{1,4000}\|[ \t]*\n[ \t]*\|[ |:\t-]{1,400}\|[ \t]*$(?:\n[ \t]*\|[^\n]*)*",
    re.MULTILINE,
)


def without_tables(text: str) -> str:
    """Return a text without its tables that have a heading."""
    return _TABLE.sub("", text)


def _answers_in_table(rows: list[tuple[int, list[str]]], *, has_heading: bool) -> list[Span]:
    """Return the cells of one table that hold the answer.

    Args:
        rows: Each the position of its line, and its cells.
        has_heading: Whether the first row is a heading.
    """
    if not rows:
        return []
    spans = []
    table_start = rows[0][0]  # a denial stands before the table
    content = rows[1:] if has_heading else rows
    for _, cells in content:
        if len(cells) == 2 and _ANSWER_CELL.fullmatch(bare(cells[0]).rstrip(":： ")):  # noqa: PLR2004, RUF001
            spans.append(Span(table_start, table_start, cells[1]))
    if spans or not has_heading or len(content) != 1:
        return spans
    headings = rows[0][1]
    cells = content[0][1]
    for heading, cell in zip(headings, cells, strict=False):
        if len(headings) == 1 or _ANSWER_CELL.fullmatch(bare(heading)):
            spans.append(Span(table_start, table_start, cell))
    return spans if len(spans) == 1 else []


_JSON_START = re.compile(r"[\[{]\s*[\"'\[{]")
_ANSWER_KEY = re.compile(
    r"answer|result|output|response|prediction|label|final|form|name|query|sql|菜名|答案|choice|option",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"reject|wrong|incorrect|\bnot\b|exclude|alternative", re.IGNORECASE)
"""A key or a tag whose text is no answer."""

_SINGLE_QUOTED = re.compile(r"\{\s*'([^'\n]{1,60})'\s*:\s*'([^'\n]{0,2000})'\s*,?\s*\}")
_DECODER = json.JSONDecoder(strict=False)
_MAX_OBJECTS = 8


def json_texts(text: str) -> list[Span]:
    """Return the answers in the JSON of a text: that of a key named for one, or the only value.

    JSON with several values, none of them under such a key, has no answer.
    """
    spans: list[Span] = []
    end = 0
    for opening in list(_JSON_START.finditer(text))[:_MAX_OBJECTS]:
        if opening.start() < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            quoted = _SINGLE_QUOTED.match(text, opening.start())
            if quoted:
                spans.append(Span(quoted.start(), quoted.end(), quoted[2]))
            continue
        members = list(_members("", value))
        keys = [key for key, _ in members]
        answers = []
        for key, member in members:
            # A key with a list of texts names several answers.
            if _ANSWER_KEY.search(key) and keys.count(key) == 1:
                answers.append(member)
        if not answers and len(members) == 1 and not _REJECTED.search(keys[0]):
            answers = [members[0][1]]
        spans.extend(Span(opening.start(), end, answer) for answer in answers[:1])
    return spans


def _members(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers of a value of JSON with the key that they stand under."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _members(str(name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(key, inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield key, str(value)
