"""WorldTree 2.1: science questions, each explained by facts from tables; and its archive.

Peculiarities of the format: the questions are quoted CSV, while in the tables quotes are ordinary
characters; columns with SKIP in their name are not part of a fact; a uid can be in several rows, of
which the first counts; a question can lack an explanation; keys are A to E or 1 to 4.

No checksum is published for the archive. Its size and SHA-256 are recorded beside it at the first
download, and an archive that differs later is an error. (All other downloads have a declared
checksum, see :mod:`lm_eval_ext.data`.)
"""

import csv
import hashlib
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.data import cache_dir, local_copy, mirror_url
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger

if TYPE_CHECKING:
    from datasets import DatasetInfo

_log = get_logger(__name__)

NAME = "WorldtreeExplanationCorpusV2.1_Feb2020"
URL = f"https://cognitiveai.org/dist/{NAME}.zip"
FOLDER = "conceptual/worldtree"
"""The archive's folder in a local copy, in the cache's data, and on a mirror."""

TERMS = f"""\
WorldTree 2.1 holds questions from the AI2 Mercury dataset, whose licence allows non-commercial
use only and no redistribution. See the licence files in the archive; by continuing you accept
them. It is downloaded from {URL}.
"""
CITATION = (
    "Zhengnan Xie et al. 2020. WorldTree V2: A Corpus of Science-Domain Structured Explanations "
    "and Inference Patterns supporting Multi-Hop Inference. LREC 2020"
)
_TIMEOUT_S = 60.0

QUESTIONS = "questions/questions.train.tsv"
TABLES = "tablestore/v2.1/tables"
UID = "[SKIP] UID"

_OPTION = re.compile(r"\(([A-E1-5])\)\s+")

Folder: TypeAlias = Path | zipfile.Path
"""A folder on disk, or one in an archive."""


def read(folder: Folder) -> list[Sample]:
    """Reads the questions that have an explanation, with its facts.

    Args:
        folder: The unpacked archive, or the archive itself.

    Raises:
        DataError: The format is not that of WorldTree 2.1; the message names file and line.
    """
    facts = read_facts(folder)
    samples = []
    unknown: set[str] = set()
    for place, row in _table(folder, QUESTIONS, quoted=True):
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
        _log.warning("WorldTree: %d facts of explanations are in no table", len(unknown))
    return samples


def split_options(text: str, key: str) -> tuple[str, tuple[Option, ...]]:
    """Splits a question from its options, which start with "(A)" or "(1)".

    The options are the longest sequence of consecutive labels from the first one on; of
    sequences of the same length, the last. All other brackets belong to the text.

    Args:
        text: The question with its options.
        key: The right option's label; if it is a digit, all labels are.
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
    """The consecutive labels from the first match on; empty if that is another label."""
    row: list[re.Match[str]] = []
    for start in starts:
        if start[1] == labels[len(row) : len(row) + 1]:
            row.append(start)
        elif not row:
            break
    return row


def read_facts(folder: Folder) -> dict[str, str]:
    """Reads the tables: the text of every fact, by uid.

    Raises:
        DataError: The tables are missing, or one has no uids.
    """
    facts: dict[str, str] = {}
    tables = folder.joinpath(TABLES)
    if not tables.is_dir():
        raise DataError(f"{tables}: this folder is missing; download the archive again")
    for name in sorted(table.name for table in tables.iterdir() if table.name.endswith(".tsv")):
        for place, row in _table(folder, f"{TABLES}/{name}"):
            if UID not in row:
                raise DataError(f"{place}: the column {UID!r} is missing")
            cells = (cell.strip() for column, cell in row.items() if "SKIP" not in column)
            text = " ".join(cell for cell in cells if cell)
            if row[UID].strip():
                facts.setdefault(row[UID].strip(), text)
    return facts


def _table(folder: Folder, name: str, *, quoted: bool = False) -> list[tuple[str, dict[str, str]]]:
    """The rows of a table by column name, each after its place (for messages)."""
    file = folder.joinpath(name)
    if not file.is_file():
        raise DataError(f"{file}: this file is missing; download the archive again")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{file}: cannot be read ({error}); download the archive again") from None
    lines = text.replace("\r\n", "\n").split("\n")
    split = (
        _unquoted(lines) if quoted else ((n, line.split("\t")) for n, line in enumerate(lines, 1))
    )
    columns = _unique(next(split)[1])
    rows = []
    for number, cells in split:
        if any("\t" in cell for cell in cells):
            raise DataError(f"{file}:{number}: a quote is not closed; download the archive again")
        if len(cells) > len(columns) and any(cells[len(columns) :]):
            raise DataError(f"{file}:{number}: {len(cells)} cells under {len(columns)} columns")
        if any(cell.strip() for cell in cells):
            filled = [*cells, *[""] * (len(columns) - len(cells))]
            rows.append((f"{file}:{number}", dict(zip(columns, filled, strict=False))))
    return rows


def _unquoted(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Numbers and cells of the rows of quoted CSV."""
    # The reader takes a lone carriage return for the end of a row.
    reader = csv.reader((line.replace("\r", " ") + "\n" for line in lines), "excel-tab")
    for cells in reader:
        yield reader.line_num, cells


