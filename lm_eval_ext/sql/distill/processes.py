"""Processes that make populated copies, one after the other."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError

# Without "", the working folder: a program of the user's there may be called random.py.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[1:2] + [path for path in sys.path if path]; "
    "from lm_eval_ext.sql.distill.processes import serve; serve()"
)


def serve() -> None:
    """Is a worker process: a line of JSON per job comes in, a line per job goes out."""
    from lm_eval_ext.sql.distill.batch import make

    for line in sys.stdin:
        original, golds, folder, db_id = json.loads(line)
        answer = ["done", ""]
        try:
            make(Path(original), golds, Path(folder), db_id)
        except LmEvalExtError as error:
            answer = [type(error).__name__, str(error)]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Maker:
    """A process that makes copies; plain pipes, so that the caller's program is not imported."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(Path(__file__).parents[3])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
        )

    def make(self, job: list[Any]) -> None:
        """Does a job; raises what it raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = ""
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that populated {job[3]} ended (see above)")
        kind, message = json.loads(answer)
        if kind != "done":
            kinds = {"DataError": DataError, "OptionError": OptionError}
            raise kinds.get(kind, LmEvalExtError)(message)

    def kill(self) -> None:
        """Ends it, whatever it does; what it had not finished is not there."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()
