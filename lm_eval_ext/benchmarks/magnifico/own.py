"""A user's own corpus: a tab-separated file of examples, databases, and dialogues.

A row asks a question in one form. Rows with the same base question are the forms of one example,
which is asked once as base. Two other kinds of rows have empty cells: one without questions and
query only defines a word, and one without word and meaning has two words that other rows define
(``tall+old`` as its interpretation).
"""

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import own_dialogues
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
    Position,
)
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Executor, OneDatabase, Place, databases_at
from lm_eval_ext.sql.described import digest_text

REQUIRED = ("interpretation", "word", "meaning", "question", "base_question", "query")
OPTIONAL = ("db_id", "form", "support", "dialogue")
"""``form``: plausible (default), foreign or adversarial. ``support``: yes for an example that only
few-shot prompts show. ``dialogue``: a text file (:mod:`.own_dialogues`)."""

SHIPPED = "populated.json"
"""A file of added rows beside the examples; they are used for the same databases and queries."""

GENERATED = "generated.json"
"""What ``magnifico generate`` says about the examples that it wrote beside it."""

CATEGORY = "own"
"""The category of words; that of phrases (of two words or more) is "phrase"."""

_DEFINITION = ("interpretation", "word", "meaning")
_ASKED = ("question", "base_question", "query")
_AND = "+"
_TWO = 2

_Row = Mapping[str, str]
_Key = tuple[str, ...]


