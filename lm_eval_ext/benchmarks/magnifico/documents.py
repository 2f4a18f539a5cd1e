"""From a corpus to lm-eval's documents: one per example and request."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from lm_eval_ext.benchmarks.magnifico import prompt
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    Corpus,
    Example,
    Form,
    Position,
)
from lm_eval_ext.errors import OptionError

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
