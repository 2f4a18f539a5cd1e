"""Populating many databases: a process each, resumable, the same result for any number of them.

The calling program needs none of the search: it starts processes that import it.
"""

import contextlib
import json
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.distill.report import Report, finished, key_of
from lm_eval_ext.sql.engines.places import check_id

_log = get_logger(__name__)

# Without "", the working folder, where a user may have a random.py.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[1:2] + [path for path in sys.path if path]; "
    "from lm_eval_ext.sql.distill.batch import serve; serve()"
)


def populate_all(
    databases: Mapping[str, tuple[Path, Sequence[str]]],
    folder: Path,
    *,
    shipped: Path | None = None,
    workers: int = 2,
    progress: bool | None = None,
) -> dict[str, Report]:
    """Makes populated copies of databases.

    A copy lies at ``folder/<db_id>/<db_id>.sqlite``, its report beside it as
    ``<db_id>.report.json``. An existing copy of the same original, golds and
    :data:`.report.POPULATE_VERSION` is kept. An interruption loses the unfinished databases only.

    Args:
        databases: The original and the golds of each database by its id.
        folder: Where the copies go; made if it does not exist.
        shipped: A file with the rows of earlier searches (:mod:`.shipped`), which are used for
            the same originals and golds; None to search for all.
        workers: Processes at a time.
        progress: Whether to show a bar on stderr; None: if there is something to search for.

    Returns:
        The reports, in the order of ``databases``.

    Raises:
        DataError: An original cannot be read.
        OptionError: A copy cannot be written, or an id is not a plain name.
    """
    if workers < 1:
        raise OptionError(f"workers={workers}: must be 1 or more")
    for db_id in databases:
        check_id(db_id)
    reports: dict[str, Report] = {}
    todo: list[str] = []
    for db_id, (original, golds) in databases.items():
        found = finished(folder, db_id, original, golds)
        if found is None:
            todo.append(db_id)
        else:
            reports[db_id] = found
    searched = todo if shipped is None else _apply(shipped, databases, todo, folder)
    if searched:
        _log.info(
            "Searching for rows that tell right queries from wrong ones, on %d databases: minutes "
            "for large ones, once; they are kept in %s",
            len(searched),
            folder,
        )
    # Those with the most golds take the longest and go first, so that none runs alone at the end.
    searched.sort(key=lambda db_id: (-len(set(databases[db_id][1])), db_id))
    with _bar(len(searched), progress) as bar:
        for db_id in _run(databases, searched, folder, workers):
            bar.update(1)
            bar.set_postfix_str(db_id)
    for db_id in todo:
        original, golds = databases[db_id]
        report = finished(folder, db_id, original, golds)
        if report is None:
            raise RuntimeError(f"the populated copy of {db_id} vanished")
        reports[db_id] = report
    return {db_id: reports[db_id] for db_id in databases}


def make(original: Path, golds: Sequence[str], folder: Path, db_id: str) -> None:
    """Searches for the rows of one copy."""
    from lm_eval_ext.sql.distill.build import populate  # heavy, and needed in the processes only

    key = key_of(original, golds)
    _store(key, folder, db_id, lambda copy: populate(original, golds, copy))


def _apply(
    shipped: Path,
    databases: Mapping[str, tuple[Path, Sequence[str]]],
    todo: Sequence[str],
    folder: Path,
) -> list[str]:
    """Makes the copies whose rows are shipped; returns the ids of the others."""
    if not todo:
        return []
    from lm_eval_ext.sql.distill.shipped import Pack

    pack = Pack.read(shipped)
    keys = {db_id: key_of(*databases[db_id]) for db_id in todo}
    sums = {db_id: sha256_of(databases[db_id][0]) for db_id in todo}
    ready = [db_id for db_id in todo if sums[db_id] in pack]
    if ready:
        _log.info("Adding the shipped rows to %d databases, in %s", len(ready), folder)
    for db_id in ready:
        _store(keys[db_id], folder, db_id, partial(pack.apply, sums[db_id], *databases[db_id]))
    return [db_id for db_id in todo if db_id not in ready]


def _store(key: str, folder: Path, db_id: str, fill: Callable[[Path], Report]) -> None:
    """Makes one copy, then its report, whose presence means that the copy is complete."""
    home = folder / db_id
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot make the folder {home}: {error.strerror}") from None
    copy = home / f"{db_id}.sqlite"
    report = fill(copy)
    noted = {"key": key, "sha256": sha256_of(copy), "report": report.as_dict()}
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
            # Also after an error: another thread may be waiting for this process.
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

    shown = total > 0 if progress is None else progress
    pause = 0.1 if sys.stderr.isatty() else _PAUSE_IN_LOGS_S
    return tqdm(
        total=total, desc="populating", unit="db", disable=not shown, file=sys.stderr,
        mininterval=pause,
    )  # fmt: skip


_PAUSE_IN_LOGS_S = 20.0
"""A log gets a line of the bar so often."""


def serve() -> None:
    """Runs a process that makes copies: reads a line of JSON per job, writes one per result."""
    for line in sys.stdin:
        original, golds, folder, db_id = json.loads(line)
        answer = ["done", ""]
        try:
            make(Path(original), golds, Path(folder), db_id)
        except LmEvalExtError as error:
            answer = [type(error).__name__, str(error)]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Maker:
    """A process that makes copies.

    It is started with plain pipes: multiprocessing would import the caller's program in it.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(Path(__file__).parents[3])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
        )

    def make(self, job: list[Any]) -> None:
        """Runs a job; raises what it raised there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = ""
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that populated {job[3]} ended (see above)")
        kind, message = json.loads(answer)
        if kind != "done":
            kinds = {"DataError": DataError, "OptionError": OptionError}
            raise kinds.get(kind, LmEvalExtError)(message)

    def kill(self) -> None:
        """Ends the process; an unfinished copy is lost."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()
