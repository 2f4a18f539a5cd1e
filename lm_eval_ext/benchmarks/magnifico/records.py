"""The content of a MAGNIFICo corpus: the published, the embedded, or a user's own."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lm_eval_ext.errors import DataError
from lm_eval_ext.reading import lines_of
from lm_eval_ext.sql import Place, place_of, sqlite_path

Form: TypeAlias = Literal["base", "plausible", "foreign", "adversarial"]
"""The way a question expresses an interpretation; ``base`` does it in ordinary words."""

NovelForm: TypeAlias = Literal["plausible", "foreign", "adversarial"]

Position: TypeAlias = Literal["start", "mid", "end"]

CorpusName: TypeAlias = Literal["published", "mini", "own"]

SuiteRows: TypeAlias = Literal["v3", "v2"]
"""The databases of ``populated/...`` metrics: v3, the whole suite; v2, only the populated copy that
was published with version 2."""

DialogueKey: TypeAlias = tuple[str, Form, str]
"""The subject of a dialogue: interpretation, form and database (its id in lower case)."""

BASE: Form = "base"
FOREIGN: Form = "foreign"
NOVEL: tuple[NovelForm, ...] = ("plausible", "foreign", "adversarial")
"""The forms with a novel word, in the paper's order (section 3.1)."""

PLACEHOLDER = "concept_word"
"""The text that stands for the novel word in the dataset's templates and base dialogues."""


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
        question: The question without the database's schema.
        query: The gold query.
        source_line: File and line of a user's own example; "" for others.
    """

    template: str
    interpretations: tuple[str, ...]
    form: Form
    db_id: str
    question: str
    query: str
    source_line: str = field(default="", compare=False)

    @property
    def id(self) -> str:
        """Unique in a corpus: ``maximum/12/plausible``."""
        return f"{self.template}/{self.form}"

    @property
    def gold(self) -> tuple[str, str]:
        """The database, by its id in lower case, and the gold query."""
        return self.db_id.casefold(), self.query


@dataclass(frozen=True)
class Database:
    """A database's files.

    Attributes:
        location: Where it lies; prompts of other engines than SQLite show no script.
        script: The script whose CREATE TABLE statements prompts show.
        listed_tables: The tables as the dataset's questions list them, where they do.
    """

    location: Place
    script: Path | None = None
    listed_tables: tuple[str, ...] = ()

    @classmethod
    def at(cls, location: Path | Place) -> "Database":
        """Return the database at a location, with its script if there is one.

        A SQLite database may have a script beside it: ``schema.sql``, or the only one there is.
        Another name than ``schema.sql`` is accepted only in a folder named after the database, as
        in Spider.
        """
        if isinstance(location, Path):
            location = place_of(location)
        if location.engine != "sqlite":
            return cls(location)
        file = Path(location.address)
        scripts = sorted(file.parent.glob("schema.sql")) or sorted(file.parent.glob("*.sql"))
        if len(scripts) != 1:
            return cls(location)
        (script,) = scripts
        belongs_to_it = file.parent.name == file.stem or script.stem == "schema"
        return cls(location, script if belongs_to_it else None)

    @property
    def path(self) -> Path:
        """The SQLite file; raises OptionError for a database of another engine."""
        return sqlite_path(self.location)


@dataclass(frozen=True)
class Description:
    """The authors' description of an interpretation.

    Attributes:
        sentence: The description, with :data:`PLACEHOLDER` for the word; a phrase's has none.
        words: The word by form, as the authors' list has it; empty for a phrase.
    """

    sentence: str
    words: Mapping[Form, str]


@dataclass(frozen=True)
class Corpus:
    """All examples and their databases.

    Attributes:
        interpretations: The interpretations by name.
        examples: Test examples with one interpretation, base ones included.
        support: Held-out examples for few-shot prompts, by interpretation and form.
        combinations: Test examples with two interpretations, base ones included.
        dialogues: The dialogues with the definition at each position. Base ones have
            :data:`PLACEHOLDER` for the word.
        databases: The databases that are available locally, by id in lower case.
        tables: The tables of each database as the questions list them, by id in lower case.
        descriptions: The authors' descriptions by interpretation; empty where they are not read.
    """

    interpretations: Mapping[str, Interpretation]
    examples: tuple[Example, ...]
    support: Mapping[tuple[str, Form], tuple[Example, ...]]
    combinations: tuple[Example, ...] = ()
    dialogues: Mapping[DialogueKey, Mapping[Position, str]] = field(default_factory=dict)
    databases: Mapping[str, Database] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    descriptions: Mapping[str, Description] = field(default_factory=dict)

    @property
    def solved(self) -> list[Example]:
        """All support examples."""
        return list(chain.from_iterable(self.support.values()))

    def golds(self) -> dict[str, tuple[str, ...]]:
        """Return all gold queries, support included, by database id in lower case.

        Databases and their queries are sorted, and each query comes once.
        """
        golds: dict[str, set[str]] = {}
        for example in (*self.examples, *self.combinations, *self.solved):
            db_id, query = example.gold
            golds.setdefault(db_id, set()).add(query)
        return {db_id: tuple(sorted(queries)) for db_id, queries in sorted(golds.items())}


def rows_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a table, each after its file and line.

    ``.csv`` is separated by commas, ``.jsonl`` has an object per line, all else is separated by
    tabs; the first line names the columns. Texts have no spaces around them, and an empty cell is
    an empty text.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        if path.suffix == ".jsonl":
            for position, line in lines_of(path):
                yield position, json.loads(line)
            return
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(
                lines,
                delimiter="," if path.suffix == ".csv" else "\t",
                strict=True,
                restkey="(more cells than columns)",
                restval="",
            )
            for row in reader:
                yield f"{path}:{reader.line_num}", _stripped(row)
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _stripped(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose texts have no spaces around them."""
    stripped = {}
    for column, cell in row.items():
        stripped[column] = cell.strip() if isinstance(cell, str) else cell
    return stripped
