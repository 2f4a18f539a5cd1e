"""Accuracies of judged predictions: of all, of parts, and of two systems side by side.

Questions about one database are not independent, so intervals and tests are clustered by database
(docs/statistics.md).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.sql.predictions import DB_ID, PredictionRow
from lm_eval_ext.sql.values import STATUSES, Prediction, Status, Verdict
from lm_eval_ext.stats.intervals import DIFFERENCE, LEAST_CLUSTERS, UNIT, interval, mean_estimate
from lm_eval_ext.stats.paired import Difference, mcnemar, paired_difference
from lm_eval_ext.text import counted


@dataclass(frozen=True)
class JudgedRow:
    """A row of a file with its verdict.

    Attributes:
        row: The row as the file has it.
        judged: The prediction that was judged: the row's own, or the query that was extracted
            from it.
        verdict: The verdict on it.
    """

    row: PredictionRow
    judged: Prediction
    verdict: Verdict

    @property
    def cluster(self) -> str:
        """The database, whose case does not matter."""
        return self.judged.db_id.casefold()

    def values_of(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the values of some columns as text; "" for one that the row lacks."""
        values = []
        for column in columns:
            value = self.row.record.get(column)
            if column == DB_ID:
                value = self.judged.db_id
            values.append("" if value is None else str(value))
        return tuple(values)


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of some rows, with its interval.

    Attributes:
        rows: The number of rows.
        scored: Rows that say something about the model: all but gold_error and database_missing.
            The accuracy's denominator.
        correct: Rows with the status correct.
        accuracy: ``correct / scored``; None if no row could be scored.
        low: The lower end of the 95 % interval, clustered by database; None if there is none.
        high: Its upper end.
        databases: The databases of the rows that were scored.
    """

    rows: int
    scored: int
    correct: int
    accuracy: float | None
    low: float | None
    high: float | None
    databases: int

    @property
    def note(self) -> str:
        """Why there is no interval; "" if there is one."""
        if self.low is not None or not self.scored:
            return ""
        return no_interval(self.databases)


@dataclass(frozen=True)
class PartAccuracy:
    """The accuracy of the rows that share values of some columns, which are in ``part``."""

    part: Mapping[str, str]
    accuracy: Accuracy


@dataclass(frozen=True)
class Summary:
    """The result of scoring a file.

    Attributes:
        total: The accuracy of all rows.
        original_correct: Rows that are right on the original; None without a suite.
        counts: Rows per status, every status named.
        parts: Accuracies of parts, in the order of the file.
        wrong_row: The number of a row with the status wrong, as an example: of the first one that
            is right on the original, if there is one; None without a wrong row.
        incorrect_rows: The rows that are not correct, in the order of the file; those whose
            database is missing are only counted.
        judged_before: Rows whose verdicts earlier commands had kept.
        seconds: Real time from the first query to the last verdict, with the start of workers.
        signature: What the verdicts depend on other than the files.
        remarks: Lines about what a user should know, such as golds that no suite judges.
    """

    total: Accuracy
    original_correct: int | None
    counts: Mapping[Status, int]
    parts: Sequence[PartAccuracy]
    wrong_row: int | None
    judged_before: int
    seconds: float
    signature: str
    remarks: Sequence[str] = field(default=())
    incorrect_rows: Sequence[JudgedRow] = field(default=(), repr=False)

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return self.total.rows

    @property
    def scored(self) -> int:
        """Rows in the accuracy's denominator."""
        return self.total.scored

    @property
    def correct(self) -> int:
        """Rows with the status correct."""
        return self.total.correct

    @property
    def accuracy(self) -> float | None:
        """The share of scored rows that are correct; None if no row could be scored."""
        return self.total.accuracy

    def as_dict(self) -> dict[str, object]:
        """Return the summary as JSON values."""
        return {
            **asdict(self.total),
            "original_correct": self.original_correct,
            "counts": dict(self.counts),
            "by": [{**part.part, **asdict(part.accuracy)} for part in self.parts],
            "judged_before": self.judged_before,
            "seconds": self.seconds,
            "signature": self.signature,
            "remarks": list(self.remarks),
        }


def no_interval(databases: int) -> str:
    """Return the reason for which so few databases give no interval."""
    return f"no interval from {counted(databases, 'database')}, fewer than {LEAST_CLUSTERS}"


def accuracy_of(rows: Sequence[JudgedRow]) -> Accuracy:
    """Return the accuracy of rows, with an interval that is clustered by database."""
    scored = [row for row in rows if row.verdict.scorable]
    scores = scores_of(scored)
    clusters = [row.cluster for row in scored]
    correct = int(sum(scores))
    estimate = mean_estimate(scores, clusters) if scored else None
    low, high, _ = interval(estimate, UNIT)
    return Accuracy(
        rows=len(rows),
        scored=len(scored),
        correct=correct,
        accuracy=correct / len(scored) if scored else None,
        low=low,
        high=high,
        databases=len(set(clusters)),
    )


def scores_of(rows: Sequence[JudgedRow]) -> list[float]:
    """Return 1 for each row that is correct, and 0 for the rest."""
    return [float(row.verdict.correct) for row in rows]


