"""Jobs of a real Slurm: a private cluster of one node, without accounting."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from support.private_slurm import NotStartedError, PrivateSlurm

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs import slurm
from lm_eval_ext.runs.job import SILENT, Reporter
from lm_eval_ext.runs.run import FailedError, Work, prepare

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("slurm")]

Submitted = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSlurm]:
    """A running cluster, whose configuration SLURM_CONF names."""
    made = PrivateSlurm(tmp_path_factory.mktemp("slurm"))
    patch = pytest.MonkeyPatch()
    patch.setenv("SLURM_CONF", str(made.config))
    try:
        made.start()
        yield made
    except NotStartedError as error:
        pytest.skip(str(error))
    finally:
        made.stop()
        patch.undo()


@pytest.fixture
def submitted(tmp_path: Path, cli: Submitted, warm: object) -> Submitted:
    models = tmp_path / "models"
    models.mkdir()
    (models / "sound.yaml").write_text("model: dummy\nresources: {time: 10, cpus: 1}\n")
    (models / "broken.yaml").write_text(
        "model: dummy\nlauncher: no-such-command\nresources: {time: 10, cpus: 1}\n"
    )

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        return cli(
            "run", "--models", str(models), "--tasks", "lieder_mini", "--limit", "2",
            "--output", str(tmp_path / "out"), "--executor", "slurm", *options,
        )  # fmt: skip

    return run


@pytest.mark.e2e
def test_jobs_are_submitted_once_resumed_and_explained(
    cluster: PrivateSlurm, submitted: Submitted, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(submitted) for _ in range(2)]
    numbers = []
    for one in both:
        assert one.result().returncode == 0, one.result().stderr
        numbers.append(dict(re.findall(r"(?m)^(\w+): \w+ \(job (\d+_\d)\)", one.result().stdout)))
    assert numbers[0].keys() == {"broken", "sound"}
    assert numbers[0] == numbers[1], "no model is submitted twice"

    sound = numbers[0]["sound"]
    for _ in range(600):
        if list(tmp_path.glob("out/sound/.lock-*")):
            break
        time.sleep(0.1)
    cluster.ask("scancel", "--signal=USR2", sound)  # as Slurm does before the time is over
    work = Work([tmp_path / "models"], "lieder_mini", tmp_path / "out", 2)
    with pytest.raises(FailedError, match="1 of 2 models failed: broken: launcher 'no-such-"):
        slurm.wait(lambda: slurm.states(prepare(work), work.output), SILENT, poll_s=0.2)
    assert len(list(tmp_path.glob("out/sound/results_*.json"))) == 1
    (log,) = tmp_path.glob(f"out/.slurm/{sound}_*.err")
    assert "this job is timed-out" in log.read_text()
    state = submitted("--status")
    assert "sound: done" in state.stdout
    assert "broken: failed" in state.stdout and "'no-such-command'" in state.stdout


def test_what_slurm_refuses_is_one_line(
    cluster: PrivateSlurm, submitted: Submitted, tmp_path: Path
) -> None:
    (tmp_path / "models" / "sound.yaml").write_text(
        "model: dummy\nresources: {partition: none-such}\n"
    )
    done = submitted()
    assert done.returncode == 1
    assert "Slurm refuses the jobs: sbatch: error: " in done.stderr.splitlines()[-1]
    assert "partition" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (90, 90), ("90", 90), ("90:30", 91), ("1:30:00", 90), ("0:00:01", 1), ("2-12", 3600),
        ("2-12:30", 3630), ("1-00:00:01", 1441),
    ],
)  # fmt: skip
def test_times_are_read_as_slurm_reads_them(text: str | int, expected: int) -> None:
    assert slurm.minutes(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-3", "2 h"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="use minutes, H:MM:SS"):
        slurm.minutes(text)


def test_resources_become_flags() -> None:
    given = {"gpus": 2, "cpus": 8, "memory": "40G", "time": "2:00:00", "partition": "long",
             "account": "us", "extra": {"constraint": "a100"}}  # fmt: skip
    assert slurm.parameters(given) == {
        "job_name": "lm-eval-ext", "time": 120, "gpus_per_node": 2, "cpus_per_task": 8,
        "mem": "40G", "partition": "long", "account": "us",
        "additional_parameters": {"requeue": True, "constraint": "a100"},
    }  # fmt: skip
    assert slurm.parameters({"gpus": 0}) == {
        "job_name": "lm-eval-ext", "time": slurm.DEFAULT_MINUTES,
        "additional_parameters": {"requeue": True},
    }  # fmt: skip


def test_what_slurm_holds_is_released_and_what_people_hold_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slurm holds a job that it could not launch, such as on a node that is not done with it."""
    not_launched = [("pending", "launch failed requeued held")]
    states = [
        ("pending", "Priority"), ("pending", "Resources"), *not_launched * 2, ("running", ""),
        *not_launched * 3, ("pending", "JobHeldUser"), ("pending", "JobHeldUser"),
        ("pending", "JobHeldAdmin"), ("done", ""),
    ]  # fmt: skip
    looks, said, released = iter(states), list[str](), list[str]()
    monkeypatch.setattr(slurm, "release", released.append)
    slurm.wait(
        lambda: [slurm.State("m", "7_1", *next(looks))],
        Reporter(said.append, lambda _: None),
        poll_s=0,
    )
    assert released == ["7_1"] * 3
    let_go = "m: released (job 7_1): launch failed requeued held"
    assert said == [
        "m: pending (job 7_1): Priority",
        let_go,
        let_go,
        "m: running (job 7_1)",
        let_go,
        "m: pending (job 7_1): launch failed requeued held; scontrol release 7_1 lets it go on",
        "m: pending (job 7_1): JobHeldUser; scontrol release 7_1 lets it go on",
        "m: pending (job 7_1): JobHeldAdmin",
        "m: done (job 7_1)",
    ]


