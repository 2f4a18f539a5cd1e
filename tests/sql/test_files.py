"""Prediction files: what is read is what was written, and no row is lost."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.predictions import (
    PredictionFile,
    RecordWriter,
    columns_of,
    read_predictions,
)
from lm_eval_ext.sql.values import Prediction

NAMES = ("db_id", "gold_sql", "predicted_sql")
TSV_HEADER = "\t".join(NAMES) + "\n"
CSV_HEADER = ",".join(NAMES) + "\n"


def predictions(
    folder: Path, name: str, content: bytes | str, *, quotes: bool = True
) -> list[Prediction]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [row.prediction for row in PredictionFile(path, quotes=quotes).rows()]


def written(path: Path, records: Sequence[Mapping[str, object]]) -> Path:
    with atomic_text(path, errors="surrogateescape") as file:
        writer = RecordWriter(file, path.suffix, list(records[0]))
        for record in records:
            writer.write(record)
    return path


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        pytest.param(
            "a.tsv",
            TSV_HEADER + 'd\t"select ""a"""\t"x\ty\nz"\n\nd\tg\t\n',
            [("d", 'select "a"', "x\ty\nz"), ("d", "g", "")],
            id="tsv-quoted-tab-and-line-break",
        ),
        pytest.param(
            "a.csv",
            CSV_HEADER + 'd,"SELECT a, b","SELECT a,\n  b, c\nFROM t"\nd,g,p\n',
            [("d", "SELECT a, b", "SELECT a,\n  b, c\nFROM t"), ("d", "g", "p")],
            id="csv-query-over-lines-with-as-many-cells-as-a-row",
        ),
        pytest.param(
            "a.csv",
            CSV_HEADER
            + 'd,SELECT 1,"SELECT x,\n (SELECT max(b) FROM t), y\nFROM t\nUNION\nSELECT 1, 2, 3"\n',
            [
                (
                    "d",
                    "SELECT 1",
                    "SELECT x,\n (SELECT max(b) FROM t), y\nFROM t\nUNION\nSELECT 1, 2, 3",
                )
            ],
            id="csv-subquery-and-compound-over-lines",
        ),
        pytest.param(
            "a.tsv",
            TSV_HEADER + 'd\tg\t"SELECT a\n\t\tFROM t\n\t\tWHERE b"\n',
            [("d", "g", "SELECT a\n\t\tFROM t\n\t\tWHERE b")],
            id="tsv-query-indented-by-tabs",
        ),
        pytest.param(
            "a.csv",
            "predicted_sql,db_id,gold_sql\n" + '"SELECT\n1",d,SELECT 1\n',
            [("d", "SELECT 1", "SELECT\n1")],
            id="csv-line-break-in-the-first-column",
        ),
        pytest.param(
            "a.tsv",
            TSV_HEADER + 'd\tg\tSELECT "a" FROM t WHERE b = "\nd\tg\tSELECT 5"\n',
            [("d", "g", 'SELECT "a" FROM t WHERE b = "'), ("d", "g", 'SELECT 5"')],
            id="lone-marks-inside-unquoted-cells",
        ),
        pytest.param(
            "a.csv",
            b"\xef\xbb\xbf" + (CSV_HEADER + "d,g,p\nd,g,q\n").replace("\n", "\r\n").encode(),
            [("d", "g", "p"), ("d", "g", "q")],
            id="byte-order-mark-and-crlf",
        ),
        pytest.param(
            "a.csv",
            "db_id, gold_sql , predicted_sql,\nd,g,p,\n,,,\n",
            [("d", "g", "p")],
            id="spaces-in-the-header-and-a-spreadsheets-empty-column-and-row",
        ),
        pytest.param("a.csv", CSV_HEADER + "d,g,a\0b\n", [("d", "g", "a\0b")], id="nul-character"),
        pytest.param("a.csv", CSV_HEADER + "d,g,p", [("d", "g", "p")], id="no-line-break-at-end"),
        pytest.param("a.csv", CSV_HEADER + "d,g,", [("d", "g", "")], id="empty-cell-at-end"),
    ],
)
def test_rows_that_can_be_read(
    tmp_path: Path, name: str, content: str | bytes, expected: list[tuple[str, str, str]]
) -> None:
    """Cells are read as spreadsheets and Python's csv write them."""
    assert predictions(tmp_path, name, content) == expected


