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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lm_eval_ext.atomic import sha256_of, sha256_of_json, sha256_of_text
from lm_eval_ext.benchmarks.magnifico.documents import PHRASE
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    PLACEHOLDER,
    Corpus,
    Database,
    Example,
    Form,
    Interpretation,
    NovelForm,
    Position,
    rows_of,
)
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.sql import Executor, OneDatabase, Place, databases_at
from lm_eval_ext.sql.described import digest_text

GENERATED = "generated.json"
"""What ``magnifico generate`` says about the examples that it wrote beside it."""

CATEGORY = "own"
"""The category of words without one; that of phrases (of two words or more) is "phrase"."""

MOST_PROBLEMS = 20
"""Problems that are named one by one."""

_AND = "+"
_TWO = 2


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
    form: Annotated[NovelForm, BeforeValidator(lambda text: text.casefold() or "plausible")] = (
        "plausible"
    )
    support: Annotated[
        bool, BeforeValidator(lambda text: text.casefold() in {"yes", "true", "1"})
    ] = False
    dialogue: str = ""
    place: str = Field(alias="file:line")

    @property
    def names(self) -> tuple[str, ...]:
        """The interpretation; two where other rows define the words."""
        if self.word or self.meaning:
            return (self.interpretation,)
        return tuple(name.strip() for name in self.interpretation.split(_AND))

    def empty(self) -> str | None:
        """The first cell that is empty and may not be."""
        defines, asks = self.word or self.meaning, self.question or self.base_question or self.query
        two = asks and self.interpretation.count(_AND) == 1
        needed = ["interpretation", *(("word", "meaning") if defines or not two else ())]
        needed += ("question", "base_question", "query") if asks or not defines else ()
        return next((name for name in needed if not getattr(self, name)), None)


REQUIRED = tuple(name for name, field in Row.model_fields.items() if field.is_required())[:-1]
OPTIONAL = tuple(name for name, field in Row.model_fields.items() if not field.is_required())


def read(examples: Path, databases: str | Path | None) -> Corpus:
    """Reads a file with the columns :data:`REQUIRED` and any of :data:`OPTIONAL`.

    ``databases`` is a database, or a folder of them if there is a column ``db_id``
    (:data:`~lm_eval_ext.sql.engines.places.LEGAL`); None: they are not looked for.

    Raises:
        OptionError: A path does not exist.
        DataError: A row, a dialogue or a database is invalid; the line is named.
    """
    known = databases and databases_at(databases, option="magnifico_databases")
    only = known.db_id if isinstance(known, OneDatabase) else ""
    rows = list(_rows(examples))
    words = _interpretations(rows)
    asked: dict[str, Example] = {}
    solved: dict[str, Example] = {}
    firsts: dict[tuple[str, ...], tuple[str, Row]] = {}
    found: dict[str, Database] = {}
    dialogues: dict[tuple[str, Form, str], Mapping[Position, str]] = {}
    talks: dict[tuple[str, str], str] = {}
    for index, row in enumerate(rows):
        if not row.query:
            continue
        _check(row, words)
        db_id = row.db_id or only
        if not db_id:
            raise DataError(
                f"{row.place}: no database; add a column db_id, or name a file in "
                "magnifico_databases"
            )
        folded = db_id.casefold()
        if folded not in found and known and (place := known.find(db_id)):
            found[folded] = Database.at(place)
        _add(solved if row.support else asked, firsts, index, row, db_id)
        if row.dialogue and talks.setdefault((row.names[0], folded), row.dialogue) != row.dialogue:
            raise DataError(
                f"{row.place}: {row.names[0]} has another dialogue above; give each interpretation "
                "one dialogue per database"
            )
    if not asked:
        raise DataError(f"{examples}: no examples to ask; add rows that are not support")
    for (name, folded), file in talks.items():
        texts = read_dialogue(examples.parent / Path(file).expanduser())
        # Base dialogues have the definition at the start, as in the published data.
        dialogues[name, BASE, folded] = {"start": texts["start"].replace(SLOT, PLACEHOLDER)}
        for form, word in words[name].forms.items():
            dialogues[name, form, folded] = {
                position: text.replace(SLOT, word) for position, text in texts.items()
            }
    return Corpus(
        interpretations=words,
        examples=tuple(one for one in asked.values() if len(one.interpretations) == 1),
        support={
            (name, form): tuple(
                one for one in solved.values() if (one.interpretations, one.form) == ((name,), form)
            )
            for name in words
            for form in (BASE, *NOVEL)
        },
        combinations=tuple(one for one in asked.values() if len(one.interpretations) == _TWO),
        dialogues=dialogues,
        databases=found,
    )


