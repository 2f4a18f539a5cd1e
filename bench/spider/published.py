"""Figures that others published about the systems, and that this project measured before.

All figures are percentages. Test-suite accuracies: Pourreza and Rafiei (2023), "DIN-SQL", tables
4a (all questions) and 4b (by difficulty), of all 1,034 questions of the development set; here are
972, since one database (wta_1) is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

DIFFICULTIES = ("easy", "medium", "hard", "extra")


@dataclass(frozen=True)
class Published:
    """Figures of a system.

    Attributes:
        title: Its name in words.
        test_suite: Its published test-suite accuracy.
        before: What `strict` with suites gave on 2026-11-28.
        by_difficulty: Its published test-suite accuracy by difficulty.
    """

    title: str
    test_suite: float
    before: float
    by_difficulty: Mapping[str, float] = field(default_factory=dict)


SYSTEMS: Mapping[str, Published] = {
    "gpt-4-zero-shot": Published("zero-shot GPT-4", 64.9, 64.6),
    "gpt-4-few-shot": Published(
        "few-shot GPT-4",
        67.4,
        67.5,
        {"easy": 86.7, "medium": 73.1, "hard": 59.2, "extra": 31.9},
    ),
    "gpt-4-din-sql": Published("DIN-SQL, GPT-4", 74.2, 73.7),
    "codex-few-shot": Published("few-shot Codex", 61.5, 62.6),
    "codex-din-sql": Published(
        "DIN-SQL, Codex",
        69.9,
        69.3,
        {"easy": 89.1, "medium": 75.6, "hard": 58.0, "extra": 38.6},
    ),
}
"""By the name of the file of predictions, without its ending."""

MOST_VERDICTS_UNLIKE = 5
"""The goal for verdicts unlike the official evaluator's, of all predictions."""

MOST_POINTS_FROM_BEFORE = 1.5
"""The goal for the distance of a suite accuracy from the one before, in percentage points."""

MOST_REJECTED = 8
REJECTED_OF = 3_282
"""The goal for accepted predictions that a sub-database rejects: 8 of 3,282 accepted ones, from
five systems."""
