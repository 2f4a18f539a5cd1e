"""Time to build the leaderboard page of many models, and its size.

python -m bench.leaderboard [--models 30] [--tasks 40] [--documents 500]
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

# ruff: noqa: T201 (a script that prints)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))


def main() -> None:
    """Makes results, builds the page, prints a line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("models", 30), ("tasks", 40), ("documents", 500)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()

    from support.results_files import write_many

    from lm_eval_ext.leaderboard.site import build

    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        write_many(results, options.models, options.tasks, options.documents)
        start = time.perf_counter()
        page = build([results], Path(folder) / "site")
        seconds = time.perf_counter() - start
        print(
            f"{options.models} models x {options.tasks} tasks x {options.documents} samples: "
            f"{seconds:.1f} s, page {page.stat().st_size / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    main()
