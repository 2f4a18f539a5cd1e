"""What an evaluation is doing, as its log says it in progress bars and in lines of known stages."""

import re
import time
from collections.abc import Callable, Sequence

from lm_eval_ext.text import one_line

_QUIET_S = 30.0
"""Seconds without output after which they are reported."""

_LONGEST_ACTIVITY = 80
"""Characters of an activity."""

_BAR = re.compile(
    r"(?:^|: ) *\d+%\|[^|]*\| *(?P<done>[\d.,]+[kMGT]?)/(?P<total>[\d.,]+[kMGT]?) *\["
)
"""A progress bar of tqdm behind its description, such as ``Loading: 50%|##  | 1/2 [00:01<1]``."""

_DESCRIPTION = re.compile(r"[A-Za-z][\w ,.()'-]*")
"""What the description of a progress bar looks like."""

_STAGES = (
    (re.compile(r"\[[\w.]+:\d+\] Initializing \S+ model"), "loading the model"),
    (re.compile(r"\[[\w.]+:\d+\] Building contexts for (?P<task>\S+)"), "building prompts of"),
    (re.compile(r"\[[\w.]+:\d+\] Running (?P<requests>\w+ requests)"), "Running"),
    (re.compile(r"^bootstrapping for stddev"), "computing standard errors"),
    (re.compile(r"\[[\w.]+:\d+\] Saving results"), "saving results"),
)
"""Lines of lm-eval's log with which a stage begins, and what the stage is called."""


class ActivityReader:
    """Follows what an evaluation is doing, from the lines of its log.

    Other lines (warnings, tables, tracebacks) only show that there is output.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_at = self._output_at = clock()
        self._stage = "starting"
        self._activity = self._stage
        self._unfinished_line = ""

    def read(self, lines: Sequence[str], unfinished_line: str) -> None:
        """Take notice of lines that have ended since the last call, and of the one that has not."""
        if lines or unfinished_line != self._unfinished_line:
            self._output_at = self._clock()
        self._unfinished_line = unfinished_line
        for line in (*lines, unfinished_line):
            self._read_line(line)

    def describe(self) -> str:
        """Return the activity, how long the evaluation has run, and whether it has gone quiet."""
        now = self._clock()
        parts = [self._activity, f"{_duration(now - self._started_at)} since the start"]
        quiet_s = now - self._output_at
        if quiet_s >= _QUIET_S:
            parts.append(f"no output for {_duration(quiet_s)}")
        return "; ".join(parts)

    def _read_line(self, line: str) -> None:
        stage = _stage(line)
        if stage:
            self._stage = self._activity = stage
            return
        bar = _BAR.search(line)
        if bar is None:
            return
        description = line[: bar.start()].strip()
        if not description:
            description = self._stage
        elif not _DESCRIPTION.fullmatch(description):
            return
        description = one_line(description, limit=_LONGEST_ACTIVITY)
        self._activity = f"{description}: {bar['done']} of {bar['total']}"


def _stage(line: str) -> str:
    """Return the stage that begins with a line; "" if none does."""
    for pattern, name in _STAGES:
        match = pattern.search(line)
        if match:
            words = [name, *match.groupdict().values()]
            return one_line(" ".join(words).rstrip("."), limit=_LONGEST_ACTIVITY)
    return ""


def _duration(seconds: float) -> str:
    """Return a time in whole seconds, or from two minutes on in whole minutes."""
    if seconds < 120:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
