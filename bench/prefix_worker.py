"""A process with one model that answers a range of the requests as often as requested.

Started by prefix.py: ``prefix_worker.py KIND FOLDER``, then a line "START STOP BATCH_SIZE" on
standard input for each run, and a line of JSON on standard output for each.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
FORGET = Path("/proc/self/clear_refs")


def peak_mib() -> float:
    """The largest resident memory since :func:`forget_peak`; 0 where that cannot be known."""
    if STATUS.exists():
        for line in STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def forget_peak() -> None:
    """Sets the peak to what is resident now."""
    if FORGET.exists():
        FORGET.write_text("5", encoding="ascii")


def main() -> None:
    """Loads the model, says so, and answers until standard input ends."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    kind, folder = sys.argv[1:]
    rows = json.loads(Path(folder, "requests.json").read_text(encoding="utf-8"))
    requests = [Instance(kind, {}, tuple(args), 0) for kind, args in rows]
    model: Any = get_model(kind)(f"{folder}/model", device="cpu", batch_size=1)
    # The first call of a kernel costs more than others.
    getattr(model, rows[0][0])(requests[:2], disable_tqdm=True)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sharing = getattr(model, "sharing", None)
    if sharing:
        sharing._said.clear()  # two requests are too few for a remark; the next run makes its own
    for line in sys.stdin:
        start, stop, size = map(int, line.split())
        said = set(sharing._said) if sharing else set()
        model.batch_size_per_gpu = size
        forget_peak()
        began = time.perf_counter()
        answers = getattr(model, rows[0][0])(requests[start:stop], disable_tqdm=True)
        seconds = time.perf_counter() - began
        found = {
            "seconds": seconds,
            "peak": peak_mib(),
            "answers": answers,
            "said": sorted(sharing._said - said) if sharing else [],
        }
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
