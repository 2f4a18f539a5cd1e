"""Screens of the commands about SQL, for a terminal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lm_eval_ext.cli.sql_options import JudgeFlags
from lm_eval_ext.results.grid import Section, interval_text, note_section, text, value
from lm_eval_ext.sql.comparing import Comparison
from lm_eval_ext.sql.explaining import ExplainedRow
from lm_eval_ext.sql.smallest import SmallestRows
from lm_eval_ext.sql.summary import Accuracy, JudgedRow, PairedAccuracy, PartAccuracy, Summary
from lm_eval_ext.sql.values import Failure, Row, Rows, Status, Value
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.statistics import number, probability
from lm_eval_ext.text import counted, one_line

LEVEL = "95 %"

SHOWN_ROWS = 8
"""The most rows of a result that are shown."""

SHOWN_COLUMNS = 8
_CELL_WIDTH, _NAME_WIDTH = 32, 24

_REASON_WIDTH = 52
"""Characters of a reason, in which the beginning and the end matter: the file has it whole."""

_STAR = re.compile(r"(?:select|,|\.)\s*\*")
"""A star that stands for all columns, not that of COUNT(*)."""

_QUERY_LENGTH = 4_000
_SHOWN_NUMBERS = 8

UNSCORED: tuple[Status, ...] = ("gold_error", "database_missing")
MISSING_DATABASE_REMEDY = (
    "name by --databases a folder that has it (lm-eval-ext data fetch spider_databases gets "
    "Spider's)"
)
"""What to do about a database that is not there."""

PERCENT = "percent"


def score_screen(summary: Summary, *, listed_rows: int = 0) -> str:
    """Return the result of ``sql-score``.

    Args:
        summary: The summary.
        listed_rows: The most rows that are not correct to list.
    """
    lines = [f"accuracy: {_percent(summary.total)}"]
    not_scored = summary.rows - summary.scored
    if not_scored:
        causes = []
        for status in UNSCORED:
            if summary.counts[status]:
                causes.append(f"{status} {summary.counts[status]:,}")
        lines.append(f"not scored: {counted(not_scored, 'row')} ({', '.join(causes)})")
        if summary.counts["database_missing"]:
            lines.append(f"database_missing: {MISSING_DATABASE_REMEDY}")
    lines += _interval_lines(summary.total)
    if summary.original_correct is not None and summary.scored:
        share = 100 * summary.original_correct / summary.scored
        lost = summary.original_correct - summary.correct
        lines.append(
            f"on the originals alone: {share:.2f} % "
            f"({counted(summary.original_correct, 'row')}); test suites reject {lost:,} of these"
        )
    width = max(len(status) for status in summary.counts)
    lines += [f"  {status:<{width}} {count:>9,}" for status, count in summary.counts.items()]
    lines += [
        _time_line(summary),
        f"signature: {summary.signature}",
    ]
    screen = "\n".join(lines) + "\n"
    sections = list(_score_sections(summary, listed_rows))
    if sections:
        screen += "\n" + text(sections)
    return screen


def _time_line(summary: Summary) -> str:
    """Return how many rows were judged in which time, those of earlier commands apart."""
    rows = counted(summary.rows, "row")
    seconds = f"{summary.seconds:.1f} s"
    if not summary.judged_before:
        return f"{rows} in {seconds}"
    judged_now = summary.rows - summary.judged_before
    return f"{rows}: {judged_now:,} in {seconds}, the others by earlier commands"


def _score_sections(summary: Summary, listed_rows: int) -> Iterator[Section]:
    if listed_rows and summary.incorrect_rows:
        yield _incorrect_table(summary.incorrect_rows, listed_rows)
    if summary.parts:
        yield _part_table(summary.parts)
        if not summary.total.note:  # which says it already
            yield note_section(_part_notes([part.accuracy for part in summary.parts]))
    if summary.remarks:
        yield note_section(one_line(remark) for remark in summary.remarks)


def _incorrect_table(rows: Sequence[JudgedRow], listed_rows: int) -> Section:
    """Return the first rows that are not correct, with their databases if there are several."""
    columns = ["row", "database", "status", "reason"]
    lines: list[list[str]] = []
    for row in rows[:listed_rows]:
        database = one_line(row.judged.db_id, limit=_NAME_WIDTH)
        reason = one_line(row.verdict.reason, limit=_REASON_WIDTH)
        lines.append([str(row.row.number), database, row.verdict.status, reason])
    if len({row.cluster for row in rows}) == 1:
        for cells in (columns, *lines):
            del cells[1]
    heading = "not correct"
    if len(rows) > listed_rows:
        heading += f", the first {listed_rows:,} of {len(rows):,} rows (--show-wrong N shows more)"
    return heading, columns, lines


def _part_table(parts: Sequence[PartAccuracy]) -> Section:
    """Return the accuracies of parts, without the column of intervals if there are none."""
    columns = [", ".join(parts[0].part), "accuracy", LEVEL, "correct", "scored"]
    rows = [[_part_name(part.part), *_accuracy_cells(part.accuracy)] for part in parts]
    if all(part.accuracy.low is None for part in parts):
        level = columns.index(LEVEL)
        for cells in (columns, *rows):
            del cells[level]
    return "", columns, rows


def _accuracy_cells(accuracy: Accuracy) -> list[str]:
    return [
        value(_in_percent(accuracy.accuracy), PERCENT),
        _interval(accuracy.low, accuracy.high),
        f"{accuracy.correct:,}",
        f"{accuracy.scored:,}",
    ]


def _in_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    return interval_text(_in_percent(low), _in_percent(high), PERCENT, signed=signed)


def _part_notes(accuracies: Sequence[Accuracy]) -> Iterator[str]:
    """Yield why parts have no interval, once for each number of databases."""
    missing = sorted({accuracy.databases for accuracy in accuracies if accuracy.note})
    if len(missing) > 1:
        databases = f"{missing[0]} to {missing[-1]} databases"
        yield f"no interval from {databases}, fewer than {LEAST_CLUSTERS}"
    elif missing:
        yield next(accuracy.note for accuracy in accuracies if accuracy.note)


def _percent(accuracy: Accuracy) -> str:
    if accuracy.accuracy is None:
        return "none: no row can be scored"
    share = 100 * accuracy.accuracy
    return f"{share:.2f} % ({accuracy.correct:,} of {accuracy.scored:,} rows scored)"


def _interval_lines(accuracy: Accuracy) -> Iterator[str]:
    if accuracy.low is not None and accuracy.high is not None:
        yield (
            f"95 % interval: {_interval(accuracy.low, accuracy.high)}, clustered by "
            f"{counted(accuracy.databases, 'database')}"
        )
    elif accuracy.note:
        yield accuracy.note


def _part_name(part: Mapping[str, str]) -> str:
    return one_line(", ".join(part.values())) or "(empty)"


# Two systems.


def comparison_screen(comparison: Comparison, file_a: Path, flags: JudgeFlags) -> str:
    """Return the result of ``sql compare``, with the command that explains a row of A's file."""
    screen = text(_comparison_sections(comparison))
    differing = comparison.only_b() or comparison.only_a()
    if differing:
        # In one line, however long, so that it can be copied.
        command = flags.explain_command(file_a, differing[0].row_a.row.number)
        screen += f"\nsee one of them: {command}\n"
    return screen


