"""Scores of answers, and metrics over pairs of them, computed by hand."""

import math
import pickle
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.registry import get_aggregation

from lm_eval_ext.benchmarks.conceptual import score as conceptual_score
from lm_eval_ext.benchmarks.conceptual.records import plain
from lm_eval_ext.benchmarks.conceptual.score import SCORES, Pair, process_results, score


def lcs(one: list[str], other: list[str]) -> int:
    """Lin (2004), section 3.1, as a recurrence."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
            )
    return table[-1][-1]


CASES = [
    # gold, answer, length of the longest common subsequence after stemming
    ("police killed the gunman", "police kill the gunman", 4),
    ("police killed the gunman", "the gunman kill police", 2),
    ("police killed the gunman", "the gunman police killed", 2),
    ("yes", "yes", 1),
    ("yes", "Yes.", 1),
    ("yes", "no", 0),
    ("yes", "", 0),
    ("yes", "Well, yes and no", 1),
    ("a counter cooker appliance", "the cooker appliance", 2),
    ("it lies on the water", "lying on water it is", 3),
    ("Chief of Protocol", "chief protocol officer", 2),
    ("1984", "in 1984", 1),
]


@pytest.mark.parametrize(("gold", "answer", "common"), CASES)
def test_rouge_l_is_lins(gold: str, answer: str, common: int) -> None:
    scores = score(answer, gold)
    recall = common / len(plain(gold).split())
    precision = common / len(plain(answer).split()) if answer else 0.0
    assert scores["rouge_l"] == pytest.approx(recall)
    f1 = 2 * recall * precision / (recall + precision) if common else 0.0
    assert scores["rouge_l_f1"] == pytest.approx(f1)


WORDS = st.lists(st.sampled_from(["stone", "river", "cloud", "lamp"]), min_size=1, max_size=8)


@given(gold=WORDS, answer=WORDS)
def test_rouge_l_is_the_recurrence(gold: list[str], answer: list[str]) -> None:
    expected = lcs(gold, answer) / len(gold)
    assert score(" ".join(answer), " ".join(gold))["rouge_l"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ("yes", "yes", True),
        (" Yes.\n", "yes", True),
        ("(B)", "B", True),
        ("B) ice", "B", False),
        ("yes, it does", "yes", False),
        ("", "yes", False),
        # Without letters and digits only the same characters are the same answer.
        ("", "+", False),
        ("-", "+", False),
        (" +\n", "+", True),
        ("the cool  cellar", "The cool cellar.", True),
        ("cool cellar", "the cool cellar", False),
        ("été", "ÉTÉ", True),
    ],
)
def test_accuracy_is_of_the_whole_answer(answer: str, gold: str, right: bool) -> None:
    assert score(answer, gold)["accuracy"] == float(right)


@pytest.mark.parametrize("answer", ["x " * 500_000, "\0" * 9, "(" * 10**6, "�\ud800", "\n" * 99])
def test_no_answer_hurts(answer: str) -> None:
    assert set(score(answer, "yes")) == set(SCORES)


def test_an_answer_is_compared_up_to_a_length() -> None:
    assert score("x " * 9_999 + "y", "y")["rouge_l"] == 1.0
    assert score("x " * 10_000 + "y", "y")["rouge_l"] == 0.0


def test_a_document_is_scored_under_both_selections() -> None:
    scores = process_results({"answer": "a b"}, ["b", "a b"])
    assert scores["rouge_l"] == {"random": 0.5, "concept": 1.0}
    assert scores["accuracy"] == {"random": 0.0, "concept": 1.0}


def documents(*scores: tuple[float, float], concept: str = "c") -> list[dict[str, Any]]:
    """Per-document values for pairs of scores (of all three kinds)."""
    return [
        conceptual_score.values(
            {"id": f"d{n}", "concept": f"{concept}{n % 4}"},
            {name: {"random": one, "concept": two} for name in SCORES},
            ("c0",),
        )
        for n, (one, two) in enumerate(scores)
    ]


def figures(scored: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        entry["metric"]: get_aggregation(entry["aggregation"])([d[entry["metric"]] for d in scored])
        for entry in conceptual_score.metric_list(("c0",))
    }


def test_the_figures_are_what_arithmetic_says() -> None:
    found = figures(documents((0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)))
    assert found["random/accuracy"] == 0.5
    assert found["concept/accuracy"] == 0.625
    assert found["gain/accuracy"] == 0.125
    assert found["error_change/accuracy"] == pytest.approx((1 - 0.625) / (1 - 0.5) - 1)
    low, high = (found[f"gain/accuracy_ci95_{end}"] for end in ("low", "high"))
    assert low < 0.125 < high
    assert found["gain/accuracy:c0"] == "N/A", "one document is not enough"


def test_a_concept_with_enough_documents_has_figures() -> None:
    found = figures(documents(*[(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)] * 10))
    assert found["random/accuracy:c0"] == 0.0
    assert found["concept/accuracy:c0"] == 1.0
    assert found["gain/accuracy:c0_stderr"] == 0.0


def test_without_error_there_is_no_change_of_it() -> None:
    found = figures(documents((1.0, 1.0), (1.0, 0.5), (1.0, 1.0), (1.0, 0.0)))
    for ending in ("", "_stderr", "_ci95_low", "_ci95_high", "_100x200", "_100x200_stderr"):
        assert found[f"error_change/rouge_l{ending}"] == "N/A"
    assert found["gain/rouge_l"] == -0.375


@pytest.mark.parametrize(("random", "concept"), [(0.2, 0.6), (0.9, 0.95)])
def test_constant_scores_have_intervals_of_no_width(random: float, concept: float) -> None:
    scored = documents(*[(random, concept)] * 4)
    assert scored[0]["error_change/rouge_l"] == random - concept, "what lm-eval logs"
    found = figures(scored)
    for view, value in (("gain", concept - random), ("error_change", -0.5)):
        for ending in ("_ci95_low", "_ci95_high", "_100x200", "_100x200_ci95_low"):
            assert found[f"{view}/rouge_l{ending}"] == pytest.approx(value), (view, ending)


def test_a_concept_has_figures_from_ten_documents_on() -> None:
    rows = [{"concept": name} for name in ["nine"] * 9 + ["ten"] * 10 + [""] * 11]
    assert conceptual_score.concepts_with_enough(rows) == ("ten",)
    ten = figures(documents(*[(0.0, 1.0)] * 37))
    assert ten["concept/accuracy:c0"] == 1.0
    nine = figures(documents(*[(0.0, 1.0)] * 36))
    assert nine["concept/accuracy:c0"] == nine["concept/accuracy:c0_stderr"] == "N/A"


def test_errors_and_changes_of_error_are_better_when_lower() -> None:
    for entry in conceptual_score.metric_list(("c0",)):
        name = entry["metric"]
        lower = name.endswith("_stderr") or name.startswith("error_change/")
        assert entry["higher_is_better"] is (not lower), name


def test_no_order_of_documents_changes_a_figure() -> None:
    rng = random.Random(1)
    scored = documents(*[(rng.random(), rng.random()) for _ in range(150)])
    straight = figures(scored)
    rng.shuffle(scored)
    assert figures(scored) == straight


def test_the_papers_bootstrap_draws_100_of_the_samples_200_times() -> None:
    """Its spread is that of means of 100, however many samples there are."""
    rng = random.Random(2)
    scores = [(float(rng.random() < 0.3), float(rng.random() < 0.6)) for _ in range(1000)]
    pairs = [d["gain/accuracy"] for d in documents(*scores)]
    values = conceptual_score.paper_bootstrap(pairs, of_change=False)
    assert values is not None
    assert len(values) == 200
    mean = math.fsum(map(float, pairs)) / 1000
    deviation = math.sqrt(math.fsum((pair - mean) ** 2 for pair in pairs) / 1000 / 100)
    assert abs(values.mean() - mean) < 4 * deviation / math.sqrt(200)
    assert 0.8 * deviation < values.std() < 1.2 * deviation
    assert all(abs(v * 100 - round(v * 100)) < 1e-9 for v in values), "means of 100 whole numbers"


def test_figures_of_the_papers_bootstrap_are_of_its_values() -> None:
    rng = random.Random(3)
    scored = documents(*[(rng.random(), rng.random()) for _ in range(30)])
    values = conceptual_score.paper_bootstrap([d["gain/rouge_l"] for d in scored], of_change=False)
    assert values is not None
    found = figures(scored)
    for ending, expected in (
        ("", np.median(values)),
        ("_stderr", np.std(values, ddof=1)),
        ("_ci95_low", np.quantile(values, 0.025)),
        ("_ci95_high", np.quantile(values, 0.975)),
    ):
        assert found[f"gain/rouge_l_100x200{ending}"] == pytest.approx(float(expected), rel=1e-12)
    # Pinned: another draw would make published figures incomparable.
    drawn = np.random.default_rng(0).integers(30, size=(200, 100))
    ordered = np.array([float(d["gain/rouge_l"]) for d in sorted(scored, key=sample_of)])
    assert values == pytest.approx(ordered[drawn].mean(axis=1))


def sample_of(document: dict[str, Any]) -> str:
    sample: str = document["gain/rouge_l"].sample
    return sample


def test_the_papers_bootstrap_needs_two_samples_and_two_defined_values() -> None:
    def drawn(*scores: float, of_change: bool = False) -> Any:
        pairs = [Pair(one, one, one, f"{n:04}", "c") for n, one in enumerate(scores)]
        return conceptual_score.paper_bootstrap(pairs, of_change=of_change)

    assert drawn(0.5) is None
    assert len(drawn(0.5, 0.5)) == 200
    # The change of error is defined in those of the 200 draws that have the one error.
    draws = np.random.default_rng(0).integers(5000, size=(200, 100))
    times = Counter(int(one) for row in draws for one in set(row))
    for count, expected in ((1, None), (2, 2)):
        place = next(one for one in range(5000) if times[one] == count)
        scores = [1.0] * 5000
        scores[place] = 0.0
        found = drawn(*scores, of_change=True)
        assert (None if found is None else len(found)) == expected


def test_a_pair_survives_the_way_between_ranks() -> None:
    pair = Pair(0.5, 0.25, 0.75, "s", "c")
    again = pickle.loads(pickle.dumps(pair))
    assert (again, again.random, again.concept, again.sample, again.cluster) == (
        0.5, 0.25, 0.75, "s", "c",
    )  # fmt: skip


def test_names_of_concepts_break_no_names_of_metrics() -> None:
    assert conceptual_score.label("Intervals/Numbers, both") == "Intervals&Numbers; both"
    names = [e["metric"] for e in conceptual_score.metric_list(("is in Rome, Italy", "a/b"))]
    assert len(names) == len(set(names))
    assert all("," not in name and name.count("/") == 1 for name in names)
