"""Foreign words that were never printed, in the place of the published ones.

The published words stand in a paper, and a model may have been trained on it. New ones are
drawn from a seed; everything else stays.

From a corpus to lm-eval's documents: one per example and request.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from lm_eval_ext.benchmarks.magnifico import prompt
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    Corpus,
    Example,
    Form,
    Interpretation,
    Position,
)
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import WORDLIKE, draw_words
from lm_eval_ext.lexicon.words import is_english

FOREIGN: Form = "foreign"
_K = TypeVar("_K")
_V = TypeVar("_V")
_WORD = re.compile(r"[a-z]+")


def renew(corpus: Corpus, seed: int, schemas: Iterable[str]) -> Corpus:
    """Returns the corpus with new foreign words.

    They can be pronounced, are no English words, and occur in no question, query or schema, not
    even as a part of a longer word. Dialogues have no say, since only some tasks read them and
    a seed must give the same words in all.

    Args:
        corpus: The corpus; not changed.
        seed: Decides about the words, together with the corpus.
        schemas: Texts that show the databases, such as their CREATE statements.

    Raises:
        OptionError: The seed is no whole number from 0 on.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise OptionError(f"magnifico_seed={seed!r}: must be a whole number from 0 on")
    foreign = {
        name: interpretation.forms[FOREIGN]
        for name, interpretation in corpus.interpretations.items()
        if FOREIGN in interpretation.forms
    }
    seen = _seen(corpus, schemas)

    def refused(word: str) -> bool:
        return is_english(word) or word in seen

    drawn = draw_words(WORDLIKE, len(foreign), random.Random(seed), refused=refused)
    words = dict(zip(foreign, drawn, strict=True))
    return _reworded(corpus, foreign, words)


def _seen(corpus: Corpus, schemas: Iterable[str]) -> str:
    """Every run of letters in sight, as one text in which parts of words are found, too."""
    texts = [example.question for example in (*corpus.examples, *corpus.combinations)]
    texts += [example.query for example in (*corpus.examples, *corpus.combinations)]
    texts += [example.question for examples in corpus.support.values() for example in examples]
    found = {word for text in (*texts, *schemas) for word in _WORD.findall(text.lower())}
    return "\n".join(sorted(found))


def _reworded(corpus: Corpus, old: Mapping[str, str], new: Mapping[str, str]) -> Corpus:
    def reword(text: str, names: Iterable[str]) -> str:
        for name in names:
            text = text.replace(old[name], new[name])
        return text

    def example(one: Example) -> Example:
        if one.form != FOREIGN:
            return one
        return replace(one, question=reword(one.question, one.interpretations))

    def interpretation(one: Interpretation) -> Interpretation:
        if one.name not in new:
            return one
        return replace(one, forms=MappingProxyType({**one.forms, FOREIGN: new[one.name]}))

    return replace(
        corpus,
        interpretations=_mapped(corpus.interpretations, interpretation),
        examples=tuple(map(example, corpus.examples)),
        combinations=tuple(map(example, corpus.combinations)),
        support=_mapped(corpus.support, lambda examples: tuple(map(example, examples))),
        dialogues=MappingProxyType(
            {
                key: {place: reword(text, key[:1]) for place, text in dialogue.items()}
                if key[1] == FOREIGN
                else dialogue
                for key, dialogue in corpus.dialogues.items()
            }
        ),
    )


def _mapped(values: Mapping[_K, _V], change: Callable[[_V], _V]) -> Mapping[_K, _V]:
    return MappingProxyType({key: change(value) for key, value in values.items()})


Subset: TypeAlias = Literal["words", "phrases", "combinations", "dialogues"]
"""Which examples: one word, one phrase, two words, or those of the dialogue experiment."""

PromptKind: TypeAlias = Literal["direct", "desc", "fewshot", "dialogue"]

PHRASE = "phrase"
"""The category of interpretations that a phrase denotes."""

SUPPORT_ROWS = {1: (0, 1, 2, 3, 4), 2: (0, 2, 4)}
"""Support examples per interpretation: five, or three of each where there are two (paper,
footnote 6; which three, fact sheet)."""


@dataclass(frozen=True)
class Setting:
    """What a task asks, and how.

    Attributes:
        subset: Which examples.
        kind: Which prompt.
        position: Where the description goes, or where the dialogue gives it.
        forms: Novel forms beside the base examples.
    """

    subset: Subset = "words"
    kind: PromptKind = "direct"
    position: Position = "end"
    forms: tuple[Form, ...] = NOVEL

    @classmethod
    def of_options(cls, subset: str, kind: str, position: str, forms: str) -> "Setting":
        """Makes a setting of what a task's metadata say; ``forms`` are separated by commas.

        Raises:
            OptionError: A value is not legal.
        """
        words = tuple(form.strip() for form in str(forms).split(","))
        for key, value, legal in (
            ("subset", subset, get_args(Subset)),
            ("prompt", kind, get_args(PromptKind)),
            ("position", position, get_args(Position)),
            *(("forms", form, NOVEL) for form in words),
        ):
            if value not in legal:
                raise OptionError(f"magnifico_{key}: no {value!r}; use {', '.join(legal)}")
        if len(set(words)) != len(words):
            raise OptionError(f"magnifico_forms: {forms!r} names one twice")
        return cls(subset, kind, position, words)  # type: ignore[arg-type]


