"""Shows that work on many machines loses nothing and asks nothing twice, whatever happens to it.

python -m bench.jobs slurm         6 models x 5 tasks on two nodes, with everything that goes wrong
python -m bench.jobs time-limit    a job that runs out of its time, to its end
python -m bench.jobs launch        a node that starts no job
python -m bench.jobs race          two commands started at once on one folder, 20 times
python -m bench.jobs ray           a worker and a node that are lost

Slurm and Ray are this machine's own. The models ask a server that counts; its answers depend on
model and prompt only, so each result must equal that of a serial run. The exit status is 1 if
something is lost, differs or is asked twice.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# ruff: noqa: T201 (a script that prints)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import counting_server, tiny
from support.private_slurm import NotStartedError, PrivateSlurm

COMMAND = str(Path(sys.executable).parent / "lm-eval-ext")
TASKS = "lieder_mini,magnifico_mini,cogs_mini,conceptual_mini,diner_mini"
LONG_S = 3600
_started: list["subprocess.Popen[bytes]"] = []


class WrongError(Exception):
    """What was to be shown does not hold."""


@dataclass
class Showing:
    """Models in a folder, the server that they ask, and what a serial run asked."""

    folder: Path
    server: counting_server.Counting
    tasks: str = TASKS
    limit: int = 6
    expected: Counter[tuple[str, str]] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    def add_models(self, count: int, more: str = "") -> None:
        """Writes files of models m1, m2, and so on."""
        tokenizer = self.folder / "tokenizer"
        tiny.make_tokenizer(bos=False).save_pretrained(tokenizer)
        (self.folder / "models").mkdir()
        for number in range(1, count + 1):
            text = counting_server.model_file(self.server.url, tokenizer, f"m{number}")
            (self.folder / "models" / f"m{number}.yaml").write_text(text + more)

    def start(self, output: str, *options: str) -> "subprocess.Popen[bytes]":
        """Starts a run, whose output goes to ``OUTPUT.log``."""
        log = (self.folder / f"{output}.log").open("ab")
        command = [
            COMMAND, "run", "--models", "models", "--tasks", self.tasks, "--limit",
            str(self.limit), "--output", output, *options,
        ]  # fmt: skip
        _started.append(subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log))
        return _started[-1]

    def serial(self) -> None:
        """Evaluates all models one after the other, which the rest is compared with."""
        if self.start("serial").wait():
            raise WrongError("the serial run fails")
        self.expected = self.server.asked.copy()
        self.server.asked.clear()
        self.say(f"the serial run: {self.expected.total()} requests")

    def asked(self, model: str) -> int:
        """How many answers a model has given."""
        return sum(n for (asked, _), n in self.server.asked.copy().items() if asked == model)

    def say(self, text: str) -> None:
        """Prints a line with the time since the start."""
        print(f"{time.monotonic() - self.started:6.0f} s  {text}", flush=True)

    def check(self, output: str, interruptions: int) -> None:
        """Compares an output with that of the serial run.

        Args:
            output: Its folder.
            interruptions: How often an answer may have been on its way to a process that was ended.

        Raises:
            WrongError: If results lack or differ, or more was asked twice.
        """
        for model in sorted(path.stem for path in (self.folder / "models").iterdir()):
            serial, other = (found(self.folder / one / model) for one in ("serial", output))
            if len(other) != len(serial):
                raise WrongError(f"{model}: {len(other)} of {len(serial)} results and samples")
            if different := [name for name in serial if serial[name] != other[name]]:
                raise WrongError(f"{model}: {different} differ from the serial run's")
        if left := list((self.folder / output).rglob(".part-*")):
            raise WrongError(f"unfinished: {left}")
        twice = (self.server.asked - self.expected).total()
        self.say(
            f"all results and samples equal the serial run's; {self.server.asked.total()} "
            f"requests, {twice} of them a second time"
        )
        if twice > interruptions:
            raise WrongError(f"{twice} requests were asked twice, in {interruptions} interruptions")


def found(folder: Path) -> dict[str, Any]:
    """What the results and samples of a model's folder say, without dates and times."""
    said: dict[str, Any] = {}
    for path in sorted(folder.glob("results_*.json")):
        content = json.loads(path.read_text())
        for task, result in content["results"].items():
            facts = (content[part].get(task) for part in ("configs", "versions", "n-samples"))
            if f"results of {task}" in said:
                raise WrongError(f"{folder}: two results of {task}")
            said[f"results of {task}"] = [result, *facts]
    for path in sorted(folder.glob("samples_*.jsonl")):
        name = path.name.rpartition("_")[0]
        said[name] = sorted(path.read_text().splitlines())
    return said


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for something."""
    end = time.monotonic() + LONG_S
    while not condition():
        if time.monotonic() > end:
            raise WrongError(f"this did not happen in {LONG_S} s: {what}")
        time.sleep(0.1)


@contextmanager
def cluster(showing: Showing, nodes: int, more: str = "") -> Iterator[PrivateSlurm]:
    """A private Slurm in the showing's folder."""
    slurm = PrivateSlurm(showing.folder / "slurm", nodes, more)
    os.environ["SLURM_CONF"] = str(slurm.config)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


