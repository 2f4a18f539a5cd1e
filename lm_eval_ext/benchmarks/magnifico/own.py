"""A user's own corpus: a tab-separated file of examples, databases, and dialogues.

A row asks a question in one form. Rows with the same base question are the forms of one example,
which is asked once as base. Two other kinds of rows have empty cells: one without questions and
query only defines a word, and one without word and meaning has two words that other rows define
(``tall+old`` as its interpretation).

A dialogue is a text file with turns that blank lines separate. A line ``[definition]`` stands
before the turns that define the word, and ``[/definition]`` after them; ``{word}`` stands for it.
The definition goes before all other turns, between them, or after them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lm_eval_ext.atomic import sha256_of, sha256_of_json, sha256_of_text
from lm_eval_ext.benchmarks.magnifico.documents import PHRASE, MagnificoDocument
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    PLACEHOLDER,
    Corpus,
    Database,
    DialogueKey,
    Example,
    Form,
    Interpretation,
    NovelForm,
    Position,
    rows_of,
)
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.sql import Databases, Executor, OneDatabase, Place, databases_at
from lm_eval_ext.sql.described import digest_text

GENERATED = "generated.json"
"""The file in which ``magnifico generate`` says how it made the examples beside it."""

CATEGORY = "own"
"""The category of words without one; that of phrases (of two words or more) is "phrase"."""

MOST_PROBLEMS = 20
"""Problems that are named one by one."""

_AND = "+"
"""The separator of the interpretations of a row with two words."""
_TWO = 2


def _form_in(cell: str) -> str:
    return cell.casefold() or "plausible"


def _is_yes(cell: str) -> bool:
    return cell.casefold() in {"yes", "true", "1"}


class Row(BaseModel):
    """A row of the file; ``support`` is for an example that only few-shot prompts show."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interpretation: str
    word: str
    meaning: str
    question: str
    base_question: str
    query: str
    db_id: str = ""
    category: str = ""
    form: Annotated[NovelForm, BeforeValidator(_form_in)] = "plausible"
    support: Annotated[bool, BeforeValidator(_is_yes)] = False
    dialogue: str = ""
    source_line: str = Field(alias="file:line")

    @property
    def names(self) -> tuple[str, ...]:
        """The interpretation; two where other rows define the words."""
        if self.word or self.meaning:
            return (self.interpretation,)
        return tuple(name.strip() for name in self.interpretation.split(_AND))

    def empty_cell(self) -> str | None:
        """Return the first column that is empty and may not be; None if there is none."""
        defines = self.word or self.meaning
        asks = self.question or self.base_question or self.query
        has_two_words = asks and self.interpretation.count(_AND) == 1
        needed = ["interpretation"]
        if defines or not has_two_words:
            needed += ["word", "meaning"]
        if asks or not defines:
            needed += ["question", "base_question", "query"]
        for column in needed:
            if not getattr(self, column):
                return column
        return None


