"""Renders the embedded files into a corpus, and builds its databases."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.benchmarks.magnifico.mini.files import (
    PAIR_SLOTS,
    SLOT,
    Combination,
    Conversation,
    Entry,
    Template,
    embedded,
    read,
)
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
from lm_eval_ext.sql import Place

DIALOGUE_FORMS: tuple[Form, ...] = ("plausible", "foreign")
"""The novel forms that have dialogues, as in the published data."""

_COMBINATIONS, _DIALOGUES = "combinations.yaml", "dialogues_"


def content(texts: Mapping[str, str]) -> Corpus:
    """Renders the files of :func:`.files.embedded` into a corpus without databases.

    Raises:
        DataError: A file is invalid; the message names it and the key.
    """
    entries: dict[str, Entry] = {}
    combinations: tuple[Combination, ...] = ()
    conversations: list[Conversation] = []
    for name in sorted(name for name in texts if name.endswith(".yaml")):
        if name == _COMBINATIONS:
            combinations = read(texts, name, tuple[Combination, ...])
        elif name.startswith(_DIALOGUES):
            conversations += read(texts, name, tuple[Conversation, ...])
        else:
            entries |= read(texts, name, dict[str, Entry])
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


def _examples(
    name: str,
    entry: Entry,
    templates: Sequence[Template],
    prefix: str = "",
    forms: Sequence[Form] | None = None,
) -> Iterator[Example]:
    """Yields the examples form by form, base first, as in the published corpus."""
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
        # Base dialogues exist only with the definition at the start, as in the published data.
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
            f"magnifico_mini: {file}: {name!r} is no interpretation with a {form} form; use "
            f"{', '.join(legal)}"
        )
    return entries[name].forms[form]


def databases() -> Mapping[str, Database]:
    """The databases by id; builds them in the cache from their scripts if they are missing.

    The folder's name has a hash of all scripts, so that changed scripts are noticed. Each database
    is at ``<id>/<id>.sqlite``, with its script ``schema.sql``. Files get their names when they are
    complete, so processes may build at the same time.

    Raises:
        DataError: The cache cannot be written.
    """
    scripts = {Path(n).stem: text for n, text in embedded().items() if n.endswith(".sql")}
    key = hashlib.sha256(json.dumps([_BUILT, scripts], sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_dir() / "embedded" / f"magnifico_mini-{key}"
    found = {}
    for db_id, script in scripts.items():
        place = folder / db_id
        found[db_id] = Database(
            Place("sqlite", str(place / f"{db_id}.sqlite")), place / "schema.sql"
        )
        try:
            place.mkdir(parents=True, exist_ok=True)
            _build(script, found[db_id])
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"cannot build the database {db_id} in {place} ({error}). Set LM_EVAL_EXT_CACHE "
                "to a writable folder."
            ) from None
    return MappingProxyType(found)


_VERSION_OF_SQLITE = 96
"""Where a SQLite file names the version that wrote it last, in four bytes that nothing reads."""

_BUILT = 2
"""Raised when the same script gives another file."""


def _build(script: str, database: Database) -> None:
    for path in (database.schema, database.path):
        if path is None or path.is_file():
            continue
        with atomic_path(path) as part:
            if path == database.schema:
                part.write_bytes(script.encode())
            else:
                with closing(sqlite3.connect(part)) as connection:
                    connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
                # The rows that ship belong to these bytes, whichever SQLite has written them.
                with part.open("r+b") as file:
                    file.seek(_VERSION_OF_SQLITE)
                    file.write(bytes(4))
