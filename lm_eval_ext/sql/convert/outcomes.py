"""What becomes of gold queries on another engine; imports nothing heavy."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

TRANSLATE_VERSION = 1
"""Rises whenever a query could be translated otherwise."""

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "gold_fails": "the gold fails on SQLite",
        "not_read": "sqlglot cannot read or write it",
        "bare_column": "a column that is neither grouped nor aggregated",
        "types": "types that the engine does not compare or convert",
        "distinct_order": "ordered by what SELECT DISTINCT leaves out",
        "does_not_run": "refused for another reason",
        "null_order": "differs, since NULL comes last there",
        "inner_limit": "differs, and a LIMIT in a subquery may cut rows that tie",
        "differs_original": "differs on the original rows",
        "differs_populated": "differs on the populated rows only",
    }
)
"""Why a gold query is not scorable on another engine, and what that means."""


@dataclass(frozen=True)
class Translated:
    """A gold query in the engine's dialect.

    Attributes:
        gold: In SQLite's.
        sql: The translation, "" if there is none; scored only where ``reason`` is "".
        reason: Of :data:`REASONS`, why it is not scorable.
        detail: What the engine says, or what differs.
    """

    gold: str
    sql: str
    reason: str = ""
    detail: str = ""


def counted(translated: Iterable[Translated]) -> dict[str, int]:
    """How many golds are not scorable, by reason in the order of :data:`REASONS`."""
    found = Counter(one.reason for one in translated if one.reason)
    return {reason: found[reason] for reason in REASONS if found[reason]}


def as_text(translated: Sequence[Translated], title: str) -> str:
    """The counts in some lines."""
    size = len(translated)
    kept = sum(not one.reason for one in translated)
    lines = [
        f"{kept:,} of {size:,} gold queries can be scored on {title} ({kept / (size or 1):.1%})"
    ]
    lines += [
        f"  {count:>5,} {REASONS[reason]} ({count / size:.1%})"
        for reason, count in counted(translated).items()
    ]
    return "\n".join(lines)
