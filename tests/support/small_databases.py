"""A small database, limits that stop a query soon, and checks of verdicts, files and memory."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lm_eval_ext.sql import Executor, Limits, Verdict
from support.hostile_cases import Case

MIB = 1 << 20

TIGHT = Limits(
    timeout_s=0.5,
    max_rows=2_000,
    max_result_bytes=2_000_000,
    max_value_bytes=1_000_000,
    max_memory_bytes=64 * MIB,
)
PATIENT = replace(TIGHT, timeout_s=120.0)
"""For queries that another limit stops, or none: no machine is so slow or busy that they are late.
"""

PEOPLE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, age INTEGER, pay REAL);
INSERT INTO people VALUES
  (1, 'Ada', 36, 10.5), (2, 'Bob', 36, 20.25), (3, 'Cy', 41, 30.0), (4, 'Dee', NULL, 0.1),
  (5, 'Eve', 25, 0.2), (6, 'ada', 25, NULL);
CREATE TABLE pets (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES people(id), kind TEXT);
INSERT INTO pets VALUES (1, 1, 'cat'), (2, 1, 'dog'), (3, 3, 'cat'), (4, 5, 'owl');
CREATE VIEW adults AS SELECT * FROM people WHERE age > 30;
CREATE TRIGGER watch AFTER INSERT ON pets BEGIN DELETE FROM people; END;
"""
GOLD = "SELECT count(*) FROM people"
SLOW = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"


def state_of(folder: Path) -> dict[str, str]:
    """Return every file's hash, to see that nothing was changed and nothing added."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            hashes[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def score_one(
    executor: Executor, db_id: str, gold: str, predicted: str, *, semantics: str = "reference"
) -> Verdict:
    return next(executor.score([(db_id, gold, predicted)], semantics=semantics))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def pids(executor: Executor) -> list[int]:
    """Return the process ids of the workers that run."""
    return [worker.pid for worker in executor._pool._workers if worker is not None]


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process ever had; 0 where the system does not say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def check_hostile(case: Case, executor: Executor, folder: Path, memory: int) -> None:
    """A hostile prediction ends within its limits, and the next one is answered.

    Args:
        folder: What ``{folder}`` in the query means.
        memory: Bytes that no worker may reach.
    """
    verdict = score_one(executor, "people", GOLD, case.sql.replace("{folder}", str(folder)))
    assert verdict.status in case.statuses, verdict
    assert verdict.reason.isprintable()
    assert len(verdict.reason) <= 1_000
    assert all(peak_bytes(pid) < memory for pid in pids(executor))
    executor._verdicts.clear()  # ask the worker, not the memory
    assert score_one(executor, "people", GOLD, "SELECT max(id) FROM people").correct
