"""The metrics: by hand, by properties, and against the authors' recorded results."""

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import pick

from lm_eval_ext.benchmarks.lieder import load, recordings, score
from lm_eval_ext.benchmarks.lieder.records import (
    FAMILIES,
    FOUR_CONTEXTS,
)
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.stats.measures import Question

JUDGED = ("affirmative_negation", "managed_failed")
"""The families that people judged (appendix B)."""

NONREFERENTIAL = [f"{context}_nonref" for context in FOUR_CONTEXTS]
REFERENTIAL = [f"{context}_{number}" for context in FOUR_CONTEXTS for number in "sp"]
CONDITIONS = REFERENTIAL + NONREFERENTIAL
REQUIREMENTS = ("existence", "uniqueness+novelty", "plurality", "existence+plurality")

FELICITOUS = {"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"}


def test_fifteen_comparisons_are_the_papers() -> None:
    """Each felicitous condition of four contexts is compared once with each infelicitous one."""
    pairs = set()
    for better in FELICITOUS & set(REFERENTIAL):
        for worse in set(REFERENTIAL) - FELICITOUS:
            pairs.add((better, worse))
    assert {(comparison.better, comparison.worse) for comparison in score.FIFTEEN} == pairs
    assert len(score.FIFTEEN) == 15
    assert len(score.SEVENTEEN) == 17


def test_thirty_three_comparisons_prefer_the_felicitous_condition() -> None:
    """Only those of distance may compare two felicitous conditions, or prefer another."""
    assert len(score.THIRTY_THREE) == 33
    assert len({comparison.name for comparison in score.THIRTY_THREE}) == 33
    for comparison in score.THIRTY_THREE:
        if comparison.requirement == score.DISTANCE:
            assert comparison.better in FELICITOUS | {"neg_pos_p"}, comparison
        else:
            assert comparison.better in FELICITOUS, comparison
            assert comparison.worse not in FELICITOUS, comparison


@pytest.fixture
def recorded_runs(real_data: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the converted recordings of the authors, by model."""
    return {system.name: system.rows for system in recordings.convert(None).systems}


@pytest.mark.parametrize("model", ["gpt2", "llama2_7B", "babbage-002"])
@pytest.mark.parametrize("experiment", ["base", "diff", "two"])
def test_recorded_accuracies(
    real_data: Path,
    recorded_runs: Mapping[str, Sequence[Mapping[str, Any]]],
    experiment: Any,
    model: str,
) -> None:
    """Each comparison has as many right documents as the authors' results, 16 in each family."""
    responses = {}
    for row in recorded_runs[model]:
        document = row["doc"]
        key = (document["experiment"], document["item"], document["family"], row["idx"])
        responses[key] = row["response"]
    groups = load.read(real_data / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)
    rows = []
    for doc in load.to_documents(groups, experiment):
        key = (experiment, doc["item"], doc["family"])
        answers = [responses[(*key, index)] for index in range(len(doc["context"]))]
        rows.extend(score.process_results(doc, answers))
    for metric in score.metrics_of(experiment):
        file = real_data / f"lieder/recorded/{experiment}_{model}.expected_{metric}.json"
        for name, figures in json.loads(file.read_text()).items():
            facets = {"metric": metric, "comparison": name}
            compared = [row for row in rows if facets.items() <= row.items()]
            assert len(compared) == 48, name
            assert sum(row["correct"] for row in compared) == figures["correct"], name
            assert Counter(row["family"] for row in compared) == dict.fromkeys(FAMILIES, 16), name


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_human_figures_are_those_of_the_authors_file(shared_data: Path) -> None:
    """The card's figures of comparisons, requirements and families are means of the judgments."""
    with (shared_data / "lieder/human/human_accuracy.csv").open(newline="") as file:
        judgments = list(csv.DictReader(file))
    assert len(judgments) == 544
    verdicts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for judgment in judgments:
        prefers_the_better = float(judgment["good_rating"]) > float(judgment["bad_rating"])
        assert prefers_the_better is (judgment["correct"] == "1")
        verdicts[judgment["sent_type"], judgment["type"]].append(int(judgment["correct"]))

    card = cards()["lieder"]
    assert {family for family, _ in verdicts} == set(JUDGED)
    requirements = {comparison.name: comparison.requirement for comparison in score.SEVENTEEN}
    shares_by_requirement: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (family, comparison), correct in verdicts.items():
        assert len(correct) == 16
        share = sum(correct) / 16
        requirement = requirements[comparison]
        assert published_human_figure(card, family, comparison, requirement) == share
        shares_by_requirement[family, requirement].append(share)
    for (family, requirement), shares in shares_by_requirement.items():
        figure = published_human_figure(card, family, None, requirement)
        assert figure == pytest.approx(mean(shares), abs=5e-5)
    for family in JUDGED:
        fifteen = []
        for requirement in REQUIREMENTS:
            fifteen.extend(shares_by_requirement[family, requirement])
        assert len(fifteen) == 15
        figure = published_human_figure(card, family, None, None)
        assert figure == pytest.approx(mean(fifteen), abs=5e-5)


def published_human_figure(
    card: Card, family: str, comparison: str | None, requirement: str | None
) -> float:
    """Return the only published figure of a family, a comparison or a requirement."""
    where = {"family": (family,)}
    if requirement and (comparison is None or requirement == score.DISTANCE):
        where["requirement"] = (requirement,)
    if comparison:
        where["comparison"] = (comparison,)
    question = Question(card.question_of("direct").measure, where)
    (value,) = card.published("lieder_base", question).values()
    return value


@given(st.fixed_dictionaries(dict.fromkeys(CONDITIONS, st.floats(min_value=-90, max_value=0))))
def test_relative_is_the_authors_formula(logprobs: dict[str, float]) -> None:
    """Differences of logs order as the fractions do, wherever fractions can tell two apart."""

    def fraction(condition: str) -> float:
        context, _, _ = condition.rpartition("_")
        probability = math.exp(logprobs[condition])
        return probability / (probability + math.exp(logprobs[f"{context}_nonref"]))

    for comparison in score.SEVENTEEN:
        better = fraction(comparison.better)
        worse = fraction(comparison.worse)
        if not math.isclose(better, worse, rel_tol=1e-9):
            is_right = score.judge(logprobs, comparison, "relative")
            assert is_right is (better > worse), comparison


def test_ties_are_not_right() -> None:
    """Where all log-probabilities are equal, no comparison is right, and none is undefined."""
    rows = score.score(dict.fromkeys(CONDITIONS, -3.0), "base")
    assert {row["correct"] for row in rows if "correct" in row} == {0.0}
    assert pick(rows, "undefined") == 0.0


def test_undefined_probabilities_are_not_right() -> None:
    """A NaN is wrong; minus infinity is undefined too, and less than any number."""
    logprobs = dict.fromkeys(CONDITIONS, -3.0)
    logprobs["pos_neg_s"] = math.nan
    logprobs["neg_neg_s"] = -math.inf
    rows = score.score(logprobs, "base")
    assert pick(rows, "undefined") == pytest.approx(2 / 12)
    verdicts = {}
    for row in rows:
        if row.get("metric") == "direct":
            verdicts[row["comparison"]] = row["correct"]
    assert verdicts["pos_neg_s>neg_neg_s"] == 0.0
    assert verdicts["neg_pos_s>neg_neg_s"] == 1.0
