"""Shows that work on many machines loses nothing and asks nothing twice, whatever happens to it.

python -m bench.jobs slurm         6 models x 5 tasks on two nodes, with everything that goes wrong
python -m bench.jobs time-limit    a job that runs out of its time, to its end
python -m bench.jobs race          two runs started at once on one folder, 20 times
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

import psutil

# ruff: noqa: T201 (a script that prints)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import counting_server, tiny
from support.private_slurm import MISSING, PrivateSlurm, free_port, installed

COMMAND = str(Path(sys.executable).parent / "lm-eval-ext")
TASKS = "lieder_mini,magnifico_mini,cogs_mini,conceptual_mini,diner_mini"
LONG_S = 900
BEGUN = 15
"""Answers after which a model is in the middle of its work."""


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
        tokenizer = self.folder / "tokenizer"
        tiny.make_tokenizer(bos=False).save_pretrained(tokenizer)
        (self.folder / "models").mkdir()
        for number in range(1, count + 1):
            text = counting_server.model_file(self.server.url, tokenizer, f"m{number}")
            (self.folder / "models" / f"m{number}.yaml").write_text(text + more)

    def command(self, output: str, *options: str) -> list[str]:
        return [
            COMMAND, "run", "--models", "models", "--tasks", self.tasks, "--limit",
            str(self.limit), "--output", output, *options,
        ]  # fmt: skip

    def run(self, output: str, *options: str) -> int:
        return subprocess.run(
            self.command(output, *options), cwd=self.folder, check=False, stderr=subprocess.DEVNULL
        ).returncode

    def start(self, output: str, *options: str) -> "subprocess.Popen[bytes]":
        log = (self.folder / f"{output}.log").open("ab")
        return subprocess.Popen(
            self.command(output, *options), cwd=self.folder, stdout=log, stderr=log
        )

    def serial(self) -> None:
        """Evaluates all models one after the other, which the rest is compared with."""
        if self.run("serial"):
            raise WrongError("the serial run fails")
        self.expected = self.server.asked.copy()
        self.server.asked.clear()
        self.say(f"the serial run: {self.expected.total()} requests")

    def asked(self, model: str) -> int:
        return sum(n for (asked, _), n in self.server.asked.copy().items() if asked == model)

    def say(self, text: str) -> None:
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
    end = time.monotonic() + LONG_S
    while not condition():
        if time.monotonic() > end:
            raise WrongError(f"this did not happen in {LONG_S} s: {what}")
        time.sleep(0.1)


@contextmanager
def cluster(showing: Showing, nodes: int) -> Iterator[PrivateSlurm]:
    if not installed():
        raise WrongError(MISSING)
    slurm = PrivateSlurm(showing.folder / "slurm", nodes)
    os.environ["SLURM_CONF"] = str(slurm.config)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


def queue(slurm: PrivateSlurm, output: Path) -> dict[str, tuple[str, ...]]:
    """Of each model in the queue: job, state and node."""
    file = output / ".slurm" / "jobs.json"
    jobs = json.loads(file.read_text()) if file.exists() else {}
    rows = slurm.ask("squeue", "-h", "-r", "-o", "%i|%T|%N").splitlines()
    known = {row.partition("|")[0]: row.split("|") for row in rows}
    return {model: tuple(known[job]) for model, job in jobs.items() if job in known}


def show_slurm(folder: Path, server: counting_server.Counting) -> None:
    """Six models, five tasks, two nodes with two places each, and six mishaps."""
    showing = Showing(folder, server)
    showing.add_models(6, "resources: {cpus: 1, time: 60}\n")
    showing.serial()
    server.pause_s = 0.3
    out = folder / "out"
    with cluster(showing, 2) as slurm:
        waiting = showing.start("out", "--executor", "slurm", "--wait")

        def running(model: str) -> bool:
            return queue(slurm, out).get(model, ("", "", ""))[1] == "RUNNING"

        def in_the_middle(model: str, more: int = BEGUN) -> None:
            goal = showing.asked(model) + more
            until(lambda: running(model) and showing.asked(model) >= goal, f"{model} is evaluated")

        for model in ("m1", "m2", "m3", "m4"):
            in_the_middle(model, 1)
        os.kill(owner(out / "m1"), signal.SIGKILL)
        showing.say("m1: its job killed with -9")
        slurm.ask("scancel", "--signal=USR2", queue(slurm, out)["m2"][0])
        showing.say("m2: the signal that its time runs out")
        slurm.ask("scontrol", "requeue", queue(slurm, out)["m3"][0])
        showing.say("m3: put back into the queue")

        slurm.ask("scontrol", "update", "NodeName=a", "State=DRAIN", "Reason=showing")
        showing.say(f"node a: {slurm.ask('sinfo', '-h', '-n', 'a', '-o', '%T')}")
        slurm.end("slurmctld", signal.SIGKILL)
        showing.say("controller: killed with -9")
        time.sleep(10)
        slurm.start_controller()
        until(lambda: "|" in slurm.ask("squeue", "-h", "-o", "%i|%T"), "the controller answers")
        showing.say(f"controller: started again; {len(queue(slurm, out))} jobs in its queue")
        state = ("sinfo", "-h", "-n", "a", "-o", "%T")
        until(lambda: slurm.ask(*state) == "drained", "node a is drained")
        on_b = [model for model, row in queue(slurm, out).items() if row[2] == "b"]
        showing.say(f"node a: drained; on b: {', '.join(sorted(on_b))}")
        in_the_middle(on_b[0], 5)
        slurm.ask("scontrol", "update", "NodeName=b", "State=DOWN", "Reason=showing")
        showing.say("node b: down, with its jobs")
        slurm.ask("scontrol", "update", "NodeName=a", "State=RESUME")
        showing.say("node a: resumed")
        time.sleep(10)
        slurm.ask("scontrol", "update", "NodeName=b", "State=RESUME")
        showing.say("node b: resumed")
        status = waiting.wait(LONG_S)
        last = (folder / "out.log").read_text().strip().splitlines()[-1]
        showing.say(f"--wait ends with {status}: {last}")
        if status != 1 or "1 of 6 models failed: m1: " not in last:
            raise WrongError("it should name m1, and only m1")
        status = showing.start("out", "--executor", "slurm", "--wait").wait(LONG_S)
        showing.say(f"the same command again ends with {status}")
    showing.check("out", interruptions=4 + len(on_b))


def owner(folder: Path) -> int:
    """The process that works on a model."""
    (lock,) = folder.glob(".lock-*")
    return int(json.loads(lock.read_text())["pid"])


def show_time_limit(folder: Path, server: counting_server.Counting) -> None:
    """A job whose work takes longer than its time."""
    showing = Showing(folder, server, tasks="lieder_mini", limit=16)
    showing.add_models(1, "resources: {cpus: 1, time: 3}\n")
    showing.serial()
    server.pause_s = 1.0
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


def show_race(folder: Path, server: counting_server.Counting, rounds: int = 20) -> None:
    """Two runs at the same moment on one folder."""
    showing = Showing(folder, server, tasks="lieder_mini", limit=2)
    showing.add_models(2)
    showing.serial()
    server.pause_s = 0.0
    for number in range(1, rounds + 1):
        output = f"out{number}"
        both = [showing.start(output) for _ in range(2)]
        status = [one.wait(LONG_S) for one in both]
        done = (folder / f"{output}.log").read_text().count(": done in")
        showing.say(f"round {number}: status {status}, {done} evaluations")
        if status != [0, 0] or done != len(list((folder / "models").iterdir())):
            raise WrongError((folder / f"{output}.log").read_text())
        showing.check(output, interruptions=0)
        server.asked.clear()


def show_ray(folder: Path, server: counting_server.Counting) -> None:
    """Three models on a head and another node: a worker is killed, then the node."""
    showing = Showing(folder, server, tasks="lieder_mini,cogs_mini", limit=6)
    showing.add_models(3)
    showing.serial()
    server.pause_s = 0.3
    ray = str(Path(sys.executable).parent / "ray")
    address = f"127.0.0.1:{free_port()}"

    def start(*options: str) -> None:
        command = [ray, "start", *options]
        subprocess.run(command, check=True, capture_output=True)

    try:
        start("--head", f"--port={address.split(':')[1]}", "--num-cpus=0")
        start(f"--address={address}", "--num-cpus=3")
        waiting = showing.start("out", "--executor", "ray", "--address", address)
        until(lambda: all(showing.asked(f"m{n}") >= BEGUN for n in (1, 2, 3)), "all are evaluated")
        os.kill(owner(folder / "out" / "m1"), signal.SIGKILL)
        showing.say("m1: its worker killed with -9")
        raylet = psutil.Process(owner(folder / "out" / "m2")).parent()
        assert raylet is not None and raylet.name() == "raylet"
        raylet.kill()
        showing.say("the node of m2 and m3: its raylet killed with -9")
        start(f"--address={address}", "--num-cpus=3")
        showing.say("another node joins")
        status = waiting.wait(LONG_S)
        showing.say(f"the run ends with {status}")
        if status:
            raise WrongError((folder / "out.log").read_text())
    finally:
        end_ray(address)
    showing.check("out", interruptions=4)


def end_ray(address: str) -> None:
    """Ends the processes of our cluster, and no other's."""
    for process in psutil.process_iter(["cmdline"]):
        if any(address in word for word in process.info["cmdline"] or []):
            process.kill()


SHOWINGS = {
    "slurm": show_slurm,
    "time-limit": show_time_limit,
    "race": show_race,
    "ray": show_ray,
}


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
        except WrongError as error:
            sys.exit(f"not shown: {error}")


if __name__ == "__main__":
    main()
