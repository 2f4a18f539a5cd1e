"""Metrics over documents, computed by hand."""

import math
import pickle
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from lm_eval.api.registry import get_aggregation

from lm_eval_ext.benchmarks.conceptual import intervals
from lm_eval_ext.benchmarks.conceptual import score as conceptual_score
from lm_eval_ext.benchmarks.conceptual.answers import SCORES
from lm_eval_ext.benchmarks.conceptual.points import ByTemplate, Point, best_template, of_best
from lm_eval_ext.benchmarks.conceptual.score import Layout, process_results

LAYOUT = Layout(("c0",), ("options",))


def test_a_document_is_scored_under_all_selections_and_templates() -> None:
    doc = {
        "templates": ["options", "letter"], "answers": ["a b", "B"], "answer_label": "B",
        "options": [{"label": "A", "text": "c"}, {"label": "B", "text": "a b"}],
        "random_demonstrations": ["x"], "concept_demonstrations": ["y"],
    }  # fmt: skip
    found = process_results(doc, ["b", "a b", "A", "(B) a b"])
    assert found["options"]["rouge_l"] == {"random": 0.5, "concept": 1.0}
    assert found["options"]["accuracy"] == {"random": 1.0, "concept": 1.0}
    assert found["letter"]["accuracy"] == {"random": 0.0, "concept": 1.0}
    three = process_results(
        {**doc, "templates": ["choose"], "answers": ["a b"], "same_labels_demonstrations": ["z"]},
        ["b", "a b", ""],
    )
    assert three["choose"]["accuracy"] == {"random": 0.0, "concept": 1.0, "same_labels": 0.0}


def documents(
    *scores: tuple[float, ...], concept: str = "c", layout: Layout = LAYOUT
) -> list[dict[str, Any]]:
    """Per-document values for scores under each selection (of all three kinds)."""
    selections = ("random", "concept", "same_labels")
    return [
        conceptual_score.values(
            {"id": f"d{n}", "concept": f"{concept}{n % 4}"},
            {"options": {name: dict(zip(selections, one, strict=False)) for name in SCORES}},
            layout,
        )
        for n, one in enumerate(scores)
    ]


def figures(scored: list[dict[str, Any]], layout: Layout = LAYOUT) -> dict[str, Any]:
    return {
        entry["metric"]: get_aggregation(entry["aggregation"])([d[entry["metric"]] for d in scored])
        for entry in conceptual_score.metric_list(layout)
        if entry["metric"] in scored[0]
    }


def test_the_figures_are_what_arithmetic_says() -> None:
    found = figures(documents((0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)))
    assert found["random/accuracy"] == 0.5
    assert found["concept/accuracy"] == 0.625
    assert found["gain/accuracy"] == 0.125
    assert found["error_change/accuracy"] == pytest.approx((1 - 0.625) / (1 - 0.5) - 1)
    assert found["gain/accuracy:c0"] == "N/A", "one document is not enough"


def test_a_concept_with_enough_documents_has_figures() -> None:
    found = figures(documents(*[(0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.0)] * 10))
    assert found["random/accuracy:c0"] == 0.0
    assert found["concept/accuracy:c0"] == 1.0
    assert found["gain/accuracy:c0_stderr"] == 0.0


def test_without_error_there_is_no_change_of_it() -> None:
    found = figures(documents((1.0, 1.0), (1.0, 0.5), (1.0, 1.0), (1.0, 0.0)))
    for ending in ("", "_stderr", "_100x200", "_100x200_stderr"):
        assert found[f"error_change/rouge_l{ending}"] == "N/A"
    assert found["gain/rouge_l"] == -0.375


@pytest.mark.parametrize(("random", "concept"), [(0.2, 0.6), (0.9, 0.95)])
def test_constant_scores_have_intervals_of_no_width(random: float, concept: float) -> None:
    scored = documents(*[(random, concept)] * 4)
    assert scored[0]["error_change/rouge_l"] == random - concept, "what lm-eval logs"
    found = figures(scored)
    for view, value in (("gain", concept - random), ("error_change", -0.5)):
        for ending in ("", "_100x200", "_100x200_ci95_low", "_100x200_ci95_high"):
            assert found[f"{view}/rouge_l{ending}"] == pytest.approx(value), (view, ending)


