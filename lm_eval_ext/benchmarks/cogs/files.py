"""Reading COGS's files, and the fixed part of Gen for expensive models."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from lm_eval_ext.benchmarks.cogs.records import TEST_LEX_SUFFIX, Example
from lm_eval_ext.errors import DataError

COLUMNS = 3
SMALL = 50
"""Examples per type in the small part."""


def read(path: Path) -> list[str]:
    """The lines of a file.

    Raises:
        DataError: If it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def examples(lines: Iterable[str], split: str, place: str) -> list[Example]:
    """Takes lines apart: sentence, logical form, type.

    Args:
        lines: Of one file.
        split: What ids start with.
        place: Names the file in messages.

    Raises:
        DataError: For a line of another shape; it is named.
    """
    found = []
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) != COLUMNS or not all(columns):
            raise DataError(
                f"{place}:{number}: not a sentence, a logical form and a type, separated by tabs"
            )
        sentence, form, type_ = columns
        found.append(Example(f"{split}/{number}", sentence, form, _type_name(type_)))
    return found


def _type_name(type_: str) -> str:
    return type_.removesuffix(TEST_LEX_SUFFIX)


def check_types(found: Iterable[Example], legal: Collection[str], place: str) -> None:
    """Holds a test file to the types that its metrics are named after.

    Raises:
        DataError: For another one; the line is named.
    """
    for example in found:
        if example.type not in legal:
            line = example.id.rpartition("/")[2]
            raise DataError(
                f"{place}:{line}: no type {example.type!r} is known here; use {', '.join(legal)}"
            )


def small(found: Iterable[Example], per_type: int = SMALL) -> list[Example]:
    """A part that is the same for everyone: of each type those of the smallest hashes.

    The hash is the SHA-256 of the unmodified sentence, so nothing is drawn at run time and all
    lexicons and both revisions of Gen have the same part. The order stays the file's.
    """
    ranked: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    found = list(found)
    for example in found:
        digest = hashlib.sha256(example.sentence.encode()).digest()
        ranked[example.type].append((digest, example.id))
    chosen = {id_ for members in ranked.values() for _, id_ in sorted(members)[:per_type]}
    return [example for example in found if example.id in chosen]
