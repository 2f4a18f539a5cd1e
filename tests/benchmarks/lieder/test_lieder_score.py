"""The metrics: by hand, by properties, and against the authors' recorded results."""

import csv
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import pick

from lm_eval_ext.benchmarks.lieder import load, score
from lm_eval_ext.benchmarks.lieder.records import (
    FAMILIES,
    FOUR_CONTEXTS,
)
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.stats.measures import Question

JUDGED = ("affirmative_negation", "managed_failed")
"""The families that people judged (appendix B)."""

NONREF = [f"{context}_nonref" for context in FOUR_CONTEXTS]
FOUR = [f"{context}_{number}" for context in FOUR_CONTEXTS for number in "sp"]
logprobs = st.floats(min_value=-90, max_value=0)


REQUIREMENTS = ("existence", "uniqueness+novelty", "plurality", "existence+plurality")


def test_the_comparisons_are_the_papers() -> None:
    """Of 15 every felicitous condition against every infelicitous one of its contexts, once."""
    felicitous = {"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"}
    pairs = {(a, b) for a in felicitous for b in FOUR if a in FOUR and b not in felicitous}
    assert {(c.better, c.worse) for c in score.FIFTEEN} == pairs
    assert (len(score.FIFTEEN), len(score.SEVENTEEN)) == (15, 17)
    assert len(score.THIRTY_THREE) == len({c.name for c in score.THIRTY_THREE}) == 33
    for comparison in score.THIRTY_THREE:
        distance = comparison.requirement == score.DISTANCE
        assert comparison.better in felicitous | ({"neg_pos_p"} if distance else set())
        assert distance or comparison.worse not in felicitous, comparison


def recorded(folder: Path, experiment: Any, model: str) -> list[tuple[Any, list[Any]]]:
    """The documents of an experiment and the rows of a model's recorded answers."""
    file = folder / f"lieder/recorded/{experiment}_{model}.responses.jsonl"
    rows = map(json.loads, file.read_text().splitlines())
    answers = {tuple(row["arguments"]): row["response"] for row in rows}
    groups = load.read(folder / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)
    return [
        (doc, score.process_results(doc, [answers[pair] for pair in pairs]))
        for doc in load.to_documents(groups, experiment)
        for pairs in [zip(doc["context"], doc["continuation"], strict=True)]
    ]


@pytest.mark.parametrize("model", ["gpt2", "llama2_7B", "babbage-002"])
@pytest.mark.parametrize("experiment", ["base", "diff", "two"])
def test_recorded_accuracies(real_data: Path, experiment: str, model: str) -> None:
    scored = [rows for _, rows in recorded(real_data, experiment, model)]
    for metric in score.metrics_of(experiment):
        file = real_data / f"lieder/recorded/{experiment}_{model}.expected_{metric}.json"
        for name, figures in json.loads(file.read_text()).items():
            facets = {"metric": metric, "comparison": name}
            found = [row for rows in scored for row in rows if facets.items() <= row.items()]
            assert (len(found), sum(row["correct"] for row in found)) == (48, figures["correct"])
            assert Counter(row["family"] for row in found) == dict.fromkeys(FAMILIES, 16)


def test_human_figures_are_those_of_the_authors_file(shared_data: Path) -> None:
    with (shared_data / "lieder/human/human_accuracy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 544
    right: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        assert (float(row["good_rating"]) > float(row["bad_rating"])) is (row["correct"] == "1")
        right.setdefault((row["sent_type"], row["type"]), []).append(int(row["correct"]))
    card = cards()["lieder"]
    assert {family for family, _ in right} == set(JUDGED)
    requirements = {c.name: c.requirement for c in score.SEVENTEEN}
    means: dict[tuple[str, str], list[float]] = {}
    for (family, name), verdicts in right.items():
        assert len(verdicts) == 16
        share = sum(verdicts) / 16
        assert humans(card, family, name, requirements[name]) == share
        means.setdefault((family, requirements[name]), []).append(share)
    for (family, requirement), shares in means.items():
        own = humans(card, family, None, requirement)
        assert own == pytest.approx(sum(shares) / len(shares), abs=5e-5)
    for family in JUDGED:
        of_family = [means[family, requirement] for requirement in REQUIREMENTS]
        fifteen = [share for shares in of_family for share in shares]
        assert humans(card, family, None, None) == pytest.approx(sum(fifteen) / 15, abs=5e-5)


def humans(card: Card, family: str, comparison: str | None, requirement: str | None) -> float:
    """The published figure behind a question."""
    where = {"family": (family,)}
    if requirement and (comparison is None or requirement == score.DISTANCE):
        where["requirement"] = (requirement,)
    if comparison:
        where["comparison"] = (comparison,)
    question = Question(card.question_of("direct").measure, where)
    (value,) = card.published("lieder_base", question).values()
    return value


@given(st.fixed_dictionaries(dict.fromkeys(FOUR + NONREF, logprobs)))
def test_relative_is_the_authors_formula(values: dict[str, float]) -> None:
    """Differences of logs order as the fractions do, wherever fractions can tell two apart."""
    for comparison in score.SEVENTEEN:
        fractions = []
        for condition in (comparison.better, comparison.worse):
            nonref = values[condition.rpartition("_")[0] + "_nonref"]
            fractions.append(
                math.exp(values[condition]) / (math.exp(values[condition]) + math.exp(nonref))
            )
        if not math.isclose(*fractions, rel_tol=1e-9):
            right = score.judge(values, comparison, "relative")
            assert right is (fractions[0] > fractions[1])


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
