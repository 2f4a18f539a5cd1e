"""Settings and results of a comparison, its rows for programs, and text made safe for files."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_ext.stats.intervals import Interval
from lm_eval_ext.stats.paired import Difference


@dataclass(frozen=True)
class Settings:
    """How to compare; intervals have the level 1 - alpha."""

    metrics: tuple[str, ...] = ()
    alpha: float = 0.05
    seed: int = 0
    across_settings: bool = False


@dataclass(frozen=True)
class Pair:
    """Two systems on one metric: first minus second, and p adjusted for all pairs of the metric."""

    first: str
    second: str
    difference: Difference
    p_holm: float | None = None


@dataclass(frozen=True)
class Table:
    """One metric of one task.

    Attributes:
        task: Its name, or the names of two that are compared.
        metric: As in results files.
        documents: Number of documents that all systems have a score for.
        clusters: Number of clusters that these documents come from.
        unit: What a cluster is.
        values: By system, the best first; None: undefined.
        intervals: By system, of the level 1 - alpha; None where there is none.
        groups: By system, letters: two that share one are not significantly different.
        pairs: All of them, in the order in which the systems were named.
        note: Why there is no test, if there is none.
        percent: Whether values go to 100.
        headline: Whether the metric stands for the task.
        lower: Whether smaller values are better.
        published: Published values of the metric, by label.
    """

    task: str
    metric: str
    documents: int
    clusters: int
    unit: str
    values: Mapping[str, float | None]
    groups: Mapping[str, str]
    pairs: Sequence[Pair]
    note: str = ""
    intervals: Mapping[str, Interval | None] = field(default_factory=dict)
    percent: bool = False
    headline: bool = False
    lower: bool = False
    published: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A task that could not be compared: why, and the signatures of the runs."""

    task: str
    reason: str
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """The results of a comparison: a table per task and metric, and the signature of each task."""

    tables: Sequence[Table]
    refused: Sequence[Refusal]
    signatures: Mapping[str, str]
    settings: Settings


SHARED_COLUMNS = ("task", "metric", "documents", "clusters", "unit")
PAIR_COLUMNS = (
    *SHARED_COLUMNS, "first", "second", "value_first", "value_second", "difference", "stderr",
    "low", "high", "method", "p", "p_holm", "test",
)  # fmt: skip
"""Columns of the CSV output."""


def system_rows(table: Table) -> list[dict[str, Any]]:
    """A row per system, for programs."""
    return [
        {
            **_shared(table),
            "headline": table.headline,
            "percent": table.percent,
            "system": system,
            "value": value,
            "low": found.low if (found := table.intervals.get(system)) else None,
            "high": found.high if found else None,
            "group": table.groups.get(system),
        }
        for system, value in table.values.items()
    ]


def pair_row(table: Table, pair: Pair) -> dict[str, Any]:
    """A row of two systems with the keys ``PAIR_COLUMNS``, for programs."""
    found = pair.difference
    return {
        **_shared(table),
        "first": pair.first,
        "second": pair.second,
        "value_first": table.values[pair.first],
        "value_second": table.values[pair.second],
        "difference": None if math.isnan(found.value) else found.value,
        **{key: getattr(found, key) for key in ("stderr", "low", "high", "method", "p")},
        "p_holm": pair.p_holm,
        "test": found.test,
    }


def _shared(table: Table) -> dict[str, Any]:
    return {key: getattr(table, key) for key in SHARED_COLUMNS}


def markdown_line(cells: Iterable[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Escapes text for Markdown, so that a model's name is neither mark-up nor HTML."""
    for character in "\\`*_[]<>|#~":
        text = text.replace(character, "\\" + character)
    return text


def guarded(value: Any) -> Any:
    """Puts an apostrophe before text that a spreadsheet would take for a formula."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")):
        return "'" + value
    return value