def _columns() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that a file must have, and those that it may have."""
    required, optional = [], []
    for name, info in Row.model_fields.items():
        if info.alias is None and info.is_required():
            required.append(name)
        elif info.alias is None:
            optional.append(name)
    return tuple(required), tuple(optional)


REQUIRED, OPTIONAL = _columns()
"""Columns that a file must have, and columns that it may have."""

ExampleKey: TypeAlias = tuple[str, str, str]
"""Rows with the same key are forms of one example: interpretations (and whether it is support),
database, and base question."""


@dataclass
class _Examples:
    """The examples that rows give, in their order.

    Attributes:
        questions: Examples that are asked, by id.
        solved: Support examples, by id.
        templates: The template of each example, and the row that gave it.
    """

    questions: dict[str, Example] = field(default_factory=dict)
    solved: dict[str, Example] = field(default_factory=dict)
    templates: dict[ExampleKey, tuple[str, Row]] = field(default_factory=dict)

    def add(self, row: Row, index: int, db_id: str) -> None:
        """Add the row's form, and its base form if no row had it.

        The base question pairs rows, since different questions can have the same gold query.

        Raises:
            DataError: Another row has the same base question and another query.
        """
        prefix = f"{_AND.join(row.names)}/{'support-' if row.support else ''}"
        new_template = f"{prefix}{index}"
        key = (prefix, db_id.casefold(), _normalized(row.base_question).casefold())
        template, first_row = self.templates.setdefault(key, (new_template, row))
        if _normalized(first_row.query) != _normalized(row.query):
            raise DataError(
                f"{row.source_line}: the base question is that of {first_row.source_line}, and the "
                "query is another; give each question one query"
            )
        examples = self.solved if row.support else self.questions
        example = Example(
            template, row.names, row.form, db_id, row.question, row.query, row.source_line
        )
        if first_row is row:
            base = replace(example, form=BASE, question=row.base_question)
            examples[base.id] = base
        elif example.id in examples:
            example = replace(example, template=new_template)  # a second way to ask it in this form
        examples[example.id] = example


def _normalized(text: str) -> str:
    return " ".join(text.split()).rstrip("; ")


def read(examples: Path, databases: str | Path | None) -> Corpus:
    """Read a file with the columns :data:`REQUIRED` and any of :data:`OPTIONAL`.

    Args:
        examples: The file.
        databases: A database, or a folder of them if there is a column ``db_id``
            (:data:`~lm_eval_ext.sql.engines.places.LEGAL`); None: they are not looked for.

    Raises:
        OptionError: A path does not exist.
        DataError: A row, a dialogue or a database is invalid; the line is named.
    """
    available: Databases | OneDatabase | None = None
    if databases:
        available = databases_at(databases, option="magnifico_databases")
    only_id = available.db_id if isinstance(available, OneDatabase) else ""
    rows = list(_rows(examples))
    words = _interpretations(rows)
    collected = _Examples()
    by_id: dict[str, Database] = {}
    dialogue_files: dict[tuple[str, str], str] = {}
    for index, row in enumerate(rows):
        if not row.query:
            continue
        _check(row, words)
        db_id = _database_id(row, only_id)
        folded_id = db_id.casefold()
        if available and folded_id not in by_id:
            location = available.find(db_id)
            if location:
                by_id[folded_id] = Database.at(location)
        collected.add(row, index, db_id)
        if row.dialogue:
            _add_dialogue(row, folded_id, dialogue_files)
    if not collected.questions:
        raise DataError(f"{examples}: no examples to ask; add rows that are not support")
    questions = collected.questions.values()
    return Corpus(
        interpretations=words,
        examples=tuple(example for example in questions if len(example.interpretations) == 1),
        support=_support(words, collected.solved.values()),
        combinations=tuple(
            example for example in questions if len(example.interpretations) == _TWO
        ),
        dialogues=_dialogues(examples.parent, dialogue_files, words),
        databases=by_id,
    )


def _database_id(row: Row, only_id: str) -> str:
    """Return the id of a row's database.

    Args:
        row: The row.
        only_id: The id of the only database; "" if there are several.
    """
    db_id = row.db_id or only_id
    if not db_id:
        raise DataError(
            f"{row.source_line}: no database; add a column db_id, or name a file in "
            "magnifico_databases"
        )
    return db_id


def _add_dialogue(row: Row, folded_id: str, files: dict[tuple[str, str], str]) -> None:
    """Add the file of a row's dialogue, by interpretation and database."""
    name = row.names[0]
    file = files.setdefault((name, folded_id), row.dialogue)
    if file != row.dialogue:
        raise DataError(
            f"{row.source_line}: {name} has another dialogue above; give each interpretation one "
            "dialogue per database"
        )


def _support(
    words: Mapping[str, Interpretation], solved: Iterable[Example]
) -> dict[tuple[str, Form], tuple[Example, ...]]:
    """Return the support examples of each interpretation in each form; some have none."""
    support: dict[tuple[str, Form], tuple[Example, ...]] = {}
    for name in words:
        for form in (BASE, *NOVEL):
            support[name, form] = ()
    for example in solved:
        (name,) = example.interpretations
        support[name, example.form] += (example,)
    return support


