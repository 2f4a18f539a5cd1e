"""Jobs of a real Slurm: a private cluster of one node, without accounting."""

import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.commands import until
from support.databases import written
from support.private_slurm import PrivateSlurm

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs import slurm
from lm_eval_ext.runs.run import Reporter, Work, prepare

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("slurm"), pytest.mark.long]

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"

Submitted = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSlurm]:
    """A running cluster, whose configuration SLURM_CONF names."""
    slurm_cluster = PrivateSlurm(tmp_path_factory.mktemp("slurm"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(slurm_cluster.config))
        try:
            slurm_cluster.start()
            yield slurm_cluster
        finally:
            slurm_cluster.stop()


@pytest.fixture
def submitted(tmp_path: Path, cli: Submitted) -> Submitted:
    models = tmp_path / "models"
    models.mkdir()
    (models / "sound.yaml").write_text("model: dummy\nresources: {time: 10, cpus_per_task: 1}\n")

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        return cli(
            "run", "--models", str(models), "--tasks", "lieder_mini,cogs_mini_id", "--limit", "2",
            "--output", str(tmp_path / "out"), "--executor", "slurm", *options, cold=True,
        )  # fmt: skip

    return run


@pytest.mark.e2e
def test_jobs_are_submitted_once_and_go_on_after_they_were_put_back(
    cluster: PrivateSlurm, submitted: Submitted, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        submissions = [pool.submit(submitted) for _ in range(2)]
    commands = [command.result() for command in submissions]
    assert [command.returncode for command in commands] == [0, 0], commands
    lines = "".join(command.stderr for command in commands)
    numbers = dict(re.findall(r"sound, (\w+): submitted as job (\d+)", lines))
    assert numbers.keys() == {"lieder_mini", "cogs_mini_id"}
    assert lines.count("submitted as job") == 2, "no task is submitted twice"
    assert len(re.findall(r"sound, \w+: \w+ \(job \d+", lines)) == 2, "the other one says so"

    out = tmp_path / "out"
    log = out / "sound" / "cache" / "lieder_mini.log"
    until(log.exists, "the start of the job")
    cluster.ask("scancel", "--signal=USR2", numbers["lieder_mini"])  # as before its time is over
    until(lambda: len(list(out.glob("sound/results_*.json"))) == 2, "two results")
    (error,) = out.glob(f".slurm/{numbers['lieder_mini']}_*.err")
    assert "this job is timed-out" in error.read_text()
    until(lambda: not cluster.ask("squeue", "--noheader"), "an empty queue")
    done = submitted()
    assert (done.returncode, done.stderr.strip()) == (0, "nothing to do")


@pytest.mark.e2e
@pytest.mark.parametrize("resources", ["{partition: none-such}", "{no_such_partition: 2}"])
def test_resources_that_slurm_refuses_are_one_line(
    cluster: PrivateSlurm, submitted: Submitted, tmp_path: Path, resources: str
) -> None:
    (tmp_path / "models" / "sound.yaml").write_text(f"model: dummy\nresources: {resources}\n")
    done = submitted()
    assert done.returncode == 1
    assert "lm-eval-ext: error: Slurm" in done.stderr.splitlines()[-1]
    assert "partition" in done.stderr.splitlines()[-1]


@pytest.mark.e2e
def test_predictions_are_judged_in_parts_and_a_killed_one_is_repeated_alone(
    cluster: PrivateSlurm, cli: Submitted, tmp_path: Path
) -> None:
    """One part ends at once; the other is killed while a query runs to its limit of time."""
    database = written(
        tmp_path / "shop.sqlite", "CREATE TABLE item (id); INSERT INTO item VALUES (1)"
    )
    rows = ["gold_sql,predicted_sql"]
    for query in ("SELECT 1", "SELECT 2", "SELECT id FROM item"):
        rows += [f"SELECT id FROM item,{query}", f"SELECT count(*) FROM item,{query}"]
    rows.append(f"SELECT id FROM item,{ENDLESS}")
    predictions = tmp_path / "predictions.csv"
    predictions.write_text("\n".join(rows) + "\n")
    undivided, divided = tmp_path / "undivided.csv", tmp_path / "divided.csv"

    def score(out: Path, *options: str) -> "subprocess.CompletedProcess[str]":
        return cli(
            "sql-score", "--databases", str(database), "--predictions", str(predictions),
            "--output", str(out), "--timeout", "10", "--workers", "1", *options, cold=True,
        )  # fmt: skip

    def score_by_slurm() -> "subprocess.CompletedProcess[str]":
        return score(divided, "--executor", "slurm", "--parts", "2", "--resources", '{"time": 10}')

    first = score_by_slurm()
    numbers = re.findall(r"part \d of 2: submitted as job (\d+)", first.stderr)
    assert (first.returncode, len(numbers)) == (0, 2), first

    def verdicts(part: int) -> int:
        files = tmp_path.glob(f"divided.csv.*.{part}-of-2.part")
        return sum(file.read_text().count("{") for file in files)

    until(lambda: verdicts(1) >= 3 and verdicts(2) == 3, "the jobs come to the endless query")
    cluster.ask("scancel", "--signal=KILL", "--full", numbers[0])
    until(lambda: not cluster.ask("squeue", "--noheader"), "an empty queue")
    assert not divided.exists()
    again = score_by_slurm()
    assert re.findall(r"part (\d) of 2: submitted", again.stderr) == ["1"], again
    until(lambda: not cluster.ask("squeue", "--noheader"), "an empty queue")

    joined = score_by_slurm()
    assert (joined.returncode, joined.stdout.splitlines()[0]) == (
        0, "accuracy: 57.14 % (4 of 7 rows scored)",
    ), joined  # fmt: skip
    assert score(undivided).returncode == 0
    assert divided.read_bytes() == undivided.read_bytes()
    assert not list(tmp_path.glob("*.part"))
    once_more = score_by_slurm()
    assert "divided.csv exists; remove it, or name another output" in once_more.stderr


def test_without_slurms_commands_nothing_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.yaml").write_text("model: dummy\n")
    work = Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out")
    jobs = prepare(work)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="there is no squeue here; run this where"):
        slurm.submit(work, jobs, Reporter(print, print))
