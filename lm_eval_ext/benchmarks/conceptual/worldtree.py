"""Getting WorldTree's archive, for which no checksum is published.

It is verified against itself: size and SHA-256 are noted beside it at the first download, and
a later look that finds something else is an error. Everything else that is downloaded has a
declared checksum (:mod:`lm_eval_ext.data`).

WorldTree 2.1: science questions, each explained by facts from a store of tables.

The format has its traps (fact sheet): quotes are characters and quote nothing; columns whose
name holds SKIP are no part of a fact; a uid may stand in several rows, of which the first
counts; a question may have no explanation; keys are A to E or 1 to 4.
"""

import json
import re
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from zipfile import BadZipFile

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.data import cache_dir, local_copy
from lm_eval_ext.data.folders import mirror_url
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)


NAME = "WorldtreeExplanationCorpusV2.1_Feb2020"
URL = f"https://cognitiveai.org/dist/{NAME}.zip"
FOLDER = "conceptual/worldtree"
"""Where the archive lies in a local copy, in the cache's data, and on a mirror."""

TERMS = f"""\
WorldTree 2.1 holds questions from the AI2 Mercury dataset, whose licence allows non-commercial
use only and no redistribution. The archive's own licence files say more; by going on you accept
them. It is fetched from {URL}.
"""
CITATION = (
    "Zhengnan Xie et al. 2020. WorldTree V2: A Corpus of Science-Domain Structured Explanations "
    "and Inference Patterns supporting Multi-Hop Inference. LREC 2020"
)
_TIMEOUT_S = 60.0


Folder: TypeAlias = Path | zipfile.Path
"""A folder on disk, or one in an archive."""


@dataclass(frozen=True)
class Archive:
    """WorldTree at hand.

    Attributes:
        content: Its top folder.
        sha256: Of the archive; of all files, where it lies unpacked.
    """

    content: Folder
    sha256: str


def at_hand() -> bool:
    """Whether WorldTree lies where it is looked for; reads nothing of it."""
    place = (local_copy() or cache_dir() / "data") / FOLDER
    return (place / f"{NAME}.zip").is_file() or (place / NAME).is_dir()


def get() -> Archive:
    """Finds the archive, packed or unpacked, in the local copy or the cache; else fetches it.

    Raises:
        DataError: It is not to be had, or not what it was at the first download.
    """
    copy = local_copy()
    place = (copy or cache_dir() / "data") / FOLDER
    packed, unpacked = place / f"{NAME}.zip", place / NAME
    if packed.is_file():
        _compare(packed, copied=copy is not None)
    elif unpacked.is_dir():
        return Archive(unpacked, _digest_of_folder(unpacked))
    elif copy is not None:
        raise DataError(
            f"{packed}: missing (LM_EVAL_EXT_DATA is {copy}); put the archive there, from {URL}, "
            "or unset LM_EVAL_EXT_DATA so that it is downloaded"
        )
    else:
        _download(packed)
    try:
        content = zipfile.Path(packed, f"{NAME}/")
        if not content.exists():
            raise DataError(f"{packed}: there is no folder {NAME} in it; delete it and run again")
    except (OSError, zipfile.BadZipFile):
        raise DataError(f"{packed}: no zip archive; delete it and run again") from None
    return Archive(content, sha256_of(packed))


def _note_of(packed: Path) -> Path:
    return packed.with_name(f"{packed.name}.first-seen.json")


def _compare(packed: Path, *, copied: bool) -> None:
    """Holds an archive against what was noted; in a local copy there may be no note.

    In the cache there is none where a download was stopped before it, or the archive was put
    there by hand: then this is the first look.
    """
    note = _note_of(packed)
    if not note.is_file():
        if not copied:
            _write_note(packed)
        return
    try:
        seen = json.loads(note.read_text(encoding="utf-8"))
    except ValueError:
        raise DataError(f"{note}: no JSON; delete it to accept the archive as it is") from None
    if _description(packed) != seen:
        raise DataError(
            f"{packed}: its checksum is not the one noted when it was first downloaded "
            f"({note.name}); delete both files to fetch and accept a new one"
        )


def _download(packed: Path) -> None:
    """Downloads the archive, whole or not at all, and notes what it is."""
    import pooch

    sys.stderr.write(f"worldtree: WorldTree 2.1\n{TERMS}")
    mirror = mirror_url()
    url = f"{mirror.rstrip('/')}/{FOLDER}/{packed.name}" if mirror else URL
    try:
        packed.parent.mkdir(parents=True, exist_ok=True)
        downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_S, progressbar=sys.stderr.isatty())
        # pooch writes to a temporary file and renames it.
        pooch.retrieve(
            url, known_hash=None, fname=packed.name, path=packed.parent, downloader=downloader
        )
    except (OSError, ValueError) as error:
        raise DataError(
            f"worldtree: {url}: {type(error).__name__}; check the network, or put the archive "
            f"into {packed.parent}"
        ) from error
    _write_note(packed)


def _write_note(packed: Path) -> None:
    with atomic_text(_note_of(packed)) as note:
        json.dump(_description(packed), note)


def _description(packed: Path) -> dict[str, int | str]:
    return {"size": packed.stat().st_size, "sha256": sha256_of(packed)}


