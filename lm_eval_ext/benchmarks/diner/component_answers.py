"""Reads answers to the component questions, also from lm-eval's log of an earlier run.

:func:`parts` reads one answer: of its first sentence that is no question, what stands between
commas, after 是, 为, 叫 or a colon, without brackets, quotation marks and other punctuation. An
answer says that there is no such component by 无, by 没有 at its beginning or end, or by 没有特别
and similar phrases anywhere. :func:`components_in` finds their components, also those of 麻辣味
and 蒸法. :func:`name_after_components` reads the four lines of compositional prompting,
:func:`read_answers` a log.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from lm_eval_ext.answers.reader import AnswerReader, ReaderOptions
from lm_eval_ext.answers.turn import Step
from lm_eval_ext.benchmarks.diner.answers import (
    NameGrammar,
    normal_characters,
    plain,
    without_markup,
)
from lm_eval_ext.benchmarks.diner.glossary import Component, Components, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS, LABELS, NAME_LABEL
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.harness.missing import was_missing

UNKNOWN = "unknown"
"""Kind of a component that the glossary lacks, which is never right."""

_QUESTIONS = re.compile(r"(?:[^。!?\n]*\?[\"”」]*\s*)*")
_SENTENCE_END = re.compile(r"[。!?\n]")
_BETWEEN = re.compile(r"[,、;/|+\s]+")
_JOINED = re.compile(r"以及|[和与及]")
_BEFORE = re.compile(r"^.*(?:是|为(?!主)|叫做?(?!花)|:)")
_NOTHING = re.compile(
    r"^(?:无|空|没|暂无|无明显.*|不明显|没有.*|.*没有|.*没有(?:特别|明显|突出|什么).*"
    r"|none|null|n/?a|no)?$",
    re.IGNORECASE,
)
_NAME_LINE = re.compile(rf"{NAME_LABEL}[^\n:：]{{0,6}}[:：]")  # noqa: RUF001


def listed_words(answer: str) -> tuple[str, ...]:
    """Return the components that an answer lists, in its words; () if it says "none"."""
    text = plain(answer).strip()
    questions = _QUESTIONS.match(text)
    if questions:
        text = text[questions.end() :]
    sentence = _SENTENCE_END.split(text, maxsplit=1)[0]
    if _NOTHING.match(sentence):
        return ()
    components = []
    for item in _BETWEEN.split(sentence):
        component = _bare(_BEFORE.sub("", item))
        if not _NOTHING.match(component):
            components.append(component)
    return tuple(dict.fromkeys(components))


def _bare(text: str) -> str:
    """Return the Chinese characters, or the text without punctuation around it if it has none."""
    return clean_name(text) or text.strip("\"'“”「」.()[]")


def components_in(answer: str, glossary: Glossary) -> set[Component]:
    """Return the components of an answer, of all kinds.

    Parts are parsed like names: a full dish name as an answer about the action gives the right
    action and some wrong foods. A part that does not parse is divided at 和, 与 and 及; a piece
    that still does not parse is one wrong component, unless it is a flavour with a word for taste
    (麻辣味, 酸甜口味) or an action with one for method (蒸法, 炒制).
    """
    components: set[Component] = set()
    for words in listed_words(answer):
        parsed = glossary.parse(words)
        if parsed:
            components.update(parsed)
            continue
        for piece in _JOINED.split(words):
            if piece:
                components.update(_components_of_piece(piece, glossary))
    return components


def _components_of_piece(piece: str, glossary: Glossary) -> Components:
    parsed = glossary.parse(piece) or _without_kind(piece, glossary)
    return parsed or (Component(UNKNOWN, piece),)


_AROUND = r"^(?:采用|使用|以|用|偏)?(.+?){}(?:为主)?$"
_TASTE_WORD = "的?(?:味道?|口味|风味|味型|滋味|口感)"
_METHOD_WORD = "的?(?:烹饪|烹调|烹制|制作)?(?:方法|方式|手法|技法|做法|法|制)"
_KIND_WORDS = (
    ("flavour", re.compile(_AROUND.format(""))),
    ("action", re.compile(_AROUND.format(""))),
    ("flavour", re.compile(_AROUND.format(_TASTE_WORD))),
    ("action", re.compile(_AROUND.format(_METHOD_WORD))),
)


def _without_kind(text: str, glossary: Glossary) -> Components:
    """Return the components of a text without the word that names their kind, all of this kind."""
    for kind, pattern in _KIND_WORDS:
        bare = pattern.fullmatch(text)
        components = glossary.parse(bare[1]) if bare else None
        if components and all(component.kind == kind for component in components):
            return components
    return ()


def name_after_components(answer: str) -> str:
    """Return the part of a four-line answer that contains the name; "" if there is none.

    It is the text after the last 菜名 with a colon, or else the last line, unless that line
    states components.
    """
    text = plain(answer)
    labelled = list(_NAME_LINE.finditer(text))
    if labelled:
        return text[labelled[-1].end() :]
    lines = [line for line in text.splitlines() if line.strip()]
    last_line = lines[-1] if lines else ""
    states_components = any(label in last_line for label in LABELS.values())
    return "" if states_components else last_line


class NamedLastGrammar(NameGrammar):
    """Finds the name behind the components of a four-line answer."""

    def find(self, text: str) -> list[Step]:
        """Return the steps from what a model says to the name."""
        name_line = name_after_components(text)
        return [Step("line of the name", name_line), *super().find(name_line)]


class ComponentGrammar:
    """Takes the markup off an answer to a component question; scoring reads its parts."""

    def find(self, text: str) -> list[Step]:
        """Return the steps to an answer without markup and without the question."""
        normal = normal_characters(text)
        return [
            Step("normal characters", normal),
            Step("without markup and question", without_markup(normal)),
        ]


NAMED_LAST_READER = AnswerReader(ReaderOptions(NamedLastGrammar()))
COMPONENT_READER = AnswerReader(ReaderOptions(ComponentGrammar()))


_REMEDY = (
    "name the file samples_diner_components_*.jsonl that lm_eval --tasks diner_components "
    "--log_samples wrote"
)

ComponentsById = Mapping[str, Mapping[str, Sequence[str]]]
"""Components that a model answered, by the id of a recipe and their kind."""


class _Doc(BaseModel):
    id: str
    instruction: str


class _LoggedAnswers(BaseModel):
    """A line of lm-eval's log."""

    doc: _Doc
    filtered_resps: tuple[str, str, str]