UNCLOSED = '"SELECT name FROM t WHERE a ='


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("position", ["first", "middle", "last"])
@pytest.mark.parametrize(
    "later",
    [
        pytest.param("SELECT 2", id="no-later-mark"),
        pytest.param('SELECT "2"', id="later-name-in-marks"),
        pytest.param('SELECT "', id="later-mark-at-the-end"),
        pytest.param('"SELECT 2"', id="later-quoted-cell"),
        pytest.param('""', id="later-empty-quoted-cell"),
        pytest.param('"', id="later-mark-alone"),
        pytest.param(UNCLOSED, id="later-unclosed-mark"),
    ],
)
def test_a_mark_that_is_not_closed_loses_no_row(
    tmp_path: Path, ending: str, position: str, later: str
) -> None:
    """It is an error that names its line, and with --no-quotes an ordinary character."""
    cells = ["SELECT 1", "SELECT 1", "SELECT 1", "SELECT 1"]
    broken = {"first": 0, "middle": 1, "last": 3}[position]
    cells[broken] = UNCLOSED
    if broken < 2:
        cells[2] = later
    delimiter = {"csv": ",", "tsv": "\t"}[ending]
    rows = [delimiter.join(("d", "SELECT 1", cell)) for cell in cells]
    content = "\n".join([delimiter.join(NAMES), *rows, ""])
    with pytest.raises(DataError, match=f"line {broken + 2}: a quotation mark opens a cell"):
        predictions(tmp_path, f"a.{ending}", content)
    read = predictions(tmp_path, f"a.{ending}", content, quotes=False)
    assert [prediction.predicted for prediction in read] == cells


def test_a_mark_in_an_earlier_column_that_a_later_row_closes(tmp_path: Path) -> None:
    """Both readings give whole rows, so neither is taken."""
    content = TSV_HEADER + 'd\t"SELECT a\tSELECT 1\nd\tSELECT "\tSELECT 2\n'
    with pytest.raises(DataError, match=r"line 2: .* runs over line 3, which reads as a row"):
        predictions(tmp_path, "a.tsv", content)


def test_the_shared_cases(shared_data: Path) -> None:
    """The files in which rows were lost name the line of the mark."""
    for name in ("unclosed_quote_first.tsv", "unclosed_quote_middle.tsv"):
        path = shared_data.parent / "cases" / "tables" / name
        with pytest.raises(DataError, match=r"\.tsv, line 2: a quotation mark opens a cell"):
            read_predictions(path)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl"])
def test_records_are_written_as_they_were_read(tmp_path: Path, name: str) -> None:
    """Text of any kind comes back unchanged, in all formats."""
    cells = ['"', '""', "a\tb", "a,b", "a\nb", "a\r\nb", "a\rb", " a ", "", "ä\u2028é", "'", "\\n"]
    cells += ["\ufeff", "\0", "a" * 300_000]
    records = [
        {"before": str(i), "db_id": cell, "gold_sql": cell, "predicted_sql": cell, "after": cell}
        for i, cell in enumerate(cells)
    ]
    rows = read_predictions(written(tmp_path / name, records))
    assert [row.record for row in rows] == records
    assert columns_of(rows) == list(records[0])
    assert [row.number for row in rows] == list(range(1, len(records) + 1))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_bytes_that_are_no_utf8_pass_through_a_table(tmp_path: Path, ending: str) -> None:
    """The bytes of a model's answer are neither refused nor replaced."""
    delimiter = {"csv": b",", "tsv": b"\t"}[ending]
    path = tmp_path / f"a.{ending}"
    path.write_bytes(
        delimiter.join(map(str.encode, NAMES)) + b"\nd,g,\xff\n".replace(b",", delimiter)
    )
    (row,) = read_predictions(path)
    out = written(tmp_path / f"b.{ending}", [row.record])
    assert out.read_bytes() == path.read_bytes()