def _rows(path: Path) -> Iterator[Row]:
    if not path.is_file():
        raise OptionError(f"magnifico_file={str(path)!r} does not exist")
    for place, cells in rows_of(path):
        try:
            row = Row.model_validate({**cells, "file:line": place})
        except ValidationError as error:
            raise DataError(
                f"{place}: column {first_problem(error)}; the columns, separated by tabs: "
                f"{', '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}"
            ) from None
        if empty := row.empty():
            raise DataError(f"{place}: {empty} is empty")
        yield row


def _interpretations(rows: Sequence[Row]) -> dict[str, Interpretation]:
    found: dict[str, Interpretation] = {}
    for row in rows:
        if row.word:
            new = Interpretation(row.interpretation, row.category, row.meaning, {})
            old = found.setdefault(row.interpretation, new)
            word = old.forms.get(row.form, row.word)
            if (word.casefold(), old.meaning) != (row.word.casefold(), row.meaning):
                raise DataError(
                    f"{row.place}: {old.name} has another word or meaning above; give each "
                    "interpretation one meaning and one word per form"
                )
            found[old.name] = replace(old, forms={**old.forms, row.form: word})
    for name, one in found.items():
        phrase = all(" " in word for word in one.forms.values())
        category = one.category or (PHRASE if phrase else CATEGORY)
        found[name] = replace(one, category=category)
    return found


def _check(row: Row, words: Mapping[str, Interpretation]) -> None:
    """Raises DataError if a word is not defined in the row's form, or not in its question."""
    for name in row.names:
        if name not in words or row.form not in words[name].forms:
            raise DataError(
                f"{row.place}: no row gives {name!r} a {row.form} word; add one with "
                "interpretation, word, meaning and the form (it needs no question)"
            )
        word = words[name].forms[row.form]
        if word.casefold() not in row.question.casefold():
            raise DataError(f"{row.place}: the question does not contain the word {word!r}; add it")
    if len(row.names) == _TWO and (row.support or row.dialogue):
        raise DataError(
            f"{row.place}: a row with two words is neither support nor in a dialogue; give both to "
            "rows with one word"
        )


def _add(
    examples: dict[str, Example],
    firsts: dict[tuple[str, ...], tuple[str, Row]],
    index: int,
    row: Row,
    db_id: str,
) -> None:
    """Adds the row's form, and its base form if no row had it.

    The base question pairs rows, since different questions can have the same gold query.
    """
    start = f"{_AND.join(row.names)}/{'support-' if row.support else ''}"
    new = f"{start}{index}"
    key = (start, db_id.casefold(), _plain(row.base_question).casefold())
    template, first = firsts.setdefault(key, (new, row))
    if _plain(first.query) != _plain(row.query):
        raise DataError(
            f"{row.place}: the base question is that of {first.place}, and the query is another; "
            "give each question one query"
        )
    asked = Example(template, row.names, row.form, db_id, row.question, row.query, row.place)
    if first is row:
        base = replace(asked, form=BASE, question=row.base_question)
        examples[base.id] = base
    elif asked.id in examples:
        asked = replace(asked, template=new)  # a second way to ask it in this form
    examples[asked.id] = asked


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip("; ")


# --- dialogues ---

SLOT = "{word}"
"""Stands for the word."""