def read_answers(file: Path, recipes: Iterable[Recipe]) -> ComponentsById:
    """Read a model's answers to the component questions about recipes from lm-eval's log.

    Returns:
        Components by recipe id and kind, in the model's words. Recipes without answers in the log
        are missing.

    Raises:
        OptionError: The file cannot be read, or has no answer about any of the recipes.
        DataError: A line is not a logged answer, or its recipe differs from ours of the same id.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise OptionError(
            f"diner_components_file: cannot read {file}: {error.strerror}; {_REMEDY}"
        ) from None
    instructions = {recipe.id: recipe.instruction for recipe in recipes}
    answers = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = _LoggedAnswers.model_validate_json(line)
        except ValidationError as error:
            raise DataError(
                f"{file}, line {number}: not a logged answer to {len(ASKED_KINDS)} component "
                f"questions ({first_problem(error)}); {_REMEDY}"
            ) from None
        if row.doc.id not in instructions or any(map(was_missing, row.filtered_resps)):
            continue
        if row.doc.instruction != instructions[row.doc.id]:
            raise DataError(
                f"{file}, line {number}: {row.doc.id} is a different recipe in this log; run both "
                "tasks on the same data"
            )
        components = map(listed_words, row.filtered_resps)
        answers[row.doc.id] = dict(zip(ASKED_KINDS, components, strict=True))
    if not answers:
        raise OptionError(
            f"diner_components_file: {file} has no answers about these recipes; {_REMEDY} on the "
            "same data"
        )
    return answers
