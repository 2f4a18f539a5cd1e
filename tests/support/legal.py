"""Every interval that a test writes: within its legal range, around its value, and with a width."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.harness.names import INTERVALS, RANGE

TOLERANCE = 1e-12
MOST = {"share": 1.0, "percent": 100.0, "points": 2.0}
"""The largest difference of two values, by unit."""


def check(
    low: Any,
    high: Any,
    value: float,
    limits: Iterable[float | None],
    what: str,
    *,
    own: bool = False,
) -> None:
    """Asserts it of one interval; percentiles of a paper's ``own`` draws need have no width."""
    least, most = limits
    assert low < high or own, what
    assert low - TOLERANCE <= value <= high + TOLERANCE, what
    assert least is None or low >= least, what
    assert most is None or high <= most, what


def check_folder(folder: Path) -> int:
    """Asserts it of all results files below a folder; returns how many intervals they have."""
    count = 0
    for file in folder.rglob("results_*"):
        content = json.loads(file.read_text())
        for task, config in content["configs"].items():
            limits = {one["metric"]: one.get(RANGE) for one in config["metric_list"]}
            for name, found in config["metadata"].get(INTERVALS, {}).items():
                if "low" in found:
                    metric = name.partition(",")[0]
                    assert limits[metric] is not None, f"{task} {name} has no legal range"
                    value, own = content["results"][task][name], found["method"] == "own"
                    check(found["low"], found["high"], value, limits[metric], name, own=own)
                    count += 1
    return count


def check_pairs(pairs: Iterable[Mapping[str, Any]]) -> int:
    """Asserts it of what ``compare`` writes as JSON; returns how many intervals there are."""
    count = 0
    for pair in pairs:
        if pair["low"] is not None:
            most = MOST.get(pair["unit"])
            limits = (None, None) if most is None else (-most, most)
            check(pair["low"], pair["high"], pair["value"], limits, str(pair))
            count += 1
    return count


def check_table(text: str) -> int:
    """Asserts it of the leaderboard's CSV of rates; returns how many intervals there are."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["low"]]
    for row in rows:
        low, high, value = (float(row[key]) for key in ("low", "high", "value"))
        check(low, high, value, (0.0, 1.0), str(row))
    return len(rows)
