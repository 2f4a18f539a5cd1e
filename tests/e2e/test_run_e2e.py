"""``lm-eval-ext run`` as users meet it: interrupted, killed, with a model that fails."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support.commands import Command, run_here, until
from support.failing_server import FailingServer, model_file, serving

from lm_eval_ext import _autoload
from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.runs import child, run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

LONG_S = 900
COMMAND = str(Path(sys.executable).parent / "lm-eval-ext")
REQUESTS = 24
"""The requests of two documents of lieder_mini."""


WORDS = [
    "run",
    "--models",
    "served.yaml",
    "--tasks",
    "lieder_mini",
    "--output",
    "out",
    "--limit",
    "2",
]
"""The command line of a run of the model that a server of the tests serves."""


def serve_all(_request_number: int) -> str:
    """Let no request fail."""
    return ""


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process is gone, or its parent has not yet asked how it ended."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def unfinished_folders(output: Path) -> list[Path]:
    """Return the folders of evaluations that have not ended."""
    return list(output.rglob(".part-*"))


def start_and_wait(
    server: FailingServer, answers: int, folder: Path, python_path: str
) -> "subprocess.Popen[str]":
    """Start a run in a process of its own; return when it has so many answers, and no more come."""

    def hold_further_requests(_request_number: int) -> str:
        return "waits" if len(set(server.served)) >= answers else ""

    server.plan = hold_further_requests
    process = subprocess.Popen(
        [COMMAND, *WORDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": python_path},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: len(set(server.served)) == answers, f"{answers} answers")
    return process


def check_interrupted(
    process: "subprocess.Popen[str]", output: Path, number: signal.Signals, status: int
) -> None:
    """Interrupt a run; assert that it says how to go on and leaves nothing half."""
    os.killpg(process.pid, number)  # as Ctrl-C reaches all of a terminal's processes
    _, message = process.communicate(timeout=LONG_S)
    assert process.returncode == status
    *_, stored, last_line = message.strip().splitlines()
    assert re.search(r"[1-9]\d* answers are stored, \d+ of them since this start", stored)
    assert "stopping: the model ends its present step" in message
    assert last_line == "interrupted; the same command computes what is not stored yet"
    assert "Traceback" not in message
    assert not unfinished_folders(output)
    assert not list(output.rglob("results_*"))


def check_killed(process: "subprocess.Popen[str]", server: FailingServer, output: Path) -> None:
    """Kill a run; assert that its evaluation ends with it, without results."""
    (evaluation,) = psutil.Process(process.pid).children()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    server.plan = serve_all
    until(lambda: has_ended(evaluation), "the evaluation ends")
    assert not [file for file in output.rglob("results_*") if ".part-" not in str(file)]


def check_results(server: FailingServer, output: Path) -> None:
    """Assert that the results are those of an undisturbed run, and count its tokens."""
    assert not unfinished_folders(output)
    (file,) = output.rglob("results_*.json")
    content = json.loads(file.read_text())
    tokens = 0
    for prompts in set(server.requests):
        tokens += sum(len(token_ids) for token_ids in json.loads(prompts))
    assert content["tokens"]["lieder_mini"] == {"input": tokens, "output": 0}
    assert content["n-samples"]["lieder_mini"] == {"original": 48, "effective": 2}
    assert file.parent == output / "served"
    assert len(list(file.parent.glob("samples_lieder_mini_*.jsonl"))) == 1


def test_a_run_that_is_interrupted_and_killed_loses_and_repeats_nothing(
    tmp_path: Path, tiny_models: Path, small_lm_eval: Path, run_warm: Callable[..., str]
) -> None:
    output = tmp_path / "out"
    paths = [str(small_lm_eval)]
    if os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    python_path = os.pathsep.join(paths)
    with serving() as server:
        served = model_file(server.url, tiny_models / "gpt2")
        (tmp_path / "served.yaml").write_text(served)
        process = start_and_wait(server, REQUESTS // 4, tmp_path, python_path)
        check_interrupted(process, output, signal.SIGINT, 130)
        process = start_and_wait(server, REQUESTS // 2, tmp_path, python_path)
        check_interrupted(process, output, signal.SIGTERM, 143)
        process = start_and_wait(server, 3 * REQUESTS // 4, tmp_path, python_path)
        check_killed(process, server, output)

        run_warm("served.yaml", "lieder_mini")
        assert len(set(server.requests)) == REQUESTS
        # A request that was under way at an interruption was answered into the void: one request
        # at a time, in three interruptions.
        assert len(server.requests) <= REQUESTS + 3
        check_results(server, output)
        assert (output / "served" / "model.yaml").read_text() == served

        requests = len(server.requests)
        assert "nothing to do, 1 of 1 tasks have results" in run_warm("served.yaml", "lieder_mini")
        assert len(server.requests) == requests


@pytest.fixture
def run_warm(
    small_lm_eval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """A function that runs and evaluates in this process, and returns the lines."""

    def evaluate(words: list[str], log: Path, launcher: str, *_callbacks: object) -> int:
        assert not launcher
        completed = run_here(
            child.main, ["child", *words], environment={}, folder=tmp_path,
            small_lm_eval=small_lm_eval,
        )  # fmt: skip
        log.write_text(completed.stdout + completed.stderr)
        return completed.returncode

    monkeypatch.setattr(run, "evaluate", evaluate)
    monkeypatch.setattr(run, "_POLL_S", 0.1)  # until another run is done
    monkeypatch.setattr(child, "_end_with_parent", lambda: None)
    monkeypatch.setattr(_autoload, "_HOOKS", dict(_autoload._HOOKS))
    monkeypatch.chdir(tmp_path)

    def run_tasks(models: str, tasks: str) -> str:
        lines: list[str] = []
        reporter = run.Reporter(lines.append, lambda _: None)
        try:
            run.run(run.Work([Path(models)], tasks, Path("out"), 2), reporter)
        except LmEvalExtError as error:
            lines.append(str(error))
        return "\n".join(lines)

    return run_tasks


def test_a_model_that_fails_does_not_stop_the_others(
    tmp_path: Path, run_warm: Callable[..., str]
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("no JSON\n")
    (models / "1-broken.yaml").write_text(
        f"display_name: Broken\nmodel: recorded\nmodel_args: {{path: {broken}}}\n"
    )
    (models / "2-sound.yaml").write_text("display_name: Sound\nmodel: dummy\n")
    output = run_warm("models", "lieder_mini")
    assert output.splitlines()[-1] == "1 of 2 models failed: Broken"
    assert "broken.jsonl" in output.splitlines()[-2]
    assert output.count("broken.jsonl") == 1, "the reason is said once"
    assert "[2/2] Sound: done in" in output
    assert not unfinished_folders(tmp_path / "out")
    assert len(list((tmp_path / "out" / "2-sound").glob("results_*.json"))) == 1
    assert not list((tmp_path / "out" / "1-broken").glob("results_*.json"))

    output = run_warm("models", "lieder_mini,cogs_mini_id")
    assert "1 of 2 models failed: Broken" in output
    assert "[2/2] Sound: cogs_mini_id (1 of 2 tasks have results); output goes to " in output
    assert len(list((tmp_path / "out" / "2-sound").glob("results_*.json"))) == 2


FAILING_TASK = """\
task: fails_at_scoring
custom_dataset: !function one_sum.load
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
process_results: !function one_sum.fail
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

