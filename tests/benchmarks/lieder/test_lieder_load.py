"""Stimulus files become groups; a broken file gives a one-line error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.lieder import load
from lm_eval_ext.errors import DataError

Rows = list[Any]


def test_a_stimulus_is_split_into_two_sentences() -> None:
    """The space between them belongs to the second."""
    assert load.split_stimulus("Ann didn't ask. It's fine.") == ("Ann didn't ask.", " It's fine.")


@pytest.mark.parametrize(
    "stimulus", ["One sentence.", "One. Two. Three.", "One. Two", "", ". x."], ids=repr
)
def test_anything_but_two_sentences_is_refused(stimulus: str) -> None:
    """Fewer, more, unfinished and empty sentences are errors."""
    with pytest.raises(ValueError, match="not two sentences"):
        load.split_stimulus(stimulus)


def sound_rows() -> Rows:
    """Return the rows of a file with one item in one family."""
    rows = []
    for number in range(4):
        for ending, expected in (("sref", 1), ("pref", 0), ("nonref", -1)):
            text = f"Text {number}. The kite flies."
            rows.append({"id": f"1_kite_a_b_{ending}", "sent": text, "expected": expected})
    return rows


def drop_a_row(rows: Rows) -> None:
    rows.pop()


def put_a_text_first(rows: Rows) -> None:
    rows.insert(0, rows.pop()["sent"])


def drop_a_sentence(rows: Rows) -> None:
    del rows[3]["sent"]


def expect_seven(rows: Rows) -> None:
    rows[5]["expected"] = 7


def shorten_an_id(rows: Rows) -> None:
    rows[4]["id"] = "kite"


def mix_in_another_item(rows: Rows) -> None:
    rows[2]["id"] = "2_boat_a_b_nonref"


def leave_one_sentence(rows: Rows) -> None:
    rows[2]["sent"] = "No second sentence."


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop_a_row, "11 rows, which is not a multiple of 12"),
        (put_a_text_first, ":1: not a row"),
        (drop_a_sentence, ":4: not a row with id, sent and expected"),
        (expect_seven, ":6: not a row"),
        (shorten_an_id, ":5: not a row"),
        (mix_in_another_item, ":3: item 2_boat in a group of item 1_kite"),
        (leave_one_sentence, "not two sentences"),
    ],
)
def test_a_broken_file_is_one_clear_line(
    tmp_path: Path, spoil: Callable[[Rows], None], message: str
) -> None:
    """The error says in one line which row of which file is wrong, and why."""
    rows = sound_rows()
    spoil(rows)
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message) as caught:
        load.read(file, "base")
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)
