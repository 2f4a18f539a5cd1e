"""The process that evaluates one model: starting it, waiting for it, and ending it."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs import child
from lm_eval_ext.text import one_line

_POLL_S = 0.5
_TAIL = 64_000
"""Bytes at the end of a log in which an error is looked for."""

_OF_A_RANK = re.compile(
    r"(LOCAL_|GROUP_|ROLE_|NODE_)?(RANK|WORLD_SIZE)|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_\w+"
    r"|ACCELERATE_\w+|OMPI_COMM_WORLD_\w+|OMPI_UNIVERSE_SIZE|PMI_\w+|PMIX_\w+|MV2_COMM_WORLD_\w+"
)
"""Variables that say which of several processes a process is. A job that starts ``run`` may have
set them; the evaluation would wait for processes that never come. A launcher sets its own."""

_REASONS = (
    re.compile(r"lm-eval-ext: error: |[\w.]*(Error|Exception|Exit|Interrupt)\b"),
    re.compile(r"[\w-]+: error: "),  # of a scheduler, which comes last and says less
)

_REMEDIES = {
    r"\b(401|403)\b.*url": "put a valid key into the environment variable OPENAI_API_KEY",
    r"\b404\b.*url": "correct base_url, or model (its name at the server)",
    r"\b429\b.*url": "wait, or lower num_concurrent",
}
"""What to do about a server's status, by the line in which its client says it."""


def evaluate(
    words: Sequence[str], log: Path, launcher: str, on_progress: Callable[[str], None]
) -> int:
    """Runs lm-eval in its own process and waits for it.

    Args:
        words: What :mod:`.child` takes.
        log: A file for its output.
        launcher: A command to start it with, such as ``accelerate launch``; "" for none.
        on_progress: Called with the last line of the log, twice a second.

    Returns:
        The exit status.

    Raises:
        OptionError: If the launcher cannot be started.
        KeyboardInterrupt: If the user interrupts it, after the process has ended.
    """
    start = shlex.split(launcher) or [sys.executable]
    environment = {
        **{name: value for name, value in os.environ.items() if not _OF_A_RANK.fullmatch(name)},
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        "PYTHONUNBUFFERED": "1",
    }
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [*start, "-m", child.__name__, *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        except OSError as error:
            raise OptionError(f"launcher {start[0]!r}: {error.strerror}") from None
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_POLL_S)
                on_progress(one_line(_lines(log)[-1], limit=100))
        finally:
            _end(process)


def reason(log: Path, status: int) -> str:
    """Why an evaluation failed: the last line of its log that looks like an error."""
    number = -status if status < 0 else status - 128  # the latter of a launcher
    ended = f"killed by signal {number}" if number > 0 else f"it ended with status {status}"
    if number == signal.SIGKILL:
        return f"{ended}, perhaps out of memory"
    lines = _lines(log)
    errors = (line for one in _REASONS for line in reversed(lines) if one.match(line))
    found = one_line(next(errors, ended), limit=400)
    remedies = (remedy for code, remedy in _REMEDIES.items() if re.search(code, found))
    return "; ".join([found, *remedies])


def _lines(log: Path) -> list[str]:
    """The last lines of a log, progress bars included; at least one."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        text = file.read().decode("utf-8", errors="replace")
    return re.findall(r"\S[^\r\n]*", text) or [""]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Lets a process end by itself, then terminates and kills it."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    for end in (process.poll, process.terminate, process.kill):
        end()
        with suppress(subprocess.TimeoutExpired):
            process.wait(child.GRACE_S + 2)
            return
