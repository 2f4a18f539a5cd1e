"""Wall time and memory of ``diner build`` against the number of recipes.

    python -m bench.diner_build [--recipes 150000 500000 1500000] [--folder DIR]

Each size is built in a process of its own, on two processors, from a synthetic corpus
(diner_corpus.py); making the corpus is not counted. A second build in the same folder shows what
the cached table of cleaned recipes saves.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import diner_corpus
from lm_eval_ext.atomic import atomic_path

# ruff: noqa: T201 (a script that prints)

PROCESSORS = 2
KIB, MIB = 1 << 10, 1 << 20


def measured(corpus: Path, out: Path, glossary: Path) -> tuple[float, float, float]:
    """Returns seconds, processor seconds and peak MiB of one build; exits if it fails."""
    command = [
        *(str(Path(sys.executable).parent / "lm-eval-ext"), "diner", "build"),
        *("--corpus", str(corpus), "--output", str(out), "--glossary", str(glossary)),
    ]
    began = time.perf_counter()
    child = subprocess.Popen(command, preexec_fn=_two_processors)  # noqa: PLW1509 - no threads
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    if status:
        sys.exit(f"the build of {corpus} failed")
    return wall, usage.ru_utime + usage.ru_stime, _peak(usage)


def _two_processors() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])


def _peak(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss * KIB / MIB


def main() -> None:
    """Builds each size twice and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipes", type=int, nargs="+", default=[150_000, 500_000, 1_500_000])
    parser.add_argument("--folder", type=Path, help="Keep the corpora here.")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        glossary = Path(temporary) / "words.json"
        glossary.write_text(json.dumps(diner_corpus.glossary()), encoding="utf-8")
        for count in args.recipes:
            corpus = folder / f"corpus-{count}.jsonl"
            if not corpus.is_file():
                with atomic_path(corpus) as part:
                    diner_corpus.write(part, count)
            out = Path(temporary) / f"out-{count}"
            for build in ("first", "second"):
                wall, processors, peak = measured(corpus, out, glossary)
                print(
                    f"{count:>9,} recipes, {corpus.stat().st_size / MIB:7,.0f} MiB, {build:>6} "
                    f"build: {wall:6.1f} s ({processors:6.1f} s of processors), "
                    f"peak {peak:6,.0f} MiB"
                )
            shutil.rmtree(out)


if __name__ == "__main__":
    main()
