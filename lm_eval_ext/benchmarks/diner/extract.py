"""What an answer says: the dish's name, or the components of the name.

:func:`name_of` finds the name by these steps:

1. *Text*: everything up to the last `</think>` is dropped; an answer that opens a `<think>` and
   never closes it has no name. Of the next 4,000 characters, full-width letters, digits and
   punctuation become ASCII (NFKC), control and invisible characters are removed, traditional
   characters become simplified ones, and Markdown markup is removed. The text ends before a
   special token (`<|`, `</s>`) and before a repetition of the question (菜名是什么); a question at
   its beginning is skipped.
2. *Line*: the first line that does more than introduce the next one (好的, 菜名, a colon at its
   end). If it is longer than 20 characters and neither announces nor quotes a name, the first
   line that announces one by 菜名 or 答案 is taken instead.
3. *Start*: the name begins after an announcement. 菜名是 and 答案: take precedence over
   这道菜叫, and that over 这道菜是 and 应该是. Without one, the name is what precedes
   是这道菜的菜名 or 是一道; else the first quoted text; else the line without a leading 好的.
4. *End*: a quoted name ends with its quotation mark, another one before the first comma, full
   stop or similar mark, dash between spaces, slash or 或: of several names offered, the first
   counts. A leading 一道 and a trailing 的做法 or 吧 are removed.
5. *Name*: text in brackets and all characters that are not Chinese are removed, as from the
   titles that the gold names come from (:func:`.glossary.clean_name`); a name that stands wholly
   in brackets loses only the brackets. Of a text without Chinese characters, the first sentence
   is returned unchanged; punctuation alone is no name.

A gold name given as the answer is returned unchanged.

:func:`parts` reads an answer to a component question: of its first sentence, what stands between
commas, after 是, 为, 叫 or a colon, without brackets, quotation marks and other punctuation. An
answer says that there is no such component by 无, by 没有 at its beginning or end, or by 没有特别
and similar phrases anywhere. :func:`name_after_components` reads the four lines of compositional
prompting. :func:`read_answers` reads a model's answers to the component questions from lm-eval's
log.
"""

import functools
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.diner.glossary import (
    BRACKETED,
    CHINESE,
    NESTING,
    NOT_CHINESE,
    Component,
    Glossary,
    clean_name,
)
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS, LABELS, NAME_LABEL
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import was_missing

MAX_CHARS = 4_000
"""Characters of an answer that are searched for the name."""

MAX_PLAIN = 20
"""Longest line, in characters, that may be a name without an announcement."""

_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THINKING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_LINE_END = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_STOP = re.compile(r"<\||</?s>|<(?:eos|end_of_turn|eot)>")
_QUESTION = (
    r"(?:(?:这个菜谱|这道菜)的?)?(?:菜名|名字)(?:是|叫)什么|(?:这个菜谱|这道菜)叫什么(?:名字|菜)?"
)
_ASKED_FIRST = re.compile(rf"[\s\"“「]*(?:{_QUESTION})[\s?\"”」]*")
_ASKED_AGAIN = re.compile(_QUESTION)
_MARKDOWN = re.compile(r"`{3,}[a-z]*|`|\*+|__|^[ \t]*(?:#+|>+|[-+])[ \t]+", re.MULTILINE)
_CHINESE = re.compile(CHINESE)
_RUN = re.compile(f"{CHINESE}{{1,50}}")
_BRACKETED = re.compile(BRACKETED)

_SURELY = "(?:应该|应当|很可能|可能|大概|就|一般|可以|通常)?"
_LABEL = "(?:菜名|菜品(?:名称?)?|菜肴名称?|菜谱名称?|名称|名字|答案|回答|(?:dish[ _]?)?name|answer)"
_THIS_DISH = "(?:这|该|此)(?:一?[道个份款])?(?:菜谱|食谱|菜品|菜肴|菜|料理|美食)"
_THIS = f"(?:{_THIS_DISH}|[这该此](?:一?[道个份款])?)"
_BECAUSE = "(?:根据|按|从|由|综合|通过|经过|看|所以|因此|那么)"
_BY_LABEL = re.compile(
    rf"(?:{_LABEL}[\"'”」』)\]]*\s*(?:{_SURELY}(?:是|为|叫做|叫作|叫)\s*:?|[:=])|^答\s*:)\s*(?!什么)",
    re.IGNORECASE,
)
_BY_CALL = re.compile(
    rf"(?:[道菜谱品肴它,]|做的){_SURELY}被?(?:叫做|叫作|叫|称为|名为)\s*:?\s*(?!什么)"
)
_BY_THIS = re.compile(
    rf"(?:^(?:{_BECAUSE}.{{0,80}}?,)?(?:我认为|我觉得|我猜|看起来|看来)?,?(?:{_THIS}|它)?{_SURELY}是"
    rf"|(?:{_THIS_DISH}|做的){_SURELY}是(?!一[道种款份]))\s*:?\s*"
)
_BEHIND = re.compile(
    rf"^(?!我|它|根据|看)(.{{1,60}}?){_SURELY}是(?:{_THIS}的?{_LABEL}|一[道种款份])"
)
_OPENING = re.compile("^(?:好的|好|当然|没问题|可以|嗯|是的|您好|你好|明白了?)(?:[,.!~。\\s]+|$)")
_ONLY_LABEL = re.compile(rf"{_LABEL}\s*", re.IGNORECASE)
_AROUND = re.compile("^一[道份款种个]|(?:的(?:家常)?(?:做法|制作方法)|吧)$")
_END = re.compile(r"[,.!?;:、。/|~\t]|\s[-–]+\s|—|--|或者?")  # noqa: RUF001
_PLAIN_END = re.compile(r"[.!?;:]\s")
_QUOTES = ('""', "''", "“”", "‘’", "「」", "『』", "《》", "«»", "„“", "””", "〝〞")  # noqa: RUF001
_QUOTED = re.compile("|".join(f"{q[0]}([^{q}]{{1,60}}){q[1]}" for q in _QUOTES))


