"""Starts the process that evaluates one model, waits for it, and ends it."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lm_eval_ext import _autoload
from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs import child
from lm_eval_ext.runs.activity import ActivityReader
from lm_eval_ext.text import one_line

_POLL_S = 0.5
_TAIL_BYTES = 64_000
"""The end of a log in which an error is looked for."""

_KILLED = 9
"""The number of SIGKILL, for which Python has no name on Windows."""

_RANK_VARIABLE = re.compile(
    r"(LOCAL_|GROUP_|ROLE_|NODE_)?(RANK|WORLD_SIZE)|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_\w+"
    r"|ACCELERATE_\w+|OMPI_COMM_WORLD_\w+|OMPI_UNIVERSE_SIZE|PMI_\w+|PMIX_\w+|MV2_COMM_WORLD_\w+"
)
"""Variables that say which of several processes a process is. A job that starts ``run`` may have
set them; the evaluation would wait for processes that never come. A launcher sets its own."""

_ERROR_LINES = (
    re.compile(r"lm-eval-ext: error: |[\w.]*(Error|Exception|Exit|Interrupt)\b"),
    re.compile(r"[\w-]+: error: "),  # of a scheduler, which comes last and says less
)

_REMEDIES = {
    r"\b(401|403)\b.*url": "put a valid key into the environment variable OPENAI_API_KEY",
    r"\b404\b.*url": "correct base_url, or model (its name at the server)",
    r"\b429\b.*url": "wait, or lower num_concurrent",
}
"""Remedies by a pattern of the line in which a server's client reports its status."""


_WARNINGS = (
    re.compile(rf"({re.escape(_autoload.PROBLEM)}.*)"),
    re.compile(r"WARNING +\[lm_eval_ext\.(?:models\.[\w.]+|harness\.(?:chat|metrics)):\d+\] (.+)"),
)
"""What this package says in a log about the model and the answers, which a user should see. What it
says of data is the same for each model, and most of it was said when tasks were checked."""

_REQUEST_TYPE = re.compile(r"Loading '(\w+)' responses from cache")
_STORED_ANSWERS = re.compile(r"Cached requests: (\d+), Requests remaining: (\d+)")
"""What lm-eval says of its cache of responses, once for each type of requests."""

_STOPPING = (
    f"stopping: the model ends its present step, or gives it up after {child.GRACE_S} seconds; "
    "waiting for its process to end"
)
_END_S = child.GRACE_S + 2
"""Seconds in which a process should end before it is made to; on a busy machine, it may not."""


class GrowingLog:
    """Reads the lines of a log while it grows, progress bars included.

    Args:
        path: The file.

    Attributes:
        unfinished_line: The line that has begun and not yet ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._unfinished_bytes = b""
        self.unfinished_line = ""

    def new_lines(self) -> list[str]:
        """Return the lines that have ended since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        self._offset += len(content)
        *lines, self._unfinished_bytes = re.split(rb"[\r\n]", self._unfinished_bytes + content)
        self.unfinished_line = self._unfinished_bytes.decode("utf-8", errors="replace")
        return [line.decode("utf-8", errors="replace") for line in lines]


class LogMessages:
    """Finds what a user should see in the lines of a log, each message once.

    These are this package's warnings about the model or its answers, and how many answers of an
    interrupted evaluation are stored.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._request_type = ""

    def new_messages(self, lines: Sequence[str]) -> list[str]:
        """Return the messages of further lines that have not been returned before."""
        messages = []
        for line in lines:
            message = self._message(line)
            if message and message not in self._known:
                self._known.add(message)
                messages.append(message)
        return messages

    def _message(self, line: str) -> str:
        """Return the message of a line; "" if it has none."""
        for pattern in _WARNINGS:
            warning = pattern.search(line)
            if warning:
                return warning[1]
        request_type = _REQUEST_TYPE.search(line)
        if request_type:
            self._request_type = request_type[1]
        counts = _STORED_ANSWERS.search(line)
        if counts is None:
            return ""
        stored = int(counts[1])
        if not stored:
            return ""
        requests = stored + int(counts[2])
        return f"{stored:,} of {requests:,} answers are stored ({self._request_type} requests)"


def evaluate(
    words: Sequence[str],
    log: Path,
    launcher: str,
    on_progress: Callable[[str], None],
    on_message: Callable[[str], None],
) -> int:
    """Run lm-eval in its own process and wait for it.

    Args:
        words: The arguments of :mod:`.child`.
        log: A file for its output; what an earlier evaluation wrote there is kept beside it.
        launcher: A command to start it with, such as ``accelerate launch``; "" for none.
        on_progress: Called twice a second with what the evaluation is doing.
        on_message: Called with each line for the user: warnings of this package about the model or
            its answers, how many answers are stored, and that the process is being ended.

    Returns:
        The exit status.

    Raises:
        OptionError: The launcher cannot be started.
        KeyboardInterrupt: The user interrupted it; the process has ended by then.
    """
    command = shlex.split(launcher) or [sys.executable]
    if log.exists():
        log.replace(previous_log(log))
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [*command, "-m", child.__name__, *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
        except OSError as error:
            raise OptionError(f"launcher {command[0]!r}: {error.strerror}") from None
        growing_log = GrowingLog(log)
        log_messages = LogMessages()
        activity = ActivityReader()

        def report_messages() -> None:
            lines = growing_log.new_lines()
            activity.read(lines, growing_log.unfinished_line)
            for message in log_messages.new_messages(lines):
                on_message(message)

        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_POLL_S)
                report_messages()
                on_progress(activity.describe())
        except KeyboardInterrupt:
            on_message(_STOPPING)
            raise
        finally:
            _end(process, on_message)
            report_messages()


def previous_log(log: Path) -> Path:
    """Return the file that keeps what an evaluation wrote when the next one begins."""
    return log.with_name(f"{log.name}.1")


def _environment() -> dict[str, str]:
    """Return the environment of an evaluation, in which launchers beside Python are found."""
    environment = {
        name: value for name, value in os.environ.items() if not _RANK_VARIABLE.fullmatch(name)
    }
    folder = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


def reason(log: Path, status: int) -> str:
    """Return why an evaluation failed: the last line of its log that looks like an error.

    Args:
        log: The output of the process.
        status: Its exit status.
    """
    # A launcher adds 128 to the signal's number.
    signal_number = -status if status < 0 else status - 128
    if signal_number == _KILLED:
        return f"killed by signal {signal_number}, perhaps out of memory"
    problem = _last_error(_last_lines(log))
    if not problem and signal_number > 0:
        problem = f"killed by signal {signal_number}"
    elif not problem:
        problem = f"it ended with status {status}"
    problem = one_line(problem, limit=400)
    remedies = [remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, problem)]
    return "; ".join([problem, *remedies])


def _last_error(lines: Sequence[str]) -> str:
    """Return the last line that looks like an error; "" if none does."""
    for pattern in _ERROR_LINES:
        for line in reversed(lines):
            if pattern.match(line):
                return line
    return ""


def _last_lines(log: Path) -> list[str]:
    """Return the last lines of a log, progress bars included."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    return re.findall(r"\S[^\r\n]*", text)


def _end(process: subprocess.Popen[bytes], on_message: Callable[[str], None]) -> None:
    """Let a process end by itself, then terminate it, then kill it, and say so."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
        return
    on_message(f"stopping: the process still runs after {_END_S:g} seconds, and is terminated")
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
        return
    on_message(f"stopping: the process still runs after {2 * _END_S:g} seconds, and is killed")
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