def test_a_concept_has_figures_from_ten_documents_on() -> None:
    rows = [{"concept": name} for name in ["nine"] * 9 + ["ten"] * 10 + [""] * 11]
    assert conceptual_score.concepts_with_enough(rows) == ("ten",)
    ten = figures(documents(*[(0.0, 1.0)] * 37))
    assert ten["concept/accuracy:c0"] == 1.0
    nine = figures(documents(*[(0.0, 1.0)] * 36))
    assert nine["concept/accuracy:c0"] == nine["concept/accuracy:c0_stderr"] == "N/A"


def test_errors_and_changes_of_error_are_better_when_lower() -> None:
    for entry in conceptual_score.metric_list(LAYOUT):
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
    values = intervals.paper_bootstrap(pairs)
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
    values = intervals.paper_bootstrap([d["gain/rouge_l"] for d in scored])
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
    def drawn(*scores: float, view: str = "gain") -> Any:
        both = ({"random": one, "concept": one} for one in scores)
        points = [Point(one, view, f"{n:04}", "c") for n, one in enumerate(both)]
        return intervals.paper_bootstrap(points)

    assert drawn(0.5) is None
    assert len(drawn(0.5, 0.5)) == 200
    # The change of error is defined in those of the 200 draws that have the one error.
    draws = np.random.default_rng(0).integers(5000, size=(200, 100))
    times = Counter(int(one) for row in draws for one in set(row))
    for count, expected in ((1, None), (2, 2)):
        place = next(one for one in range(5000) if times[one] == count)
        scores = [1.0] * 5000
        scores[place] = 0.0
        found = drawn(*scores, view="error_change")
        assert (None if found is None else len(found)) == expected


def test_values_survive_the_way_between_ranks() -> None:
    point = Point({"random": 0.25, "concept": 0.75}, "gain", "s", "c")
    by_template = ByTemplate({"options": point}, {"options": 0.75}, "options")
    one, many = pickle.loads(pickle.dumps((point, by_template)))
    assert (one, one.scores, one.view, one.sample, one.cluster) == (
        0.5, {"random": 0.25, "concept": 0.75}, "gain", "s", "c",
    )  # fmt: skip
    assert (many, many.deciding, many.asked) == ({"options": 0.5}, {"options": 0.75}, "options")
    assert many["options"].scores == point.scores


def test_a_gain_is_the_sum_of_its_parts() -> None:
    layout = Layout(("c0",), ("options",), control=True)
    rng = random.Random(4)
    scored = documents(
        *[(rng.random(), rng.random(), rng.random()) for _ in range(40)], layout=layout
    )
    found = figures(scored, layout)
    for score in ("rouge_l", "accuracy", "rouge_l_f1"):
        labels, concept = (found[f"gain_from_{part}/{score}"] for part in ("labels", "concept"))
        assert labels + concept == pytest.approx(found[f"gain/{score}"])
        assert found[f"same_labels/{score}"] == pytest.approx(found[f"random/{score}"] + labels)
    assert figures(documents((0.0, 1.0))).keys().isdisjoint({"same_labels/rouge_l"})


def test_a_sample_without_control_is_in_the_other_metrics_only() -> None:
    layout = Layout((), ("options",), control=True)
    found = figures(documents((0.0, 1.0, 0.5), (0.0, 0.0), layout=layout), layout)
    assert found["gain/rouge_l"] == 0.5
    assert (found["same_labels/rouge_l"], found["gain_from_concept/rouge_l"]) == (0.5, 0.5)


