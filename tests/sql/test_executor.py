"""The executor: order, reproducibility, crashes and limits, single verdicts, plain queries."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.small_databases import GOLD, PATIENT, SLOW, TIGHT, pids, score_one, wait_for

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Databases, Example, Executor, Limits, Place, QueryError, Verdict
from lm_eval_ext.sql.pool import Job, WorkerProcess, _warn_of_unlimited_memory
from lm_eval_ext.sql.values import WorkerMessage

pytestmark = pytest.mark.slow


def test_examples_are_read_as_verdicts_are_taken_and_others_run_in_between(
    executor: Executor,
) -> None:
    read = 0

    def endless() -> Iterator[Example]:
        nonlocal read
        while True:
            read += 1
            yield Example("people", GOLD, f"SELECT {read}")

    verdicts = executor.score(endless())
    for number in range(1, 9):
        assert next(verdicts).correct == (number == 6)
        assert executor.query("people", "SELECT name FROM people WHERE id = 1").rows == [("Ada",)]
        assert score_one(executor, "flat", "SELECT 1", f"SELECT {number} / {number}").correct
    assert 8 <= read < 10_000
    verdicts.close()  # type: ignore[attr-defined]
    assert score_one(executor, "people", GOLD, "SELECT 5 + 1").correct


def test_the_same_row_is_run_once(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[Job] = []
    submit = executor._pool.submit

    def note_and_submit(job: Job) -> None:
        submitted.append(job)
        submit(job)

    monkeypatch.setattr(executor._pool, "submit", note_and_submit)
    drawn = executor.score([("people", GOLD, "SELECT abs(random()) % 2 + 6")] * 200)
    assert len({verdict.status for verdict in drawn}) == len(submitted) == 1


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("SIGKILL", "prediction_too_large"),  # as the system's out-of-memory killer does
        ("SIGSEGV", "prediction_error"),
        ("SIGABRT", "prediction_error"),
    ],
)
def test_a_query_whose_workers_die_is_at_fault(
    databases: Path, monkeypatch: pytest.MonkeyPatch, how: str, status: str
) -> None:
    killed: list[int] = []
    take = WorkerProcess.take

    def take_and_kill(worker: WorkerProcess, message: WorkerMessage) -> None:
        """Kills two workers: the first after one verdict, the next one after the gold."""
        take(worker, message)
        if len(killed) < 2 and message.kind == ("prediction" if killed else "done"):
            killed.append(worker.pid)
            os.kill(worker.pid, getattr(signal, how))

    monkeypatch.setattr(WorkerProcess, "take", take_and_kill)
    with Executor(databases, workers=1, limits=PATIENT) as executor:
        rows = [("people", GOLD, sql) for sql in ("SELECT 6", SLOW, "SELECT 3 + 3", "SELECT 7")]
        statuses = [v.status for v in executor.score(rows)]
        assert statuses == ["correct", status, "correct", "wrong"]
        assert len(killed) == 2
        assert not set(killed) & set(pids(executor))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_a_signal_to_all_processes_of_a_job_is_no_verdict(
    databases: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Slurm signals a job's every process; submitit, its parent, may ignore that for seconds."""
    signalled: list[int] = []
    take = WorkerProcess.take

    def take_and_signal(worker: WorkerProcess, message: WorkerMessage) -> None:
        take(worker, message)
        signalled.append(worker.pid)
        os.kill(worker.pid, getattr(signal, name))

    monkeypatch.setattr(WorkerProcess, "take", take_and_signal)
    with Executor(databases, workers=1, limits=PATIENT) as executor:
        for _ in range(3):
            assert score_one(executor, "people", GOLD, "SELECT 6").correct
            executor._verdicts.clear()
        assert len(signalled) > 3
        assert {*signalled} == {*pids(executor)}, "the worker lives on"


def test_a_worker_that_dies_while_idle_is_nobodys_fault(databases: Path) -> None:
    with Executor(databases, workers=1, limits=PATIENT) as executor:
        for _ in range(5):
            assert score_one(executor, "people", GOLD, "SELECT 6").correct
            executor._verdicts.clear()
            (worker,) = executor._pool._workers
            assert worker is not None
            worker._process.kill()
            worker._process.wait()
            executor.query("people", "SELECT 1")


@pytest.mark.parametrize("missing", ["resource", "/proc"])
def test_a_system_without_limits_of_memory_is_named_once(
    databases: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    missing: str,
) -> None:
    """Windows has no module `resource`, and macOS no /proc."""
    platform = {"resource": "win32", "/proc": "darwin"}[missing]
    monkeypatch.setattr("sys.platform", platform)
    if missing == "resource":
        monkeypatch.setitem(sys.modules, "resource", None)
    else:
        monkeypatch.setattr("lm_eval_ext.sql.worker._MEMORY_FILE", Path("/no/such/file"))
    _warn_of_unlimited_memory.cache_clear()
    try:
        with Executor(databases), Executor(databases):
            pass
    finally:
        _warn_of_unlimited_memory.cache_clear()
    (record,) = caplog.records
    assert "without a limit of the system on their memory" in record.getMessage()
    assert f"(this is {platform})" in record.getMessage()


