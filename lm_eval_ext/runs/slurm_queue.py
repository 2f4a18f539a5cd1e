"""What Slurm is asked and told about jobs in the queue, by its commands."""

import os
import subprocess
from contextlib import suppress

from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line

_ANSWER_S = 60
"""Seconds that a command may take."""


class QueueError(OptionError):
    """Slurm does not say what is queued."""


def queue() -> dict[str, tuple[str, str]]:
    """The user's jobs in the queue: state and reason.

    Raises:
        QueueError: If ``squeue`` cannot be asked.
    """
    try:
        rows = _ask(
            "squeue", "--noheader", "--array", "--user", str(os.getuid()), "--format=%i|%T|%r"
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise QueueError(f"squeue cannot be asked: {said(error)}") from None
    found = {}
    for row in rows.splitlines():
        job, state, why = row.split("|", 2)
        found[job] = (state.lower(), "" if why == "None" else why)
    return found


def is_held(word: str, why: str) -> bool:
    """Whether a job with this state and reason waits for somebody to release it."""
    return word == "pending" and "held" in why.lower()


def release(job: str) -> None:
    """Lets a held job go on; where Slurm refuses, it stays held."""
    with suppress(OSError, subprocess.SubprocessError):
        _ask("scontrol", "release", job)


def said(error: Exception) -> str:
    """What one of Slurm's commands has printed that failed; without that, the error."""
    printed = getattr(error, "stderr", None) or str(error)
    text = printed.decode(errors="replace") if isinstance(printed, bytes) else str(printed)
    return one_line(text, limit=300)


def _ask(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=True)
    return done.stdout
