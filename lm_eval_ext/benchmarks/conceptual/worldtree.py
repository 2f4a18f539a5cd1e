"""WorldTree 2.1: science questions, each explained by facts from tables; and its archive.

Peculiarities of the format: the questions are quoted CSV, while in the tables quotes are ordinary
characters; columns with SKIP in their name are not part of a fact; several columns of a table may
have the same name, or none; a uid can be in several rows, of which the first counts; a question can
lack an explanation; keys are A to E or 1 to 4.

No checksum is published for the archive. Its SHA-256 is recorded beside it at the first download,
and another archive is an error later. (All other downloads have a declared checksum, see
:mod:`lm_eval_ext.data`.)
"""

import csv
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample, text_of
from lm_eval_ext.data import DataFile, data_folder, local_copy, mirror_url
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger

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
_TIMEOUT_S = 60.0

QUESTIONS = f"{NAME}/questions/questions.train.tsv"
TABLES = f"{NAME}/tablestore/v2.1/tables/"
UID = "[SKIP] UID"

_OPTION = re.compile(r"\(([A-E1-5])\)\s+")


def read(archive: Path) -> list[Sample]:
    """Read the questions that have an explanation, with its facts.

    Raises:
        DataError: The file is no archive of WorldTree 2.1, or damaged; the message says where.
    """
    with _translate_errors(archive.name), zipfile.ZipFile(archive) as content:
        facts = read_facts(content)
        with _translate_errors(QUESTIONS):
            columns, *rows = _rows(content, QUESTIONS, csv.QUOTE_MINIMAL)
    samples = []
    unknown: set[str] = set()
    for number, cells in enumerate(rows, start=2):
        with _translate_errors(f"{QUESTIONS}, row {number}"):
            row = dict.fromkeys(columns, "") | dict(zip(columns, cells, strict=False))
            uids = _explaining_facts(row["explanation"])
            if not uids:
                continue
            unknown |= set(uids) - facts.keys()
            key = row["AnswerKey"].strip()
            question, options = split_options(row["question"], key)
            sample = Sample(
                id=row["QuestionID"],
                question=question,
                answer=text_of(key, options),
                concepts=frozenset(uids),
                options=options,
                answer_label=key,
                facts=tuple(facts[uid] for uid in uids if uid in facts),
            )
            samples.append(sample)
    if unknown:
        _log.warning("WorldTree: %d facts of explanations are in no table", len(unknown))
    return samples


def _explaining_facts(explanation: str) -> list[str]:
    """Return the uids of an explanation in its order, each once; ``UID|ROLE UID|ROLE``."""
    uids = [item.partition("|")[0] for item in explanation.split()]
    return list(dict.fromkeys(uids))


def read_facts(content: zipfile.ZipFile) -> dict[str, str]:
    """Read the tables: the text of every fact, by uid.

    Raises:
        DataError: A table is damaged, or has no uids.
    """
    facts: dict[str, str] = {}
    for name in sorted(content.namelist()):
        if name.startswith(TABLES) and name.endswith(".tsv"):
            with _translate_errors(name):
                columns, *rows = _rows(content, name, csv.QUOTE_NONE)
                uid_column = columns.index(UID)
            for cells in rows:
                uid = cells[uid_column].strip() if uid_column < len(cells) else ""
                if uid:
                    facts.setdefault(uid, _fact_text(columns, cells))
    return facts


def _fact_text(columns: Sequence[str], cells: Sequence[str]) -> str:
    words = []
    # Columns may have the same name, so that a dict would lose cells.
    for column, cell in zip(columns, cells, strict=False):
        if cell.strip() and "SKIP" not in column:
            words.append(cell.strip())
    return " ".join(words)


def _rows(content: zipfile.ZipFile, name: str, quoting: Literal[0, 3]) -> list[list[str]]:
    text = content.read(name).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", " ")
    lines = (line + "\n" for line in text.split("\n"))
    return list(csv.reader(lines, delimiter="\t", quoting=quoting))


@contextmanager
def _translate_errors(location: str) -> Iterator[None]:
    try:
        yield
    except (OSError, LookupError, ValueError, csv.Error, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"WorldTree's archive: {location}: {error!r}; delete the archive and run again"
        ) from None


def split_options(text: str, key: str) -> tuple[str, tuple[Option, ...]]:
    """Split a question from its options, which start with "(A)" or "(1)".

    The options are the longest sequence of consecutive labels from the first one on; of
    sequences of the same length, the last. All other brackets belong to the text.

    Args:
        text: The question with its options.
        key: The right option's label; if it is a digit, all labels are.
    """
    labels = "12345" if key.isdigit() else "ABCDE"
    starts = [start for start in _OPTION.finditer(text) if start[1] in labels]
    longest: list[re.Match[str]] = []
    for position in range(len(starts)):
        sequence = _consecutive(starts[position:], labels)
        if len(sequence) >= len(longest):
            longest = sequence
    if len(longest) < 2:  # noqa: PLR2004
        return text.strip(), ()
    options = []
    ends = [start.start() for start in longest[1:]]
    ends.append(len(text))
    for start, end in zip(longest, ends, strict=True):
        options.append(Option(start[1], text[start.end() : end].strip()))
    return text[: longest[0].start()].strip(), tuple(options)


def _consecutive(starts: Sequence[re.Match[str]], labels: str) -> list[re.Match[str]]:
    """Return the consecutive labels from the first match on; none if that is another label."""
    sequence: list[re.Match[str]] = []
    for start in starts:
        if start[1] == labels[len(sequence) : len(sequence) + 1]:
            sequence.append(start)
        elif not sequence:
            break
    return sequence


def archive() -> DataFile:
    """Find the archive in the local copy or the cache, or download it.

    Raises:
        DataError: The archive is unavailable, or differs from the first download.
    """
    zip_file = data_folder() / FOLDER / f"{NAME}.zip"
    if local_copy() is None:
        _download(zip_file)
    elif not zip_file.is_file():
        raise DataError(
            f"{zip_file}: missing (LM_EVAL_EXT_DATA is {local_copy()}); put the archive from {URL} "
            "there, or unset LM_EVAL_EXT_DATA to download it"
        )
    return DataFile(zip_file, "worldtree", NAME, "V2.1_Feb2020", sha256_of(zip_file))


def _download(zip_file: Path) -> None:
    """Download the archive, unless it is there with the checksum of the first download."""
    import pooch

    url = URL
    mirror = mirror_url()
    if mirror:
        url = f"{mirror.rstrip('/')}/{FOLDER}/{zip_file.name}"
    checksum_file = zip_file.with_name(f"{zip_file.name}.sha256")
    if not zip_file.is_file():
        sys.stderr.write(f"worldtree: WorldTree 2.1\n{TERMS}")
    # pooch would print URLs, which may hold a password.
    pooch.get_logger().setLevel("ERROR")
    try:
        checksum = None
        if checksum_file.is_file():
            checksum = checksum_file.read_text(encoding="ascii").strip()
        downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_S, progressbar=sys.stderr.isatty())
        # pooch writes to a temporary file, compares it, and renames it.
        pooch.retrieve(
            url, checksum, fname=zip_file.name, path=zip_file.parent, downloader=downloader
        )
        if checksum is None:
            with atomic_text(checksum_file) as out:
                out.write(sha256_of(zip_file))
    except (OSError, ValueError) as error:
        raise DataError(
            f"worldtree: {url}: {type(error).__name__}: the archive cannot be downloaded, or its "
            f"checksum is not that of the first download; check the network, put the archive into "
            f"{zip_file.parent}, or delete {checksum_file.name} there to accept another archive"
        ) from error