DEFECT = """
import sys; sys.path.append(sys.argv[1]); from lm_eval_ext.sql import worker
from lm_eval_ext.sql.engines.sqlite import SQLiteEngine
def run(*_): raise KeyError('defect')
SQLiteEngine.run = run; worker.main()
"""


@pytest.mark.parametrize(
    ("boot", "message"), [("raise SystemExit(3)", "do not start"), (DEFECT, "KeyError: 'defect'")]
)
def test_a_defect_in_a_worker_is_not_a_verdict(
    databases: Path, monkeypatch: pytest.MonkeyPatch, boot: str, message: str
) -> None:
    monkeypatch.setattr("lm_eval_ext.sql.pool._BOOT", boot)
    with Executor(databases) as executor, pytest.raises(RuntimeError, match=message):
        executor.query("people", "SELECT 1")


@pytest.mark.parametrize(
    "db_id",
    ["nobody", "", ".", "..", "../people", "people/people", "people/people.sqlite", "/etc/passwd",
     "people\0", "people.sqlite", "PEOPLE/../people", "\ud800", "x" * 10_000, "*", "people?a=b"],
)  # fmt: skip
def test_ids_that_are_no_database(executor: Executor, db_id: str) -> None:
    assert score_one(executor, db_id, GOLD, GOLD).status == "database_missing"
    with pytest.raises(DataError, match="no database"):
        executor.query(db_id, "SELECT 1")


@pytest.mark.parametrize(
    ("db_id", "name"),
    [
        ("mixed_case", "Mixed_Case/Mixed_Case.sqlite"),
        ("MIXED_CASE", "Mixed_Case/Mixed_Case.sqlite"),
        ("flat", "flat.db"),
        ("100% a?b#c", "100% a?b#c.sqlite"),
    ],
)
def test_ids_in_any_case_and_odd_file_names(executor: Executor, db_id: str, name: str) -> None:
    assert executor.query(db_id, "SELECT a FROM t").rows == [(name,)]


def test_files_that_are_no_database(executor: Executor) -> None:
    for db_id in ("broken", "empty"):
        assert score_one(executor, db_id, GOLD, GOLD).status == "gold_error"
    assert score_one(executor, "empty", "SELECT 1", "SELECT 1").correct


def test_a_file_that_vanishes_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "gone.sqlite"
    path.touch()
    with Executor(tmp_path, limits=TIGHT) as executor:
        path.unlink()
        verdict = score_one(executor, "gone", "SELECT 1", "SELECT 1")
    assert (verdict.status, "unable to open" in verdict.reason) == ("gold_error", True)
    assert list(tmp_path.iterdir()) == []


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    for name in ("Db", "dB"):
        (tmp_path / f"{name}.sqlite").touch()
    if len(list(tmp_path.iterdir())) < 2:
        pytest.skip("this file system knows no case")
    databases = Databases(tmp_path)
    assert databases.find("dB") == Place("sqlite", str(tmp_path / "dB.sqlite"))
    with pytest.raises(DataError, match="has both Db and dB"):
        databases.find("db")


def test_the_folder_wins_over_the_flat_file_and_sqlite_over_db(tmp_path: Path) -> None:
    """And no rows in a write-ahead log are passed over."""
    (tmp_path / "a").mkdir()
    for name in ("a.db", "a.sqlite", "a/a.db", "a/a.sqlite3", "a/other.sqlite"):
        (tmp_path / name).touch()
    databases = Databases(tmp_path)
    assert databases.find("A") == Place("sqlite", str(tmp_path / "a/a.sqlite3"))
    (tmp_path / "a/a.sqlite3-wal").write_bytes(b"rows")
    with pytest.raises(DataError, match=r"unmerged changes in a\.sqlite3-wal"):
        databases.find("a")


def test_query(executor: Executor, impatient: Executor, databases: Path) -> None:
    rows = executor.query("people", "SELECT id AS number, name FROM people WHERE age > 40")
    assert rows == (("number", "name"), [(3, "Cy")])
    assert executor.query(databases / "flat.db", "SELECT a FROM t").rows == [("flat.db",)]
    with pytest.raises(QueryError, match=r"no such column: nix \(in the query: SELECT nix\)") as e:
        executor.query("people", "SELECT nix")
    assert e.value.failure.kind == "error"
    with pytest.raises(QueryError) as e:
        impatient.query("people", SLOW)
    assert e.value.failure.kind == "timeout"
    with pytest.raises(DataError, match="no database"):
        executor.query(databases / "nobody.sqlite", "SELECT 1")
    with pytest.raises(DataError, match="cannot read the folder"):
        Executor(databases / "nowhere")


