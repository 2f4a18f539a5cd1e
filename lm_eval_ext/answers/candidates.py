"""Candidates: stretches of a text that may be the answer, with the words that announce them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lm_eval_ext.answers.markdown import boxes, fenced_blocks, json_texts, table_texts, tagged_texts
from lm_eval_ext.answers.phrases import Phrases

MAX_CANDIDATES = 400
"""Candidates of each kind that are tried in a text: the last ones, except for lines."""

MAX_LENGTH = 20_000
"""Characters of the longest candidate."""

_CONTEXT_CHARACTERS = 200
"""Characters around a candidate among which a denial, an example or a cross is looked for."""


@dataclass(frozen=True)
class Candidate:
    """A stretch of a text that may be the answer.

    Attributes:
        text: The stretch, with markup and maybe with more behind the answer.
        start: Its position.
        source: Where it stands: ``announcement``, ``box``, ``tag``, ``JSON``, ``table``,
            ``fence``, ``heading``, ``correction`` or ``line``.
        words: The words that announce it.
        words_start: Their position.
        is_dismissed: Whether its words deny it ("the answer is not ...") or call it an example.
    """

    text: str
    start: int
    source: str
    words: str = ""
    words_start: int = 0
    is_dismissed: bool = False


def announced_candidates(text: str, phrases: Phrases) -> list[Candidate]:
    """Return what a text announces, tags, boxes or puts into JSON or a table, in its order."""
    candidates: list[Candidate] = []
    for span in boxes(text):
        candidates.append(Candidate(span.text, span.start, "box"))
    for span in tagged_texts(text):
        candidates.append(Candidate(span.text, span.start, "tag"))
    for span in json_texts(text):
        candidates.append(Candidate(span.text, span.start, "JSON"))
    for span in table_texts(text)[-MAX_CANDIDATES:]:
        candidates.append(Candidate(span.text, span.start, "table"))
    for pattern, source in (
        (phrases.announcement, "announcement"),
        (phrases.correction, "correction"),
    ):
        for announcement in list(pattern.finditer(text))[-MAX_CANDIDATES:]:
            candidates.append(_announced(text, announcement, source))
    last_heading = _last_heading(text)
    if last_heading is not None:
        candidates.append(last_heading)
    checked = [check_candidate(text, candidate, phrases) for candidate in candidates]
    # Callers take the last one: of an announced table this must be its cell, not all of its text.
    return sorted(checked, key=lambda candidate: (candidate.start, candidate.source == "table"))


def fence_candidates(text: str, phrases: Phrases) -> list[Candidate]:
    """Return the contents of fenced blocks in the order of the text."""
    blocks = fenced_blocks(text)[-MAX_CANDIDATES:]
    candidates = [Candidate(block.text, block.start, "fence") for block in blocks]
    return [check_candidate(text, candidate, phrases) for candidate in candidates]


def line_candidates(text: str, phrases: Phrases) -> list[Candidate]:
    """Return the lines that have any text outside of fences, in the order of the text."""
    blocks = fenced_blocks(text)
    candidates: list[Candidate] = []
    position = 0
    for line in text.splitlines(keepends=True):
        start = position
        position += len(line)
        while blocks and blocks[0].end <= start:
            del blocks[0]
        is_fenced = bool(blocks) and blocks[0].start <= start
        if line.strip() and not is_fenced and len(candidates) < MAX_CANDIDATES:
            candidates.append(Candidate(line.strip(), start, "line"))
    return [check_candidate(text, candidate, phrases) for candidate in candidates]


_UNDERLINE = re.compile(r"\A[=-]{3,}[ \t]*\n\s*")
"""The line below a heading."""


def _announced(text: str, announcement: re.Match[str], source: str) -> Candidate:
    """Return what stands behind an announcement: the content of a fence, or a paragraph."""
    words = " ".join(announcement[0].split()).strip("*_`#>: ")
    words_start = announcement.start()
    words_start += len(announcement[0]) - len(announcement[0].lstrip())
    start = announcement.end()
    text_behind = text[start : start + MAX_LENGTH]
    # The end of bold type or of a heading belongs to the announcement.
    closing = re.match(r"[*_]{0,3}[ \t]*[:：]?[ \t]*[*_]{0,3}[ \t]*(?=\n|\Z)", text_behind)  # noqa: RUF001
    if closing is None and announcement[0].count("*") in (1, 2, 3):
        marks = announcement[0].count("*")
        closing = re.match(rf"[ \t]*\*{{{marks}}}", text_behind)
    if closing:
        start += closing.end()
        text_behind = text_behind[closing.end() :]
    content = _UNDERLINE.sub("", text_behind.lstrip())
    start += len(text_behind) - len(content)
    blocks = fenced_blocks(content) if content[:3] in ("```", "~~~") else []
    if blocks and blocks[0].start == 0:
        return Candidate(blocks[0].text.strip(), start, source, words, words_start)
    paragraph = re.split(r"\n[ \t]*\n", content, maxsplit=1)[0]
    return Candidate(paragraph, start, source, words, words_start)


_HEADING = re.compile(r"^#{3,6}[ \t]+(?P<text>[^\n]{1,300})\s*\Z", re.MULTILINE)


def _last_heading(text: str) -> Candidate | None:
    """Return a heading that ends a text, as ``#### ice`` in the style of GSM8K."""
    start = text.rstrip().rfind("\n") + 1
    heading = _HEADING.match(text, start)
    return Candidate(heading["text"], start, "heading") if heading else None


_CROSSED = re.compile(r"\A[\W\d]{0,8}[❌✗✘✖☒🚫👎]|[❌✗✘✖☒🚫👎]\W{0,6}\Z")
"""A cross at the beginning or the end of a line, which calls the answer in it wrong."""


