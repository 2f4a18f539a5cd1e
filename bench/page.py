"""Writes the page in docs/ with the last results."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from bench.rows import Row, growth
from lm_eval_ext.atomic import atomic_text

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"

TITLES = {
    "prefix": "Shared prefixes: `hf-prefix` beside `hf`",
    "sql": "SQL verdicts",
    "start": "Before the first request",
}

WHOLE = 10
"""Numbers from here on have no decimals."""

SMALL_S = 0.1
"""Times below this are shown in milliseconds."""


def put(page: Path, record: Mapping[str, Any]) -> None:
    """Writes the results between the page's marks.

    Raises:
        ValueError: The page has no marks.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no {BEGIN} ... {END}")
    with atomic_text(page) as file:
        file.write(f"{before}{BEGIN}\n{render(record)}\n{END}{after}")


def render(record: Mapping[str, Any]) -> str:
    """Returns all parts as Markdown, each with its machine."""
    parts = []
    for part, title in TITLES.items():
        parts.append(f"## {title}")
        found = record.get(part)
        if found is None:
            parts.append("Never measured.")
            continue
        rows = [Row(**row) for row in found["rows"]]
        if rows:
            parts += [table(rows), *remarks(rows)]
        if found["problem"]:
            parts.append(f"Not measured: {found['problem']}.")
        parts.append(machine(found["machine"], found["rounds"]))
    return "\n\n".join(parts)


def machine(found: Mapping[str, Any], rounds: int) -> str:
    """Returns a sentence about the machine."""
    return (
        f"*{found['date']}, {rounds} rounds or more: {found['processor']}, {found['cores']} cores, "
        f"{found['threads']} threads for torch; bench/last.json has the versions.*"
    )


def table(rows: Sequence[Row]) -> str:
    """Returns a part's table; the row of the largest size has the growth of our time."""
    limits, peaks = any(row.limit for row in rows), any(any(row.peak) for row in rows)
    starts = not any(row.same for row in rows)  # where milliseconds matter
    columns = ["work", "size", "baseline", "its time", "ours", "times as fast (range)"]
    columns += ["limit"] * limits + ["peak memory"] * peaks + ["difference"] * starts
    columns += [] if starts else ["growth"]
    lines = [columns, ["---"] * len(columns)]
    for work, same_work in groupby(rows, key=lambda row: row.work):
        sizes = list(same_work)
        for place, row in enumerate(sizes):
            low, high = min(row.ratios), max(row.ratios)
            cells = [
                "" if place else work,
                f"{row.size:,} {row.unit}",
                row.baseline,
                seconds(median(row.theirs)),
                seconds(median(row.ours)),
                f"**{number(row.ratio)}** ({number(low)} to {number(high)})",
            ]
            cells += [f"{row.limit:.1f}" if row.limit else ""] * limits
            cells += [" and ".join(f"{mib:,.0f}" for mib in row.peak) + " MiB"] * peaks
            cells += [difference(row.seconds_more)] * starts
            power = growth(sizes) if place and row is sizes[-1] else None
            cells += [] if starts else ["" if power is None else f"n^{power:.2f}"]
            lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def remarks(rows: Sequence[Row]) -> list[str]:
    """Returns how results were compared, and the notes on each work."""
    compared = dict.fromkeys(row.same for row in rows if row.same)
    found = [f"Both ways agree: {'; '.join(compared)}."] if compared else []
    notes = dict.fromkeys(f"{row.work}: {row.note}." for row in rows if row.note)
    return [*found, *notes]


def number(value: float) -> str:
    """Returns a number with two decimals, or none if it is large."""
    return f"{value:,.0f}" if value >= WHOLE else f"{value:.2f}"


def seconds(value: float) -> str:
    """Returns a time."""
    return f"{value * 1000:.3g} ms" if value < SMALL_S else f"{number(value)} s"


def difference(value: float) -> str:
    """Returns a signed difference of times."""
    return f"{value * 1000:+.0f} ms" if abs(value) < SMALL_S else f"{value:+.2f} s"
