"""magnifico_mini: a small MAGNIFICo of our own, embedded in the package.

It has MAGNIFICo's design (paper, section 3: interpretations of four categories and phrases,
forms, base examples, pairs of interpretations, dialogues) and none of its text: other meanings,
words, questions, queries and databases. It needs no download and is too small to tell much
about a real model.

``mini/*.sql`` are the databases' scripts. ``mini/*.yaml`` hold interpretations with their
templates, ``combinations.yaml`` and ``dialogues_*.yaml`` what their names say.
"""

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    PLACEHOLDER,
    Corpus,
    Database,
    Example,
    Form,
    Interpretation,
    Position,
)
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError

_T = TypeVar("_T")

DIALOGUE_FORMS: tuple[Form, ...] = ("plausible", "foreign")
"""Novel forms that have dialogues, as in the published data."""

SLOT = "{form}"
"""Stands in a template for the form; for the two of a combination: :data:`PAIR_SLOTS`."""

PAIR_SLOTS = ("{first}", "{second}")

_COMBINATIONS, _DIALOGUES = "combinations.yaml", "dialogues_"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Asked(_Strict):
    """What every template has: the database, the base question, the gold query of both forms."""

    db: str
    base: str
    sql: str


class Template(_Asked):
    """An example before a form is put into ``novel``, the question with the form's place."""

    novel: Annotated[str, Field(pattern=r"\{form\}")]


class Entry(_Strict):
    """An interpretation with its templates; ``support`` ones are held out for few-shot prompts."""

    category: Literal["basic", "subquery", "value", "column", "phrase"]
    meaning: str
    forms: dict[Form, str]
    test: tuple[Template, ...]
    support: tuple[Template, ...]


class Combination(_Asked):
    """A template with two interpretations, ``of``."""

    of: tuple[str, str]
    novel: Annotated[str, Field(pattern=r"\{first\}.*\{second\}")]


Exchange: TypeAlias = tuple[str, str]
"""What User1 says, and what User2 replies."""


class Conversation(_Strict):
    """A dialogue whose definition can go to three places."""

    interpretation: str
    db: str
    opening: Exchange
    definition: Exchange
    first_half: tuple[str, ...]
    second_half: tuple[str, ...]
    closing: Exchange

    def text(self, form: str, position: Position) -> str:
        """Renders the turns, with the definition of a form at a position."""
        parts: list[Sequence[str]] = [
            self.opening, self.first_half, self.second_half, self.closing
        ]  # fmt: skip
        parts.insert({"start": 1, "mid": 2, "end": 3}[position], self.definition)
        turns = [turn.replace(SLOT, form) for part in parts for turn in part]
        return "\n\n".join(f"User{1 + i % 2}: {turn}" for i, turn in enumerate(turns))


def embedded() -> Mapping[str, str]:
    """The texts of all files in ``mini/`` by name, sorted, with Unix line ends everywhere."""
    files = resources.files(__package__).joinpath("mini").iterdir()
    return {
        file.name: file.read_text(encoding="utf-8").replace("\r\n", "\n")
        for file in sorted(files, key=lambda file: file.name)
        if file.name.endswith((".sql", ".yaml"))
    }


def corpus() -> Corpus:
    """Returns the whole corpus; its databases are built in the cache if they are not there.

    Raises:
        DataError: As :func:`databases` and :func:`content`.
    """
    return replace(content(embedded()), databases=databases())


def digest() -> str:
    """Names this version of the corpus.

    Returns:
        SHA-256 (hex) of the embedded files and of everything rendered from them, so that a
        change of a text, or of how texts are put together, shows. Touches no cache.
    """
    texts = embedded()
    found = content(texts)
    held_out = (example for examples in found.support.values() for example in examples)
    rendered = [
        "\t".join((one.id, one.db_id, one.question, one.query))
        for one in (*found.examples, *held_out, *found.combinations)
    ]
    rendered += [
        "\t".join((*key, position, text))
        for key, dialogue in found.dialogues.items()
        for position, text in dialogue.items()
    ]
    files = (part for file in texts.items() for part in file)
    return hashlib.sha256("\n".join((*files, *rendered)).encode()).hexdigest()