def _dialogues(
    folder: Path, files: Mapping[tuple[str, str], str], words: Mapping[str, Interpretation]
) -> dict[DialogueKey, Mapping[Position, str]]:
    """Read the dialogues, with the word of each form.

    Args:
        folder: The folder that relative paths start from.
        files: The file of each dialogue, by interpretation and database (its id in lower case).
        words: The interpretations.
    """
    dialogues: dict[DialogueKey, Mapping[Position, str]] = {}
    for (name, folded_id), file in files.items():
        texts = read_dialogue(folder / Path(file).expanduser())
        # Base dialogues have the definition at the start, as in the published data.
        base_text = texts["start"].replace(SLOT, PLACEHOLDER)
        dialogues[name, BASE, folded_id] = {"start": base_text}
        for form, word in words[name].forms.items():
            dialogues[name, form, folded_id] = {
                position: text.replace(SLOT, word) for position, text in texts.items()
            }
    return dialogues


def _rows(path: Path) -> Iterator[Row]:
    if not path.is_file():
        raise OptionError(f"magnifico_file={str(path)!r} does not exist")
    for source_line, cells in rows_of(path):
        try:
            row = Row.model_validate({**cells, "file:line": source_line})
        except ValidationError as error:
            raise DataError(
                f"{source_line}: column {first_problem(error)}; the columns, separated by tabs: "
                f"{', '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}"
            ) from None
        empty_cell = row.empty_cell()
        if empty_cell:
            raise DataError(f"{source_line}: {empty_cell} is empty")
        yield row


def _interpretations(rows: Sequence[Row]) -> dict[str, Interpretation]:
    """Return the interpretations that rows define, by name.

    Raises:
        DataError: Rows give an interpretation two meanings, or two words in one form.
    """
    words: dict[str, Interpretation] = {}
    for row in rows:
        if not row.word:
            continue
        name = row.interpretation
        previous = words.setdefault(name, Interpretation(name, row.category, row.meaning, {}))
        word = previous.forms.get(row.form, row.word)
        if word.casefold() != row.word.casefold() or previous.meaning != row.meaning:
            raise DataError(
                f"{row.source_line}: {name} has another word or meaning above; give each "
                "interpretation one meaning and one word per form"
            )
        words[name] = replace(previous, forms={**previous.forms, row.form: word})
    for name, interpretation in words.items():
        if not interpretation.category:
            is_phrase = all(" " in word for word in interpretation.forms.values())
            words[name] = replace(interpretation, category=PHRASE if is_phrase else CATEGORY)
    return words


def _check(row: Row, words: Mapping[str, Interpretation]) -> None:
    """Raise DataError if a word is not defined in the row's form, or not in its question."""
    for name in row.names:
        if name not in words or row.form not in words[name].forms:
            raise DataError(
                f"{row.source_line}: no row gives {name!r} a {row.form} word; add one with "
                "interpretation, word, meaning and the form (it needs no question)"
            )
        word = words[name].forms[row.form]
        if word.casefold() not in row.question.casefold():
            raise DataError(
                f"{row.source_line}: the question does not contain the word {word!r}; add it"
            )
    if len(row.names) == _TWO and (row.support or row.dialogue):
        raise DataError(
            f"{row.source_line}: a row with two words is neither support nor in a dialogue; give "
            "both to rows with one word"
        )


# --- dialogues ---

SLOT = "{word}"
"""The text that stands for the word."""

_MARKS = re.compile(r"^[ \t]*\[(/?)definition\][ \t]*$", re.MULTILINE | re.IGNORECASE)
_BLANK = re.compile(r"\n[ \t]*\n\s*")