def test_json_keeps_types_and_half_surrogates(tmp_path: Path) -> None:
    """Numbers, lists and half a surrogate pair survive JSON Lines, and are text in a table."""
    row = {"db_id": "d", "gold_sql": "g", "predicted_sql": None, "n": 1, "f": [1.5, None, True]}
    broken = {**row, "predicted_sql": "\ud800"}
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(row)}\n\n{json.dumps(broken)}\n")
    records = [read.record for read in read_predictions(path)]
    assert records == [row, broken]
    assert [read.prediction.predicted for read in read_predictions(path)] == ["", "\ud800"]
    again = read_predictions(written(tmp_path / "b.jsonl", records))
    assert [read.record for read in again] == records
    table = read_predictions(written(tmp_path / "c.tsv", records))
    assert [read.record["n"] for read in table] == ["1", "1"]
    assert [read.record["f"] for read in table] == ["[1.5, null, true]"] * 2


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_column_named_by_half_a_surrogate_is_written(tmp_path: Path, ending: str) -> None:
    """JSON allows such a name; in the header of a table it is replaced, as it is in a cell."""
    record = {"db_id": "d", "gold_sql": "g", "predicted_sql": "p", "a\ud800": 1}
    (row,) = read_predictions(written(tmp_path / f"a.{ending}", [record]))
    assert list(row.record)[:3] == list(NAMES)
    assert list(row.record.values()) == ["d", "g", "p", "1"]


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("First, with the join, we get the names.", id="with"),
        pytest.param("Then, select the names, and count.", id="select"),
    ],
)
def test_a_sentence_in_a_quoted_answer_is_no_row(tmp_path: Path, sentence: str) -> None:
    """It has as many cells as the header, and a word behind a comma that begins a query."""
    answer = f"Sure!\n{sentence}\n```sql\nSELECT 1\n```"
    read = predictions(tmp_path, "a.csv", f'{CSV_HEADER}d,SELECT 1,"{answer}"\n')
    assert [prediction.predicted for prediction in read] == [answer]


def test_a_single_database_needs_no_column_of_ids(tmp_path: Path) -> None:
    """Two columns are enough for ten predictions on one database; a row lost is still an error."""
    path = tmp_path / "a.csv"
    path.write_text("gold_sql,predicted_sql\nSELECT 1,SELECT 2\n")
    (row,) = PredictionFile(path, only_database="shop").rows()
    assert row.prediction == ("shop", "SELECT 1", "SELECT 2")
    path.write_text('gold_sql,predicted_sql\nSELECT 1,"SELECT 2\nSELECT 1,SELECT "\n')
    with pytest.raises(DataError, match=r"line 2: .*line 3, which reads as a row"):
        list(PredictionFile(path, only_database="shop").rows())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "a.tsv: empty; the first line must name the columns"),
        ("a.csv", "\n\r\n", "a.csv: empty"),
        ("a.tsv", TSV_HEADER, "a.tsv: no rows; each line below the names of the columns must be a"),
        ("a.jsonl", "\n", "a.jsonl: empty; each line must be a JSON object"),
        ("a.tsv", "db_id\tgold_sql\n", "line 1: no column predicted_sql; needed are db_id,"),
        ("a.csv", "db_id;gold_sql;predicted_sql\n", "separated by semicolons, where this ending"),
        ("a.csv", TSV_HEADER, "separated by tabs, where this ending means commas"),
        ("a.csv", "db_id,gold,predicted_sql\n", "no column gold_sql; .*did you mean gold?"),
        ("a.tsv", TSV_HEADER + "d\tg\n", "line 2: 2 cells instead of 3"),
        ("a.csv", CSV_HEADER + 'd,g,"p"\nd,g,p,q\n', "line 3: 4 cells instead of 3; cells that"),
        ("a.csv", CSV_HEADER + 'd,"a\nb",p\nd,g\n', "line 4: 2 cells instead of 3"),
        ("a.csv", CSV_HEADER + 'd,g,"name" FROM t\n', "line 2: .* text follows the mark that"),
        ("a.tsv", "x\tx\t" + TSV_HEADER, "the column 'x' is there twice"),
        ("a.csv", b"\xff\xfed\0b\0", "the file is in UTF-16; save it in UTF-8"),
        ("a.jsonl", b'{"db_id": "\xff"}', "line 1: no JSON object in UTF-8"),
        ("a.jsonl", "[1]", "line 1: list, not a JSON object"),
        ("a.jsonl", '\n{"db_id": "d"}', "line 2: no column gold_sql, predicted_sql"),
        (
            "a.jsonl",
            '{"db_id": "d", "gold_sql": null, "predicted_sql": "p"}',
            "line 1: gold_sql must be text, not None",
        ),
    ],
)
def test_broken_files_end_with_one_line(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    """The line names the file, its line, and what is legal."""
    with pytest.raises(DataError) as error:
        predictions(tmp_path, name, content)
    beginning, _, ending = message.partition(".*")
    assert beginning in str(error.value)
    assert ending in str(error.value)
    assert "\n" not in str(error.value)
