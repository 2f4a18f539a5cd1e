"""Two files of predictions on the same questions, the work of ``lm-eval-ext sql compare``."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, OptionError, nearest
from lm_eval_ext.sql.partial import PartialOutput
from lm_eval_ext.sql.predictions import DB_ID, GOLD, PREDICTED, RecordWriter
from lm_eval_ext.sql.scoring import (
    DECIDING_DATABASE,
    EXTRACTED,
    ORIGINAL_STATUS,
    REASON,
    STATUS,
    JudgeOptions,
    OpenFile,
    check_output,
    judge_rows,
    opened_judge,
    partial_output,
    read_file,
)
from lm_eval_ext.sql.summary import (
    JudgedRow,
    PairedAccuracy,
    PairedRows,
    check_columns,
    paired_accuracy,
    split,
)
from lm_eval_ext.sql.values import Verdict
from lm_eval_ext.text import counted


@dataclass(frozen=True)
class PartComparison:
    """The comparison on the rows that share values of some columns, which are in ``part``."""

    part: Mapping[str, str]
    accuracy: PairedAccuracy


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two files.

    Attributes:
        names: The names of the systems, A and B.
        pairs: The rows that both files have, in the order of A's.
        total: The comparison of all of these.
        parts: Comparisons of parts.
        signature: What the verdicts depend on other than the files.
        remarks: Lines about what a user should know, such as rows that one file alone has.
    """

    names: tuple[str, str]
    pairs: Sequence[PairedRows]
    total: PairedAccuracy
    parts: Sequence[PartComparison]
    signature: str
    remarks: Sequence[str]

    def only_a(self) -> list[PairedRows]:
        """Return the rows that only A has right."""
        return self._with_outcome((True, False))

    def only_b(self) -> list[PairedRows]:
        """Return the rows that only B has right."""
        return self._with_outcome((False, True))

    def _with_outcome(self, correct: tuple[bool, bool]) -> list[PairedRows]:
        return [pair for pair in self.pairs if pair.scored and pair.correct == correct]

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as JSON values."""
        return {
            "systems": list(self.names),
            "rows": len(self.pairs),
            **asdict(self.total),
            "by": [{**part.part, **asdict(part.accuracy)} for part in self.parts],
            "signature": self.signature,
            "remarks": list(self.remarks),
        }


def compare_files(
    files: tuple[Path, Path],
    options: JudgeOptions,
    *,
    by: Sequence[str] = (),
    match: Sequence[str] = (),
    out: Path | None = None,
) -> Comparison:
    """Judge two files by the same databases and rule, and compare them on the rows they share.

    Rows belong together if they have the same database and gold; several such rows belong together
    in their order.

    Args:
        files: The files of predictions of A and B.
        options: How predictions are judged.
        by: Columns of A's file whose combinations of values are compared, too.
        match: Columns by which rows belong together instead.
        out: A file for the shared rows with both verdicts; verdicts are kept beside it until it is
            complete, so that the same command goes on after an interruption.

    Raises:
        OptionError: An argument is invalid, or the files share no row.
        DataError: A file cannot be read or written.
    """
    out_format = check_output(out) if out is not None else ""
    opened = _read_files(files, options, by, match)
    names = system_names(files)
    systems: list[_System] = []
    partials: list[PartialOutput] = []
    remarks: list[str] = []
    predictions = list(chain.from_iterable(file.predictions for file in opened))
    with opened_judge(options, predictions) as open_judge:
        for name, file in zip(names, opened, strict=True):
            partial = None
            kept_verdicts: Mapping[int, Verdict] = {}
            if out is not None:
                partial = partial_output(out, file.content, open_judge, options)
                kept_verdicts = partial.verdicts()
            rows = judge_rows(file, open_judge, kept_verdicts, partial, name)
            systems.append(_System(name, file, rows))
            if partial is not None:
                partials.append(partial)
            extracted = options.read_query is not None
            remarks += [f"{name}: {line}" for line in file.remarks(extracted=extracted)]
    remarks += open_judge.remarks
    pairs = _paired(systems[0], systems[1], match, remarks)
    if out is not None:
        _write_pairs(out, out_format, systems[0].file, pairs, names)
    for partial in partials:
        partial.remove()
    return Comparison(
        names=names,
        pairs=pairs,
        total=paired_accuracy(pairs),
        parts=list(_compare_parts(pairs, by)),
        signature=open_judge.signature,
        remarks=remarks,
    )


def _read_files(
    files: tuple[Path, Path], options: JudgeOptions, by: Sequence[str], match: Sequence[str]
) -> list[OpenFile]:
    """Return both files; they have the columns that are named.

    Raises:
        OptionError, DataError: As :func:`compare_files`.
    """
    opened = [read_file(path, options) for path in files]
    check_columns(by, opened[0].columns)
    for file in opened:
        _check_match(match, file)
    return opened


def _compare_parts(pairs: Sequence[PairedRows], by: Sequence[str]) -> Iterator[PartComparison]:
    for values, members in split(pairs, by):
        yield PartComparison(values, paired_accuracy(members))


@dataclass(frozen=True)
class _System:
    """A file whose rows are judged, with the name of the system."""

    name: str
    file: OpenFile
    rows: Sequence[JudgedRow]


def system_names(files: tuple[Path, Path]) -> tuple[str, str]:
    """Return the names of two systems: their files' names, or what differs in their paths.

    They differ even if a file is compared with itself, since they name columns.
    """
    path_a, path_b = files
    if path_a.stem != path_b.stem:
        return path_a.stem, path_b.stem
    if path_a.parent.name != path_b.parent.name:
        return f"{path_a.parent.name}/{path_a.stem}", f"{path_b.parent.name}/{path_b.stem}"
    if path_a.name != path_b.name:
        return path_a.name, path_b.name
    if path_a != path_b:
        return str(path_a), str(path_b)
    return f"{path_a.stem} A", f"{path_b.stem} B"


RowKey: TypeAlias = tuple[tuple[str, ...], int]
"""The values that identify a row, and how many rows before it have the same."""


def _paired(
    system_a: _System, system_b: _System, match: Sequence[str], remarks: list[str]
) -> list[PairedRows]:
    """Return the rows that both files have; remarks get what is to be said about the rest.

    Raises:
        OptionError: The files share no row.
        DataError: Columns that were named do not identify a row.
    """
    identity = " and ".join(match or (DB_ID, GOLD))
    rows_a = _by_key(system_a.file, system_a.rows, match)
    rows_b = _by_key(system_b.file, system_b.rows, match)
    shared = [key for key in rows_a if key in rows_b]
    if not shared:
        raise OptionError(
            f"{system_a.file.path} and {system_b.file.path} share no row: none has the same "
            f"{identity} in both"
        )
    for name, rows in ((system_a.name, rows_a), (system_b.name, rows_b)):
        alone = len(rows) - len(shared)
        if alone:
            remarks.append(f"{counted(alone, 'row')} of {name} alone, not compared")
    order_of_b = [key for key in rows_b if key in rows_a]
    has_repeated = any(repetition for _, repetition in shared)
    if shared != order_of_b and has_repeated:
        remarks.append(
            "the files have their rows in different orders, and several rows have the same "
            f"{identity}; --match COLUMN names what identifies a row"
        )
    pairs = [PairedRows(rows_a[key], rows_b[key]) for key in shared]
    other_golds = sum(_gold_of(pair.row_a) != _gold_of(pair.row_b) for pair in pairs)
    if other_golds:
        remarks.append(
            f"{counted(other_golds, 'row')} with another database or gold in {system_b.name}: "
            "each system is judged by its own file"
        )
    return pairs


def _check_match(match: Sequence[str], file: OpenFile) -> None:
    """Check, before anything is judged, that a file has the columns that identify a row.

    Raises:
        OptionError: It lacks one.
    """
    for column in match:
        if column not in file.columns:
            raise OptionError(
                f"--match {column}: {file.path} has no such column; available are "
                f"{', '.join(file.columns)}{nearest(column, file.columns)}"
            )


def _gold_of(row: JudgedRow) -> tuple[str, str]:
    """Return what a row's prediction is judged by: the database and the gold."""
    prediction = row.row.prediction
    return prediction.db_id.casefold(), prediction.gold