def _digest_of_folder(folder: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*.tsv") if path.is_file()):
        digest.update(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


QUESTIONS = "questions/questions.train.tsv"
TABLES = "tablestore/v2.1/tables"
UID = "[SKIP] UID"

_OPTION = re.compile(r"\(([A-E1-5])\)\s+")


def read(folder: Folder) -> list[Sample]:
    """Reads the questions that have an explanation, with the facts that it names.

    Args:
        folder: The unpacked archive, or the archive itself.

    Raises:
        DataError: Something is not as in WorldTree 2.1; file and line are named.
    """
    facts = read_facts(folder)
    samples = []
    unknown: set[str] = set()
    for place, row in _table(folder, QUESTIONS):
        try:
            explanation = row["explanation"].split()
            if not explanation:
                continue
            # In the order of the explanation, each fact once.
            uids = tuple(dict.fromkeys(part.partition("|")[0] for part in explanation))
            unknown |= set(uids) - facts.keys()
            key = row["AnswerKey"].strip()
            question, options = split_options(row["question"], key)
            (answer,) = [option for option in options if option.label == key]
        except KeyError as error:
            raise DataError(f"{place}: the column {error} is missing") from None
        except ValueError:
            raise DataError(f"{place}: the key {key!r} names no option of the question") from None
        samples.append(
            Sample(
                id=row["QuestionID"],
                question=question,
                answer=answer.text,
                concepts=frozenset(uids),
                options=options,
                answer_label=answer.label,
                facts=tuple(facts[uid] for uid in uids if uid in facts),
            )
        )
    if unknown:
        _log.warning("WorldTree: %d facts of explanations stand in no table", len(unknown))
    return samples


def split_options(text: str, key: str) -> tuple[str, tuple[Option, ...]]:
    """Splits a question from the options behind it, which start with "(A)" or "(1)".

    Options are the longest row of labels that follow each other from the first one on; of
    rows of the same length the last. Every other bracket is text, of the question or of an
    option.

    Args:
        text: The question with its options.
        key: The right option's label: where it is a number, the labels are numbers.
    """
    labels = "12345" if key.isdigit() else "ABCDE"
    starts = [start for start in _OPTION.finditer(text) if start[1] in labels]
    rows = [_row(starts[place:], labels) for place in range(len(starts))]
    found = max(reversed(rows), key=len, default=[])
    if len(found) < 2:  # noqa: PLR2004
        return text.strip(), ()
    ends = [*(start.start() for start in found[1:]), len(text)]
    options = tuple(
        Option(start[1], text[start.end() : end].strip())
        for start, end in zip(found, ends, strict=True)
    )
    return text[: found[0].start()].strip(), options


def _row(starts: list[re.Match[str]], labels: str) -> list[re.Match[str]]:
    """The labels in their order, from the first one here on; none if another comes first."""
    row: list[re.Match[str]] = []
    for start in starts:
        if start[1] == labels[len(row) : len(row) + 1]:
            row.append(start)
        elif not row:
            break
    return row


def read_facts(folder: Folder) -> dict[str, str]:
    """Reads the tables: the text of every fact by its uid.

    Raises:
        DataError: There are no tables, or one has no uids.
    """
    facts: dict[str, str] = {}
    tables = folder.joinpath(TABLES)
    if not tables.is_dir():
        raise DataError(f"{tables}: this folder is missing; get the archive again")
    for name in sorted(table.name for table in tables.iterdir() if table.name.endswith(".tsv")):
        for place, row in _table(folder, f"{TABLES}/{name}"):
            if UID not in row:
                raise DataError(f"{place}: the column {UID!r} is missing")
            cells = (cell.strip() for column, cell in row.items() if "SKIP" not in column)
            text = " ".join(cell for cell in cells if cell)
            if row[UID].strip():
                facts.setdefault(row[UID].strip(), text)
    return facts


def _table(folder: Folder, name: str) -> list[tuple[str, dict[str, str]]]:
    """The rows of a table by column, with places for messages."""
    file = folder.joinpath(name)
    if not file.is_file():
        raise DataError(f"{file}: this file is missing; get the archive again")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, BadZipFile, zlib.error) as error:
        raise DataError(f"{file}: cannot be read ({error}); get the archive again") from None
    header, *lines = text.replace("\r\n", "\n").split("\n")
    columns = _unique(header.split("\t"))
    rows = []
    for number, line in enumerate(lines, start=2):
        if line.strip():
            cells = line.split("\t")
            cells += [""] * (len(columns) - len(cells))
            if len(cells) > len(columns) and any(cells[len(columns) :]):
                raise DataError(f"{file}:{number}: {len(cells)} cells under {len(columns)} columns")
            rows.append((f"{file}:{number}", dict(zip(columns, cells, strict=False))))
    return rows


def _unique(columns: list[str]) -> list[str]:
    """Makes names of columns unique: some tables have several called alike, or not at all."""
    seen: dict[str, int] = {}
    named = []
    for column in columns:
        seen[column] = seen.get(column, 0) + 1
        named.append(column if seen[column] == 1 else f"{column} #{seen[column]}")
    return named
