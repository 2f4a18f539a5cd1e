"""Stimulus files become groups; a broken file gives a one-line error."""

import json
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.lieder import load, prompt
from lm_eval_ext.benchmarks.lieder.records import FOUR_CONTEXTS, SIX_CONTEXTS
from lm_eval_ext.errors import DataError, OptionError

EXPERIMENTS = ("base", "diff", "two")


@pytest.mark.parametrize(
    ("stimulus", "context", "continuation"),
    [
        ("Ann has a kite. The kite is red.", "Ann has a kite.", " The kite is red."),
        ("Ann didn't ask. It's fine.", "Ann didn't ask.", " It's fine."),
    ],
)
def test_a_stimulus_splits_at_the_first_sentence(
    stimulus: str, context: str, continuation: str
) -> None:
    assert prompt.split(stimulus) == (context, continuation)
    assert context + continuation == stimulus


@pytest.mark.parametrize("text", ["One sentence.", "One. Two. Three.", "One. Two", "", ". x."])
def test_what_is_not_two_sentences_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not two sentences"):
        prompt.split(text)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_real_files_have_the_published_shape(real_data: Path, experiment: str) -> None:
    groups = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)  # type: ignore[arg-type]
    contexts = SIX_CONTEXTS if experiment == "two" else FOUR_CONTEXTS
    continuations = ("s", "p") if experiment == "two" else ("s", "p", "nonref")
    order = [f"{context}_{continuation}" for context in contexts for continuation in continuations]
    assert len(groups) == 48
    assert len({group.item for group in groups}) == 16
    assert len({group.family for group in groups}) == 3
    assert len({(group.item, group.family) for group in groups}) == 48
    for group in groups:
        assert [sentence.condition for sentence in group.sentences] == order
        assert len({sentence.context for sentence in group.sentences}) == len(contexts)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_felicity_follows_from_the_condition(real_data: Path, experiment: str) -> None:
    """The judgments agree with the conditions only if rows are in the assumed order."""
    felicitous = {"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"}
    for group in load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment):  # type: ignore[arg-type]
        for sentence in group.sentences:
            if sentence.condition.endswith("nonref"):
                assert sentence.felicitous is None
            else:
                assert sentence.felicitous is (sentence.condition in felicitous), sentence


@pytest.mark.parametrize("model", ["gpt2", "llama2_7B", "babbage-002"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_requests_are_the_recorded_ones(real_data: Path, experiment: str, model: str) -> None:
    recorded = [
        tuple(json.loads(line)["arguments"])
        for line in (real_data / f"lieder/recorded/{experiment}_{model}.responses.jsonl").open()
    ]
    groups = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)  # type: ignore[arg-type]
    ours = [(s.context, s.continuation) for group in groups for s in group.sentences]
    assert ours == recorded


def test_the_dataset_carries_where_it_comes_from(real_data: Path) -> None:
    info = load.dataset(lieder_experiment="diff")["test"].info
    assert info.dataset_name == "lieder"
    assert "Zhu" in info.citation
    (checksum,) = info.download_checksums.values()
    assert len(checksum["checksum"]) == 64


def test_keys_of_others_are_ignored_and_own_typing_errors_named() -> None:
    loaded = load.dataset(lieder_experiment="mini", pretrained="x", version=1, config_source="y")
    assert loaded is load.dataset(lieder_experiment="mini"), "loaded once per process"
    with pytest.raises(OptionError, match=r"lieder_experimnt.*lieder_experiment"):
        load.dataset(lieder_experimnt="mini")
    with pytest.raises(
        OptionError, match=r"no LIEDER experiment 'three'; use base, diff, two, mini"
    ):
        load.dataset(lieder_experiment="three")


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
        (lambda rows: rows.clear(), "0 rows"),
        (lambda rows: rows[3].pop("sent"), ":4: not a row with id, sent and expected"),
        (lambda rows: rows[5].update(expected=7), r":6: not a row"),
        (lambda rows: rows[5].update(expected=[1]), r":6: not a row"),
        (lambda rows: rows[4].update(sent=5), r":5: not two sentences"),
        (lambda rows: rows[4].update(id="kite"), r":5: not a row"),
        (lambda rows: rows[1].update(id="1_kite_a_b_sref"), r":1: a condition occurs twice"),
        (
            lambda rows: rows[2].update(id="2_boat_a_b_nonref"),
            r":3: item 2_boat in a group of item 1_kite",
        ),
        (lambda rows: rows[2].update(sent="No second sentence."), "not two sentences"),
        (lambda rows: rows[0].update(id="1_kite_a_b_xref"), "xref"),
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


def test_a_file_that_is_not_json_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("<html>404</html>\n" * 12)
    with pytest.raises(DataError, match=r"x\.jsonl:1: not a row"):
        load.read(file, "base")
