"""The content of a MAGNIFICo corpus: the published, the embedded, or a user's own."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lm_eval_ext.errors import DataError
from lm_eval_ext.reading import lines_of
from lm_eval_ext.sql import Place, place_of, sqlite_path

Form: TypeAlias = Literal["base", "plausible", "foreign", "adversarial"]
"""How a question expresses an interpretation; ``base`` does it in ordinary words."""

NovelForm: TypeAlias = Literal["plausible", "foreign", "adversarial"]

Position: TypeAlias = Literal["start", "mid", "end"]

CorpusName: TypeAlias = Literal["published", "mini", "own"]

Rows: TypeAlias = Literal["v3", "v2"]
"""What ``populated/...`` metrics rest on: v3, the whole suite; v2, only the populated copy that was
published with version 2."""

BASE: Form = "base"
FOREIGN: Form = "foreign"
NOVEL: tuple[NovelForm, ...] = ("plausible", "foreign", "adversarial")
"""The forms with a novel word, in the paper's order (section 3.1)."""

PLACEHOLDER = "concept_word"
"""Stands for the novel word in the dataset's templates and base dialogues."""


@dataclass(frozen=True)
class Interpretation:
    """A meaning that the questions give to a word.

    Attributes:
        name: The name of the dataset's folder.
        category: One of the paper's four (section 3.1), or "phrase" if a phrase expresses it.
        meaning: Completes "The word '...' refers to".
        forms: The word or phrase in the questions, by novel form.
    """

    name: str
    category: str
    meaning: str
    forms: Mapping[Form, str]


@dataclass(frozen=True)
class Example:
    """A question with its gold query.

    Attributes:
        template: The same for all forms of one example: ``<interpretation>/<number>``.
        interpretations: One, or two where they are composed.
        form: ``base`` or a novel form.
        db_id: The database; its case does not matter.
        question: Without the database's schema.
        query: The gold query.
        place: File and line, of a user's own example.
    """

    template: str
    interpretations: tuple[str, ...]
    form: Form
    db_id: str
    question: str
    query: str
    place: str = field(default="", compare=False)

    @property
    def id(self) -> str:
        """Unique in a corpus: ``maximum/12/plausible``."""
        return f"{self.template}/{self.form}"


@dataclass(frozen=True)
class Database:
    """A database's files.

    Attributes:
        place: Where it lies; prompts of other engines than SQLite show no script.
        script: The script whose CREATE TABLE statements prompts show.
        listed: The tables as the dataset's questions list them, where they do.
    """

    place: Place
    script: Path | None = None
    listed: tuple[str, ...] = ()

    @classmethod
    def at(cls, found: Path | Place) -> "Database":
        """A database, of SQLite with a script beside it: ``schema.sql``, or the only one there is.

        Only in a folder named after the database a script may have another name, as in Spider.
        """
        place = place_of(found) if isinstance(found, Path) else found
        folder, name = Path(place.address).parent, Path(place.address).stem
        scripts = sorted(folder.glob("schema.sql")) or sorted(folder.glob("*.sql"))
        alone = len(scripts) == 1 and (folder.name == name or scripts[0].stem == "schema")
        return cls(place, scripts[0] if alone and place.engine == "sqlite" else None)

    @property
    def path(self) -> Path:
        """The SQLite file; raises OptionError if it is of another engine."""
        return sqlite_path(self.place)


@dataclass(frozen=True)
class Description:
    """The authors' description of an interpretation.

    Attributes:
        sentence: With :data:`PLACEHOLDER` for the word; a phrase's has none.
        words: The word by form, as the authors' list has it; empty for a phrase.
    """

    sentence: str
    words: Mapping[Form, str]


@dataclass(frozen=True)
class Corpus:
    """All examples and their databases.

    Attributes:
        interpretations: By name.
        examples: Test examples with one interpretation, base ones included.
        support: Held-out examples for few-shot prompts, by interpretation and form.
        combinations: Test examples with two interpretations, base ones included.
        dialogues: By interpretation, form and database (lower case), the dialogue with the
            definition at each position. Base ones have :data:`PLACEHOLDER` for the word.
        databases: The databases that are available locally, by id in lower case.
        tables: The tables of each database as the questions list them, by id in lower case.
        descriptions: The authors' descriptions by interpretation; empty where they are not read.
    """

    interpretations: Mapping[str, Interpretation]
    examples: tuple[Example, ...]
    support: Mapping[tuple[str, Form], tuple[Example, ...]]
    combinations: tuple[Example, ...] = ()
    dialogues: Mapping[tuple[str, Form, str], Mapping[Position, str]] = field(default_factory=dict)
    databases: Mapping[str, Database] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    descriptions: Mapping[str, Description] = field(default_factory=dict)

    @property
    def solved(self) -> list[Example]:
        """All support examples."""
        return [example for examples in self.support.values() for example in examples]

    def golds(self) -> dict[str, tuple[str, ...]]:
        """All gold queries, support included, by database id in lower case; sorted and unique."""
        golds: dict[str, set[str]] = {}
        for example in (*self.examples, *self.combinations, *self.solved):
            golds.setdefault(example.db_id.casefold(), set()).add(example.query)
        return {db_id: tuple(sorted(queries)) for db_id, queries in sorted(golds.items())}


def rows_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the rows of a table, each with its file and line.

    ``.csv`` is separated by commas, ``.jsonl`` has an object per line, all else is separated by
    tabs; the first line names the columns. Texts have no spaces around them, and an empty cell is
    an empty text.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        if path.suffix == ".jsonl":
            for place, line in lines_of(path):
                yield place, json.loads(line)
            return
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(
                lines, delimiter="," if path.suffix == ".csv" else "\t", strict=True,
                restkey="(more cells than columns)", restval="",
            )  # fmt: skip
            for row in reader:
                yield (
                    f"{path}:{reader.line_num}",
                    {
                        key: value.strip() if isinstance(value, str) else value
                        for key, value in row.items()
                    },
                )
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
