"""The process that evaluates a model: what it inherits, and why it ended."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lm_eval_ext import _autoload
from lm_eval_ext.runs import process


def ignore(_text: str) -> None:
    """Print nothing."""


WAITING_EVALUATION = """
import socket, threading
from lm_eval_ext.runs import child
child.GRACE_S = 3600
threading.Thread(target=child._end_with_parent, daemon=True).start()
server, client = socket.socketpair()
print("waits", flush=True)
client.recv(1)
"""
"""A process that waits for a server's answer, which never comes."""


def test_an_evaluation_that_waits_for_a_server_ends_at_once_with_its_parent() -> None:
    """Long before it is ended by force, which here takes an hour."""
    evaluation = subprocess.Popen(
        [sys.executable, "-c", WAITING_EVALUATION],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert evaluation.stdout is not None
    assert evaluation.stdout.readline() == b"waits\n"
    time.sleep(0.5)  # so that it has begun to wait
    try:
        _, errors = evaluation.communicate(timeout=300)  # closes stdin, as the parent's end does
    finally:
        evaluation.kill()
    assert b"KeyboardInterrupt" in errors


VARIABLES_OF_A_RANK = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID",
    "ACCELERATE_USE_FSDP", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
)  # fmt: skip
OTHER_VARIABLES = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "FRANK", "RANKING", "HF_TOKEN")


def test_an_evaluation_does_not_take_itself_for_a_rank_of_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accelerate would wait for the other ranks for ever."""
    for name in (*VARIABLES_OF_A_RANK, *OTHER_VARIABLES):
        monkeypatch.setenv(name, "7")
    log = tmp_path / "log.txt"
    listing = "import os; print(*os.environ)"
    launcher = f'{sys.executable} -c "{listing}"'
    assert process.evaluate([], log, launcher, ignore, ignore) == 0
    inherited = set(log.read_text().split())
    assert not inherited & set(VARIABLES_OF_A_RANK)
    assert inherited >= set(OTHER_VARIABLES)
    assert os.environ["RANK"] == "7"


@pytest.mark.parametrize(
    ("log", "command", "message"),
    [
        pytest.param(
            "Running generate_until requests:   4%|          | 2/48",
            "kill -9 $$",
            "killed by signal 9, perhaps out of memory",
            id="killed while it showed progress",
        ),
        pytest.param(
            "ValueError: an old warning\n",
            "kill -9 $$",
            "killed by signal 9",
            id="killed after a warning",
        ),
        pytest.param(
            "a launcher's process was killed",
            "exit 137",
            "killed by signal 9",
            id="killed below a launcher",
        ),
        pytest.param(
            "ValueError: no such file\nRunning: 4%",
            "exit 3",
            "ValueError: no such file",
            id="an error before progress",
        ),
        pytest.param("Running: 4%|", "exit 3", "it ended with status 3", id="no error"),
        pytest.param("Running: 4%|", "kill -11 $$", "killed by signal 11", id="another signal"),
        pytest.param(
            "requests.exceptions.HTTPError: 401 Client Error for url: http://a\n",
            "exit 1",
            "OPENAI_API_KEY",
            id="no key for a server",
        ),
        pytest.param(
            "ValueError: 401 is no label\n",
            "exit 1",
            "ValueError: 401 is no label",
            id="a number like a server's status",
        ),
    ],
)
def test_the_reason_is_an_error_or_how_the_process_ended(
    tmp_path: Path, log: str, command: str, message: str
) -> None:
    text_file = tmp_path / "text"
    text_file.write_text(log)
    script = tmp_path / "evaluation.sh"
    script.write_text(f"cat {text_file}; {command}\n")
    log_file = tmp_path / "log"
    status = process.evaluate([], log_file, f"sh {script}", ignore, ignore)
    reason = process.reason(log_file, status)
    assert message in reason
    assert "%" not in reason
    assert ("API_KEY" in reason) is ("API_KEY" in message)


def test_a_killed_evaluation_is_named_where_signals_have_no_such_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python on Windows has no SIGKILL."""
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.delattr("signal.SIGKILL")
    log = tmp_path / "log"
    log.write_text("ValueError: no such file\n")
    assert process.reason(log, 137) == "killed by signal 9, perhaps out of memory"
    assert process.reason(log, 1) == "ValueError: no such file"


def fail_to_change(_module: object) -> None:
    """Fail like a hook that finds another lm-eval than it knows."""
    raise AttributeError("no TemplateAPI here")


def test_what_could_not_be_changed_in_lm_eval_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    remedy = "servers are asked as lm-eval does it"
    monkeypatch.setitem(_autoload._HOOKS, "json", (fail_to_change, remedy))
    _autoload._run_hook(json)
    printed_problem = capfd.readouterr().err
    assert "AttributeError: no TemplateAPI here" in printed_problem
    assert warnings_of(f"INFO begins\n{2 * printed_problem}", tmp_path) == [printed_problem.strip()]