_MARKS = re.compile(r"^[ \t]*\[(/?)definition\][ \t]*$", re.MULTILINE | re.IGNORECASE)
_BLANK = re.compile(r"\n[ \t]*\n\s*")


def read_dialogue(path: Path) -> Mapping[Position, str]:
    """The dialogue with the definition at each position; :data:`SLOT` stands for the word.

    Raises:
        DataError: The file cannot be read, or its definition is not marked or lacks the word.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the dialogue cannot be read ({error})") from None
    before, *marked = _MARKS.split(text)
    if marked[::2] != ["", "/"]:
        raise DataError(
            f"{path}: mark the turns that define the word with a line [definition] before them and "
            "a line [/definition] after them, once"
        )
    if SLOT not in marked[1]:
        raise DataError(f"{path}: the definition does not name the word; write {SLOT} for it")
    first, definition, last = (
        [turn for turn in _BLANK.split(part.strip()) if turn]
        for part in (before, marked[1], marked[3])
    )
    turns = first + last
    half = (len(turns) + 1) // 2
    half += half % 2  # an even number, so that nobody has two turns in a row
    return {
        "start": "\n\n".join(definition + turns),
        "mid": "\n\n".join(turns[:half] + definition + turns[half:]),
        "end": "\n\n".join(turns + definition),
    }


# --- signatures ---


def generated(examples: Path) -> str | None:
    """How a file was made, for signatures; None if a person wrote or changed it."""
    try:
        said = json.loads(examples.with_name(GENERATED).read_text(encoding="utf-8"))
        if said["examples"] != sha256_of(examples):
            return None
        database = said["database"]["sha256"][:12]
        return f"grammar-{said['grammar']},seed-{said['seed']},database-{database}"
    except (OSError, ValueError, KeyError, TypeError):
        return None


def digest(databases: Mapping[str, Database]) -> str:
    """SHA-256 of the databases' ids and contents."""
    lines = [f"{_content(one.location)}  {db_id}\n" for db_id, one in sorted(databases.items())]
    return sha256_of_text("".join(lines))


def _content(place: Place) -> str:
    """Of a file's bytes; on a server, of what it declares and of its rows."""
    if place.engine != "postgresql":
        return sha256_of(Path(place.address))
    with Executor(workers=1) as executor:
        return sha256_of_text(digest_text(executor, place))


def digest_of_dialogues(corpus: Corpus) -> str:
    """SHA-256 of all dialogues, with their words."""
    texts = sorted((list(key), dict(texts)) for key, texts in corpus.dialogues.items())
    return sha256_of_json(texts)


# --- what is wrong with rows that can be read: said before the model is loaded ---


def problems(
    corpus: Corpus, broken: Mapping[tuple[str, str], str], made: Sequence[Mapping[str, str]]
) -> list[str]:
    """Names rows whose query fails or whose database is missing, and forms that cannot be compared.

    Relative performance compares each form with all base questions of its interpretation.

    Args:
        corpus: The user's.
        broken: Why gold queries fail, by database id in lower case and query.
        made: The documents that are asked.
    """
    said: dict[str, str] = {}
    solved = corpus.solved
    for example in (*corpus.examples, *corpus.combinations, *solved):
        key = example.db_id.casefold(), example.query
        reason = f"the query fails: {broken[key]}" if key in broken else ""
        if key[0] not in corpus.databases:
            reason = f"there is no database {example.db_id!r}"
        if reason:
            end = "is a solved example all the same" if example in solved else "is not asked"
            said.setdefault(example.source_line, f"{example.source_line}: {reason}; the row {end}")
    forms: dict[str, dict[str, set[str]]] = {}
    for doc in made:
        by_form = forms.setdefault(doc["interpretation"], {BASE: set()})
        by_form.setdefault(doc["form"], set()).add(doc["template"])
    return [
        *said.values(),
        *(
            f"the forms of {name} ask different questions, and each is compared with the base form "
            "of all; ask every question in every form, or one form at a time (magnifico_forms)"
            for name, by_form in forms.items()
            if not all(by_form[BASE] <= templates for templates in by_form.values())
        ),
    ]
