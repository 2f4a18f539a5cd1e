"""WorldTree 2.1: science questions, each explained by facts from a store of tables.

The format has its traps (fact sheet): quotes are characters and quote nothing; columns whose
name holds SKIP are no part of a fact; a uid may stand in several rows, of which the first
counts; a question may have no explanation; keys are A to E or 1 to 4.
"""

import re
import zlib
from zipfile import BadZipFile

from lm_eval_ext.benchmarks.conceptual.archive import Folder
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)

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