def warnings_of(output: str, folder: Path) -> list[str]:
    """Return the warnings of an evaluation whose process prints a text."""
    printed = folder / "printed.txt"
    printed.write_text(output)
    script = folder / "print.sh"
    script.write_text(f"cat {printed}\n")
    warnings: list[str] = []
    process.evaluate([], folder / "log.txt", f"sh {script}", ignore, warnings.append)
    return warnings


CACHE_LINES = (
    "07:10:43 INFO     [api.model:305] Loading 'generate_until' responses from cache 'a.db'\n"
    "Checking cached requests: 100%|##########| 2/2\r\n"
    "07:10:43 INFO     [api.model:329] Cached requests: {stored}, Requests remaining: {remaining}\n"
)
"""What lm-eval says of its cache of responses."""

BAR = "Running generate_until requests:  50%|#####     | 1/2 [00:01<00:01]"


@pytest.mark.parametrize(
    ("output", "warnings"),
    [
        pytest.param(
            "2026-11-29:20:01:57 WARNING  [lm_eval_ext.models.prefix.sharing:246] hf-prefix: no\n",
            ["hf-prefix: no"],
            id="of a model",
        ),
        pytest.param(
            f"{BAR}\r{BAR}2026-11-29:20:01:57 WARNING  [lm_eval_ext.harness.chat:37] 2 of 3\n",
            ["2 of 3"],
            id="of answers, behind a progress bar",
        ),
        pytest.param(
            "20:01:57 WARNING  [lm_eval_ext.models.prefix.sharing:246] once\n"
            "20:01:58 WARNING  [lm_eval_ext.models.prefix.sharing:246] once\n",
            ["once"],
            id="repeated",
        ),
        pytest.param(
            "2026-11-29:19:21:53 WARNING  [lm_eval_ext.benchmarks.magnifico.load:81] 84 examples\n",
            [],
            id="of data, which was said when tasks were checked",
        ),
        pytest.param(
            "2026-11-29:19:21:53 WARNING  [lm_eval_ext.harness.fewshot:121] left out: 2\n",
            [],
            id="of demonstrations, the same for each model",
        ),
        pytest.param(
            "2026-11-29:19:21:50 WARNING  [config.evaluate_config:337] --limit\n",
            [],
            id="of lm-eval",
        ),
        pytest.param(
            "2026-11-29:19:22:15 INFO     [lm_eval_ext.models.prefix.model:329] packed\n",
            [],
            id="information",
        ),
        pytest.param(
            CACHE_LINES.format(stored=1288, remaining=48),
            ["1,288 of 1,336 answers are stored (generate_until requests)"],
            id="of the cache, with answers",
        ),
        pytest.param(
            CACHE_LINES.format(stored=0, remaining=48), [], id="of the cache, without answers"
        ),
    ],
)
def test_what_a_user_should_see_of_a_log_is_reported_once(
    output: str, warnings: list[str], tmp_path: Path
) -> None:
    assert warnings_of(output, tmp_path) == warnings


def test_a_growing_log_is_read_line_by_line_wherever_it_was_cut(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("")
    growing_log = process.GrowingLog(log)
    lines: list[str] = []
    for part in ("fir", "st\nsec", "ond\rthird: ä\n", "", "unfinished"):
        with log.open("a", encoding="utf-8") as file:
            file.write(part)
        lines += growing_log.new_lines()
    assert lines == ["first", "second", "third: ä"]


def test_what_the_previous_evaluation_wrote_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = tmp_path / "evaluation.sh"
    for number in (1, 2, 3):
        script.write_text(f"echo start {number}\n")
        process.evaluate([], log, f"sh {script}", ignore, ignore)
    assert log.read_text() == "start 3\n"
    assert process.previous_log(log).read_text() == "start 2\n"


def test_an_interruption_says_at_once_that_the_evaluation_is_being_stopped(tmp_path: Path) -> None:
    script = tmp_path / "evaluation.sh"
    script.write_text("read line; echo has ended\n")  # until stdin is closed
    log = tmp_path / "log"
    printed_before_the_end: dict[str, str] = {}

    def interrupt(_text: str) -> None:
        raise KeyboardInterrupt

    def keep_message(text: str) -> None:
        printed_before_the_end[text] = log.read_text()

    with pytest.raises(KeyboardInterrupt):
        process.evaluate([], log, f"sh {script}", interrupt, keep_message)
    message = (
        "stopping: the model ends its present step, or gives it up after 10 seconds; waiting for "
        "its process to end"
    )
    assert printed_before_the_end == {message: ""}
    assert log.read_text() == "has ended\n"


def test_a_process_that_does_not_end_is_named_before_each_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine it takes longer than a process that ends by itself; the lines say what is
    waited for."""
    monkeypatch.setattr(process, "_END_S", 0.2)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    stubborn = subprocess.Popen(
        [sys.executable, "-c", f"{code}; time.sleep(600)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    messages: list[str] = []
    process._end(stubborn, messages.append)
    stubborn.wait(60)
    stubborn.stdout.close()
    assert messages == [
        "stopping: the process still runs after 0.2 seconds, and is terminated",
        "stopping: the process still runs after 0.4 seconds, and is killed",
    ]
