"""Stimulus files become groups; a broken file gives a one-line error."""

import copy
import json
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.lieder import load
from lm_eval_ext.errors import DataError


def test_a_stimulus_is_two_sentences() -> None:
    assert load.split("Ann didn't ask. It's fine.") == ("Ann didn't ask.", " It's fine.")
    for stimulus in ("One sentence.", "One. Two. Three.", "One. Two", "", ". x."):
        with pytest.raises(ValueError, match="not two sentences"):
            load.split(stimulus)


ROWS = [
    {"id": f"1_kite_a_b_{ending}", "sent": f"Text {n}. The kite flies.", "expected": expected}
    for n in range(4)
    for ending, expected in (("sref", 1), ("pref", 0), ("nonref", -1))
]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows.pop(), "11 rows, which is not a multiple of 12"),
        (lambda rows: rows.insert(0, rows.pop()["sent"]), ":1: not a row"),
        (lambda rows: rows[3].pop("sent"), ":4: not a row with id, sent and expected"),
        (lambda rows: rows[5].update(expected=7), r":6: not a row"),
        (lambda rows: rows[4].update(id="kite"), r":5: not a row"),
        (
            lambda rows: rows[2].update(id="2_boat_a_b_nonref"),
            r":3: item 2_boat in a group of item 1_kite",
        ),
        (lambda rows: rows[2].update(sent="No second sentence."), "not two sentences"),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, spoil: object, message: str) -> None:
    rows = copy.deepcopy(ROWS)
    spoil(rows)  # type: ignore[operator]
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message) as caught:
        load.read(file, "base")
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)
