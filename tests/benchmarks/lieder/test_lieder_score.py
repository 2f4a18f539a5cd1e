"""The metrics: by hand, by properties, and against the authors' recorded results."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import of_one, pick

from lm_eval_ext.benchmarks.lieder import load, score
from lm_eval_ext.benchmarks.lieder.records import FOUR_CONTEXTS, SIX_CONTEXTS

NONREF = [f"{context}_nonref" for context in FOUR_CONTEXTS]
FOUR = [f"{context}_{number}" for context in FOUR_CONTEXTS for number in "sp"]
SIX = [f"{context}_{number}" for context in SIX_CONTEXTS for number in "sp"]
logprobs = st.floats(min_value=-90, max_value=0)


def test_the_comparisons_are_the_papers() -> None:
    assert len(score.FIFTEEN) == 15
    assert len(score.SEVENTEEN) == 17
    assert len(score.THIRTY_THREE) == len({c.name for c in score.THIRTY_THREE}) == 33
    felicitous = {"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"}
    for comparison in score.THIRTY_THREE:
        assert comparison.better in felicitous | {"neg_pos_p"}, comparison
        if comparison.requirement != score.DISTANCE:
            assert comparison.worse not in felicitous, comparison
    # 3 felicitous against 5 infelicitous conditions: every pair, once.
    pairs = {(b, w) for b in ("pos_neg_s", "neg_pos_s", "pos_pos_p") for w in FOUR} - {
        (b, w) for b in FOUR for w in ("pos_neg_s", "neg_pos_s", "pos_pos_p")
    }
    assert {(c.better, c.worse) for c in score.FIFTEEN} == pairs


@pytest.mark.parametrize("metric", ["direct", "relative"])
@pytest.mark.parametrize("model", ["gpt2", "llama2_7B", "babbage-002"])
@pytest.mark.parametrize("experiment", ["base", "diff", "two"])
def test_every_recorded_accuracy(real_data: Path, experiment: str, model: str, metric: str) -> None:
    folder = real_data / "lieder/recorded"
    if metric == "relative" and experiment == "two":
        assert not (folder / f"two_{model}.expected_relative.json").exists(), "nothing to compare"
        return
    expected = json.loads((folder / f"{experiment}_{model}.expected_{metric}.json").read_text())
    rows = [json.loads(line) for line in (folder / f"{experiment}_{model}.responses.jsonl").open()]
    answers = {tuple(row["arguments"]): row["response"] for row in rows}
    correct = dict.fromkeys(expected, 0)
    groups = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)  # type: ignore[arg-type]
    for group in groups:
        doc = load.to_document(group, experiment)  # type: ignore[arg-type]
        results = [answers[pair] for pair in zip(doc["context"], doc["continuation"], strict=True)]
        scored = score.process_results(doc, results)
        for name in expected:
            correct[name] += int(pick(scored, "correct", metric=metric, comparison=name))
    assert correct == {name: figures["correct"] for name, figures in expected.items()}
    assert {figures["n"] for figures in expected.values()} == {len(groups)}
    names = {c.name for c in score.comparisons_of(experiment)}  # type: ignore[arg-type]
    assert names == set(expected)


@given(st.fixed_dictionaries(dict.fromkeys(FOUR + NONREF, logprobs)))
def test_relative_is_the_authors_formula(values: dict[str, float]) -> None:
    """Differences of logs order as the fractions do, wherever fractions can tell two apart."""
    verdicts = score.judge(values, score.SEVENTEEN, "relative")
    for comparison in score.SEVENTEEN:
        fractions = []
        for condition in (comparison.better, comparison.worse):
            nonref = values[condition.rpartition("_")[0] + "_nonref"]
            fractions.append(
                math.exp(values[condition]) / (math.exp(values[condition]) + math.exp(nonref))
            )
        if not math.isclose(*fractions, rel_tol=1e-9):
            assert verdicts[comparison.name] is (fractions[0] > fractions[1])


@given(st.fixed_dictionaries(dict.fromkeys(SIX, logprobs)), st.floats(-5, 5))
def test_direct_depends_on_the_order_alone(values: dict[str, float], shift: float) -> None:
    before = score.judge(values, score.THIRTY_THREE, "direct")
    ranks = {value: rank for rank, value in enumerate(sorted(set(values.values())))}
    after = score.judge(
        {c: ranks[v] * 2 + shift for c, v in values.items()}, score.THIRTY_THREE, "direct"
    )
    assert before == after


def test_a_model_that_knows_everything_and_one_that_knows_the_opposite() -> None:
    good = {"pos_neg_s", "neg_pos_s", "pos_pos_p"}
    for sign, expected in ((1, 1.0), (-1, 0.0)):
        values = {c: sign * (1.0 if c in good else 0.0) for c in FOUR} | dict.fromkeys(NONREF, 0.5)
        scored = score.score(values, "base")
        for metric in ("direct", "relative"):
            for name in ("mean", *score.REQUIREMENTS):
                where = {} if name == "mean" else {"requirement": name}
                assert of_one("lieder", scored, metric, **where) == expected, (metric, name)


def test_ties_and_undefined_probabilities_are_not_right() -> None:
    flat = score.score(dict.fromkeys(FOUR + NONREF, -3.0), "base")
    assert {row["correct"] for row in flat if "correct" in row} == {0.0}
    assert pick(flat, "undefined") == 0.0
    broken = score.score(
        dict.fromkeys(FOUR + NONREF, -3.0) | {"pos_neg_s": math.nan, "neg_neg_s": -math.inf}, "base"
    )
    assert pick(broken, "undefined") == pytest.approx(2 / 12)
    verdicts = {
        row["comparison"]: row["correct"] for row in broken if row.get("metric") == "direct"
    }
    assert verdicts["pos_neg_s>neg_neg_s"] == 0.0
    assert verdicts["neg_pos_s>neg_neg_s"] == 1.0


def test_rows_have_their_facets_and_every_sentence_is_needed() -> None:
    doc = {"condition": FOUR + NONREF, "experiment": "base", "item": "kite"}
    doc["family"] = "know_doubt"
    results = [(-1.0, False)] * len(FOUR + NONREF)
    scored = score.process_results(doc, results)
    assert len(scored) == 2 * 17 + 1
    assert {row["family"] for row in scored} == {"know_doubt"}
    with pytest.raises(ValueError, match="shorter"):
        score.process_results(doc, results[1:])


def test_means_are_means_of_the_comparisons() -> None:
    values = {condition: -float(i * i % 7) for i, condition in enumerate(FOUR + NONREF)}
    scored = score.score(values, "base")
    for metric in ("direct", "relative"):
        right = {row["comparison"]: row["correct"] for row in scored if row.get("metric") == metric}
        fifteen = [right[c.name] for c in score.FIFTEEN]
        assert of_one("lieder", scored, metric) == pytest.approx(sum(fifteen) / 15)
        for requirement in (*score.REQUIREMENTS, score.DISTANCE):
            own = [right[c.name] for c in score.SEVENTEEN if c.requirement == requirement]
            found = of_one("lieder", scored, metric, requirement=requirement)
            assert found == pytest.approx(sum(own) / len(own))


def test_two_has_no_relative_metric_and_sixteen_numeral_comparisons() -> None:
    scored = score.score(dict.fromkeys(SIX, 0.0), "two")
    assert {row.get("metric") for row in scored} == {"direct", None}
    assert "numeral" in {row.get("requirement") for row in scored}
    assert score.metric_list("two")[0] == "comparisons_with_two"
    assert sum(c.requirement == score.NUMERAL for c in score.THIRTY_THREE) == 16
