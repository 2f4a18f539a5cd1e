"""Populating a copy of one database of DuckDB or PostgreSQL, and examining any."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.sql.distill import build
from lm_eval_ext.sql.distill.added_values import added_rows
from lm_eval_ext.sql.distill.report import Report
from lm_eval_ext.sql.engines.places import NamedDatabases
from lm_eval_ext.sql.engines.writing import check_free
from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.mirrored import copies
from lm_eval_ext.sql.mirrored.judging import COPY, ORIGINAL, judge, translated
from lm_eval_ext.sql.mirrored.reading import Mirror, mirror
from lm_eval_ext.sql.values import Place

MIRROR_VERSION = 2
"""Rises whenever other rows would be added to copies of other engines than SQLite."""


@dataclass(frozen=True)
class Target:
    """Where the copy of a database goes.

    Attributes:
        place: The copy, as it is then read.
        into: The URL of a role that may write there; "" for a file.
        readers: Roles that may then read there.
    """

    place: Place
    into: str = ""
    readers: tuple[str, ...] = ()


@contextmanager
def workspace(original: Place, copy: Place | None = None) -> Iterator[tuple[Executor, Path]]:
    """An executor that knows a database and its copy, and a folder that is removed."""
    places = {ORIGINAL: original} | ({} if copy is None else {COPY: copy})
    with (
        tempfile.TemporaryDirectory(prefix="lm-eval-ext-") as folder,
        Executor(NamedDatabases(places), workers=1) as executor,
    ):
        yield executor, Path(folder)


def populate(
    original: Place, golds: Sequence[str], target: Target, name: str,
    *, progress: build.Progress | None = None,
) -> Report:  # fmt: skip
    """Writes a copy with rows that distinguish golds from their near misses.

    Args:
        original: The database; only read.
        golds: Queries in its dialect.
        target: Where the copy goes.
        name: Of the database, for the report.
        progress: Called during the search.

    Returns:
        What the engine itself says of the copy.

    Raises:
        DataError: The original cannot be read, or the copy has no connection.
        OptionError: The copy cannot be written.
    """
    with workspace(original, target.place) as (executor, folder):
        made = mirror(original, folder / "original.sqlite")
        if target.into:
            check_free(target.into, made.catalogue.schema)  # before minutes are spent
        said, failed = translated(executor, made, golds)
        found = folder / "copy.sqlite"
        searched = build.populate(made.path, [one.sqlite for one in said], found, progress=progress)
        counts = write(made, found, target)
        judged = judge(executor, made, said, searched)
    left_out = made.left_out
    if refused := counts.pop("", 0):
        left_out += (f"{refused} rows that were found, but that the engine refuses",)
    reports = tuple(sorted([*failed, *judged], key=lambda one: one.gold))
    return Report(name, counts, reports, searched.values, left_out)


def write(made: Mirror, found: Path, target: Target) -> dict[str, int]:
    """Writes the copy with the rows that a populated mirror has in addition."""
    added = added_rows(made.path, found)
    if target.into:
        return copies.write_database(made, added, target.into, target.readers)
    return copies.write_file(made, added, Path(target.place.address))


def check(
    copy: Place, original: Place | None, golds: Sequence[str], name: str,
    semantics: str = "reference",
) -> Report:  # fmt: skip
    """Finds the near misses that a database does not distinguish from golds.

    Args:
        copy: The database to examine, populated or not.
        original: What it was copied from; None: itself.
        golds: Queries in its dialect.
        name: Of the database, for the report.
        semantics: When results count as equal.

    Raises:
        DataError: A database cannot be read.
    """
    with workspace(original or copy, copy) as (executor, folder):
        made = mirror(original or copy, folder / "original.sqlite")
        other = made if original is None else mirror(copy, folder / "copy.sqlite")
        said, failed = translated(executor, made, golds)
        searched = build.check(
            other.path, None if original is None else made.path, [one.sqlite for one in said]
        )
        judged = judge(executor, made, said, searched, semantics)
    reports = tuple(sorted([*failed, *judged], key=lambda one: one.gold))
    return Report(name, {}, reports, searched.values, made.left_out)
