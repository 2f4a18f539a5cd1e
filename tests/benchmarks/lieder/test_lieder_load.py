"""Stimulus files become groups; a broken file gives a one-line error."""

import json
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.lieder import load
from lm_eval_ext.benchmarks.lieder.records import (
    FAMILIES,
    FELICITOUS,
    FOUR_CONTEXTS,
    SIX_CONTEXTS,
    Experiment,
)
from lm_eval_ext.errors import DataError, OptionError

STIMULI = {
    "Ann has a kite. The kite is red.": ("Ann has a kite.", " The kite is red."),
    "Ann didn't ask. It's fine.": ("Ann didn't ask.", " It's fine."),
    "One sentence.": None, "One. Two. Three.": None, "One. Two": None, "": None, ". x.": None,
}  # fmt: skip

EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")


@pytest.mark.parametrize("stimulus", STIMULI)
def test_a_stimulus_is_two_sentences(stimulus: str) -> None:
    if parts := STIMULI[stimulus]:
        assert load.split(stimulus) == parts
    else:
        with pytest.raises(ValueError, match="not two sentences"):
            load.split(stimulus)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_real_files_have_the_published_shape(real_data: Path, experiment: Experiment) -> None:
    """The judgments agree with the conditions only if rows are in the assumed order."""
    groups = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)
    contexts = SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS
    endings = ("s", "p") if experiment == "two" else ("s", "p", "nonref")
    order = [f"{context}_{ending}" for context in contexts for ending in endings]
    assert len(groups) == len({(group.item, group.family) for group in groups}) == 48
    assert len({group.item for group in groups}) == 16
    assert {group.family for group in groups} == set(FAMILIES)
    for group in groups:
        assert [sentence.condition for sentence in group.sentences] == order
        assert len({sentence.context for sentence in group.sentences}) == len(contexts)
        for one in group.sentences:
            judged = None if "nonref" in one.condition else one.condition in FELICITOUS
            assert one.felicitous is judged, one


def test_keys_of_others_are_ignored_and_own_typing_errors_named() -> None:
    loaded = load.documents(lieder_experiment="mini", pretrained="x", version=1, config_source="y")
    assert loaded is load.documents(lieder_experiment="mini"), "loaded once per process"
    with pytest.raises(OptionError, match=r"lieder_experimnt.*lieder_experiment"):
        load.documents(lieder_experimnt="mini")
    with pytest.raises(
        OptionError, match=r"lieder_experiment: Input should be 'base', .* got 'three'"
    ):
        load.documents(lieder_experiment="three")


def _rows() -> list[dict[str, object]]:
    return [
        {
            "id": f"1_kite_a_b_{continuation}",
            "sent": f"Context {number} stands here. The kite {continuation} flies.",
            "expected": {"sref": 1, "pref": 0, "nonref": -1}[continuation],
        }
        for number in range(4)
        for continuation in ("sref", "pref", "nonref")
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
    rows = _rows()
    spoil(rows)  # type: ignore[operator]
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message) as caught:
        load.read(file, "base")
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)
