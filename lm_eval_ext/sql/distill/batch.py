"""Populating many databases: one process each, resumable, the same result whatever the number."""

import hashlib
import json
import queue
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.distill.build import populate
from lm_eval_ext.sql.distill.processes import Maker
from lm_eval_ext.sql.distill.report import Report
from lm_eval_ext.sql.distill.version import POPULATE_VERSION


def populate_all(
    databases: Mapping[str, tuple[Path, Sequence[str]]],
    folder: Path,
    *,
    workers: int = 2,
    progress: bool | None = None,
) -> dict[str, Report]:
    """Makes populated copies of databases.

    A copy lies at ``folder/<db_id>/<db_id>.sqlite``, its report beside it as
    ``<db_id>.report.json``. A copy that is there already, of the same original, golds and
    :data:`POPULATE_VERSION`, is kept. An interruption loses the databases under way only.

    Args:
        databases: The original and the golds of each database by its id.
        folder: Where the copies go; made if it is not there.
        workers: Processes at a time.
        progress: Whether to show a bar on stderr; None: if that is a terminal.

    Returns:
        The reports, in the order of ``databases``.

    Raises:
        DataError: An original cannot be read.
        OptionError: A copy cannot be written, or an id is no plain name.
    """
    if workers < 1:
        raise OptionError(f"workers={workers}: must be 1 or more")
    for db_id in databases:
        if db_id in ("", ".", "..") or Path(db_id).name != db_id:
            raise OptionError(f"database id {db_id!r}: must be a plain name, without a path")
    reports: dict[str, Report] = {}
    todo: list[str] = []
    for db_id, (original, golds) in databases.items():
        found = finished(folder, db_id, original, golds)
        if found is None:
            todo.append(db_id)
        else:
            reports[db_id] = found
    # Those with the most golds take the longest: first, so that none is left alone at the end.
    todo.sort(key=lambda db_id: (-len(set(databases[db_id][1])), db_id))
    with _bar(len(databases), progress) as bar:
        bar.update(len(reports))
        for db_id in _run(databases, todo, folder, workers):
            bar.update(1)
            bar.set_postfix_str(db_id)
    for db_id in todo:
        original, golds = databases[db_id]
        report = finished(folder, db_id, original, golds)
        if report is None:
            raise RuntimeError(f"the populated copy of {db_id} vanished")
        reports[db_id] = report
    return {db_id: reports[db_id] for db_id in databases}


def finished(folder: Path, db_id: str, original: Path, golds: Sequence[str]) -> Report | None:
    """Returns the report of a copy that is there, whole, and made of the same things."""
    copy = folder / db_id / f"{db_id}.sqlite"
    try:
        noted = json.loads((folder / db_id / f"{db_id}.report.json").read_text(encoding="utf-8"))
        same = noted["key"] == key_of(original, golds) and noted["sha256"] == sha256_of(copy)
        return Report.from_dict(noted["report"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def key_of(original: Path, golds: Sequence[str]) -> str:
    """Returns a text that differs where a copy made of these things might.

    Raises:
        DataError: The original cannot be read.
    """
    try:
        parts = [POPULATE_VERSION, sha256_of(original), sorted(set(golds))]
    except OSError as error:
        raise DataError(f"cannot read the database {original}: {error.strerror}") from None
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def make(original: Path, golds: Sequence[str], folder: Path, db_id: str) -> None:
    """Makes one copy and its report; the report last, so that it vouches for the copy.

    Raises:
        DataError: The original cannot be read.
        OptionError: The copy cannot be written.
    """
    home = folder / db_id
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot make the folder {home}: {error.strerror}") from None
    copy = home / f"{db_id}.sqlite"
    report = populate(original, golds, copy)
    noted = {
        "key": key_of(original, golds),
        "sha256": sha256_of(copy),
        "report": report.as_dict(),
    }
    with atomic_text(home / f"{db_id}.report.json") as file:
        json.dump(noted, file, ensure_ascii=True, indent=1)
        file.write("\n")


def _run(
    databases: Mapping[str, tuple[Path, Sequence[str]]],
    todo: Sequence[str],
    folder: Path,
    workers: int,
) -> Iterator[str]:
    """Yields the ids as their copies are finished."""
    idle: queue.SimpleQueue[Maker] = queue.SimpleQueue()

    def make_one(db_id: str) -> str:
        maker = idle.get()
        try:
            original, golds = databases[db_id]
            maker.make([str(original), sorted(set(golds)), str(folder), db_id])
        finally:
            # Also after an error: another thread may be waiting for this maker already, and
            # would otherwise wait for ever.
            idle.put(maker)
        return db_id

    makers = [Maker() for _ in range(min(workers, len(todo)))]
    for maker in makers:
        idle.put(maker)
    pool = ThreadPoolExecutor(max_workers=max(len(makers), 1))
    try:
        waiting: set[Future[str]] = {pool.submit(make_one, db_id) for db_id in todo}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for maker in makers:
            maker.kill()
        pool.shutdown(wait=True)


def _bar(total: int, progress: bool | None) -> Any:  # noqa: FBT001
    from tqdm import tqdm

    disable = None if progress is None else not progress
    return tqdm(total=total, desc="populating", unit="db", disable=disable, file=sys.stderr)