def read_dialogue(path: Path) -> Mapping[Position, str]:
    """Return the dialogue with the definition at each position; :data:`SLOT` is for the word.

    Raises:
        DataError: The file cannot be read, or its definition is not marked or lacks the word.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the dialogue cannot be read ({error})") from None
    text_before, *marked = _MARKS.split(text)
    if marked[::2] != ["", "/"]:
        raise DataError(
            f"{path}: mark the turns that define the word with a line [definition] before them and "
            "a line [/definition] after them, once"
        )
    _, definition_text, _, after = marked
    if SLOT not in definition_text:
        raise DataError(f"{path}: the definition does not name the word; write {SLOT} for it")
    definition = _turns(definition_text)
    turns = _turns(text_before) + _turns(after)
    half = (len(turns) + 1) // 2
    half += half % 2  # an even number, so that nobody has two turns in a row
    return {
        "start": "\n\n".join(definition + turns),
        "mid": "\n\n".join(turns[:half] + definition + turns[half:]),
        "end": "\n\n".join(turns + definition),
    }


def _turns(text: str) -> list[str]:
    return [turn for turn in _BLANK.split(text.strip()) if turn]


# --- signatures ---

_DATABASE_DIGITS = 12


def generated(examples: Path) -> str | None:
    """Return how a file was made, for signatures; None if a person wrote or changed it."""
    try:
        note = json.loads(examples.with_name(GENERATED).read_text(encoding="utf-8"))
        if note["examples"] != sha256_of(examples):
            return None
        database = note["database"]["sha256"][:_DATABASE_DIGITS]
        return f"grammar-{note['grammar']},seed-{note['seed']},database-{database}"
    except (OSError, ValueError, KeyError, TypeError):
        return None


def digest(databases: Mapping[str, Database]) -> str:
    """Return the SHA-256 of the databases' ids and contents."""
    lines = []
    for db_id, database in sorted(databases.items()):
        lines.append(f"{_content_digest(database.location)}  {db_id}\n")
    return sha256_of_text("".join(lines))


def _content_digest(location: Place) -> str:
    """Return the SHA-256 of a file; on a server, that of what it declares and of its rows."""
    if location.engine != "postgresql":
        return sha256_of(Path(location.address))
    with Executor(workers=1) as executor:
        return sha256_of_text(digest_text(executor, location))


def digest_of_dialogues(corpus: Corpus) -> str:
    """Return the SHA-256 of all dialogues, with their words."""
    texts = sorted((list(key), dict(by_position)) for key, by_position in corpus.dialogues.items())
    return sha256_of_json(texts)


# --- problems of rows that can be read, which are reported before the model is loaded ---


def problems(
    corpus: Corpus,
    gold_errors: Mapping[tuple[str, str], str],
    documents: Sequence[MagnificoDocument],
) -> list[str]:
    """Name rows whose query fails or whose database is missing, and forms that cannot be compared.

    Relative performance compares each form with all base questions of its interpretation.

    Args:
        corpus: The user's corpus.
        gold_errors: Why gold queries fail, by database id in lower case and query.
        documents: The documents that are asked.
    """
    return [*_row_problems(corpus, gold_errors), *_form_problems(documents)]


def _row_problems(corpus: Corpus, gold_errors: Mapping[tuple[str, str], str]) -> list[str]:
    by_line: dict[str, str] = {}
    solved = corpus.solved
    for example in (*corpus.examples, *corpus.combinations, *solved):
        db_id, _ = example.gold
        if db_id not in corpus.databases:
            reason = f"there is no database {example.db_id!r}"
        elif example.gold in gold_errors:
            reason = f"the query fails: {gold_errors[example.gold]}"
        else:
            continue
        consequence = "is a solved example all the same" if example in solved else "is not asked"
        problem = f"{example.source_line}: {reason}; the row {consequence}"
        by_line.setdefault(example.source_line, problem)
    return list(by_line.values())


def _form_problems(documents: Sequence[MagnificoDocument]) -> list[str]:
    templates: dict[str, dict[str, set[str]]] = {}
    for document in documents:
        by_form = templates.setdefault(document["interpretation"], {BASE: set()})
        by_form.setdefault(document["form"], set()).add(document["template"])
    problems = []
    for name, by_form in templates.items():
        base_templates = by_form[BASE]
        if not all(base_templates <= form_templates for form_templates in by_form.values()):
            problems.append(
                f"the forms of {name} ask different questions, and each is compared with the base "
                "form of all; ask every question in every form, or one form at a time "
                "(magnifico_forms)"
            )
    return problems