def is_crossed_out(text: str) -> bool:
    """Return whether a line begins or ends with a cross, which calls what it says wrong."""
    return _CROSSED.search(text) is not None


def line_at(text: str, position: int) -> str:
    """Return the line around a position, up to 200 characters to either side."""
    start = max(text.rfind("\n", 0, position) + 1, position - _CONTEXT_CHARACTERS)
    line_end = text.find("\n", position, position + _CONTEXT_CHARACTERS)
    return text[start : line_end if line_end >= 0 else position + _CONTEXT_CHARACTERS]


def _has_cross(text: str, candidate: Candidate) -> bool:
    """Return whether the line of a candidate, or of the words before it, has a cross."""
    if is_crossed_out(candidate.text.strip().partition("\n")[0]):
        return True
    lines = [line_at(text, candidate.start)]
    if candidate.source in ("announcement", "correction"):
        lines.append(line_at(text, candidate.words_start))
    return any(is_crossed_out(line) for line in lines)


def check_candidate(text: str, candidate: Candidate, phrases: Phrases) -> Candidate:
    """Return a candidate, marked as denied if the text denies it or calls it an example."""
    is_announced = candidate.source in ("announcement", "correction")
    start = candidate.words_start if is_announced else candidate.start
    clause = clause_before(text, start)
    # A "not" behind the words of an announcement is left to the grammar.
    is_denied = not is_announced and phrases.denial.search(clause) is not None
    if is_denied or _has_cross(text, candidate) or phrases.example.search(clause):
        return replace(candidate, is_dismissed=True)
    return candidate


def announces_line(text: str, candidate: Candidate) -> bool:
    """Return whether the words that announce a candidate begin their line."""
    start = candidate.words_start
    line_start = text.rfind("\n", 0, start) + 1
    return not text[line_start:start].strip(" \t*_#>-")


_FENCE_LINE = re.compile(r"[ \t]*(?:`{3}|~{3})")


def clause_before(text: str, start: int) -> str:
    """Return the words before a position that belong to what follows.

    They stand in its line, or else in the line before if that ends with a colon or is one word.
    The opening of a fence in between does not count.
    """
    text_before = text[max(0, start - _CONTEXT_CHARACTERS) : start]
    line = text_before.rpartition("\n")[2]
    if line.strip(" \t>*#-`~"):
        return line
    lines = text_before.rstrip(" \t>*#-`~").splitlines()
    while lines and (not lines[-1].strip() or _FENCE_LINE.match(lines[-1])):
        del lines[-1]
    if not lines:
        return ""
    is_lead = lines[-1].rstrip("*_ ").endswith((":", "：")) or len(lines[-1].split()) == 1  # noqa: RUF001
    return lines[-1] if is_lead else ""


_SENTENCE_END = re.compile(r"[.!?][\"'”)*]{0,2}\s+(?=[A-Z\"“(*])")
_SHORT_WORD = re.compile(r"(?:\b[A-Z]|\b(?:St|Mr|Mrs|Dr|Ms|Jr|Sr|No|vs|U\.S|e\.g|i\.e))\Z")


def variants(candidate: Candidate, phrases: Phrases) -> Iterator[str]:
    """Yield the stretches of a candidate that may be the answer, the longest first.

    They are all of it on one line, its first line, the first sentence of that line, and this
    sentence up to a continuation (", because ...").
    """
    lines = [line.strip() for line in candidate.text.splitlines() if line.strip()]
    if not lines:
        return
    if len(lines) > 1:
        yield " ".join(lines)
    yield from line_variants(lines[0], phrases)


def line_variants(line: str, phrases: Phrases) -> Iterator[str]:
    """Yield a line, its first sentence, and what precedes a continuation of the sentence."""
    yield line
    sentence = first_sentence(line)
    if sentence != line:
        yield sentence
    remark_free = without_remark(sentence)
    if remark_free != sentence:
        yield remark_free
    clause = phrases.ending.split(sentence, maxsplit=1)[0].strip(" ,;")
    if clause and clause != sentence:
        yield clause


_REMARK = re.compile(
    r"\s\((?:(?!(?:or|not|and|but|maybe|possibly)\b)"
    r"(?:[A-Za-z',-]{1,30}\s){2,30}[A-Za-z'-]{1,30}[.!]?"
    r"|(?:the\s)?(?:final|correct)?\s?answer"
    r"|(?:(?:very\s)?(?:high|medium|moderate|low)\s)?[Cc]onfidence(?:\s(?:level|score))?"
    r"(?:\s?[:=]\s?(?:[\d.]{1,5}\s?%?|(?:very\s)?(?:high|medium|moderate|low)))?"
    r"|[\d.]{1,5}\s?%\s(?:confidence|confident|sure|certain))\)\.?\Z"
)


_ANSWER_REMARK = re.compile(
    r"\s\((?:(?:the|my)\s)?(?:final|correct)\s?answer\)\.?\Z", re.IGNORECASE
)


def without_answer_remark(line: str) -> str:
    """Return a line without "(final answer)" behind it."""
    return _ANSWER_REMARK.sub("", line)


def without_remark(line: str) -> str:
    """Return a line without a remark in brackets behind it: three words, or a confidence."""
    return _REMARK.sub("", line)


def first_sentence(line: str) -> str:
    """Return a line up to the end of its first sentence; "St." and "U.S." end none."""
    for ending in _SENTENCE_END.finditer(line):
        if not _SHORT_WORD.search(line[max(0, ending.start() - 8) : ending.start()]):
            return line[: ending.end()].strip()
    return line