FAILING_MODULE = """\
from datasets import Dataset

def load(**kwargs):
    return {"test": Dataset.from_list([{"question": "1 + 1 =", "answer": "2"}])}

def fail(document, results):
    raise ValueError("this task's hook is broken")
"""


def test_a_task_that_fails_does_not_cost_the_results_of_the_others(
    tmp_path: Path, run_warm: Callable[..., str]
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "fails_at_scoring.yaml").write_text(FAILING_TASK)
    (tmp_path / "tasks" / "one_sum.py").write_text(FAILING_MODULE)
    (tmp_path / "m.yaml").write_text(f"model: dummy\ninclude_path: {tmp_path / 'tasks'}\n")

    lines = run_warm("m.yaml", "lieder_mini,fails_at_scoring,cogs_mini_id").splitlines()
    label = "[1/1] m"
    assert lines[2] == f"{label}: each task is evaluated alone, since one of them failed"
    assert lines[-1] == "1 of 1 models failed: m"
    assert lines[-2] == "m: fails_at_scoring: ValueError: this task's hook is broken"
    outcomes = [line.partition(" in ")[0] for line in lines[3:-2]]
    assert [line.partition(" after ")[0] for line in outcomes] == [
        f"{label}: lieder_mini: done",
        f"{label}: fails_at_scoring: failed",
        f"{label}: cogs_mini_id: done",
    ]
    assert len(list((tmp_path / "out" / "m").glob("results_*.json"))) == 2

    done = run_warm("m.yaml", "lieder_mini,cogs_mini_id")
    assert "nothing to do, 2 of 2 tasks have results" in done