def test_independent_draws_differ_by_selection_and_their_spread_adds_up() -> None:
    """Samples are easy or hard under both selections, as in practice: pairing takes that away."""
    rng = random.Random(5)
    points = []
    for n in range(400):
        ease, noise = rng.random(), rng.random() / 4
        both = {"random": ease * 0.7, "concept": ease * 0.7 + noise}
        points.append(Point(both, "gain", f"{n:04}", "c"))
    paired, independent = (intervals.paper_bootstrap(points, draws) for draws in intervals.DRAWS)
    assert paired is not None and independent is not None
    expected = [
        math.sqrt(variance / 100)
        for variance in (
            np.var([float(point) for point in points]),
            sum(np.var([point.scores[name] for point in points]) for name in ("random", "concept")),
        )
    ]
    assert [paired.std(), independent.std()] == pytest.approx(expected, rel=0.15)
    assert independent.mean() == pytest.approx(paired.mean(), abs=0.01)
    one = [Point(point.scores, "random", point.sample, "c") for point in points]
    same = [intervals.paper_bootstrap(one, draws) for draws in intervals.DRAWS]
    assert np.array_equal(same[0], same[1])
    shuffled = rng.sample(points, len(points))
    assert np.array_equal(intervals.paper_bootstrap(shuffled, "independent"), independent)


def test_the_draws_are_named_in_the_metric_list() -> None:
    for draws in intervals.DRAWS:
        listed = conceptual_score.metric_list(Layout((), ("options",), draws=draws))
        (used,) = {e["aggregation"] for e in listed if e["metric"] == "gain/rouge_l_100x200"}
        assert used == f"lm_eval_ext_100x200_{draws}"


def of_templates(**scores: list[tuple[float, float]]) -> list[dict[str, Any]]:
    """Per-document values for (random, concept) pairs, by template."""
    layout = Layout(("c",), tuple(scores))
    return [
        conceptual_score.values(
            {"id": f"d{n}", "concept": "c"},
            {
                template: {
                    name: {"random": random, "concept": concept if name == "rouge_l" else 0.25}
                    for name in SCORES
                }
                for template, (random, concept) in zip(scores, one, strict=True)
            },
            layout,
        )
        for n, one in enumerate(zip(*scores.values(), strict=True))
    ]


def test_the_best_template_is_the_one_with_the_highest_concept_score() -> None:
    """Not the one with the highest gain, nor with the highest random score."""
    layout = Layout(("c",), ("gains", "best", "random"))
    scored = of_templates(
        gains=[(0.0, 0.7)] * 12,
        best=[(0.6, 1.0), (0.8, 0.6)] * 6,
        random=[(1.0, 0.5)] * 12,
    )
    found = figures(scored, layout)
    assert [found[f"is_best@{name}"] for name in layout.templates] == [0.0, 1.0, 0.0]
    for name, value in found.items():
        base, ending, rest = name.partition("_stderr" if name.endswith("_stderr") else "_ci95")
        if "@" not in name and ":" not in name:
            assert value == found[f"{base}@best{ending}{rest}"], name
    assert found["gain/rouge_l"] == pytest.approx(0.1)
    assert found["gain/rouge_l@gains"] == pytest.approx(0.7)
    assert found["concept/rouge_l:c"] == pytest.approx(0.8)
    assert found["random/accuracy:c"] == pytest.approx(0.7), "the same template for every score"
    # lm-eval logs the document's values by template.
    assert scored[0]["gain/rouge_l"] == pytest.approx({"gains": 0.7, "best": 0.4, "random": -0.5})


def test_of_equal_templates_the_first_is_the_best_in_any_order_of_documents() -> None:
    scored = of_templates(one=[(0, 1), (0, 0), (0, 0.5)], two=[(0, 0), (0, 1), (0, 0.5)])
    values = [document["gain/rouge_l"] for document in scored]
    assert best_template(values) == best_template(values[::-1]) == "one"
    assert of_best(values) == [1, 0, 0.5]
    assert of_best([]) == []


def test_names_of_concepts_break_no_names_of_metrics() -> None:
    assert conceptual_score.label("Intervals/Numbers, both") == "Intervals&Numbers; both"
    layout = Layout(("is in Rome, Italy", "a/b"), ("options",), control=True)
    names = [e["metric"] for e in conceptual_score.metric_list(layout)]
    assert len(names) == len(set(names))
    assert all("," not in name and name.count("/") == 1 for name in names)
