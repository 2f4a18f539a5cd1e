"""magnifico_mini: our own small MAGNIFICo, embedded in the package.

It needs no download and is too small to measure real models. It has MAGNIFICo's design (paper,
section 3: interpretations of four categories and phrases, forms, base examples, combinations,
dialogues), but none of its meanings, words, questions, queries and databases.

``*.sql`` create the databases; ``combinations.yaml`` and ``dialogues_*.yaml`` have what their names
say; the other ``*.yaml`` have interpretations with their templates, in which ``{form}`` stands for
the word (``{first}`` and ``{second}`` in combinations).
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import yaml

from lm_eval_ext.atomic import atomic_path
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

_HERE = Path(__file__).parent

SHIPPED = _HERE / "suites.json"
"""Seeds of the databases' test suites; beside it are the rows of their populated copies."""

DIALOGUE_FORMS: tuple[Form, ...] = ("plausible", "foreign")
"""The novel forms that have dialogues, as in the published data."""


def corpus() -> Corpus:
    """The whole corpus; builds its databases in the cache if they are missing.

    Raises:
        DataError: The cache cannot be written.
    """
    return replace(content(embedded()), databases=databases())


def embedded() -> Mapping[str, str]:
    """The texts of all scripts and YAML files by name, sorted, with Unix line ends."""
    files = (file for file in sorted(_HERE.iterdir()) if file.suffix in (".sql", ".yaml"))
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def digest() -> str:
    """SHA-256 (hex) of the embedded files and of all text rendered from them.

    It changes with the files and with the code that renders them. Builds no databases.
    """
    texts = embedded()
    found = content(texts)
    rendered = [
        "\t".join((one.id, one.db_id, one.question, one.query))
        for one in (*found.examples, *found.solved, *found.combinations)
    ]
    rendered += [
        "\t".join((*key, position, text))
        for key, dialogue in found.dialogues.items()
        for position, text in dialogue.items()
    ]
    files = (part for file in texts.items() for part in file)
    return hashlib.sha256("\n".join((*files, *rendered)).encode()).hexdigest()


def content(texts: Mapping[str, str]) -> Corpus:
    """Renders the files of :func:`embedded` into a corpus without databases."""
    files = {n: yaml.safe_load(text) for n, text in texts.items() if n.endswith(".yaml")}
    combinations = files.pop("combinations.yaml")
    talks = [talk for name in list(files) if "dialogues" in name for talk in files.pop(name)]
    entries = {name: entry for file in files.values() for name, entry in file.items()}
    words = {
        name: Interpretation(name, one["category"], one["meaning"], one["forms"])
        for name, one in entries.items()
    }

    def asked(one: Any, names: tuple[str, ...], form: Form, number: str) -> Example:
        question = one["base"]
        if form != BASE:
            first, last = (words[name].forms[form] for name in (names[0], names[-1]))
            question = one["novel"].format(form=first, first=first, second=last)
        return Example(f"{'+'.join(names)}/{number}", names, form, one["db"], question, one["sql"])

    def each(name: str, part: str, form: Form, prefix: str = "") -> Iterator[Example]:
        for index, one in enumerate(entries[name][part]):
            yield asked(one, (name,), form, f"{prefix}{index}")

    def talked(one: Any) -> Iterator[tuple[Form, Mapping[Position, str]]]:
        # Base dialogues exist only with the definition at the start, as in the published data.
        yield BASE, {"start": _dialogue(one, PLACEHOLDER, "start")}
        for form in DIALOGUE_FORMS:
            word = words[one["interpretation"]].forms[form]
            yield form, {place: _dialogue(one, word, place) for place in get_args(Position)}

    forms = [(name, form) for name in words for form in (BASE, *words[name].forms)]
    return Corpus(
        interpretations=words,
        examples=tuple(one for name, form in forms for one in each(name, "test", form)),
        support={
            (name, form): tuple(each(name, "support", form, "support-")) for name, form in forms
        },
        combinations=tuple(
            asked(one, tuple(one["of"]), form, str(index))
            for index, one in enumerate(combinations)
            for form in (BASE, *NOVEL)
        ),
        dialogues={
            (one["interpretation"], form, one["db"]): texts
            for one in talks
            for form, texts in talked(one)
        },
    )


def _dialogue(one: Mapping[str, Sequence[str]], word: str, position: Position) -> str:
    """Renders a dialogue with the definition of a word at a position."""
    parts = ["opening", "first_half", "second_half", "closing"]
    parts.insert({"start": 1, "mid": 2, "end": 3}[position], "definition")
    turns = [turn.format(form=word) for part in parts for turn in one[part]]
    return "\n\n".join(f"User{1 + i % 2}: {turn}" for i, turn in enumerate(turns))


_VERSION_OF_SQLITE = 96
"""Where a SQLite file names the version that wrote it last, in four bytes that nothing reads."""

_BUILT = 2
"""Raised when the same script gives another file."""


def databases() -> Mapping[str, Database]:
    """The databases by id; builds them in the cache from their scripts if they are missing.

    The folder's name has a hash of all scripts, so that changed scripts are noticed. Files get
    their names when they are complete, so processes may build at the same time.

    Raises:
        DataError: The cache cannot be written.
    """
    scripts = {Path(n).stem: text for n, text in embedded().items() if n.endswith(".sql")}
    key = hashlib.sha256(json.dumps([_BUILT, scripts], sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_dir() / "embedded" / f"magnifico_mini-{key}"
    found = {}
    for db_id, script in scripts.items():
        path = folder / db_id / f"{db_id}.sqlite"
        found[db_id] = Database(Place("sqlite", str(path)), _HERE / f"{db_id}.sql")
        try:
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                _build(script, path)
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"cannot build the database {db_id} in {path.parent} ({error}). Set "
                "LM_EVAL_EXT_CACHE to a writable folder."
            ) from None
    return found


def _build(script: str, path: Path) -> None:
    with atomic_path(path) as part:
        with closing(sqlite3.connect(part)) as connection:
            connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
        # The rows that ship belong to these bytes, whichever SQLite has written them.
        with part.open("r+b") as file:
            file.seek(_VERSION_OF_SQLITE)
            file.write(bytes(4))