class Executor:
    """Numbers arrays as Slurm does; ``said`` has each one's work and flags."""

    said: ClassVar[list[tuple[list[str], str]]] = []

    def __init__(self, **_: object) -> None:
        self.flags: dict[str, str] = {}

    def update_parameters(self, **flags: str) -> None:
        self.flags |= flags

    @contextmanager
    def batch(self) -> Iterator[None]:
        self.jobs: list[SimpleNamespace] = []
        yield
        self.said.append(([job.what for job in self.jobs], self.flags.get("dependency", "")))
        for number, job in enumerate(self.jobs):
            job.job_id = f"{len(self.said)}_{number}"

    def submit(self, what: slurm.Evaluation) -> SimpleNamespace:
        name = Path(what.work.models[0]).stem
        self.jobs.append(SimpleNamespace(what=f"{name} {what.work.shard}"))
        return self.jobs[-1]


def test_shards_are_jobs_of_their_own_and_the_last_one_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "_executor", lambda: Executor)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("model: dummy\n")
    work = Work([tmp_path / "a.yaml", tmp_path / "b.yaml"], "lieder_mini", tmp_path / "out")
    slurm.submit(work, prepare(work), 2, SILENT)
    assert Executor.said == [
        (["a 1/2", "a 2/2", "b 1/2", "b 2/2"], ""), (["a None", "b None"], "afterany:1"),
    ]  # fmt: skip
    kept = json.loads((tmp_path / "out" / ".slurm" / "jobs.json").read_text())
    assert kept == {"a": ["1_0", "1_1", "2_0"], "b": ["1_2", "1_3", "2_1"]}


def test_a_held_shard_is_the_state_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that waits for it would wait for ever."""
    (tmp_path / "m.yaml").write_text("model: dummy\n")
    (tmp_path / "out" / ".slurm").mkdir(parents=True)
    jobs = tmp_path / "out" / ".slurm" / "jobs.json"
    work = Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out")
    monkeypatch.setattr(
        slurm, "queue", lambda: {"7_0": ("running", ""), "7_1": ("pending", "JobHeldUser"),
                                 "8_0": ("pending", "Dependency")},
    )  # fmt: skip
    found = []
    for kept in ('{"m": ["7_0", "7_1", "8_0"]}', '{"m": ["7_0", "8_0"]}', '{"m": "7_0"}'):
        jobs.write_text(kept)
        (state,) = slurm.states(prepare(work), work.output)
        found.append((state.job, state.word, state.held))
    assert found == [("7_1", "pending", True), ("8_0", "pending", False), ("7_0", "running", False)]


def test_without_slurms_commands_nothing_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    work = Work([], "lieder_mini", tmp_path / "out")
    with pytest.raises(OptionError, match="there is no sbatch here; run this where"):
        slurm.submit(work, [], 1, SILENT)
    assert not work.output.exists()


def test_a_restarted_controller_is_waited_for() -> None:
    looks = iter(["", "running", "done"])
    said: list[str] = []

    def look() -> list[slurm.State]:
        word = next(looks)
        if not word:
            raise slurm.QueueError("squeue cannot be asked")
        return [slurm.State("m", "7", word)]

    def broken() -> list[slurm.State]:
        raise OptionError("a file is wrong")

    slurm.wait(look, Reporter(said.append, said.append), poll_s=0)
    with pytest.raises(OptionError, match="a file is wrong"):
        slurm.wait(broken, Reporter(said.append, said.append), poll_s=0)
    assert said == ["squeue cannot be asked", "m: running (job 7)", "1 running", "m: done (job 7)"]
