"""Makes lm-eval's documents from a corpus, one per example."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from lm_eval_ext.benchmarks.magnifico import prompt
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    FOREIGN,
    NOVEL,
    PLACEHOLDER,
    Corpus,
    CorpusName,
    Example,
    NovelForm,
    Position,
    Rows,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import DIALECTS

Subset: TypeAlias = Literal["words", "phrases", "all", "combinations", "dialogues"]
"""Examples with one word, one phrase, either of them, or two words, or those of the dialogue
experiment."""

PromptKind: TypeAlias = Literal["direct", "desc", "fewshot", "desc_fewshot", "dialogue"]

DESCRIBED: tuple[PromptKind, ...] = ("desc", "desc_fewshot")
"""Prompts with a description."""

Overlap: TypeAlias = Literal["keep", "drop"]
"""Whether to ask examples whose gold query stands among the solved examples of their few-shot
prompt, on the same database."""

PHRASE = "phrase"
"""The category of interpretations that a phrase expresses."""

SUPPORT_ROWS = {1: (0, 1, 2, 3, 4), 2: (0, 2, 4)}
"""Rows of support examples to show, by number of interpretations: five, or three for each of two
(paper, footnote 6; the authors' code says which three)."""


def _forms(value: object) -> object:
    if isinstance(value, tuple):
        return value
    words = tuple(form.strip() for form in str(value).split(","))
    if len(set(words)) != len(words):
        raise ValueError("name each form once")
    return words


@dataclass(frozen=True)
class Setting:
    """A task's options: its examples, its prompt, and the databases that judge answers.

    Attributes:
        corpus: Where examples come from.
        subset: Which examples.
        prompt: Which prompt.
        position: Of the description in the prompt, or of the definition in the dialogue.
        forms: The novel forms, or a text with commas between them; base examples are always asked.
        overlap: ``drop`` leaves out examples that overlap with their support, with any prompt,
            so that prompts are compared on the same examples.
        semantics: When results count as equal (:mod:`lm_eval_ext.sql.compare`).
        seed: Draws new foreign words; None: the published ones.
        databases: A folder of databases, used instead of the pinned ones; for ``own`` any
            database (docs/sql.md).
        populated: What ``populated/...`` metrics rest on: ``v3``, the test suite, or ``v2``, only
            the populated copy that was published with version 2.
        file: The user's examples, for ``own``.
        fresh: The seed for all benchmarks, instead of ``seed``.
    """

    corpus: CorpusName = "published"
    subset: Subset = "words"
    prompt: PromptKind = "direct"
    position: Position = "end"
    forms: Annotated[
        tuple[NovelForm, ...], BeforeValidator(_forms), Field(validate_default=True)
    ] = ",".join(NOVEL)  # type: ignore[assignment]
    overlap: Overlap = "keep"
    semantics: str = "reference"
    seed: int | None = None
    databases: str | None = None
    populated: Rows = "v3"
    file: str | None = None
    fresh: int | None = None

    @property
    def wants_theirs(self) -> bool:
        """Whether prompts have the authors' descriptions, where a corpus has them."""
        return self.prompt in DESCRIBED

    @property
    def wants_dialogues(self) -> bool:
        """Whether dialogues are needed, for the prompt or to choose examples."""
        return self.subset == "dialogues" or self.prompt == "dialogue"


def documents(
    corpus: Corpus,
    setting: Setting,
    blocks: Callable[[str], Sequence[str]],
    broken: Mapping[tuple[str, str], str],
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Makes the documents of a setting.

    Args:
        corpus: Has the examples.
        setting: Selects examples and prompt.
        blocks: Returns a database's schema, one block per table, for an id in lower case.
        broken: Why gold queries fail, by database id in lower case and query.

    Returns:
        The documents, with the columns ``id``, ``template``, ``interpretation``, ``category``,
        ``form``, ``db_id``, ``question``, ``query`` (the gold) and ``prompt``; and the ids of
        examples that cannot be scored, by reason: ``database_missing``, ``gold_error``.

    Raises:
        OptionError: A dialogue is wanted for examples without one.
        DataError: A few-shot prompt is wanted for a word without solved examples.
    """
    if setting.prompt == "dialogue" and setting.subset != "dialogues":
        raise OptionError(
            f"magnifico_prompt=dialogue: magnifico_subset is {setting.subset!r}; use dialogues"
        )
    made: list[dict[str, Any]] = []
    unscorable: dict[str, list[str]] = {}
    for example in chosen(corpus, setting):
        if "fewshot" in setting.prompt:
            _check_support(corpus, example)
        db_id = example.db_id.casefold()
        if db_id not in corpus.databases:
            unscorable.setdefault("database_missing", []).append(example.id)
        elif (error := broken.get((db_id, example.query))) is not None:
            # A user is told what SQLite says, without the query that it says it of.
            said = f" ({error.partition(' (in the query')[0]})" if example.place else ""
            unscorable.setdefault(f"gold_error{said}", []).append(example.id)
        else:
            first, *others = (corpus.interpretations[name] for name in example.interpretations)
            made.append(
                {
                    "id": example.id,
                    "template": example.template,
                    "interpretation": "+".join(example.interpretations),
                    "category": "multiple" if others else first.category,
                    "form": example.form,
                    "db_id": example.db_id,
                    "question": example.question,
                    "query": example.query,
                    "prompt": ask(corpus, setting, example, blocks(db_id)),
                }
            )
    return made, unscorable


def chosen(corpus: Corpus, setting: Setting) -> list[Example]:
    """The examples of a setting, in an order that makes sense with ``--limit``.

    The forms of a template follow each other, the base form first, and interpretations alternate.
    A user's base example is left out if none of its forms is wanted.
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
    if setting.overlap == "drop":
        found = overlapping(corpus, examples)
        examples = [example for example in examples if example.template not in found]
    paired = {example.template for example in examples if example.form != BASE}
    examples = [one for one in examples if not one.place or one.template in paired]
    forms = (BASE, *NOVEL)
    turn: dict[str, tuple[int, int]] = {}
    members: dict[tuple[str, ...], int] = {}
    for example in examples:
        if example.template not in turn:
            place = members.setdefault(example.interpretations, 0)
            members[example.interpretations] += 1
            turn[example.template] = (place, list(members).index(example.interpretations))
    return sorted(examples, key=lambda one: (*turn[one.template], forms.index(one.form)))


def overlapping(corpus: Corpus, examples: Iterable[Example]) -> set[str]:
    """Templates of which a form's gold query stands in the support that its prompt would show.

    All forms of a template are left out together: relative performance compares them.
    """
    return {
        example.template
        for example in examples
        if _gold(example) in {_gold(shown) for shown in _support(corpus, example)}
    }


def _gold(example: Example) -> tuple[str, str]:
    return example.db_id.casefold(), example.query


def _belongs(corpus: Corpus, example: Example, subset: Subset) -> bool:
    (name,) = example.interpretations
    if subset == "dialogues":
        return (name, example.form, example.db_id.casefold()) in corpus.dialogues
    if subset == "all":
        return True
    return (corpus.interpretations[name].category == PHRASE) == (subset == "phrases")


def ask(corpus: Corpus, setting: Setting, example: Example, blocks: Sequence[str]) -> str:
    """Renders the prompt of one example.

    Base examples have nothing to describe, so their prompts have no description: the direct or
    the few-shot prompt is left. Their dialogue is the one with the placeholder.
    """
    dialect = DIALECTS[corpus.databases[example.db_id.casefold()].place.engine].title
    if setting.prompt == "dialogue":
        # Base dialogues exist only with the definition at the start.
        position: Position = "start" if example.form == BASE else setting.position
        key = (example.interpretations[0], example.form, example.db_id.casefold())
        dialogue = corpus.dialogues[key][position]
        return prompt.in_dialogue(dialogue, blocks, example.question, dialect=dialect)
    described = setting.prompt in DESCRIBED and example.form != BASE
    return prompt.for_question(
        blocks,
        example.question,
        descriptions=_descriptions(corpus, setting, example) if described else (),
        position=setting.position,
        support=_support(corpus, example) if "fewshot" in setting.prompt else (),
        dialect=dialect,
    )


def _descriptions(corpus: Corpus, setting: Setting, example: Example) -> list[str]:
    """The authors' descriptions if the corpus has them, else our own.

    The authors' name the word of their list, even where questions hold another form of it
    ("accumulation" where they ask for "accumulated"). Two kinds name the word in the question
    instead: foreign words, since nobody could connect two invented ones (and since fresh words
    replace them), and questions with two words, which hold the words that we put there.
    """
    texts = []
    for name in example.interpretations:
        interpretation = corpus.interpretations[name]
        word = interpretation.forms[example.form]
        theirs = corpus.descriptions.get(name)
        if theirs is None:
            texts.append(prompt.description(word, interpretation.meaning))
            continue
        if example.form != FOREIGN and len(example.interpretations) == 1:
            word = theirs.words.get(example.form, word)
        texts.append(theirs.sentence.replace(PLACEHOLDER, word))
    return texts


def _support(corpus: Corpus, example: Example) -> list[Example]:
    rows = SUPPORT_ROWS[len(example.interpretations)]
    return [
        held_out
        for name in example.interpretations
        for index, held_out in enumerate(corpus.support[name, example.form])
        if index in rows
    ]


def _check_support(corpus: Corpus, example: Example) -> None:
    """Raises DataError rather than ask silently without solved examples."""
    for name in example.interpretations:
        if not corpus.support[name, example.form]:
            form = "" if example.form == BASE else f" in the form {example.form}"
            raise DataError(
                f"{example.place or example.id}: few-shot prompts need solved examples, and no "
                f"support row has {name!r}{form}; add rows with support=yes, or use a task with "
                "another prompt"
            )
