r"""Reads the dish's name out of a response.

The stages that all benchmarks share come first (:mod:`lm_eval_ext.answers.turn`). Then:

1. *Text*: of the first 4,000 characters, full-width letters, digits and punctuation become ASCII
   (NFKC), control characters are removed, traditional characters become simplified ones. A name
   in ``\boxed{}``, in tags named for an answer, in JSON or in a table beside or below 菜名 is the
   answer. Otherwise other tables and Markdown markup are removed. Where the question (菜名是什么)
   is repeated, what precedes it is the answer, or what follows if nothing but the prompt's own
   words precedes it. Behind 不对 and the like, what follows counts.
2. *Line*: a line with 最终答案 or 最终菜名; or else the first line that does more than introduce
   the next one (好的, 菜名, a colon at its end, the remark that no name is given). If that neither
   announces nor quotes a name, a later line that does is taken instead, preferably by 菜名 or 答案;
   of several, the last. If the first line has at most 20 characters, a later one must announce
   the name by 菜名, 答案 or 叫. A list of names has no line that counts, nor has a line that names
   an example.
3. *Start*: the name begins after an announcement. 菜名是 and 答案: take precedence over
   这道菜叫, 可命名为 and 我会叫它, that over 这道菜是, 以上是 and 应该是, and that over 可能是
   after the remark that no name is given. Announcements may follow each other (答: 这道菜叫).
   Without one, the name is what precedes 是这道菜的菜名 or 是一道; else the first quoted text that
   is not denied (不是); else the line without a leading 好的.
4. *End*: a quoted name ends with its quotation mark, another one before the first comma, full
   stop or similar mark, or dash between spaces. Of several names with 或, 还是, 、 or a slash
   between them all are the answer, which is then no dish. A leading 一道 (with 美味的 and the
   like), a trailing 的做法, with 制作 at the beginning, and a trailing 吧 are removed.
5. *Name*: text in brackets and all characters that are not Chinese are removed, as from the
   titles that the gold names come from (:func:`.glossary.clean_name`); a name that stands wholly
   in brackets loses only the brackets. Of a text without Chinese characters, the first sentence
   is returned unchanged; punctuation alone is no name.

A gold name given as the answer is returned unchanged.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from lm_eval_ext.answers.candidates import is_crossed_out
from lm_eval_ext.answers.markdown import (
    Span,
    bare,
    boxes,
    fenced_blocks,
    json_texts,
    table_texts,
    tagged_texts,
    without_tables,
)
from lm_eval_ext.answers.reader import AnswerReader, ReaderOptions
from lm_eval_ext.answers.turn import Step, turn_text
from lm_eval_ext.benchmarks.diner import phrases
from lm_eval_ext.benchmarks.diner.glossary import (
    CHINESE,
    NOT_CHINESE,
    clean_name,
    simplified,
    unbracketed,
)

MAX_CHARS = 4_000
"""Characters of an answer that are searched for the name."""

MAX_PLAIN = 20
"""Longest line, in characters, that may be a name without an announcement."""

MOST_AROUND = 3
"""The number of words such as 一道, 的做法 and 吧 that are removed from around a name."""

NAME_CHARACTERS = re.compile(rf"(?:{CHINESE.pattern})+")

_CLAUSE_END = re.compile(r"[,.;。\n]")

BETWEEN_NAMES = "或"
"""The word between several names that are offered."""


class NameGrammar:
    """Finds a dish's name by the steps in the module's docstring."""

    def find(self, text: str) -> list[Step]:
        """Return the steps from what a model says to the name."""
        normal = normal_characters(text)
        steps = [Step("normal characters", normal)]
        marked = marked_name(normal)
        if marked is not None:
            steps.append(Step("marked name", marked))
            return steps
        listed_name = "" if phrases.JSON_OBJECT.match(normal) else listed_names(normal)
        if listed_name is not None:
            steps.append(Step("several names", listed_name))
            return steps
        prose = without_markup(without_tables(normal))
        steps.append(Step("without markup and question", prose))
        line = _line(prose)
        steps.append(Step("line", line))
        steps.append(Step("name", _name_in_line(line)))
        return steps


NAME_READER = AnswerReader(ReaderOptions(NameGrammar()))


def name_of(response: str) -> str:
    """Return the name in a response, by the steps in the module's docstring.

    Returns:
        Chinese characters only; the first sentence of a response that has none; "" for a response
        without a name.
    """
    return NAME_READER.read(response)


def plain(response: str) -> str:
    """Return the text of a response that may contain an answer, without markup."""
    return without_markup(normal_characters(turn_text(response)))


def normal_characters(text: str) -> str:
    """Return the characters that are read, simplified and with the punctuation of ASCII."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARS])[:MAX_CHARS]
    text = phrases.LINE_END.sub("\n", text)
    visible = [char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C"]
    return simplified("".join(visible))


def without_markup(text: str) -> str:
    """Return a text without Markdown and without the prompt's question."""
    return _without_question(phrases.MARKDOWN.sub("", text)).strip()


def marked_name(text: str) -> str | None:
    """Return the last name that is boxed, tagged, fenced, or the text of JSON; or None."""
    spans: list[Span] = [*boxes(text), *tagged_texts(text), *json_texts(text), *table_texts(text)]
    for block in fenced_blocks(text):
        spans.append(Span(block.start, block.end, block.text))
    for span in sorted(spans, key=lambda span: span.start, reverse=True):
        text_before = text[max(0, span.start - MAX_PLAIN) : span.start].rstrip()
        text_before = _CLAUSE_END.split(text_before)[-1]
        if phrases.ENGLISH_DENIAL.search(text_before) or phrases.DENIED.search(text_before):
            continue
        if phrases.ENGLISH_DENIAL.search(span.text[:MAX_PLAIN]):
            continue
        name = bare(span.text)
        if len(name) <= MAX_PLAIN and CHINESE.search(name) and _is_plain_name(name):
            return _name(name)
    return None


def listed_names(text: str) -> str | None:
    """Return the names of a text that is a list of names, with 或 between them; otherwise None."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    while len(lines) > 1 and _leads_up(phrases.MARKDOWN.sub("", lines[0])):
        del lines[0]
    items = []
    for line in lines:
        mark = phrases.LIST_MARK.match(line)
        item = bare(line[mark.end() :]) if mark else ""
        if not _is_plain_name(item) or len(item) > MAX_PLAIN:
            return None
        items.append(_name(item))
    return BETWEEN_NAMES.join(items) if len(items) > 1 else None


def _without_question(text: str) -> str:
    """Return what precedes the first question.

    It is what follows the question if only the prompt's words precede it.
    """
    question = phrases.QUESTION.search(text)
    while question:
        text_before = text[: question.start()]
        if not phrases.PROMPT_WORDS.fullmatch(text_before):
            lines, _, last_line = text_before.rpartition("\n")
            if any(not _leads_up(line.strip()) for line in lines.split("\n") if line.strip()):
                return lines
            if not phrases.PROMPT_WORDS.fullmatch(last_line):
                return last_line
        text = text[question.end() :]
        question = phrases.QUESTION.search(text)
    return text


def _says_something(line: str) -> bool:
    """Return whether a line has words that are not crossed out."""
    return any(map(str.isalnum, line)) and not is_crossed_out(line)


def _line(text: str) -> str:
    """Return the line that says the name; "" if several names are offered."""
    further_prompt = phrases.CONTINUATION.search(text)
    if further_prompt and CHINESE.search(text[: further_prompt.start()]):
        text = text[: further_prompt.start()]
    corrections = list(phrases.CORRECTION.finditer(text))
    if corrections and CHINESE.search(text, corrections[-1].end()):
        text = text[corrections[-1].end() :]
    lines = [line.strip() for line in text.split("\n") if _says_something(line)]
    while len(lines) > 1 and _leads_up(lines[0]):
        if _denies(lines[0]):
            return ""
        del lines[0]
    has_chinese = CHINESE.search(text) is not None
    while has_chinese and len(lines) > 1 and not CHINESE.search(lines[0]):
        del lines[0]
    if not lines or any(phrases.OR.fullmatch(line) for line in lines):
        return ""
    final = [line for line in lines if phrases.FINAL.search(line) and _announced(line)]
    if final:
        return final[-1]
    opening = lines[0]
    announced = _announced(opening)
    if announced is not None:
        is_doubted = "?" in announced
        doubtless = _last_announcing(lines[1:], phrases.ANNOUNCEMENTS) if is_doubted else None
        return doubtless or opening
    if len(opening) > MAX_PLAIN or phrases.REASONING.match(opening):
        if phrases.QUOTED.search(opening):
            return opening
        later = _last_announcing(lines[1:], phrases.ANNOUNCEMENTS)
    else:
        later = _last_announcing(lines[1:], phrases.STRONG_ANNOUNCEMENTS)
    return later or opening


def _last_announcing(lines: Sequence[str], announcements: Sequence[phrases.Pattern]) -> str | None:
    """Return the last line with the first kind of announcement that any line has."""
    for announcement in announcements:
        for line in reversed(lines):
            if announcement.search(line) and _announced(line) is not None:
                return line
    return None


def _leads_up(line: str) -> bool:
    """Return whether a line only introduces the next one."""
    content = phrases.OPENING.sub("", line)
    if not content or content.endswith(":"):
        return True
    if phrases.ONLY_LABEL.fullmatch(content) or phrases.ENGLISH_LABEL.fullmatch(content):
        return True
    return phrases.ONLY_NOT_GIVEN.match(content) is not None


def _denies(line: str) -> bool:
    """Return whether a line that introduces the next one denies it."""
    words = line.rstrip(": *")
    return bool(phrases.DENIED.search(words) or phrases.ENGLISH_DENIAL.search(words))


def _announced(line: str) -> str | None:
    """Return what a line announces as the name; None if it announces none."""
    for announcement in phrases.ANNOUNCEMENTS:
        for match in announcement.finditer(line):
            if phrases.EXAMPLE.search(line[: match.start()]):
                continue
            if CHINESE.search(line, match.end()) or match[0] == line:
                return _without_further_announcements(line[match.end() :])
    name_before = phrases.BEHIND_NAME.search(line)
    return name_before[1] if name_before else None


def _without_further_announcements(text: str) -> str:
    further = phrases.FURTHER_ANNOUNCEMENT.match(text)
    while further:
        text = text[further.end() :]
        further = phrases.FURTHER_ANNOUNCEMENT.match(text)
    return text


def _name_in_line(line: str) -> str:
    chinese = CHINESE.search(line)
    if chinese:
        is_announced = _announced(line) is not None
        text_before = line[: chinese.start()]
        is_prose = phrases.ENGLISH_WORDS.search(text_before) is not None and not is_announced
        is_question = not is_announced and phrases.QUESTIONED.match(line) is not None
        if is_prose or is_question or phrases.ENGLISH_DENIAL.search(text_before):
            return ""
        characters = NAME_CHARACTERS.match(line, chinese.start())
        if characters and phrases.DENIED_BEHIND.match(line, characters.end()):
            return ""
        return _name(_stretch(line))
    sentence = phrases.SENTENCE_END.split(line.strip("\"' .!?"), maxsplit=1)[0]
    has_content = any(char.isalnum() for char in sentence)
    return sentence.strip("\"' ") if has_content else ""


def _stretch(line: str) -> str:
    """Return the stretch of a line that begins with the name."""
    line = phrases.OPENING.sub("", line)
    opening_quote = phrases.QUOTED.match(line)
    if opening_quote and _is_plain_name(opening_quote[opening_quote.lastindex or 0]):
        return _with_alternative(line, opening_quote.start(), opening_quote.end())
    announced = _announced(line)
    if announced is not None:
        return announced
    for quoted in _counting_quotes(line):
        return _with_alternative(line, *quoted)
    return line


def _counting_quotes(line: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the quoted texts of a line that are neither denied nor examples."""
    for quoted in phrases.QUOTED.finditer(line):
        text_before = line[: quoted.start()]
        if phrases.DENIED.search(text_before) or phrases.EXAMPLE.search(text_before):
            continue
        if CHINESE.search(quoted[0]):
            yield quoted.start(), quoted.end()


def _with_alternative(line: str, start: int, end: int) -> str:
    """Return a quoted name, with what is offered beside it."""
    is_offered = phrases.SEVERAL.match(line, end) is not None
    return line[start:] if is_offered else line[start:end]


def _is_plain_name(text: str) -> bool:
    """Return whether all of a text may be a name: no label, no sentence."""
    if not CHINESE.search(text) or phrases.NAME_END.search(text):
        return False
    return phrases.ONLY_LABEL.fullmatch(text) is None


def _name(text: str) -> str:
    """Return the name at the beginning of a stretch; several ones with 或 between them."""
    text = text.strip()
    quoted = phrases.QUOTED.match(text)
    if quoted and not phrases.SEVERAL.match(text, quoted.end()):
        text = quoted[quoted.lastindex or 0]
    else:
        square = phrases.SQUARE_BRACKETS.match(text)
        if square and _is_only_around(text[square.end() :]):
            text = square[1]
    unmarked = unbracketed(text)
    if CHINESE.search(unmarked):
        text = unmarked
    text = phrases.ALSO_POSSIBLE.sub(BETWEEN_NAMES, text)
    pieces = [piece.strip() for piece in phrases.NAME_END.split(text) if CHINESE.search(piece)]
    stretch = pieces[0] if pieces else text
    offered = [name for name in phrases.SEVERAL.split(stretch) if CHINESE.search(name)]
    names = [_without_surroundings(name) for name in offered] or [_without_surroundings(stretch)]
    return BETWEEN_NAMES.join(names)


def _without_surroundings(name: str) -> str:
    for _ in range(MOST_AROUND):
        name = phrases.AROUND_NAME.sub("", name)
    return clean_name(name) or NOT_CHINESE.sub("", name)


def _is_only_around(text: str) -> bool:
    """Return whether nothing of a name follows, up to its end."""
    text_behind = phrases.NAME_END.split(text, maxsplit=1)[0].strip()
    return not CHINESE.search(phrases.AROUND_NAME.sub("", text_behind))