def _comparison_sections(comparison: Comparison) -> Iterator[Section]:
    total = comparison.total
    name_a, name_b = map(one_line, comparison.names)
    count = counted(total.accuracy_a.scored, "row")
    heading = f"{count}, {counted(total.accuracy_a.databases, 'database')}"
    yield (
        heading,
        ("system", "accuracy", LEVEL, "correct"),
        [
            [name_a, *_accuracy_cells(total.accuracy_a)[:3]],
            [name_b, *_accuracy_cells(total.accuracy_b)[:3]],
        ],
    )
    yield (
        "",
        ("", f"{name_b} right", f"{name_b} wrong"),
        [
            [f"{name_a} right", f"{total.both_correct:,}", f"{total.only_a:,}"],
            [f"{name_a} wrong", f"{total.only_b:,}", f"{total.both_wrong:,}"],
        ],
    )
    rows = [["all rows", *_difference_cells(total)]]
    for part in comparison.parts:
        rows.append([_part_name(part.part), *_difference_cells(part.accuracy)])
    columns = ("", name_a, name_b, "difference", LEVEL, "p", "p (McNemar)")
    yield f"{name_a} less {name_b}", columns, rows
    yield note_section(_comparison_notes(comparison))
    yield note_section([f"signature: {comparison.signature}"])
    yield note_section(_differing_rows(comparison))