def queue(slurm: PrivateSlurm, output: Path) -> dict[str, tuple[str, ...]]:
    """Of each model in the queue: job, state, node and reason."""
    file = output / ".slurm" / "jobs.json"
    jobs = json.loads(file.read_text()) if file.exists() else {}
    rows = slurm.ask("squeue", "-h", "-r", "-o", "%i|%T|%N|%r").splitlines()
    known = {row.partition("|")[0]: row.split("|") for row in rows}
    return {model: tuple(known[one]) for model, (one,) in jobs.items() if one in known}


def job_of(model: str, output: Path) -> str:
    """A model's job."""
    (job,) = json.loads((output / ".slurm" / "jobs.json").read_text())[model]
    return str(job)


def show_slurm(folder: Path, server: counting_server.Counting) -> None:
    """Six models, five tasks, two nodes with two places each, and six mishaps."""
    showing = Showing(folder, server)
    showing.add_models(6, "resources: {cpus: 1, time: 60}\n")
    showing.serial()
    server.pause_s = 0.6
    out = folder / "out"
    with cluster(showing, 2) as slurm:
        waiting = showing.start("out", "--executor", "slurm", "--wait")
        first = [f"m{number}" for number in range(1, 5)]
        until(lambda: all(showing.asked(model) for model in first), "four are evaluated")
        os.kill(owner(out / "m1"), signal.SIGKILL)
        showing.say("m1: its job killed with -9")
        # It would wait until the job is there again.
        subprocess.Popen(["scancel", "--signal=USR2", job_of("m2", out)])
        showing.say("m2: the signal that its time runs out")
        said = slurm.ask("scontrol", "requeue", job_of("m3", out))
        showing.say(f"m3: put back into the queue {said}")

        slurm.kill_controller()
        showing.say("controller: killed with -9")
        time.sleep(10)
        slurm.start_controller()
        until(lambda: queue(slurm, out), "the controller answers")
        showing.say(f"controller: started again; {len(queue(slurm, out))} jobs in its queue")
        slurm.ask("scontrol", "update", "NodeName=a", "State=DRAIN", "Reason=showing")
        look = ("sinfo", "-h", "-n", "a", "-o", "%T")
        showing.say(f"node a: {slurm.ask(*look)}")
        lost = [one for one, row in queue(slurm, out).items() if row[1:3] == ("RUNNING", "b")]
        slurm.ask("scontrol", "update", "NodeName=b", "State=DOWN", "Reason=showing")
        showing.say(f"node b: down, with its jobs: {', '.join(sorted(lost))}")
        until(lambda: slurm.ask(*look) == "drained", "node a is drained")
        showing.say("node a: drained")
        for node in slurm.nodes:
            slurm.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        showing.say("nodes a and b: resumed")
        status = waiting.wait(LONG_S)
        said = (folder / "out.log").read_text().strip().splitlines()
        for line in said:
            if ": released (job " in line:
                showing.say(f"--wait: {line}")
        last = said[-1]
        showing.say(f"--wait ends with {status}: {last}")
        if status != 1 or "1 of 6 models failed: m1: " not in last:
            raise WrongError("it should name m1, and only m1")
        status = showing.start("out", "--executor", "slurm", "--wait").wait(LONG_S)
        showing.say(f"the same command again ends with {status}")
    showing.check("out", interruptions=3 + len(lost))


def owner(folder: Path) -> int:
    """The process that works on a model."""
    (lock,) = folder.glob(".lock-*")
    return int(json.loads(lock.read_text())["pid"])


def show_time_limit(folder: Path, server: counting_server.Counting) -> None:
    """A job whose work takes longer than its time."""
    showing = Showing(folder, server, tasks="lieder_mini", limit=16)
    showing.add_models(1, "resources: {cpus: 1, time: 5}\n")
    showing.serial()
    server.pause_s = 2.0
    with cluster(showing, 1) as slurm:
        waiting = showing.start("out", "--executor", "slurm", "--wait")
        seen, before = [], ""
        while waiting.poll() is None:
            now = slurm.ask("squeue", "-h", "-r", "-o", "%i %T %r")
            if now != before:
                showing.say(f"{now or 'the queue is empty'}; {showing.asked('m1')} answers")
                seen += [now] if "BeginTime" in now else []
            before = now
            time.sleep(0.5)
        showing.say(f"--wait ends with {waiting.returncode}; {len(seen)} times back in the queue")
    if waiting.returncode or not seen:
        print((folder / "out.log").read_text())
        raise WrongError("it should have run out of its time and ended well")
    showing.check("out", interruptions=len(seen))


