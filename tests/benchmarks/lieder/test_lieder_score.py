"""The metrics: by hand, by properties, and against the authors' recorded results."""

import csv
import itertools
import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import pick
from support.lieder_recordings import scored_documents

from lm_eval_ext.benchmarks.lieder import score
from lm_eval_ext.benchmarks.lieder.records import (
    FAMILIES,
    FOUR_CONTEXTS,
    Experiment,
)
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.table import Row

JUDGED = ("affirmative_negation", "managed_failed")
"""The families that people judged (appendix B)."""

NONREFERENTIAL = [f"{context}_nonref" for context in FOUR_CONTEXTS]
SINGULAR = [f"{context}_s" for context in FOUR_CONTEXTS]
PLURAL = [f"{context}_p" for context in FOUR_CONTEXTS]
REFERENTIAL = SINGULAR + PLURAL
CONDITIONS = REFERENTIAL + NONREFERENTIAL
REQUIREMENTS = ("existence", "uniqueness+novelty", "plurality", "existence+plurality")

FELICITOUS = {"pos_neg_s", "neg_pos_s", "pos_pos_p", "two_neg_p", "neg_two_p"}


def test_fifteen_comparisons_are_the_papers() -> None:
    """Each felicitous condition of four contexts is compared once with each infelicitous one."""
    felicitous = FELICITOUS & set(REFERENTIAL)
    infelicitous = set(REFERENTIAL) - FELICITOUS
    pairs = set(itertools.product(felicitous, infelicitous))
    assert {(comparison.better, comparison.worse) for comparison in score.INFORMATIVE} == pairs
    assert len(score.INFORMATIVE) == 15
    assert len(score.WITH_DISTANCE) == 17


def test_thirty_three_comparisons_prefer_the_felicitous_condition() -> None:
    """Only those of distance may compare two felicitous conditions, or prefer another."""
    assert len(score.WITH_NUMERALS) == 33
    assert len({comparison.name for comparison in score.WITH_NUMERALS}) == 33
    for comparison in score.WITH_NUMERALS:
        if comparison.requirement == score.DISTANCE:
            assert comparison.better in FELICITOUS | {"neg_pos_p"}, comparison
        else:
            assert comparison.better in FELICITOUS, comparison
            assert comparison.worse not in FELICITOUS, comparison


@pytest.mark.parametrize("model", ["gpt2", "llama2_7B", "babbage-002"])
@pytest.mark.parametrize("experiment", ["base", "diff", "two"])
def test_recorded_accuracies_are_those_of_the_authors(
    real_data: Path, experiment: Experiment, model: str
) -> None:
    """Each comparison has as many right documents as the authors' results, 16 in each family."""
    rows: list[Row] = []
    for document in scored_documents(real_data, experiment, model):
        rows.extend(document.rows)
    for metric in score.metrics_of(experiment):
        file = real_data / f"lieder/recorded/{experiment}_{model}.expected_{metric}.json"
        for name, figures in json.loads(file.read_text()).items():
            facets = {"metric": metric, "comparison": name}
            compared = [row for row in rows if facets.items() <= row.items()]
            assert len(compared) == 48, name
            by_family = Counter(row["family"] for row in compared)
            assert by_family == dict.fromkeys(FAMILIES, 16), name
            right = sum(row["correct"] == 1 for row in compared)
            assert right == figures["correct"], name


REQUIREMENT_OF = {comparison.name: comparison.requirement for comparison in score.WITH_DISTANCE}


@pytest.fixture
def human_shares(shared_data: Path) -> dict[tuple[str, str], float]:
    """Return how many of 16 people preferred the better sentence, by family and comparison."""
    with (shared_data / "lieder/human/human_accuracy.csv").open(newline="") as file:
        judgments = list(csv.DictReader(file))
    assert len(judgments) == 544
    verdicts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for judgment in judgments:
        prefers_the_better = float(judgment["good_rating"]) > float(judgment["bad_rating"])
        assert prefers_the_better is (judgment["correct"] == "1")
        verdicts[judgment["sent_type"], judgment["type"]].append(int(judgment["correct"]))
    shares = {}
    for key, correct in verdicts.items():
        assert len(correct) == 16, key
        shares[key] = sum(correct) / 16
    return shares


def test_human_figures_of_comparisons_are_those_of_the_authors_file(
    human_shares: dict[tuple[str, str], float],
) -> None:
    """The card has the share of each comparison in both families that people judged."""
    card = cards()["lieder"]
    assert {family for family, _ in human_shares} == set(JUDGED)
    for (family, comparison), share in human_shares.items():
        requirement = REQUIREMENT_OF[comparison]
        figure = published_human_figure(card, family, comparison, requirement)
        assert figure == share, (family, comparison)


def test_human_figures_of_requirements_are_means_over_comparisons(
    human_shares: dict[tuple[str, str], float],
) -> None:
    """A comparison has one requirement."""
    card = cards()["lieder"]
    shares_by_requirement: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (family, comparison), share in human_shares.items():
        shares_by_requirement[family, REQUIREMENT_OF[comparison]].append(share)
    for (family, requirement), shares in shares_by_requirement.items():
        figure = published_human_figure(card, family, None, requirement)
        assert figure == pytest.approx(fmean(shares), abs=5e-5), (family, requirement)


@pytest.mark.parametrize("family", JUDGED)
def test_a_human_figure_of_a_family_is_the_mean_over_fifteen_comparisons(
    human_shares: dict[tuple[str, str], float], family: str
) -> None:
    """Those of distance do not count."""
    fifteen = []
    for (family_of_share, comparison), share in human_shares.items():
        if family_of_share == family and REQUIREMENT_OF[comparison] in REQUIREMENTS:
            fifteen.append(share)
    assert len(fifteen) == 15
    figure = published_human_figure(cards()["lieder"], family, None, None)
    assert figure == pytest.approx(fmean(fifteen), abs=5e-5)


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

    for comparison in score.WITH_DISTANCE:
        better = fraction(comparison.better)
        worse = fraction(comparison.worse)
        if not math.isclose(better, worse, rel_tol=1e-9):
            is_right = score.is_right(logprobs, comparison, "relative")
            assert is_right is (better > worse), comparison


def test_ties_are_not_right() -> None:
    """If all log-probabilities are equal, no comparison is right, and none is undefined."""
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