def chosen(corpus: Corpus, setting: Setting) -> list[Example]:
    """The examples of a setting, so ordered that any first part of them is of use.

    The forms of a template follow each other, the base one first; interpretations take turns.
    """
    wanted = {BASE, *setting.forms}
    if setting.subset == "combinations":
        examples = [example for example in corpus.combinations if example.form in wanted]
    else:
        examples = [
            example
            for example in corpus.examples
            if example.form in wanted and _belongs(corpus, example, setting.subset)
        ]
    forms = (BASE, *NOVEL)
    turn: dict[str, tuple[int, int]] = {}
    members: dict[tuple[str, ...], int] = {}
    for example in examples:
        if example.template not in turn:
            place = members.setdefault(example.interpretations, 0)
            members[example.interpretations] += 1
            turn[example.template] = (place, list(members).index(example.interpretations))
    return sorted(examples, key=lambda one: (*turn[one.template], forms.index(one.form)))


def _belongs(corpus: Corpus, example: Example, subset: Subset) -> bool:
    (name,) = example.interpretations
    if subset == "dialogues":
        return (name, example.form, example.db_id.casefold()) in corpus.dialogues
    return (corpus.interpretations[name].category == PHRASE) == (subset == "phrases")


def documents(
    corpus: Corpus,
    setting: Setting,
    blocks: Callable[[str], Sequence[str]],
    broken: Mapping[tuple[str, str], str],
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Renders the documents of a setting.

    Args:
        corpus: Where the examples come from.
        setting: Which, and how they are asked.
        blocks: Gives the schema of a database (id in lower case) as a prompt's blocks.
        broken: By database (lower case) and query, why a gold does not run.

    Returns:
        The documents, in flat columns: ``id``, ``template``, ``interpretation``, ``category``,
        ``form``, ``db_id``, ``question``, ``query`` (the gold) and ``prompt``. And the ids of
        the examples that cannot be scored, by cause: ``database_missing``, ``gold_error``.
    """
    made: list[dict[str, Any]] = []
    unscorable: dict[str, list[str]] = {}
    for example in chosen(corpus, setting):
        db_id = example.db_id.casefold()
        if db_id not in corpus.databases:
            unscorable.setdefault("database_missing", []).append(example.id)
        elif (db_id, example.query) in broken:
            unscorable.setdefault("gold_error", []).append(example.id)
        else:
            made.append(
                {
                    "id": example.id,
                    "template": example.template,
                    "interpretation": "+".join(example.interpretations),
                    "category": _category(corpus, example),
                    "form": example.form,
                    "db_id": example.db_id,
                    "question": example.question,
                    "query": example.query,
                    "prompt": ask(corpus, setting, example, blocks(db_id)),
                }
            )
    return made, unscorable


def _category(corpus: Corpus, example: Example) -> str:
    """The interpretation's category; two make a category of their own."""
    if len(example.interpretations) > 1:
        return "multiple"
    return corpus.interpretations[example.interpretations[0]].category


def ask(corpus: Corpus, setting: Setting, example: Example, blocks: Sequence[str]) -> str:
    """Renders the prompt of one example.

    Base examples get no description, since there is nothing to describe: the direct prompt
    stands in (fact sheet, "Prompt"). Their dialogue is the one with the placeholder.
    """
    if setting.kind == "dialogue":
        # A base dialogue exists with the definition at the start only.
        position: Position = "start" if example.form == BASE else setting.position
        key = (example.interpretations[0], example.form, example.db_id.casefold())
        return prompt.in_dialogue(corpus.dialogues[key][position], blocks, example.question)
    if setting.kind == "fewshot":
        return prompt.for_question(blocks, example.question, support=_support(corpus, example))
    descriptions: Iterable[str] = ()
    if setting.kind == "desc" and example.form != BASE:
        descriptions = (
            prompt.description(found.forms[example.form], found.meaning)
            for found in (corpus.interpretations[name] for name in example.interpretations)
        )
    return prompt.for_question(
        blocks, example.question, descriptions=tuple(descriptions), position=setting.position
    )


def _support(corpus: Corpus, example: Example) -> list[Example]:
    rows = SUPPORT_ROWS[len(example.interpretations)]
    return [
        held_out
        for name in example.interpretations
        for index, held_out in enumerate(corpus.support[name, example.form])
        if index in rows
    ]