def read(examples: Path, databases: str | Path) -> Corpus:
    """Reads a file with the columns :data:`REQUIRED` and any of :data:`OPTIONAL`.

    ``databases`` is a database, or a folder of them if there is a column ``db_id``
    (:data:`~lm_eval_ext.sql.engines.places.LEGAL`).

    Raises:
        OptionError: A path does not exist.
        DataError: A row, a dialogue or a database is invalid; the line is named.
    """
    known = databases_at(databases, cache_dir(), option="magnifico_databases")
    only = known.db_id if isinstance(known, OneDatabase) else ""
    rows = list(_rows(examples))
    words = _interpretations(rows)
    asked, support = _Templates(), _Templates("support-")
    found: dict[str, Database] = {}
    files: dict[tuple[str, str], Path] = {}
    for index, row in enumerate(rows):
        if not row["query"]:
            continue
        place, names, form = row["place"], _names(row), _form(row)
        _check_words(row, names, form, words)
        db_id = row.get("db_id") or only
        if not db_id:
            raise DataError(
                f"{place}: no database; add a column db_id, or name a file in magnifico_databases"
            )
        if db_id.casefold() not in found and (place_found := known.find(db_id)):
            found[db_id.casefold()] = Database.at(place_found)
        shown = row.get("support", "").casefold() in {"yes", "true", "1"}
        if len(names) == _TWO and (shown or row.get("dialogue")):
            raise DataError(
                f"{place}: a row with two words is neither support nor in a dialogue; give both to "
                "rows with one word"
            )
        (support if shown else asked).add(index, row, names, form, db_id)
        if name := row.get("dialogue"):
            file = examples.parent / Path(name).expanduser()
            if files.setdefault((names[0], db_id.casefold()), file) != file:
                raise DataError(
                    f"{place}: {names[0]} has another dialogue above; give each interpretation one "
                    "dialogue per database"
                )
    if not asked.examples:
        raise DataError(f"{examples}: no examples to ask; add rows that are not support")
    single = [one for one in asked.examples if len(one.interpretations) == 1]
    return Corpus(
        interpretations=MappingProxyType(words),
        examples=tuple(single),
        support=MappingProxyType(
            {
                (name, form): tuple(
                    one
                    for one in support.examples
                    if (one.interpretations, one.form) == ((name,), form)
                )
                for name in words
                for form in (BASE, *NOVEL)
            }
        ),
        combinations=tuple(one for one in asked.examples if len(one.interpretations) == _TWO),
        dialogues=MappingProxyType(_dialogues(files, words)),
        databases=MappingProxyType(found),
    )


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
    lines = [f"{_content(one.place)}  {db_id}\n" for db_id, one in sorted(databases.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _content(place: Place) -> str:
    if place.engine != "postgresql":
        return place.digest or sha256_of(Path(place.address))
    with Executor(workers=1) as executor:
        return digest_of_rows(executor, place)


def digest_of_rows(executor: Executor, place: Place) -> str:
    """SHA-256 of what a database of DuckDB or PostgreSQL declares, and of its rows."""
    return hashlib.sha256(digest_text(executor, place).encode()).hexdigest()


def digest_of_dialogues(corpus: Corpus) -> str:
    """SHA-256 of all dialogues, with their words."""
    texts = sorted((list(key), dict(texts)) for key, texts in corpus.dialogues.items())
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


@dataclass
class _Templates:
    """Collects examples. Rows with the same base question are forms of one template."""

    prefix: str = ""
    examples: list[Example] = field(default_factory=list)
    _firsts: dict[_Key, tuple[str, _Row]] = field(default_factory=dict)
    _taken: set[tuple[str, Form]] = field(default_factory=set)

    def add(self, index: int, row: _Row, names: tuple[str, ...], form: Form, db_id: str) -> None:
        """Adds the row's form, and its base form if no row had it.

        Not the gold query pairs rows, since different questions can have the same one.
        """
        new = f"{_AND.join(names)}/{self.prefix}{index}"
        key = (*names, db_id.casefold(), _plain(row["base_question"]))
        template, first = self._firsts.setdefault(key, (new, row))
        if _plain_query(first["query"]) != _plain_query(row["query"]):
            raise DataError(
                f"{row['place']}: the base question is that of {first['place']}, and the query is "
                "another; give each question one query"
            )
        asked = Example(template, names, form, db_id, row["question"], row["query"], row["place"])
        if first is row:
            self._put(replace(asked, form=BASE, question=row["base_question"]))
        elif (template, form) in self._taken:
            asked = replace(asked, template=new)  # a second way to ask it in this form
        self._put(asked)

    def _put(self, example: Example) -> None:
        self._taken.add((example.template, example.form))
        self.examples.append(example)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _plain_query(query: str) -> str:
    return " ".join(query.split()).rstrip("; ")


def _names(row: _Row) -> tuple[str, ...]:
    """The interpretation's name; two where other rows define the words."""
    if row["word"] or row["meaning"]:
        return (row["interpretation"],)
    return tuple(name.strip() for name in row["interpretation"].split(_AND))


def _form(row: _Row) -> Form:
    form = (row.get("form") or "plausible").casefold()
    for legal in NOVEL:
        if form == legal:
            return legal
    raise DataError(f"{row['place']}: the form is {row['form']!r}; use {', '.join(NOVEL)}")


def _interpretations(rows: Sequence[_Row]) -> dict[str, Interpretation]:
    meanings: dict[str, str] = {}
    forms: dict[str, dict[Form, str]] = {}
    for row in rows:
        if not row["word"]:
            continue
        name, word = row["interpretation"], row["word"]
        before = forms.setdefault(name, {}).setdefault(_form(row), word)
        if before.casefold() != word.casefold() or (
            meanings.setdefault(name, row["meaning"]) != row["meaning"]
        ):
            raise DataError(
                f"{row['place']}: {name} has another word or meaning above; give each "
                "interpretation one meaning and one word per form"
            )
    return {
        name: Interpretation(name, _category(words), meanings[name], MappingProxyType(words))
        for name, words in forms.items()
    }


def _category(words: Mapping[Form, str]) -> str:
    return PHRASE if all(" " in word for word in words.values()) else CATEGORY


def _check_words(
    row: _Row, names: tuple[str, ...], form: Form, words: Mapping[str, Interpretation]
) -> None:
    """Raises DataError if a word is not defined in the row's form, or not in its question."""
    for name in names:
        if name not in words or form not in words[name].forms:
            raise DataError(
                f"{row['place']}: no row gives {name!r} a {form} word; add one with "
                f"{', '.join(_DEFINITION)} and the form (it needs no question)"
            )
        word = words[name].forms[form]
        if word.casefold() not in row["question"].casefold():
            raise DataError(
                f"{row['place']}: the question does not contain the word {word!r}; add it"
            )


def _dialogues(
    files: Mapping[tuple[str, str], Path], words: Mapping[str, Interpretation]
) -> dict[tuple[str, Form, str], Mapping[Position, str]]:
    found: dict[tuple[str, Form, str], Mapping[Position, str]] = {}
    for (name, db_id), file in files.items():
        texts = own_dialogues.read(file)
        # Base dialogues have the definition at the start, as in the published data.
        found[name, BASE, db_id] = {"start": own_dialogues.worded(texts["start"], PLACEHOLDER)}
        for form, word in words[name].forms.items():
            found[name, form, db_id] = MappingProxyType(
                {place: own_dialogues.worded(text, word) for place, text in texts.items()}
            )
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """Yields rows as dictionaries, with the file and line as ``place``."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, delimiter="\t", strict=True)
            columns = reader.fieldnames or ()
            missing = [name for name in REQUIRED if name not in columns]
            unknown = [name for name in columns if name not in REQUIRED + OPTIONAL]
            if missing or unknown:
                problem = (
                    f"no column {missing[0]!r}" if missing else f"unknown column {unknown[0]!r}"
                )
                raise DataError(
                    f"{path}: {problem}; the first line must name the columns, separated by tabs: "
                    f"{', '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}"
                )
            for row in reader:
                place = f"{path}:{reader.line_num}"
                if None in row:
                    raise DataError(f"{place}: too many cells")
                filled = dict.fromkeys(REQUIRED, "")
                filled |= {key: (value or "").strip() for key, value in row.items()}
                if empty := _empty(filled):
                    raise DataError(f"{place}: {empty} is empty")
                yield {**filled, "place": place}
    except FileNotFoundError:
        raise OptionError(f"magnifico_file={str(path)!r} does not exist") from None
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _empty(row: _Row) -> str | None:
    """The first cell that is empty and may not be."""
    defines = any(row[name] for name in ("word", "meaning"))
    asks = any(row[name] for name in _ASKED)
    two = row["interpretation"].count(_AND) == 1
    needed = [
        *(_DEFINITION if defines or not (asks and two) else ("interpretation",)),
        *(_ASKED if asks or not defines else ()),
    ]
    return next((name for name in needed if not row[name]), None)