def name_of(answer: str) -> str:
    """Finds the name in a model's answer, by the steps in the module's docstring.

    Returns:
        Chinese characters only; the first sentence of an answer that has none; "" for an answer
        without a name.
    """
    line = _line(plain(answer))
    if _CHINESE.search(line):
        return _name(_place(line))
    sentence = _PLAIN_END.split(line.strip("\"' .!?"), maxsplit=1)[0]
    return sentence.strip("\"' ") if any(map(str.isalnum, sentence)) else ""


def plain(answer: str) -> str:
    """Step 1: the text of an answer that may contain the name."""
    thought = 0
    for tag in _THOUGHT.finditer(answer):
        thought = tag.end()
    if not thought and _THINKING.match(answer):
        return ""
    text = unicodedata.normalize("NFKC", answer[thought : thought + MAX_CHARS])[:MAX_CHARS]
    text = _LINE_END.sub("\n", text)
    text = "".join(char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C")
    text = _MARKDOWN.sub("", _simplified(_STOP.split(text, maxsplit=1)[0]))
    if asked := _ASKED_FIRST.match(text):
        text = text[asked.end() :]
    if again := _ASKED_AGAIN.search(text):
        line_start = text.rfind("\n", 0, again.start())
        text = text[:line_start] if line_start >= 0 else text
    return text.strip()


def _simplified(text: str) -> str:
    # In short runs: the library's time grows with the square of a run's length.
    return _RUN.sub(lambda run: str(_simplifier().convert(run[0])), text)


@functools.cache
def _simplifier() -> Any:
    from opencc import OpenCC  # type: ignore[import-untyped]

    return OpenCC("t2s")


def _line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    while len(lines) > 1 and _leads_up(lines[0]):
        del lines[0]
    if not lines:
        return ""
    first = lines[0]
    if len(first) > MAX_PLAIN and not _announced(first) and not _QUOTED.search(first):
        return next((line for line in lines if _BY_LABEL.search(line)), first)
    return first


def _leads_up(line: str) -> bool:
    rest = _OPENING.sub("", line)
    return not rest or rest.endswith(":") or bool(_ONLY_LABEL.fullmatch(rest))


def _announced(line: str) -> str | None:
    for announcement in (_BY_LABEL, _BY_CALL, _BY_THIS):
        for found in announcement.finditer(line):
            if _CHINESE.search(line, found.end()) or found[0] == line:
                return line[found.end() :]
    behind = _BEHIND.search(line)
    return behind[1] if behind else None


def _place(line: str) -> str:
    line = _OPENING.sub("", line)
    announced = _announced(line)
    if announced is not None:
        return announced
    for quoted in _QUOTED.finditer(line):
        if _CHINESE.search(quoted[0]):
            return quoted[0]
    return line


def _name(text: str) -> str:
    if quoted := _QUOTED.match(text.strip()):
        text = quoted[quoted.lastindex or 0]
    bare = text
    for _ in range(NESTING):
        bare = _BRACKETED.sub("", bare)
    text = bare if _CHINESE.search(bare) else text
    pieces = [piece.strip() for piece in _END.split(text) if _CHINESE.search(piece)]
    name = _AROUND.sub("", pieces[0]) if pieces else text
    return clean_name(name) or re.sub(NOT_CHINESE, "", name)


UNKNOWN = "unknown"
"""Kind of a component that the glossary lacks, which is never right."""

_SENTENCE_END = re.compile(r"[。!?\n]")
_BETWEEN = re.compile(r"[,、;/|+\s]+")
_JOINED = re.compile(r"以及|[和与及]")
_BEFORE = re.compile(r"^.*(?:是|为|叫做?(?!花)|:)")
_NOTHING = re.compile(
    r"^(?:无|空|没|暂无|无明显.*|不明显|没有.*|.*没有|.*没有(?:特别|明显|突出|什么).*"
    r"|none|null|n/?a|no)?$",
    re.IGNORECASE,
)
_NAME_LINE = re.compile(rf"{NAME_LABEL}[^\n:：]{{0,6}}[:：]")  # noqa: RUF001


def parts(answer: str) -> tuple[str, ...]:
    """The components that an answer lists, in its words; empty if it says that there is none."""
    sentence = _SENTENCE_END.split(plain(answer).strip(), maxsplit=1)[0]
    if _NOTHING.match(sentence):
        return ()
    found = (_bare(_BEFORE.sub("", part)) for part in _BETWEEN.split(sentence))
    return tuple(dict.fromkeys(part for part in found if not _NOTHING.match(part)))


def _bare(text: str) -> str:
    """The Chinese characters, or the text without punctuation around it if it has none."""
    return clean_name(text) or text.strip("\"'“”「」.()[]")


def components_in(answer: str, glossary: Glossary) -> set[Component]:
    """The components of an answer, of all kinds.

    Parts are parsed like names: a full dish name as an answer about the action gives the right
    action and some wrong foods. A part that does not parse is divided at 和, 与 and 及; a piece
    that still does not parse is one wrong component.
    """
    found: set[Component] = set()
    for part in parts(answer):
        parsed = glossary.parse(part)
        for piece in (part,) if parsed else filter(None, _JOINED.split(part)):
            found.update(glossary.parse(piece) or (Component(UNKNOWN, piece),))
    return found


def name_after_components(answer: str) -> str:
    """The part of a four-line answer that contains the name; "" if there is none.

    It is the text after the last 菜名 with a colon, or else the last line, unless that line
    states components.
    """
    text = plain(answer)
    labelled = list(_NAME_LINE.finditer(text))
    if labelled:
        return text[labelled[-1].end() :]
    lines = [line for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return "" if any(label in last for label in LABELS.values()) else last


WANTED = (
    "name the file samples_diner_components_*.jsonl that lm_eval --tasks diner_components "
    "--log_samples wrote"
)


def read_answers(file: Path, recipes: Iterable[Recipe]) -> dict[str, dict[str, str]]:
    """Reads a model's answers to the component questions about recipes from lm-eval's log.

    Returns:
        Components by recipe id and kind, as prompts state them, "" for none. Recipes without
        answers in the log are missing.

    Raises:
        OptionError: There is no such file, or it has no answer about any of the recipes.
        DataError: A line is not a logged answer, or its recipe differs from ours of the same id.
    """
    if not file.is_file():
        raise OptionError(f"diner_components_file: {file} does not exist; {WANTED}")
    wanted = {recipe.id: recipe for recipe in recipes}
    found: dict[str, dict[str, str]] = {}
    for place, row in _rows(file):
        doc, responses = _checked(row, place)
        recipe = wanted.get(doc["id"])
        if recipe is None or any(was_missing(response) for response in responses):
            continue
        if recipe.instruction != doc.get("instruction"):
            raise DataError(
                f"{place}: {doc['id']} is a different recipe in this log; run both tasks on the "
                "same data"
            )
        found[recipe.id] = {
            kind: "、".join(parts(response))
            for kind, response in zip(ASKED_KINDS, responses, strict=True)
        }
    if not found:
        raise OptionError(
            f"diner_components_file: {file} has no answers about these recipes; {WANTED} on the "
            "same data"
        )
    return found


def _rows(file: Path) -> Iterator[tuple[str, Any]]:
    try:
        lines = file.open("rb")
    except OSError as error:
        raise OptionError(
            f"diner_components_file: cannot read {file}: {error.strerror}; {WANTED}"
        ) from error
    with lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file}, line {number}"
            try:
                yield place, json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError):
                raise DataError(f"{place}: not JSON; {WANTED}") from None


def _checked(row: Any, place: str) -> tuple[Mapping[str, Any], Sequence[str]]:
    doc = row.get("doc") if isinstance(row, dict) else None
    responses = row.get("filtered_resps") if isinstance(row, dict) else None
    if (
        not isinstance(doc, dict)
        or not isinstance(doc.get("id"), str)
        or not isinstance(responses, list)
        or len(responses) != len(ASKED_KINDS)
        or not all(isinstance(response, str) for response in responses)
    ):
        raise DataError(
            f"{place}: not a logged answer to {len(ASKED_KINDS)} component questions; {WANTED}"
        )
    return doc, responses
