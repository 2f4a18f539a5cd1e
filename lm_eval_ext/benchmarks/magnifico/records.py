"""What a MAGNIFICo corpus holds: the published one, the embedded one, a user's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["base", "plausible", "foreign", "adversarial"]
"""How an interpretation is put into words; ``base`` states it outright."""

Position: TypeAlias = Literal["start", "mid", "end"]

BASE: Form = "base"
NOVEL: tuple[Form, ...] = ("plausible", "foreign", "adversarial")
"""The forms with a novel word, in the paper's order (section 3.1)."""

PLACEHOLDER = "concept_word"
"""Stands for the form in the dataset's templates and in its base dialogues."""


@dataclass(frozen=True)
class Interpretation:
    """A meaning that the questions give to a word.

    Attributes:
        name: As the dataset's folder.
        category: Of the paper's four (section 3.1); "phrase" for those denoted by a phrase.
        meaning: What the word refers to, to follow "The word '...' refers to".
        forms: By novel form, the word or phrase that the questions hold.
    """

    name: str
    category: str
    meaning: str
    forms: Mapping[Form, str]


@dataclass(frozen=True)
class Example:
    """A question with its gold query.

    Attributes:
        template: Names what the forms of one example share: ``<interpretation>/<number>``.
        interpretations: One, or two where they are composed.
        form: ``base`` or a novel form.
        db_id: The database; compared without regard to case.
        question: As the user asks it.
        query: The gold query.
    """

    template: str
    interpretations: tuple[str, ...]
    form: Form
    db_id: str
    question: str
    query: str

    @property
    def id(self) -> str:
        """Unique in a corpus: ``maximum/12/plausible``."""
        return f"{self.template}/{self.form}"


@dataclass(frozen=True)
class Database:
    """A database's files.

    Attributes:
        path: The SQLite file.
        schema: The script that created it, whose CREATE TABLE statements prompts show; None:
            those that SQLite keeps.
    """

    path: Path
    schema: Path | None = None


@dataclass(frozen=True)
class Corpus:
    """Everything that tasks are made of.

    Attributes:
        interpretations: By name.
        examples: Test examples with one interpretation, base ones included.
        support: Held-out examples for few-shot prompts, by interpretation and form.
        combinations: Test examples with two interpretations, base ones included.
        dialogues: By interpretation, form and database (lower case): a conversation that gives
            the definition at each position. Base ones hold :data:`PLACEHOLDER`.
        databases: By id in lower case; those that are at hand.
    """

    interpretations: Mapping[str, Interpretation]
    examples: tuple[Example, ...]
    support: Mapping[tuple[str, Form], tuple[Example, ...]]
    combinations: tuple[Example, ...] = ()
    dialogues: Mapping[tuple[str, Form, str], Mapping[Position, str]] = field(default_factory=dict)
    databases: Mapping[str, Database] = field(default_factory=dict)

    def golds(self) -> dict[str, tuple[str, ...]]:
        """All gold queries, support included, by database id in lower case; sorted, distinct."""
        golds: dict[str, set[str]] = {}
        support = (example for examples in self.support.values() for example in examples)
        for example in (*self.examples, *self.combinations, *support):
            golds.setdefault(example.db_id.casefold(), set()).add(example.query)
        return {db_id: tuple(sorted(queries)) for db_id, queries in sorted(golds.items())}