def content(texts: Mapping[str, str]) -> Corpus:
    """Renders files, as :func:`embedded` gives them, into a corpus without databases.

    Raises:
        DataError: A file is not what it must be; the message names it and the key.
    """
    entries: dict[str, Entry] = {}
    combinations: tuple[Combination, ...] = ()
    conversations: list[Conversation] = []
    for name in sorted(name for name in texts if name.endswith(".yaml")):
        if name == _COMBINATIONS:
            combinations = _read(texts, name, tuple[Combination, ...])
        elif name.startswith(_DIALOGUES):
            conversations += _read(texts, name, tuple[Conversation, ...])
        else:
            entries |= _read(texts, name, dict[str, Entry])
    return Corpus(
        interpretations=MappingProxyType(
            {
                name: Interpretation(name, e.category, e.meaning, MappingProxyType(e.forms))
                for name, e in entries.items()
            }
        ),
        examples=tuple(
            example for name, e in entries.items() for example in _examples(name, e, e.test)
        ),
        support=MappingProxyType(
            {
                (name, form): tuple(_examples(name, e, e.support, "support-", (form,)))
                for name, e in entries.items()
                for form in (BASE, *e.forms)
            }
        ),
        combinations=tuple(_combined(combinations, entries)),
        dialogues=MappingProxyType(_dialogues(conversations, entries)),
    )


def databases() -> Mapping[str, Database]:
    """Returns the databases by id, built in the cache from their scripts if need be.

    Each lies at ``<id>/<id>.sqlite`` with its script beside it, ``schema.sql``, in a folder that
    is named after a digest of all scripts, so that an old cache is no trap. A file appears under
    its name only when it is whole; processes that build at once do no harm to each other.

    Raises:
        DataError: The cache cannot be written.
    """
    scripts = {Path(n).stem: text for n, text in embedded().items() if n.endswith(".sql")}
    key = hashlib.sha256(json.dumps(scripts, sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_dir() / "embedded" / f"magnifico_mini-{key}"
    found = {}
    for db_id, script in scripts.items():
        place = folder / db_id
        found[db_id] = Database(place / f"{db_id}.sqlite", place / "schema.sql")
        try:
            place.mkdir(parents=True, exist_ok=True)
            _build(script, found[db_id])
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"cannot build the database {db_id} in {place} ({error}). Set LM_EVAL_EXT_CACHE "
                "to a writable folder."
            ) from None
    return MappingProxyType(found)


def _build(script: str, database: Database) -> None:
    for path in (database.schema, database.path):
        if path is None or path.is_file():
            continue
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        try:
            if path == database.schema:
                part.write_bytes(script.encode())
            else:
                with closing(sqlite3.connect(part)) as connection:
                    connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _read(texts: Mapping[str, str], name: str, kind: type[_T]) -> _T:
    try:
        return TypeAdapter(kind).validate_python(yaml.safe_load(texts[name]))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "the whole file"
        raise DataError(f"magnifico_mini: {name}: {key}: {first['msg']}") from None
    except yaml.YAMLError as error:
        raise DataError(
            f"magnifico_mini: {name}: no YAML ({' '.join(str(error).split())})"
        ) from None


def _examples(
    name: str,
    entry: Entry,
    templates: Sequence[Template],
    prefix: str = "",
    forms: Sequence[Form] | None = None,
) -> Iterator[Example]:
    """Yields the examples form by form, the base ones first, as the published corpus has them."""
    for form in forms or (BASE, *entry.forms):
        for index, one in enumerate(templates):
            question = one.base if form == BASE else one.novel.replace(SLOT, entry.forms[form])
            yield Example(f"{name}/{prefix}{index}", (name,), form, one.db, question, one.sql)


def _combined(
    combinations: Sequence[Combination], entries: Mapping[str, Entry]
) -> Iterator[Example]:
    for index, one in enumerate(combinations):
        name = f"{'+'.join(one.of)}/{index}"
        yield Example(name, one.of, BASE, one.db, one.base, one.sql)
        for form in NOVEL:
            question = one.novel
            for slot, of in zip(PAIR_SLOTS, one.of, strict=True):
                question = question.replace(slot, _form(entries, of, form, _COMBINATIONS))
            yield Example(name, one.of, form, one.db, question, one.sql)


def _dialogues(
    conversations: Sequence[Conversation], entries: Mapping[str, Entry]
) -> dict[tuple[str, Form, str], Mapping[Position, str]]:
    found: dict[tuple[str, Form, str], Mapping[Position, str]] = {}
    for one in conversations:
        # Base dialogues exist with the definition at the start only (fact sheet).
        found[one.interpretation, BASE, one.db] = {"start": one.text(PLACEHOLDER, "start")}
        for form in DIALOGUE_FORMS:
            word = _form(entries, one.interpretation, form, f"{_DIALOGUES}*.yaml")
            found[one.interpretation, form, one.db] = {
                position: one.text(word, position) for position in get_args(Position)
            }
    return found


def _form(entries: Mapping[str, Entry], name: str, form: Form, file: str) -> str:
    legal = [known for known, entry in entries.items() if form in entry.forms]
    if name not in legal:
        raise DataError(
            f"magnifico_mini: {file}: no interpretation {name!r} with a {form} form; use "
            f"{', '.join(legal)}"
        )
    return entries[name].forms[form]
