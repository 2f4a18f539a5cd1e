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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
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
    """Reads the questions that have an explanation, with its facts.

    Raises:
        DataError: It is no archive of WorldTree 2.1, or damaged; the message says where.
    """
    with _reading(archive.name), zipfile.ZipFile(archive) as content:
        facts = read_facts(content)
        with _reading(QUESTIONS):
            columns, *rows = _rows(content, QUESTIONS, csv.QUOTE_MINIMAL)
    samples = []
    unknown: set[str] = set()
    for number, cells in enumerate(rows, start=2):
        with _reading(f"{QUESTIONS}, row {number}"):
            row = dict.fromkeys(columns, "") | dict(zip(columns, cells, strict=False))
            # In the order of the explanation, each fact once.
            explanation = row["explanation"].split()
            uids = tuple(dict.fromkeys(part.partition("|")[0] for part in explanation))
            if not uids:
                continue
            unknown |= set(uids) - facts.keys()
            key = row["AnswerKey"].strip()
            question, options = split_options(row["question"], key)
            (answer,) = (option.text for option in options if option.label == key)
            sample = Sample(
                id=row["QuestionID"],
                question=question,
                answer=answer,
                concepts=frozenset(uids),
                options=options,
                answer_label=key,
                facts=tuple(facts[uid] for uid in uids if uid in facts),
            )
            samples.append(sample)
    if unknown:
        _log.warning("WorldTree: %d facts of explanations are in no table", len(unknown))
    return samples


def read_facts(content: zipfile.ZipFile) -> dict[str, str]:
    """Reads the tables: the text of every fact, by uid.

    Raises:
        DataError: A table is damaged, or has no uids.
    """
    facts: dict[str, str] = {}
    for name in sorted(content.namelist()):
        if name.startswith(TABLES) and name.endswith(".tsv"):
            with _reading(name):
                columns, *rows = _rows(content, name, csv.QUOTE_NONE)
                place = columns.index(UID)
            for cells in rows:
                told = zip(columns, map(str.strip, cells), strict=False)
                text = " ".join(cell for column, cell in told if cell and "SKIP" not in column)
                if uid := "".join(cells[place : place + 1]).strip():
                    facts.setdefault(uid, text)
    return facts


def _rows(content: zipfile.ZipFile, name: str, quoting: Literal[0, 3]) -> list[list[str]]:
    text = content.read(name).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", " ")
    lines = (line + "\n" for line in text.split("\n"))
    return list(csv.reader(lines, delimiter="\t", quoting=quoting))


@contextmanager
def _reading(place: str) -> Iterator[None]:
    try:
        yield
    except (OSError, LookupError, ValueError, csv.Error, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"WorldTree's archive: {place}: {error!r}; delete the archive and run again"
        ) from None


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


def archive() -> DataFile:
    """Finds the archive in the local copy or the cache, or downloads it.

    Raises:
        DataError: It is unavailable, or differs from the first download.
    """
    packed = data_folder() / FOLDER / f"{NAME}.zip"
    if local_copy() is None:
        _download(packed)
    elif not packed.is_file():
        raise DataError(
            f"{packed}: missing (LM_EVAL_EXT_DATA is {local_copy()}); put the archive from {URL} "
            "there, or unset LM_EVAL_EXT_DATA to download it"
        )
    return DataFile(packed, "worldtree", NAME, "V2.1_Feb2020", sha256_of(packed))


def _download(packed: Path) -> None:
    """Downloads the archive, unless it is there with the checksum of the first download."""
    import pooch

    mirror = mirror_url()
    url = f"{mirror.rstrip('/')}/{FOLDER}/{packed.name}" if mirror else URL
    first = packed.with_name(f"{packed.name}.sha256")
    if not packed.is_file():
        sys.stderr.write(f"worldtree: WorldTree 2.1\n{TERMS}")
    # pooch would print URLs, which may hold a password.
    pooch.get_logger().setLevel("ERROR")
    try:
        known = first.read_text(encoding="ascii").strip() if first.is_file() else None
        downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_S, progressbar=sys.stderr.isatty())
        # pooch writes to a temporary file, compares it, and renames it.
        pooch.retrieve(url, known, fname=packed.name, path=packed.parent, downloader=downloader)
        if known is None:
            with atomic_text(first) as out:
                out.write(sha256_of(packed))
    except (OSError, ValueError) as error:
        raise DataError(
            f"worldtree: {url}: {type(error).__name__}: the archive cannot be downloaded, or its "
            f"checksum is not that of the first download; check the network, put the archive into "
            f"{packed.parent}, or delete {first.name} there to accept another archive"
        ) from error
