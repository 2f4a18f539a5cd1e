"""Lines about the progress of a training: at least one every ten seconds, whatever takes long."""

import os
import sys
import threading
import time
from types import TracebackType

from lm_eval_ext.training.starting import processes

QUIET_S = 10.0
"""Seconds after which a line says what is going on."""

_POLL_S = 0.5

_last_line_at = time.monotonic()


def tell(line: str) -> None:
    """Print a line to stderr, once for all processes, and above a progress bar."""
    from tqdm import tqdm

    global _last_line_at  # noqa: PLW0603 (there is one stderr)
    _last_line_at = time.monotonic()
    if processes().is_main_process:
        tqdm.write(line, file=sys.stderr)


def tell_before_loading(line: str) -> None:
    """Print a line to stderr before anything heavy is loaded, once for all processes.

    :func:`tell` asks accelerate which process this is, and to load it takes seconds.
    """
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)  # noqa: T201 (tell would load accelerate)


class Activity:
    """Something that may take long: as long as nothing else is told, a line says that it goes on.

    The lines come from a thread, since a single step of a large model can take minutes.
    """

    def __init__(self, text: str) -> None:
        """Describe the activity, such as "loading the model"."""
        self._text = text
        self._begun_at = time.monotonic()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._tell_until_end, daemon=True)

    def change(self, text: str) -> None:
        """Describe what goes on from now on."""
        self._text = text
        self._begun_at = time.monotonic()

    def __enter__(self) -> "Activity":
        self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._has_ended.set()
        self._thread.join()

    def _tell_until_end(self) -> None:
        while not self._has_ended.wait(_POLL_S):
            if time.monotonic() - _last_line_at >= QUIET_S:
                tell(f"{self._text} ({time.monotonic() - self._begun_at:.0f} s)")
