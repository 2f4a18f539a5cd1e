"""Populated copies of several databases of DuckDB or PostgreSQL, with a report beside each."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.distill.report import POPULATE_VERSION, Report
from lm_eval_ext.sql.engines.places import check_id, holds_password
from lm_eval_ext.sql.mirrored.build import MIRROR_VERSION, Target, populate
from lm_eval_ext.sql.values import Place

_log = get_logger(__name__)

Wanted = Mapping[str, tuple[Place, Sequence[str]]]
"""Originals and gold queries by the databases' ids."""


def populate_files(
    databases: Wanted, folder: Path, *, progress: bool | None = None
) -> dict[str, Report]:
    """Makes populated copies of DuckDB files.

    A copy lies at ``folder/<db_id>/<db_id>.duckdb``, its report beside it. An existing copy of the
    same original and golds is kept.

    Args:
        databases: Places of DuckDB.
        folder: Where the copies go; made if it does not exist.
        progress: Whether to show a bar on stderr; None: if that is a terminal.

    Raises:
        DataError: An original cannot be read.
        OptionError: A copy cannot be written, or an id is not a plain name.
    """
    for db_id in databases:
        check_id(db_id)
    reports = {}
    for db_id, (place, golds) in databases.items():
        copy = copy_in(folder, db_id)
        noted = copy.with_name(f"{db_id}.report.json")
        key = _key(place, golds)
        report = _finished(noted, copy, key)
        if report is None:
            _log.info(
                "Searching for rows that tell right queries from wrong ones, on %s: minutes for a "
                "large one, once; they are kept in %s", db_id, copy.parent,
            )  # fmt: skip
            _make(copy.parent)
            target = Target(Place("duckdb", str(copy)))
            try:
                report = _populated(place, golds, target, db_id, progress)
            finally:
                with suppress(OSError):
                    copy.parent.rmdir()  # unless it holds something
            _note(noted, {"key": key, "sha256": sha256_of(copy), "report": report.as_dict()})
        reports[db_id] = report
    return reports


def copy_in(folder: Path, db_id: str) -> Path:
    """Where :func:`populate_files` puts a copy."""
    return folder / db_id / f"{db_id}.duckdb"


def populate_database(
    db_id: str, place: Place, golds: Sequence[str], into: str, folder: Path,
    *, progress: bool | None = None,
) -> Report:  # fmt: skip
    """Makes the populated copy of a database of PostgreSQL.

    Args:
        db_id: The database's id.
        place: The original, as a role that may only read.
        golds: The gold queries.
        into: The URL of the copy, as a role that may write there; the first role then reads it.
        folder: Where the report goes.
        progress: As :func:`populate_files`.

    Raises:
        DataError: A database cannot be read or connected to.
        OptionError: A copy cannot be written, or the id is not a plain name.
    """
    check_id(db_id)
    report = _populated(place, golds, target_of(place, into), db_id, progress)
    _make(folder)
    _note(folder / f"{db_id}.report.json", {"report": report.as_dict()})
    return report


def target_of(place: Place, into: str) -> Target:
    """The copy as the role reads it that reads the original."""
    ours, theirs = urlsplit(place.address), urlsplit(into)
    role = ours.username or ""
    if theirs.scheme not in ("postgresql", "postgres") or not theirs.path.strip("/"):
        raise OptionError(f"--into {into}: write postgresql://writer@host/DATABASE")
    if holds_password(into):
        raise OptionError(
            "--into holds a password, which reports would show; leave it out and write it to "
            "~/.pgpass"
        )
    if not role or role == theirs.username:
        raise OptionError(
            f"--into {into}: the role that reads {place} must be named, and be another one than "
            "that which writes; write postgresql://reader@... and postgresql://writer@..."
        )
    host = theirs.netloc.rpartition("@")[2]
    reader = urlunsplit(theirs._replace(netloc=f"{role}@{host}"))
    return Target(Place("postgresql", reader), into, (role,))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot make the folder {folder}: {error.strerror}") from None


def _populated(
    place: Place, golds: Sequence[str], target: Target, db_id: str,
    progress: bool | None,  # noqa: FBT001
) -> Report:  # fmt: skip
    from tqdm import tqdm

    with tqdm(
        desc=f"populating {db_id}", unit="gold", disable=None if progress is None else not progress
    ) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return populate(place, golds, target, db_id, progress=show)


def _key(place: Place, golds: Sequence[str]) -> str:
    """A text that is the same only for inputs that give the same copy."""
    import duckdb

    try:
        parts = [
            POPULATE_VERSION, MIRROR_VERSION, duckdb.__version__, sha256_of(Path(place.address)),
            sorted(set(golds)),
        ]  # fmt: skip
    except OSError as error:
        raise DataError(f"cannot read the database {place}: {error.strerror}") from None
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _finished(noted: Path, copy: Path, key: str) -> Report | None:
    """The report of a copy; None unless it is complete and up to date."""
    try:
        found = json.loads(noted.read_text(encoding="utf-8"))
        same = found["key"] == key and found["sha256"] == sha256_of(copy)
        return Report.from_dict(found["report"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note(path: Path, content: object) -> None:
    with atomic_text(path) as file:
        json.dump(content, file, ensure_ascii=True, indent=1)
        file.write("\n")
