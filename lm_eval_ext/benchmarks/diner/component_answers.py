"""Answers that hold more than a name: the components of a recipe, or components and name.

:func:`parts` reads an answer to a component question: of its first sentence, what stands between
commas, after 是, 为, 叫 or a colon, without brackets, quotation marks and other signs. That there
is none is said by 无, by 没有 at the beginning or end, and by 没有特别 and the like anywhere.
:func:`name_after_components` reads the four lines of compositional prompting.
"""

import re

from lm_eval_ext.benchmarks.diner.extract import plain
from lm_eval_ext.benchmarks.diner.glossary import Component, Glossary
from lm_eval_ext.benchmarks.diner.names import clean_name
from lm_eval_ext.benchmarks.diner.prompt import LABELS, NAME_LABEL

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