def check_columns(by: Sequence[str], columns: Sequence[str]) -> None:
    """Check that a file can be split by some columns.

    Raises:
        OptionError: The file lacks one.
    """
    for name in by:
        if name not in columns and name != DB_ID:
            raise OptionError(
                f"--by {name}: the file has no such column; available are {', '.join(columns)}"
                f"{nearest(name, columns)}"
            )


RowT = TypeVar("RowT", "JudgedRow", "PairedRows")


def split(
    rows: Sequence[RowT], by: Sequence[str]
) -> Iterator[tuple[Mapping[str, str], list[RowT]]]:
    """Yield the values of some columns with the rows that share them, in the order of the file."""
    if not by:
        return
    rows_by_values: dict[tuple[str, ...], list[RowT]] = {}
    for row in rows:
        rows_by_values.setdefault(row.values_of(by), []).append(row)
    for values, members in rows_by_values.items():
        yield dict(zip(by, values, strict=True)), members


def summary_of(
    rows: Sequence[JudgedRow],
    by: Sequence[str],
    *,
    has_suite: bool,
    judged_before: int,
    seconds: float,
    signature: str,
    remarks: Sequence[str],
) -> Summary:
    """Return the summary of all rows of a file."""
    counts = Counter(row.verdict.status for row in rows)
    original_correct = None
    if has_suite:
        original_correct = sum(row.verdict.original_status == "correct" for row in rows)
    parts = []
    for values, members in split(rows, by):
        parts.append(PartAccuracy(values, accuracy_of(members)))
    return Summary(
        total=accuracy_of(rows),
        original_correct=original_correct,
        counts={status: counts[status] for status in STATUSES},
        parts=parts,
        wrong_row=_first_wrong(rows),
        judged_before=judged_before,
        seconds=seconds,
        signature=signature,
        remarks=remarks,
        incorrect_rows=[row for row in rows if _is_to_be_listed(row)],
    )


def _is_to_be_listed(row: JudgedRow) -> bool:
    return row.verdict.status not in ("correct", "database_missing")


def _first_wrong(rows: Sequence[JudgedRow]) -> int | None:
    wrong = [row for row in rows if row.verdict.status == "wrong"]
    # The best example is right on the original by chance, and only a suite shows that it is wrong.
    by_chance = [row for row in wrong if row.verdict.original_status == "correct"]
    examples = by_chance or wrong
    return examples[0].row.number if examples else None


@dataclass(frozen=True)
class PairedRows:
    """A row that the files of two systems, A and B, have in common."""

    row_a: JudgedRow
    row_b: JudgedRow

    @property
    def scored(self) -> bool:
        """Whether both verdicts are about the prediction."""
        return self.row_a.verdict.scorable and self.row_b.verdict.scorable

    @property
    def correct(self) -> tuple[bool, bool]:
        """Whether A has it right, and whether B has."""
        return self.row_a.verdict.correct, self.row_b.verdict.correct

    def values_of(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the values of some columns of A's file; see :meth:`JudgedRow.values_of`."""
        return self.row_a.values_of(columns)


@dataclass(frozen=True)
class PairedAccuracy:
    """Two systems, A and B, on the same rows.

    Attributes:
        accuracy_a: The accuracy of A on the rows that were scored for both.
        accuracy_b: The same of B.
        both_correct: Rows that both have right.
        only_a: Rows that only A has right.
        only_b: Rows that only B has right.
        both_wrong: Rows that neither has right.
        difference: The accuracy of A less that of B, with its interval and test, clustered by
            database.
        mcnemar_p: The p-value of McNemar's exact test, which takes all rows as independent.
    """

    accuracy_a: Accuracy
    accuracy_b: Accuracy
    both_correct: int
    only_a: int
    only_b: int
    both_wrong: int
    difference: Difference
    mcnemar_p: float

    @property
    def note(self) -> str:
        """Why the difference has no interval; "" if it has one."""
        if self.difference.low is not None or not self.accuracy_a.scored:
            return ""
        if self.accuracy_a.databases >= LEAST_CLUSTERS:
            return "no interval: no row differs"
        return no_interval(self.accuracy_a.databases) + "; p is never below 0.05"


def paired_accuracy(pairs: Sequence[PairedRows]) -> PairedAccuracy:
    """Compare two systems on the rows that were scored for both."""
    rows_a: list[JudgedRow] = []
    rows_b: list[JudgedRow] = []
    outcomes = Counter[tuple[bool, bool]]()
    for pair in pairs:
        if pair.scored:
            rows_a.append(pair.row_a)
            rows_b.append(pair.row_b)
            outcomes[pair.correct] += 1
    difference = Difference(None)
    if rows_a:
        clusters = [row.cluster for row in rows_a]
        difference = paired_difference(
            scores_of(rows_a), scores_of(rows_b), clusters, limits=DIFFERENCE
        )
    only_a, only_b = outcomes[True, False], outcomes[False, True]
    return PairedAccuracy(
        accuracy_a=accuracy_of(rows_a),
        accuracy_b=accuracy_of(rows_b),
        both_correct=outcomes[True, True],
        only_a=only_a,
        only_b=only_b,
        both_wrong=outcomes[False, False],
        difference=difference,
        mcnemar_p=mcnemar(only_a, only_b),
    )
