"""Prediction files: reading, writing and errors."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.predictions import Writer, example_of, read_predictions

HEAD = "db_id\tgold_sql\tpredicted_sql\n"


def read(tmp_path: Path, name: str, content: bytes | str) -> list[dict[str, Any]]:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_predictions(path)


def round_trip(tmp_path: Path, records: list[dict[str, Any]], name: str) -> Path:
    path = tmp_path / name
    with atomic_text(path, errors="surrogateescape") as file:
        writer = Writer(file, path.suffix, list(records[0]))
        for record in records:
            writer.write(record, "wrong")
    return path


def test_tsv_with_quotes_tabs_newlines_and_a_large_cell(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    large = "x" * (limit + 1_000_000)
    rows = read(
        tmp_path,
        "a.tsv",
        f'{HEAD}d\t"select ""a"""\t"x\ty\nz"\n\nd\tg\t\nd\tg\t{large}\n',
    )
    assert [tuple(row.values()) for row in rows] == [
        ("d", 'select "a"', "x\ty\nz"), ("d", "g", ""), ("d", "g", large),
    ]  # fmt: skip
    assert csv.field_size_limit() == limit  # the process's setting is as it was


@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl"])
def test_what_is_written_is_what_was_read(tmp_path: Path, name: str) -> None:
    cells = ['"', '""', "a\tb", "a\nb", "a\r\nb", " a ", "", "ä\u2028é", "'", "\\n", "\ufeff"]
    records: list[dict[str, Any]] = [
        {"before": str(i), "db_id": cell, "gold_sql": cell, "predicted_sql": cell, "after": cell}
        for i, cell in enumerate(cells)
    ]
    again = read_predictions(round_trip(tmp_path, records, name))
    assert again == [{**record, "status": "wrong"} for record in records]
    # Scored again, the status stands where it stood.
    third = read_predictions(round_trip(tmp_path, again, f"again-{name}"))
    assert [list(row) for row in third] == [list(row) for row in again]


def test_bytes_that_are_no_utf8_pass_through_a_tsv(tmp_path: Path) -> None:
    line = b"d\tg\t\xff\xfe\n"
    (record,) = read(tmp_path, "a.tsv", HEAD.encode() + line)
    out = round_trip(tmp_path, [record], "b.tsv")
    assert out.read_bytes().splitlines()[1] == line.strip() + b"\twrong"


def test_json_keeps_types_and_half_surrogates(tmp_path: Path) -> None:
    row = {"db_id": "d", "gold_sql": "g", "predicted_sql": None, "n": 1, "f": [1.5, None, True]}
    broken = {**row, "predicted_sql": "\ud800"}
    records = read(tmp_path, "a.jsonl", f"{json.dumps(row)}\n\n{json.dumps(broken)}\n")
    assert records == [row, broken]
    assert example_of(row).predicted == ""
    out = round_trip(tmp_path, records, "b.jsonl")
    assert read_predictions(out) == [{**r, "status": "wrong"} for r in records]
    table = read_predictions(round_trip(tmp_path, records, "c.tsv"))
    assert [r["n"] for r in table] == ["1", "1"]
    assert [r["f"] for r in table] == ["[1.5, null, true]"] * 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "a.tsv: empty; the first line must name the columns"),
        ("a.tsv", "db_id\tgold_sql\n", "line 1: no column predicted_sql; needed are db_id,"),
        ("a.tsv", HEAD + "d\tg\n", "line 2: 2 cells instead of 3"),
        ("a.tsv", "x\tx\t" + HEAD, "the column 'x' is there twice"),
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
def test_broken_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path, name, content)
    assert message in str(error.value)
