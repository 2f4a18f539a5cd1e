"""Checks of all intervals: in the legal range, around the value, and with a width."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.harness.names import INTERVALS, RANGE

TOLERANCE = 1e-12
LARGEST_DIFFERENCE = {"share": 1.0, "percent": 100.0, "points": 2.0}
"""The largest difference of two values, by unit."""


def check(
    low: float,
    high: float,
    value: float,
    limits: Iterable[float | None],
    name: str,
    *,
    may_be_a_point: bool = False,
) -> None:
    """Assert that an interval is legal; ``name`` says which one it is.

    Args:
        low: Its lower end.
        high: Its upper end.
        value: The value that it encloses.
        limits: The lowest and the highest legal value; None: without a limit.
        name: Shown where the assertion fails.
        may_be_a_point: Both ends may be equal, as percentiles of a paper's draws may.
    """
    lowest, highest = limits
    assert low < high or may_be_a_point, name
    assert low - TOLERANCE <= value <= high + TOLERANCE, name
    assert lowest is None or low >= lowest, name
    assert highest is None or high <= highest, name


def check_folder(folder: Path) -> int:
    """Check all results files below a folder; return how many intervals they have."""
    count = 0
    for file in folder.rglob("results_*"):
        content = json.loads(file.read_text())
        for task, config in content["configs"].items():
            count += check_task(task, config, content["results"][task])
    return count


def check_task(task: str, config: Mapping[str, Any], results: Mapping[str, float]) -> int:
    """Check a task's figures; return how many intervals they have."""
    limits = {entry["metric"]: entry.get(RANGE) for entry in config["metric_list"]}
    count = 0
    for name, interval in config["metadata"].get(INTERVALS, {}).items():
        if "low" in interval:
            legal_range = limits[name.partition(",")[0]]
            assert legal_range is not None, f"{task} {name} has no legal range"
            check(
                interval["low"],
                interval["high"],
                results[name],
                legal_range,
                name,
                may_be_a_point=interval["method"] == "own",
            )
            count += 1
    return count


def check_pairs(pairs: Iterable[Mapping[str, Any]]) -> int:
    """Check pairs that ``compare`` writes as JSON; return how many intervals they have."""
    count = 0
    for pair in pairs:
        if pair["low"] is not None:
            largest = LARGEST_DIFFERENCE.get(pair["unit"])
            limits = (None, None) if largest is None else (-largest, largest)
            check(pair["low"], pair["high"], pair["value"], limits, str(pair))
            count += 1
    return count


def check_table(text: str) -> int:
    """Check the leaderboard's CSV of rates; return how many intervals it has."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["low"]]
    for row in rows:
        low, high, value = (float(row[key]) for key in ("low", "high", "value"))
        check(low, high, value, (0.0, 1.0), str(row))
    return len(rows)
