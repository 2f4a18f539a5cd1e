"""Makes lm-eval's documents from a corpus, one per example."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from lm_eval_ext.benchmarks.magnifico import prompt
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    FOREIGN,
    NOVEL,
    PLACEHOLDER,
    Corpus,
    CorpusName,
    Example,
    Form,
    NovelForm,
    Position,
    SuiteRows,
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

MULTIPLE = "multiple"
"""The category of examples with two interpretations."""

SUPPORT_ROWS = {1: (0, 1, 2, 3, 4), 2: (0, 2, 4)}
"""Rows of support examples to show, by number of interpretations: five, or three for each of two
(paper, footnote 6; the authors' code says which three)."""

_QUERY_IN_ERROR = " (in the query"
"""The beginning of the part of an error that repeats the query."""


def _forms(value: object) -> object:
    if isinstance(value, tuple):
        return value
    words = tuple(form.strip() for form in str(value).split(","))
    if len(set(words)) != len(words):
        raise ValueError("name each form once")
    return words


@checked_dataclass(frozen=True)
class Setting:
    """A task's options: its examples, its prompt, and the databases that judge answers.

    Attributes:
        corpus: The corpus that examples come from.
        subset: The examples that are asked.
        prompt: The kind of prompt.
        position: The position of the description in the prompt, or of the definition in the
            dialogue.
        forms: The novel forms, or a text with commas between them; base examples are always asked.
        overlap: ``drop`` leaves out examples that overlap with their support, with any prompt,
            so that prompts are compared on the same examples.
        semantics: When results count as equal (:mod:`lm_eval_ext.sql.compare`).
        seed: The seed of new foreign words; None: the published ones.
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
    populated: SuiteRows = "v3"
    file: str | None = None
    fresh: int | None = None

    @property
    def needs_descriptions(self) -> bool:
        """Whether prompts have the authors' descriptions, where a corpus has them."""
        return self.prompt in DESCRIBED

    @property
    def needs_dialogues(self) -> bool:
        """Whether dialogues are needed, for the prompt or to choose examples."""
        return self.subset == "dialogues" or self.prompt == "dialogue"

    @property
    def shows_support(self) -> bool:
        """Whether prompts show solved examples."""
        return "fewshot" in self.prompt


MagnificoDocument: TypeAlias = dict[str, str]
"""A document: ``id``, ``template``, ``interpretation``, ``category``, ``form``, ``db_id``,
``question``, ``query`` (the gold) and ``prompt``."""


@dataclass
class DocumentSet:
    """The documents of a setting.

    Attributes:
        documents: The documents, in the order of :func:`chosen`.
        excluded: The ids of examples that cannot be scored, by cause: ``database_missing``,
            ``gold_error``.
    """

    documents: list[MagnificoDocument] = field(default_factory=list)
    excluded: dict[str, list[str]] = field(default_factory=dict)


def documents(
    corpus: Corpus,
    setting: Setting,
    blocks: Mapping[str, Sequence[str]],
    gold_errors: Mapping[tuple[str, str], str],
) -> DocumentSet:
    """Make the documents of a setting.

    Args:
        corpus: The examples with their databases.
        setting: The choice of examples and prompt.
        blocks: The schema of each database, one block per table, by id in lower case.
        gold_errors: Why gold queries fail, by database id in lower case and query.

    Raises:
        OptionError: A dialogue is wanted for examples without one.
        DataError: A few-shot prompt is wanted for a word without solved examples.
    """
    if setting.prompt == "dialogue" and setting.subset != "dialogues":
        raise OptionError(
            f"magnifico_prompt=dialogue: magnifico_subset is {setting.subset!r}; use dialogues"
        )
    document_set = DocumentSet()
    for example in chosen(corpus, setting):
        if setting.shows_support:
            _check_support(corpus, example)
        cause = _cause_of_exclusion(corpus, example, gold_errors)
        if cause:
            document_set.excluded.setdefault(cause, []).append(example.id)
        else:
            document_set.documents.append(_document(corpus, setting, example, blocks))
    return document_set


def _cause_of_exclusion(
    corpus: Corpus, example: Example, gold_errors: Mapping[tuple[str, str], str]
) -> str:
    """Return why an example cannot be scored; "" if it can."""
    db_id, _ = example.gold
    if db_id not in corpus.databases:
        return "database_missing"
    error = gold_errors.get(example.gold)
    if error is None:
        return ""
    if not example.source_line:
        return "gold_error"
    # Users see SQLite's error without the query, which stands in their own file.
    return f"gold_error ({error.partition(_QUERY_IN_ERROR)[0]})"


def _document(
    corpus: Corpus, setting: Setting, example: Example, blocks: Mapping[str, Sequence[str]]
) -> MagnificoDocument:
    category = MULTIPLE
    if len(example.interpretations) == 1:
        category = corpus.interpretations[example.interpretations[0]].category
    return {
        "id": example.id,
        "template": example.template,
        "interpretation": "+".join(example.interpretations),
        "category": category,
        "form": example.form,
        "db_id": example.db_id,
        "question": example.question,
        "query": example.query,
        "prompt": prompt_of(corpus, setting, example, blocks[example.db_id.casefold()]),
    }


def chosen(corpus: Corpus, setting: Setting) -> list[Example]:
    """Return the examples of a setting, in an order that makes sense with ``--limit``.

    The forms of a template follow each other, the base form first, and interpretations alternate.
    A user's base example is left out if none of its forms is wanted.
    """
    forms = {BASE, *setting.forms}
    if setting.subset == "combinations":
        examples = [example for example in corpus.combinations if example.form in forms]
    else:
        examples = []
        for example in corpus.examples:
            if example.form in forms and _belongs(corpus, example, setting.subset):
                examples.append(example)
    if setting.overlap == "drop":
        dropped_templates = overlapping(corpus, examples)
        examples = [example for example in examples if example.template not in dropped_templates]
    novel_templates = {example.template for example in examples if example.form != BASE}
    examples = [
        example
        for example in examples
        if not example.source_line or example.template in novel_templates
    ]
    return _alternating(examples)


def _alternating(examples: Sequence[Example]) -> list[Example]:
    """Return examples in rounds: of each round one template of every interpretation."""
    form_order: tuple[Form, ...] = (BASE, *NOVEL)
    rounds: dict[str, tuple[int, int]] = {}
    """By template its round, and the number of its interpretation within the round."""
    template_counts: dict[tuple[str, ...], int] = {}
    interpretation_numbers: dict[tuple[str, ...], int] = {}
    for example in examples:
        if example.template not in rounds:
            names = example.interpretations
            number = interpretation_numbers.setdefault(names, len(interpretation_numbers))
            count = template_counts.get(names, 0)
            rounds[example.template] = (count, number)
            template_counts[names] = count + 1

    def order(example: Example) -> tuple[int, int, int]:
        round_number, number = rounds[example.template]
        return round_number, number, form_order.index(example.form)

    return sorted(examples, key=order)


def overlapping(corpus: Corpus, examples: Iterable[Example]) -> set[str]:
    """Return the templates with a form whose prompt shows its gold query in a solved example.

    All forms of a template are left out together: relative performance compares them.
    """
    templates = set()
    for example in examples:
        support_golds = {solved.gold for solved in _support(corpus, example)}
        if example.gold in support_golds:
            templates.add(example.template)
    return templates


def _belongs(corpus: Corpus, example: Example, subset: Subset) -> bool:
    (name,) = example.interpretations
    if subset == "dialogues":
        return (name, example.form, example.db_id.casefold()) in corpus.dialogues
    if subset == "all":
        return True
    is_phrase = corpus.interpretations[name].category == PHRASE
    return is_phrase == (subset == "phrases")


def prompt_of(corpus: Corpus, setting: Setting, example: Example, blocks: Sequence[str]) -> str:
    """Return the prompt of one example.

    Base examples have nothing to describe, so their prompts have no description: the direct or
    the few-shot prompt is left. Their dialogue is the one with the placeholder.
    """
    db_id = example.db_id.casefold()
    dialect = DIALECTS[corpus.databases[db_id].location.engine].title
    if setting.prompt == "dialogue":
        # Base dialogues exist only with the definition at the start.
        position: Position = "start" if example.form == BASE else setting.position
        dialogue = corpus.dialogues[example.interpretations[0], example.form, db_id][position]
        return prompt.in_dialogue(dialogue, blocks, example.question, dialect=dialect)
    descriptions: Sequence[str] = ()
    if setting.prompt in DESCRIBED and example.form != BASE:
        descriptions = _descriptions(corpus, example)
    return prompt.for_question(
        blocks,
        example.question,
        descriptions=descriptions,
        position=setting.position,
        support=_support(corpus, example) if setting.shows_support else (),
        dialect=dialect,
    )


def _descriptions(corpus: Corpus, example: Example) -> list[str]:
    """Return the authors' descriptions if the corpus has them, else our own.

    The authors' name the word of their list, even where questions hold another form of it
    ("accumulation" where they ask for "accumulated"). Two kinds name the word in the question
    instead: foreign words, since nobody could connect two invented ones (and since fresh words
    replace them), and questions with two words, which hold the words that we put there.
    """
    texts = []
    for name in example.interpretations:
        interpretation = corpus.interpretations[name]
        word = interpretation.forms[example.form]
        authors_description = corpus.descriptions.get(name)
        if authors_description is None:
            texts.append(prompt.description(word, interpretation.meaning))
            continue
        if example.form != FOREIGN and len(example.interpretations) == 1:
            word = authors_description.words.get(example.form, word)
        texts.append(authors_description.sentence.replace(PLACEHOLDER, word))
    return texts


def _support(corpus: Corpus, example: Example) -> list[Example]:
    """Return the solved examples of an example's few-shot prompt."""
    numbers = SUPPORT_ROWS[len(example.interpretations)]
    examples = []
    for name in example.interpretations:
        for number, solved in enumerate(corpus.support[name, example.form]):
            if number in numbers:
                examples.append(solved)
    return examples


def _check_support(corpus: Corpus, example: Example) -> None:
    """Raise DataError rather than ask silently without solved examples."""
    for name in example.interpretations:
        if not corpus.support[name, example.form]:
            form = "" if example.form == BASE else f" in the form {example.form}"
            raise DataError(
                f"{example.source_line or example.id}: few-shot prompts need solved examples, and "
                f"no support row has {name!r}{form}; add rows with support=yes, or use a task with "
                "another prompt"
            )