def _difference_cells(paired: PairedAccuracy) -> list[str]:
    difference = paired.difference
    return [
        value(_in_percent(paired.accuracy_a.accuracy), PERCENT),
        value(_in_percent(paired.accuracy_b.accuracy), PERCENT),
        number(_in_percent(difference.value), PERCENT, signed=True),
        _interval(difference.low, difference.high, signed=True),
        probability(difference.p),
        probability(paired.mcnemar_p),
    ]


def _comparison_notes(comparison: Comparison) -> Iterator[str]:
    test = comparison.total.difference.test
    if test == "sign-flip":
        yield (
            "p: exchanges of the systems in whole databases, whose questions are not independent"
        )
    yield "p (McNemar): exact, as if all rows were independent"
    reasons = [comparison.total.note, *(part.accuracy.note for part in comparison.parts)]
    yield from dict.fromkeys(reason for reason in reasons if reason)
    yield from map(one_line, comparison.remarks)


def _differing_rows(comparison: Comparison) -> Iterator[str]:
    """Yield the numbers of the first rows that one system alone has right."""
    name_a, name_b = comparison.names
    for name, pairs in ((name_a, comparison.only_a()), (name_b, comparison.only_b())):
        if not pairs:
            continue
        numbers = ", ".join(str(pair.row_a.row.number) for pair in pairs[:_SHOWN_NUMBERS])
        more = len(pairs) - _SHOWN_NUMBERS
        ending = f" and {more:,} more" if more > 0 else ""
        noun = "row" if len(pairs) == 1 else "rows"
        yield f"only {one_line(name)} right: {noun} {numbers}{ending}"


# One prediction.


def explanation_screen(explained: ExplainedRow) -> str:
    """Return the result of ``sql explain``."""
    return text(_explanation_sections(explained))


def _explanation_sections(explained: ExplainedRow) -> Iterator[Section]:
    explanation = explained.explanation
    yield "\n".join(_head_lines(explained)), (), ()
    yield f"gold: {_query(explained.prediction.gold)}", (), ()
    if explained.answer:
        yield f"answer: {_query(explained.answer)}", (), ()
    yield f"predicted: {_query(explained.prediction.predicted)}", (), ()
    if explained.smallest is not None:
        yield from _smallest_sections(explained.smallest, explained)
    where = explained.where
    yield from _result(f"The gold returns {{}} {where}", explanation.gold)
    yield from _result(f"The prediction returns {{}} {where}", explanation.predicted)
    if isinstance(explanation.gold, Rows) and isinstance(explanation.predicted, Rows):
        yield from _differences(explanation.gold, explanation.predicted, explained)


def _head_lines(explained: ExplainedRow) -> Iterator[str]:
    verdict = explained.explanation.verdict
    yield one_line(f"{explained.title}, database {explained.prediction.db_id}")
    decided = f" {explained.where}"
    if verdict.correct:
        decided = " on all databases that judge this gold"
    elif not verdict.database:
        decided = ""
    if verdict.status == "database_missing":
        yield f"{verdict.status}: {one_line(verdict.reason)}; {MISSING_DATABASE_REMEDY}"
        return
    yield f"{verdict.status}{decided}, by the rule {verdict.rule}"
    if verdict.reason:
        yield one_line(verdict.reason)
    if verdict.original_status not in (None, verdict.status):
        yield f"on the original alone: {verdict.original_status}"


