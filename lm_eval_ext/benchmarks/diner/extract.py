"""The dish's name taken out of a model's answer.

The rule, in the order in which it is applied:

1. *Text*: everything up to the last `</think>` is dropped; an answer that opens a `<think>` and
   never closes it has no name. Of the next 4,000 characters, full-width letters, digits and
   signs become ASCII (NFKC), control and invisible characters go, traditional characters become
   simplified ones, and marks of Markdown go. The text ends before a special token (`<|`, `</s>`)
   and before a repetition of the question (菜名是什么); a question that it begins with is
   skipped.
2. *Line*: the first line, but none that only leads up to the next (好的, 菜名, a colon at its
   end). Where it is longer than 20 characters and neither announces a name nor quotes one, a
   later line that announces it by 菜名 or 答案 is taken instead.
3. *Place*: what follows an announcement, 菜名是 or 答案: rather than 这道菜叫, and that rather than
   这道菜是 or 应该是; else what precedes 是这道菜的菜名 or 是一道; else the first text in quotation
   marks; else the line, without 好的 in front.
4. *End*: a name in quotation marks ends with them, another one before the first comma, full stop
   or the like, spaced dash, slash or 或: of several names offered, the first counts. 一道 in
   front, 的做法 and 吧 behind go.
5. *Name*: what stands in brackets and every character that is not Chinese go, as from the titles
   of which the gold names were made (:func:`.names.clean_name`); a name wholly in brackets loses
   the brackets only. Of a text without a Chinese character the first sentence stays as it is; signs
   alone are none.

A gold name given back as an answer comes back as it is.

Answers that hold more than a name: the components of a recipe, or components and name.

:func:`parts` reads an answer to a component question: of its first sentence, what stands between
commas, after 是, 为, 叫 or a colon, without brackets, quotation marks and other signs. That there
is none is said by 无, by 没有 at the beginning or end, and by 没有特别 and the like anywhere.
:func:`name_after_components` reads the four lines of compositional prompting.

A model's earlier answers to the component questions, out of lm-eval's log of that run.
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
"""Of an answer that are looked through for the name."""

MAX_PLAIN = 20
"""Characters up to which a line may be a name that nothing announces."""

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
_CHINESE = re.compile(NOT_CHINESE.replace("^", "").replace("+", ""))
_RUN = re.compile(f"{_CHINESE.pattern}{{1,50}}")
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
    """The name in a model's answer, by the rule of this module's text.

    Args:
        answer: Any text.

    Returns:
        Chinese characters alone; or, where the answer has none, its first sentence; "" for an
        answer that says nothing.
    """
    line = _line(plain(answer))
    if _CHINESE.search(line):
        return _name(_place(line))
    sentence = _PLAIN_END.split(line.strip("\"' .!?"), maxsplit=1)[0]
    return sentence.strip("\"' ") if any(map(str.isalnum, sentence)) else ""


def plain(answer: str) -> str:
    """The text of an answer that may hold the name: step 1 of the rule."""
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
    # In short runs, since the library's time grows with the square of a run's length.
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
    return clean_name(name) or clean_name(re.sub(NOT_CHINESE, "", name))


UNKNOWN = "unknown"
"""Kind of what is in no glossary: such a component is never right."""

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
    """The components that an answer lists, in its words; none for an answer that says none."""
    sentence = _SENTENCE_END.split(plain(answer).strip(), maxsplit=1)[0]
    if _NOTHING.match(sentence):
        return ()
    found = (_bare(_BEFORE.sub("", part)) for part in _BETWEEN.split(sentence))
    return tuple(dict.fromkeys(part for part in found if not _NOTHING.match(part)))


def _bare(text: str) -> str:
    """The Chinese characters; where there are none, the text as it is."""
    return clean_name(text) or text.strip("\"'“”「」.()[]")


def components_in(answer: str, glossary: Glossary) -> set[Component]:
    """The components of an answer, of whatever kind they are.

    Parts are parsed as names are, so that a whole name for an action holds the right action and
    foods too many. A part that does not parse is taken apart at 和, 与 and 及; what does not parse
    even then is one wrong component.
    """
    found: set[Component] = set()
    for part in parts(answer):
        parsed = glossary.parse(part)
        for piece in (part,) if parsed else filter(None, _JOINED.split(part)):
            found.update(glossary.parse(piece) or (Component(UNKNOWN, piece),))
    return found


def name_after_components(answer: str) -> str:
    """The part of an answer of four lines that holds the name.

    What follows the last 菜名 with a colon; without one, the last line, if it is none of the
    lines of components. "" where there is no such part.
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


def read(file: Path, recipes: Iterable[Recipe]) -> dict[str, dict[str, str]]:
    """Reads the answers for recipes.

    Args:
        file: The log.
        recipes: Those that are to be asked; answers for others are passed over.

    Returns:
        By id and kind the components as prompts state them, "" for none. Recipes that the log
        has no answers for are not among them.

    Raises:
        OptionError: There is no such file, or it has no answers for any of the recipes.
        DataError: A line is no logged answer, or belongs to another recipe of the same id.
    """
    if not file.is_file():
        raise OptionError(f"diner_components_file: {file} is no file; {WANTED}")
    wanted = {recipe.id: recipe for recipe in recipes}
    found: dict[str, dict[str, str]] = {}
    for place, row in _rows(file):
        doc, responses = _checked(row, place)
        recipe = wanted.get(doc["id"])
        if recipe is None or any(was_missing(response) for response in responses):
            continue
        if recipe.instruction != doc.get("instruction"):
            raise DataError(
                f"{place}: {doc['id']} is another recipe there; ask both tasks about the same data"
            )
        found[recipe.id] = {
            kind: "、".join(parts(response))
            for kind, response in zip(ASKED_KINDS, responses, strict=True)
        }
    if not found:
        raise OptionError(
            f"diner_components_file: {file} has no answers about these recipes; {WANTED}, on the "
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
                raise DataError(f"{place}: no JSON; {WANTED}") from None


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
        raise DataError(f"{place}: no answers to the {len(ASKED_KINDS)} questions; {WANTED}")
    return doc, responses
