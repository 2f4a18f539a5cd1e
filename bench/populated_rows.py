"""Searches for the rows of ``populated.json`` (version 3), starting from those of version 2.

    python bench/populated_rows.py SPIDER_DATABASES POPULATED_V2 OUT.json
    python bench/populated_rows.py mini POPULATED_V2 OUT.json

Two processes at a time; the rows depend neither on their number nor on the machine's speed.
"""

import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.magnifico import gold_files, mini
from lm_eval_ext.sql.distill.build import populate
from lm_eval_ext.sql.distill.report import Report
from lm_eval_ext.sql.distill.shipped import pack


def search(original: Path, golds: tuple[str, ...], copy: Path, earlier: Any) -> Report:
    """Makes one copy."""
    return populate(original, golds, copy, earlier=earlier)


def main(databases: str, earlier: Path, out: Path) -> None:
    """Writes the pack."""
    if databases == "mini":
        asked = mini.corpus().golds()
        found = {name: (mini.databases()[name].path, tuple(asked[name])) for name in asked}
    else:
        found = dict(gold_files.wanted(databases, None)[1])
    before = json.loads(earlier.read_text(encoding="utf-8"))["databases"]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2) as pool:
        copies = {name: Path(folder) / f"{name}.sqlite" for name in found}
        jobs = {
            name: pool.submit(search, path, golds, copies[name], before[sha256_of(path)]["rows"])
            for name, (path, golds) in found.items()
        }
        made = {name: (found[name][0], copies[name], job.result()) for name, job in jobs.items()}
        with atomic_text(out) as file:
            file.write(pack(made))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