def _query(sql: str) -> str:
    """Return a query with its lines, without control characters."""
    lines = [one_line(line) for line in sql[:_QUERY_LENGTH].splitlines()]
    shown_query = "\n".join(line for line in lines if line)
    if len(sql) > _QUERY_LENGTH:
        shown_query += f" ... ({len(sql):,} characters)"
    return shown_query or "(empty)"


def _result(heading: str, result: Rows | Failure) -> Iterator[Section]:
    """Yield a result under a heading, whose braces stand for the number of rows."""
    if isinstance(result, Failure):
        problem = f"{heading.format('no result')}: {result.kind}: {result.message}"
        yield one_line(problem), (), ()
        return
    if not result.rows:
        yield heading.format("no row") + ".", (), ()
        return
    count = counted(len(result.rows), "row")
    yield from _table(heading.format(count), result.columns, result.rows)


def _table(heading: str, columns: Sequence[str], rows: Sequence[Row]) -> Iterator[Section]:
    """Yield a table of the first rows and columns."""
    names = [one_line(name, limit=_NAME_WIDTH) for name in columns[:SHOWN_COLUMNS]]
    lines = [list(map(_cell, row[:SHOWN_COLUMNS])) for row in rows[:SHOWN_ROWS]]
    hidden = []
    if len(rows) > SHOWN_ROWS:
        hidden.append(f"the first {SHOWN_ROWS}")
    if len(columns) > SHOWN_COLUMNS:
        hidden.append(f"{SHOWN_COLUMNS} of {len(columns):,} columns")
    if hidden:
        heading += f" ({', '.join(hidden)})"
    yield f"{heading}:", names, lines


def _differences(gold: Rows, predicted: Rows, explained: ExplainedRow) -> Iterator[Section]:
    """Yield the rows that differ, unless both results are short enough to see that."""
    if len(gold.rows) <= SHOWN_ROWS and len(predicted.rows) <= SHOWN_ROWS:
        return
    missing, extra = explained.explanation.missing, explained.explanation.extra
    if missing:
        heading = f"{counted(len(missing), 'row')} missing from the prediction's result"
        yield from _table(heading, gold.columns, missing)
    if extra:
        heading = f"{counted(len(extra), 'row')} too many in the prediction's result"
        yield from _table(heading, predicted.columns, extra)


def _smallest_sections(smallest: SmallestRows, explained: ExplainedRow) -> Iterator[Section]:
    """Yield the tables that show the difference, with the columns that queries mention."""
    if not smallest.count:
        yield "The results differ even without any row in the database.", (), ()
        return
    verb = "is" if smallest.count == 1 else "are"
    count = counted(smallest.count, "row")
    yield f"{count} of the database {verb} enough to show the difference:", (), ()
    queries = f"{explained.prediction.gold}\n{explained.prediction.predicted}".casefold()
    has_star = _STAR.search(queries) is not None
    for table in smallest.tables:
        positions = []
        for position, name in enumerate(table.columns):
            if has_star or name.casefold() in queries:
                positions.append(position)
        columns = [table.columns[position] for position in positions]
        rows = [tuple(row[position] for position in positions) for row in table.rows]
        heading = f"{one_line(table.name)}, {counted(len(rows), 'row')}"
        if columns:
            yield from _table(heading, columns, rows)
        else:
            yield f"{heading}.", (), ()
    yield from _result("On this the gold returns {}", smallest.gold)
    yield from _result("On this the prediction returns {}", smallest.predicted)


def _cell(cell: Value) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, bytes):
        return one_line(f"x'{cell[:_CELL_WIDTH].hex()}'", limit=_CELL_WIDTH)
    return one_line(str(cell), limit=_CELL_WIDTH) or "(empty)"
