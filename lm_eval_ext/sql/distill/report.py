"""What is known about a database's power to tell golds from their near misses."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lm_eval_ext.sql.mutants import NearMiss


@dataclass(frozen=True)
class Tie:
    """A near miss that gives the gold's result.

    Attributes:
        gold: The gold query.
        near_miss: The query that is told from it by no row.
        equivalent: Why no database could tell them apart; None where that is not proven.
    """

    gold: str
    near_miss: "NearMiss"
    equivalent: str | None


@dataclass(frozen=True)
class GoldReport:
    """One gold query on a database.

    Attributes:
        gold: The query.
        rows_before: Rows of its result on the original; -1 where there is no original at hand.
        rows_after: Rows of its result on the database examined.
        near_misses: How many near misses were held against it.
        undecided: How many of them ran over the limit of steps and count neither as a tie nor as
            told apart.
        ties: Those that give the same result.
        empty: None where the result has rows; ``unsatisfiable: <reason>`` where it is proven
            that it cannot have any; ``not filled`` otherwise.
        error: Why the query could not be examined; None if it was.
    """

    gold: str
    rows_before: int
    rows_after: int
    near_misses: int
    undecided: int
    ties: tuple[Tie, ...]
    empty: str | None
    error: str | None

    @property
    def open_ties(self) -> tuple[Tie, ...]:
        """The ties that are not proven to be unavoidable."""
        return tuple(tie for tie in self.ties if tie.equivalent is None)


@dataclass(frozen=True)
class Report:
    """All golds of a database.

    Attributes:
        database: Its name, for a reader.
        added: Rows added per table; tables without any are left out.
        golds: One report per distinct query, sorted by its text.
    """

    database: str
    added: dict[str, int]
    golds: tuple[GoldReport, ...]

    def as_dict(self) -> dict[str, Any]:
        """Returns the report as plain values, as JSON has them."""
        return asdict(self)

    def as_json(self) -> str:
        """Returns the report as text that is the same for equal reports."""
        return json.dumps(self.as_dict(), ensure_ascii=True, indent=1) + "\n"

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Report":
        """Returns the report that :meth:`as_dict` was called on.

        Raises:
            KeyError, TypeError: The values are no report.
        """
        from lm_eval_ext.sql.mutants import NearMiss

        golds = []
        for gold in values["golds"]:
            ties = tuple(
                Tie(tie["gold"], NearMiss(**tie["near_miss"]), tie["equivalent"])
                for tie in gold["ties"]
            )
            golds.append(GoldReport(**{**gold, "ties": ties}))
        return Report(values["database"], dict(values["added"]), tuple(golds))