def test_bytes_that_are_no_text_are_told_apart(executor: Executor) -> None:
    rows = executor.query("bytes", "SELECT a FROM t ORDER BY id").rows
    values = [value for (value,) in rows]
    assert values[:3] == ["a\udcffb", "a\udcfeb", b"a\xffb"]
    assert values[4:] == ["a\0b", "a"]
    assert len(set(values)) == 6


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT stdev(age) FROM people", (209.2 / 4) ** 0.5),
        ("SELECT stdev(age) FROM people WHERE id = 1", None),
        ("SELECT stdev(age) FROM people WHERE 0", None),
        ("SELECT stdev(x) FROM (SELECT '1a' x UNION ALL SELECT '3' UNION ALL SELECT NULL)", 2**0.5),
        ("SELECT stdev(x) FROM (SELECT 9e999 x UNION ALL SELECT 1)", None),
        ("SELECT stdev(1000000000 + id) FROM people", 3.5**0.5),
        ("SELECT sum(value) FROM json_each('[1, 2]')", 3),
        ("SELECT name FROM people ORDER BY length(name), name LIMIT 1", "Cy"),
        ("SELECT pow(2, 3)", 8.0),
    ],
)
def test_functions(executor: Executor, sql: str, expected: object) -> None:
    ((value,),) = executor.query("people", sql).rows
    assert value == pytest.approx(expected)


def test_full_text_tables_of_the_database_can_be_read(executor: Executor) -> None:
    sql = "SELECT body FROM notes WHERE notes MATCH 'fox'"
    assert executor.query("search", sql).rows == [("red fox",)]


SCRIPT = """
import sys
from lm_eval_ext.sql import Executor, Limits
executor = Executor(sys.argv[1], workers=2, limits=Limits(timeout_s=5000))
rows = [("people", "SELECT 6", "SELECT 6"), ("people", "SELECT 6", sys.argv[2])]
verdicts = executor.score(rows)
print(next(verdicts).status, *(one.pid for one in executor._pool._workers if one), flush=True)
if len(sys.argv) > 3:
    next(verdicts)
"""


def stat(pid: int) -> list[str]:
    """Return the system's entries on a process: its state and, as the twelfth, its time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for counts as ended."""
    return stat(pid)[:1] in ([], ["Z"])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("how", ["end", "SIGINT", "SIGTERM", "SIGKILL"])
def test_no_worker_outlives_its_parent(databases: Path, how: str) -> None:
    """Not even in the middle of a query; and a script needs no main guard."""
    busy = [] if how == "end" else ["wait"]
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(databases), SLOW, *busy],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    status, *pids = parent.stdout.readline().split()
    assert status == "correct"
    if how != "end":
        before = {pid: int(stat(int(pid))[11]) for pid in pids}
        wait_for(lambda: any(int(stat(int(pid))[11]) > before[pid] + 5 for pid in pids))
        parent.send_signal(getattr(signal, how))
    parent.wait(300)
    parent.stdout.close()
    wait_for(lambda: all(gone(int(pid)) for pid in pids))
    assert "EOFError" not in parent.stderr.read()
    parent.stderr.close()


def test_a_worker_loads_nothing_heavy() -> None:
    code = "import sys, lm_eval_ext.sql.worker; print(*sys.modules)"
    root = Path(__file__).resolve().parents[2]
    output = subprocess.check_output([sys.executable, "-S", "-c", code], text=True, cwd=root)
    tops = {name.partition(".")[0] for name in output.split()}
    assert tops <= {*sys.stdlib_module_names, "lm_eval_ext", "__main__"}


@pytest.mark.parametrize("value", ["printf('%.9000c', 'x')", "zeroblob(9000)"])
def test_the_bytes_of_all_values_are_limited(executor: Executor, value: str) -> None:
    steps = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT {})"
    verdicts = [
        score_one(executor, "people", GOLD, f"{steps.format(size)} SELECT {value} FROM r")
        for size in (200, 300)
    ]
    too_large = Verdict("prediction_too_large", "the result has over 2,000,000 bytes")
    assert verdicts == [Verdict("wrong", "200 rows instead of 1: none right"), too_large]


STEPS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 20000)"


@pytest.mark.parametrize("semantics", ["strict", "sets"])
def test_many_floats_that_differ_in_the_last_bit(databases: Path, semantics: str) -> None:
    """A right answer of 20,000 rows is right, and a wrong one is wrong, within the limits."""
    gold = f"{STEPS} SELECT 0.1 + 0.2 FROM r"
    right = f"{STEPS} SELECT 0.3 FROM r"
    wrong = f"{STEPS} SELECT iif(n = 7, 0.31, 0.3) FROM r"
    # The default limits, but for the time, which depends on the machine.
    limits = Limits(timeout_s=PATIENT.timeout_s)
    with Executor(databases, workers=1, limits=limits) as executor:
        verdicts = [
            score_one(executor, "people", gold, predicted, semantics=semantics)
            for predicted in (right, wrong)
        ]
    assert verdicts == [Verdict("correct"), Verdict("wrong", "1 of 20,000 rows wrong")]
