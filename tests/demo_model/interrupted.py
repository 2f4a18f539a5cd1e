"""Trains, but stops at a given point and says so: python interrupted.py STAGE DIR."""

import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from lm_eval_ext.demo_model import checkpoint, train

STAGES: dict[str, tuple[Any, str]] = {
    "training": (train, "_loss"),
    "saving": (checkpoint, "_sha256"),
}


def stop_here(*_: object) -> NoReturn:
    sys.stdout.write("reached\n")
    sys.stdout.flush()
    time.sleep(120)
    raise SystemExit("nobody interrupted")


if __name__ == "__main__":
    # A shell's background job ignores Ctrl-C, and would hand that on to this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setattr(*STAGES[sys.argv[1]], stop_here)
    train.train(Path(sys.argv[2]), steps=2, progress=False)
