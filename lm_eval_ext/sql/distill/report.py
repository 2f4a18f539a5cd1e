"""What a database distinguishes, and the reports beside populated copies."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.values import Mutant

POPULATE_VERSION = 3
"""Rises whenever other rows would be added; part of caches' keys and of signatures."""


@dataclass(frozen=True)
class Tie:
    """A near miss that gives the gold's result.

    Attributes:
        gold: The gold query.
        near_miss: The query that no row distinguishes from it.
        equivalent: Why no database distinguishes them; None if that is not proven.
    """

    gold: str
    near_miss: Mutant
    equivalent: str | None


@dataclass(frozen=True)
class Broken:
    """A rewrite that should have the gold's result and has another one.

    Attributes:
        kind: The rule (:data:`lm_eval_ext.sql.rewrites.KINDS`).
        sql: The rewrite.
        text: What the rule changed, for a reader.
    """

    kind: str
    sql: str
    text: str


@dataclass(frozen=True)
class GoldReport:
    """One gold query on a database.

    Attributes:
        gold: The query.
        rows_before: Rows of its result on the original; -1 without an original.
        rows_after: Rows of its result on the database examined.
        near_misses: How many near misses it has.
        undecided: How many of them exceeded the limit of steps and count as neither tied nor
            distinguished.
        ties: Those that give the same result.
        empty: None if the result has rows; ``unsatisfiable: <reason>`` if it is proven that it
            cannot have any; ``not filled`` otherwise.
        error: Why the query could not be examined; None if it was.
        rewrites: How many other ways to write it were tried, by rule.
        broken: Those with another result.
        cut_ties: How many of its LIMITs separate rows with equal sort keys.
        new_cut_ties: How many of them do not on the original.
    """

    gold: str
    rows_before: int
    rows_after: int
    near_misses: int
    undecided: int
    ties: tuple[Tie, ...]
    empty: str | None
    error: str | None
    rewrites: Mapping[str, int] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    cut_ties: int = 0
    new_cut_ties: int = 0

    @property
    def open_ties(self) -> tuple[Tie, ...]:
        """The ties that are not proven to be equivalent."""
        return tuple(tie for tie in self.ties if tie.equivalent is None)


@dataclass(frozen=True)
class Report:
    """All golds of a database.

    Attributes:
        database: Its name, for a reader.
        added: Rows added per table, for tables with any.
        golds: One report per distinct query, sorted by its text.
        values: Added values by how they fit their columns (:data:`.added_values.KINDS`); empty
            without an original.
        left_out: Of another engine than SQLite, what rows could not be searched for, and why.
    """

    database: str
    added: dict[str, int]
    golds: tuple[GoldReport, ...]
    values: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the report as JSON values."""
        return asdict(self)

    def as_json(self) -> str:
        """Returns the report as text; equal reports give equal texts."""
        return json.dumps(self.as_dict(), ensure_ascii=True, indent=1) + "\n"

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Report":
        """Returns the report that :meth:`as_dict` was called on.

        Raises:
            KeyError, TypeError: The values are not a report.
        """
        golds = []
        for gold in values["golds"]:
            ties = tuple(
                Tie(tie["gold"], Mutant(**tie["near_miss"]), tie["equivalent"])
                for tie in gold["ties"]
            )
            broken = tuple(Broken(**one) for one in gold["broken"])
            golds.append(GoldReport(**{**gold, "ties": ties, "broken": broken}))
        return Report(
            values["database"], dict(values["added"]), tuple(golds), dict(values["values"]),
            tuple(values.get("left_out", ())),
        )  # fmt: skip


def finished(folder: Path, db_id: str, original: Path, golds: Sequence[str]) -> Report | None:
    """Returns the report of a populated copy; None unless it is complete and up to date."""
    copy = folder / db_id / f"{db_id}.sqlite"
    try:
        noted = json.loads((folder / db_id / f"{db_id}.report.json").read_text(encoding="utf-8"))
        same = noted["key"] == key_of(original, golds) and noted["sha256"] == sha256_of(copy)
        return Report.from_dict(noted["report"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def key_of(original: Path, golds: Sequence[str]) -> str:
    """Returns a text that is the same only for inputs that give the same copy.

    Raises:
        DataError: The original cannot be read.
    """
    try:
        parts = [POPULATE_VERSION, sha256_of(original), sorted(set(golds))]
    except OSError as error:
        raise DataError(f"cannot read the database {original}: {error.strerror}") from None
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
