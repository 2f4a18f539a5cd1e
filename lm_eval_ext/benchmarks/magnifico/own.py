"""A user's own corpus: a tab-separated file of examples, and SQLite databases."""

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico.records import (
    BASE,
    NOVEL,
    Corpus,
    Database,
    Example,
    Form,
    Interpretation,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Databases

REQUIRED = ("interpretation", "word", "meaning", "question", "base_question", "query")
OPTIONAL = ("db_id", "form", "support")
"""``form``: plausible (default), foreign or adversarial. ``support``: yes for an example that only
few-shot prompts show."""

CATEGORY = "own"


def read(examples: Path, databases: Path) -> Corpus:
    """Reads a file with the columns :data:`REQUIRED` and any of :data:`OPTIONAL`.

    ``databases`` is a SQLite file, or a folder of them if there is a column ``db_id``.

    Raises:
        OptionError: A path does not exist.
        DataError: A row is invalid; its line is named.
    """
    found: dict[str, Database] = {}
    interpretations: dict[str, Interpretation] = {}
    asked: list[Example] = []
    support: dict[tuple[str, Form], list[Example]] = {}
    known = _databases(databases)
    for index, row in enumerate(_rows(examples)):
        place, name, form = row["place"], row["interpretation"], _form(row)
        db_id = row.get("db_id") or (databases.stem if databases.is_file() else "")
        if not db_id:
            raise DataError(
                f"{place}: no database; add a column db_id, or name a file in magnifico_databases"
            )
        if db_id.casefold() not in found and (path := known(db_id)):
            found[db_id.casefold()] = Database.at(path)
        interpretations[name] = _interpretation(row, form, interpretations.get(name))
        template = f"{name}/{index}"
        pair = (
            Example(template, (name,), BASE, db_id, row["base_question"], row["query"]),
            Example(template, (name,), form, db_id, row["question"], row["query"]),
        )
        if row.get("support", "").casefold() in {"yes", "true", "1"}:
            for example in pair:
                support.setdefault((name, example.form), []).append(example)
        else:
            asked += pair
    if not asked:
        raise DataError(f"{examples}: no examples to ask; add rows that are not support")
    for example in asked:
        support.setdefault((example.interpretations[0], example.form), [])
    return Corpus(
        interpretations=MappingProxyType(interpretations),
        examples=tuple(asked),
        support=MappingProxyType({key: tuple(rows) for key, rows in support.items()}),
        databases=MappingProxyType(found),
    )


def digest(databases: Mapping[str, Database]) -> str:
    """SHA-256 of the databases' ids and contents."""
    lines = [f"{sha256_of(one.path)}  {db_id}\n" for db_id, one in sorted(databases.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _databases(place: Path) -> Callable[[str], Path | None]:
    if place.is_file():
        return lambda db_id: place if db_id.casefold() == place.stem.casefold() else None
    if place.is_dir():
        return Databases(place).find
    raise OptionError(
        f"magnifico_databases={str(place)!r} does not exist; name a SQLite file, or a folder with "
        "<db_id>/<db_id>.sqlite or <db_id>.sqlite"
    )


def _form(row: Mapping[str, str]) -> Form:
    form = row.get("form") or "plausible"
    for legal in NOVEL:
        if form == legal:
            return legal
    raise DataError(f"{row['place']}: the form is {form!r}; use {', '.join(NOVEL)}")


def _interpretation(
    row: Mapping[str, str], form: Form, before: Interpretation | None
) -> Interpretation:
    if row["word"] not in row["question"]:
        raise DataError(
            f"{row['place']}: the question does not contain the word {row['word']!r}; add it"
        )
    forms = dict(before.forms) if before else {}
    if forms.setdefault(form, row["word"]) != row["word"] or (
        before and before.meaning != row["meaning"]
    ):
        raise DataError(
            f"{row['place']}: {row['interpretation']} has another word or meaning above; give each "
            "interpretation one meaning and one word per form"
        )
    return Interpretation(row["interpretation"], CATEGORY, row["meaning"], MappingProxyType(forms))


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
                filled = {key: (value or "").strip() for key, value in row.items() if key}
                empty = [name for name in REQUIRED if not filled.get(name)]
                if empty or None in row:
                    raise DataError(
                        f"{place}: {f'{empty[0]} is empty' if empty else 'too many cells'}"
                    )
                yield {**filled, "place": place}
    except FileNotFoundError:
        raise OptionError(f"magnifico_file={str(path)!r} does not exist") from None
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