def show_launch(folder: Path, server: counting_server.Counting) -> None:
    """A node on which nothing starts: Slurm drains it, and holds the job until it is released."""
    showing = Showing(folder, server, tasks="lieder_mini", limit=2)
    showing.add_models(1)
    showing.serial()
    prolog = folder / "prolog"
    prolog.write_text(f"#!/bin/sh\n! mkdir '{folder}/failed' 2>/dev/null\n")  # fails once
    prolog.chmod(0o755)
    with cluster(showing, 2, f"Prolog={prolog}\n") as slurm:
        status = showing.start("out", "--executor", "slurm", "--wait").wait(LONG_S)
        for line in (folder / "out.log").read_text().splitlines():
            showing.say(f"--wait: {line}")
        nodes = slurm.ask("sinfo", "-N", "-h", "-o", "%N %T").splitlines()
        showing.say(f"--wait ends with {status}; nodes: {', '.join(nodes)}")
    if status or "a drained" not in nodes:
        raise WrongError("node a should be drained, and the job end well on b")
    showing.check("out", interruptions=0)


def show_race(folder: Path, server: counting_server.Counting, rounds: int = 20) -> None:
    """Two commands started at the same moment on one folder."""
    showing = Showing(folder, server, tasks="lieder_mini", limit=2)
    showing.add_models(2)
    showing.serial()
    for number in range(1, rounds + 1):
        out = f"out{number}"
        both = [showing.start(out) for _ in range(2)]
        status = [one.wait(LONG_S) for one in both]
        said = (folder / f"{out}.log").read_text()
        showing.say(
            f"round {number}: exit status {status}, {said.count(': done in')} evaluations, "
            f"{said.count('waiting for another run')} waited"
        )
        if status != [0, 0] or said.count(": done in") != len(list((folder / "models").iterdir())):
            raise WrongError(f"each model should be evaluated once, and both end well: {said}")
        showing.check(out, interruptions=0)
        server.asked.clear()


def show_ray(folder: Path, server: counting_server.Counting) -> None:
    """Three models on a head and another node: a worker is killed, then the node."""
    from ray.cluster_utils import Cluster

    showing = Showing(folder, server, tasks="lieder_mini,cogs_mini", limit=6)
    showing.add_models(3)
    showing.serial()
    server.pause_s = 0.6
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        first = nodes.add_node(num_cpus=3)
        waiting = showing.start("out", "--executor", "ray", "--address", nodes.address)
        models = ("m1", "m2", "m3")
        until(lambda: all(showing.asked(one) for one in models), "all are evaluated")
        nodes.add_node(num_cpus=3)
        showing.say("all are evaluated; another node joins")
        os.kill(owner(folder / "out" / "m1"), signal.SIGKILL)
        showing.say("m1: its worker killed with -9")
        goal = showing.asked("m1") + 5
        until(lambda: showing.asked("m1") >= goal, "m1 is evaluated again")
        showing.say(f"m1: goes on; answers: {[showing.asked(one) for one in models]}")
        nodes.remove_node(first, allow_graceful=False)
        showing.say("the first node: all of its processes killed with -9")
        status = waiting.wait(LONG_S)
        showing.say(f"the run ends with {status}")
        if status:
            raise WrongError((folder / "out.log").read_text())
    finally:
        nodes.shutdown()
    showing.check("out", interruptions=4)


SHOWINGS = {
    "slurm": show_slurm, "time-limit": show_time_limit, "launch": show_launch, "race": show_race,
    "ray": show_ray,
}  # fmt: skip


def main() -> None:
    """Shows one of them."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.jobs", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("what", choices=SHOWINGS)
    parser.add_argument("--keep", type=Path, help="leave everything in this new folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, counting_server.serving() as server:
        folder = options.keep.resolve() if options.keep else Path(made)
        folder.mkdir(parents=True, exist_ok=folder == Path(made))
        try:
            SHOWINGS[options.what](folder, server)
        except (WrongError, NotStartedError, subprocess.TimeoutExpired) as error:
            sys.exit(f"not shown: {error}")
        finally:
            for one in _started:
                if one.poll() is None:
                    one.kill()


if __name__ == "__main__":
    main()