def _unique(columns: list[str]) -> list[str]:
    """Makes column names unique: in some tables several are equal or empty."""
    seen: dict[str, int] = {}
    named = []
    for column in columns:
        seen[column] = seen.get(column, 0) + 1
        named.append(column if seen[column] == 1 else f"{column} #{seen[column]}")
    return named


@dataclass(frozen=True)
class Archive:
    """A local copy of WorldTree.

    Attributes:
        content: Its top folder.
        sha256: Of the archive, or over all files of an unpacked folder.
    """

    content: Folder
    sha256: str


def get() -> Archive:
    """Finds the archive or its unpacked folder in the local copy or the cache, or downloads it.

    Raises:
        DataError: It is unavailable, or differs from the first download.
    """
    copy = local_copy()
    place = (copy or cache_dir() / "data") / FOLDER
    packed, unpacked = place / f"{NAME}.zip", place / NAME
    note = packed.with_name(f"{packed.name}.first-seen.json")
    if not packed.is_file():
        if unpacked.is_dir():
            return Archive(unpacked, _digest_of_folder(unpacked))
        if copy is not None:
            raise DataError(
                f"{packed}: missing (LM_EVAL_EXT_DATA is {copy}); put the archive from {URL} "
                "there, or unset LM_EVAL_EXT_DATA to download it"
            )
        _download(packed)
        note.unlink(missing_ok=True)
    _compare(packed, note, copied=copy is not None)
    try:
        content = zipfile.Path(packed, f"{NAME}/")
        if not content.exists():
            raise DataError(f"{packed}: has no folder {NAME}; delete the archive and run again")
    except (OSError, zipfile.BadZipFile):
        raise DataError(f"{packed}: not a zip archive; delete it and run again") from None
    return Archive(content, sha256_of(packed))


def describe(found: Archive) -> "DatasetInfo":
    """Where documents are from."""
    from datasets import DatasetInfo

    return DatasetInfo(
        citation=CITATION,
        homepage="http://cognitiveai.org/explanationbank/",
        license="non-commercial, no redistribution (AI2 Mercury)",
        dataset_name="worldtree",
        config_name="V2.1_Feb2020",
        download_checksums={NAME: {"checksum": found.sha256}},
    )


def _compare(packed: Path, note: Path, *, copied: bool) -> None:
    """Compares an archive with its recorded size and checksum.

    Without a record, writes one; but not in a local copy, which is left as it is.
    """
    found = {"size": packed.stat().st_size, "sha256": sha256_of(packed)}
    if not note.is_file():
        if not copied:
            with atomic_text(note) as out:
                json.dump(found, out)
        return
    try:
        seen = json.loads(note.read_text(encoding="utf-8"))
    except ValueError:
        raise DataError(
            f"{note}: not valid JSON; delete it to accept the archive as it is"
        ) from None
    if found != seen:
        raise DataError(
            f"{packed}: its checksum differs from that of the first download, in {note.name}; "
            "delete both files to download and accept a new archive"
        )


def _download(packed: Path) -> None:
    """Downloads the archive, completely or not at all."""
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


def _digest_of_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*.tsv") if path.is_file()):
        digest.update(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()