def test_a_server_that_dies_costs_no_answer(
    tmp_path: Path,
    tiny_models: Path,
    run_warm: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run has two tasks; each is then evaluated alone."""
    # lm-eval asks again after a second, each time.
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: None))
    last_request = 10
    requests_of_both_tasks = REQUESTS + 2

    def die(request_number: int) -> str:
        if request_number > last_request:
            return "hangs up"
        return "429" if request_number == 7 else ""

    def refuse_the_last(_request_number: int) -> str:
        return "401" if len(server.served) == requests_of_both_tasks - 1 else ""

    with serving() as server:
        (tmp_path / "served.yaml").write_text(
            model_file(server.url, tiny_models / "gpt2", max_retries=2)
        )
        server.plan = die
        output = run_warm("served.yaml", "lieder_mini,cogs_mini_id").splitlines()[-2]
        assert "Remote end closed connection" in output, output
        assert not list(tmp_path.rglob("results_*"))
        assert len(server.served) == last_request - 1

        server.plan = refuse_the_last
        output = run_warm("served.yaml", "lieder_mini,cogs_mini_id")
        assert "OPENAI_API_KEY" in output.splitlines()[-2]
        server.plan = serve_all
        for task in ("lieder_mini", "cogs_mini_id"):
            assert "Served: done in" in run_warm("served.yaml", task)
        assert len(server.served) == len(set(server.served)) == requests_of_both_tasks
    assert len(list(tmp_path.rglob("results_*"))) == 2


def test_two_runs_on_one_folder_share_the_work(
    tmp_path: Path, run_warm: Callable[..., str]
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    for name in ("first", "second"):
        (models / f"{name}.yaml").write_text("model: dummy\nresources: {gpus: 0}\n")
    outputs = ["", ""]

    def run_number(number: int) -> None:
        outputs[number] = run_warm(str(models), "lieder_mini")

    threads = [threading.Thread(target=run_number, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line for text in outputs for line in text.splitlines() if "lieder" in line]
    started = sorted(line.replace("out/", "") for line in lines)
    assert started == [
        "[1/2] first: lieder_mini; output goes to first/cache/lieder_mini.log",
        "[2/2] second: lieder_mini; output goes to second/cache/lieder_mini.log",
    ]
    assert len(list(tmp_path.glob("out/*/results_*.json"))) == 2
    called = [model.label for model in read_models([tmp_path / "out"])]
    assert sorted(called) == ["first", "second"], "though model and arguments are the same"
    assert not unfinished_folders(tmp_path)
    work = run.Work([models], "lieder_mini", tmp_path / "out", 2)
    done = run.plan(work)
    assert [(planned.tasks, planned.present) for planned in done] == [([], 1)] * 2
    (first_run, second_run) = run.plan(replace(work, tasks="lieder_mini,cogs_mini_id"))
    assert (first_run.tasks, first_run.present) == (["cogs_mini_id"], 1)
    assert first_run.resources == {"gpus": 0}
    assert second_run.command == [
        "lm-eval-ext", "run", "--models", str(models / "second.yaml"), "--tasks", "cogs_mini_id",
        "--output", str(tmp_path / "out"), "--limit", "2",
    ]  # fmt: skip


def test_a_launcher_starts_the_evaluation(tmp_path: Path, cli: Command) -> None:
    (tmp_path / "m.yaml").write_text(f"model: dummy\nlauncher: env LAUNCHED=1 {sys.executable}\n")
    (tmp_path / "n.yaml").write_text("model: dummy\nlauncher: no-such-command --x\n")
    options = ("--tasks", "lieder_mini", "--limit", "1", "--output", "out")
    done = cli("run", "--models", "m.yaml", *options, "--executor", "slrm")
    assert "'--executor': 'slrm' is not one of 'here', 'slurm'" in done.stderr
    done = cli("run", "--models", "m.yaml", "n.yaml", *options)
    assert done.returncode == 1
    assert "n: launcher 'no-such-command'" in done.stderr
    assert "1 of 2 models failed: n\n" in done.stderr
    assert len(list((tmp_path / "out" / "m").glob("results_*.json"))) == 1