def _by_key(
    file: OpenFile, rows: Sequence[JudgedRow], match: Sequence[str]
) -> dict[RowKey, JudgedRow]:
    repetitions = Counter[tuple[str, ...]]()
    by_key: dict[RowKey, JudgedRow] = {}
    for row in rows:
        identity: tuple[str, ...] = _gold_of(row)
        if match:
            identity = tuple(str(row.row.record.get(column)) for column in match)
        if match and repetitions[identity]:
            raise DataError(
                f"{file.path}, line {row.row.line}: --match: the same {' and '.join(match)} as an "
                "earlier row"
            )
        by_key[identity, repetitions[identity]] = row
        repetitions[identity] += 1
    return by_key


def _write_pairs(
    out: Path, out_format: str, file: OpenFile, pairs: Sequence[PairedRows], names: tuple[str, str]
) -> None:
    """Write the shared rows: the columns of A's file, then query, status and reason of each."""
    added = list(_pair_columns(names))
    replaced = {*_SYSTEM_COLUMNS, *added}
    shared = [column for column in file.columns if column not in replaced]
    with atomic_text(out, errors="surrogateescape") as handle:
        writer = RecordWriter(handle, out_format, [*shared, *added])
        for pair in pairs:
            record = pair.row_a.row.record
            kept_cells = {column: record[column] for column in shared if column in record}
            verdicts: list[object] = []
            for judged in (pair.row_a, pair.row_b):
                verdict = judged.verdict
                verdicts += [judged.judged.predicted, verdict.status, verdict.reason]
            writer.write({**kept_cells, **dict(zip(added, verdicts, strict=True))})


_SYSTEM_COLUMNS = (PREDICTED, EXTRACTED, STATUS, REASON, DECIDING_DATABASE, ORIGINAL_STATUS)
"""Columns about system A, which are replaced by those about both."""


def _pair_columns(names: tuple[str, str]) -> Iterator[str]:
    for name in names:
        for column in (PREDICTED, STATUS, REASON):
            yield f"{column} ({name})"
