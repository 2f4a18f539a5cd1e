"""The report of a build: its counts, computed by hand, and its text."""

import pytest

from lm_eval_ext.benchmarks.diner.build import comparison, divergence, report
from lm_eval_ext.benchmarks.diner.glossary import Component

BEEF, EGG, TOFU = (Component("food", name) for name in ("beef", "egg", "tofu"))
FRY, STEW = Component("action", "fry"), Component("action", "stew")
SPICY = Component("flavour", "spicy")
NAMES = {
    "fried beef": (FRY, BEEF),
    "beef, fried, beef": (BEEF, FRY, BEEF),
    "stewed egg": (STEW, EGG),
    "spicy fried beef": (SPICY, FRY, BEEF),
    "egg": (EGG,),
    "egg, egg": (EGG, EGG),
    "fried tofu": (FRY, TOFU),
}


def test_forms_by_their_number_of_dishes() -> None:
    recipes = {name: 10 ** min(place, 3) for place, name in enumerate(NAMES)}
    assert report.forms(NAMES, recipes) == [
        {"form": "1 action + 1 food", "dishes": 4, "recipes": 1 + 10 + 100 + 1000},
        {"form": "1 food", "dishes": 2, "recipes": 2000},
        {"form": "1 flavour + 1 action + 1 food", "dishes": 1, "recipes": 1000},
    ]


def test_the_sides_of_a_split() -> None:
    train = ["fried beef", "beef, fried, beef", "stewed egg", "egg"]
    found = report.split_statistics(NAMES, train, ["spicy fried beef", "fried tofu", "fried beef"])
    # Test compounds: spicy+fry, spicy+beef, all three, fry+tofu once each; fry+beef twice.
    assert found["dishes"] == [4, 3]
    assert found["components"] == [4, 4]
    subsets, pairs, whole = (found["compounds"][one] for one in ("subsets", "pairs", "whole"))
    assert subsets["different"] == [2, 5]
    assert pairs["different"] == [2, 4]
    # Of the whole sets, spicy+fry+beef, fry+tofu and fry+beef, only the last is in training.
    assert whole["different"] == [2, 3]
    assert (whole["shared"], whole["shared_occurrences"]) == (1 / 3, 1 / 3)
    assert subsets["shared"] == 1 / 5
    assert subsets["shared_occurrences"] == 2 / 6
    assert found["missing"] == ["spicy", "tofu"]
    # Training names with beef, fry, spicy and tofu: 2, 2, 0, 0.
    assert found["in_training"] == 4 / 4
    # Only fry+beef is shared: 2 of 3 in training, 2 of 6 in test.
    assert subsets["divergence"] == pytest.approx(1 - (2 / 3) ** 0.1 * (2 / 6) ** 0.9)
    assert pairs["divergence"] == pytest.approx(1 - (2 / 3) ** 0.1 * (2 / 5) ** 0.9)
    assert whole["divergence"] == pytest.approx(1 - (2 / 3) ** 0.1 * (1 / 3) ** 0.9)
    # Components in training: beef 2, fry 2, stew 1, egg 2 of 7; in test: beef 2, fry 3 of 7.
    atoms = (2 / 7 * 2 / 7) ** 0.5 + (2 / 7 * 3 / 7) ** 0.5
    assert found["atom_divergence"] == pytest.approx(1 - atoms)


def test_a_mean_over_test_components_only() -> None:
    found = report.split_statistics(NAMES, ["fried beef", "stewed egg"], ["egg"])
    assert found["in_training"] == 1
    for one in found["compounds"].values():
        assert (one["shared"], one["divergence"]) == (0, 1)


def test_shared_compounds_count_as_often_as_test_has_them() -> None:
    test = ["fried beef", "beef, fried, beef", "fried tofu"]
    found = report.split_statistics(NAMES, ["fried beef"], test)
    found = found["compounds"]["whole"]
    assert (found["shared"], found["shared_occurrences"]) == (1 / 2, 2 / 3)


def test_equal_sides_do_not_diverge_below_zero() -> None:
    counts = {number: number % 7 + 1 for number in range(97)}
    assert all(
        divergence.divergence(counts, counts, alpha=alpha / 20) >= 0 for alpha in range(1, 20)
    )


@pytest.mark.parametrize(
    ("target", "course", "message"),
    [
        (0.5, [0.5, 0.7], "has 0.5000 already and was taken as it is, names divided at random."),
        (0.7, [0.5, 0.7], "reached 0.7000 and stopped there"),
        (0.8, [0.5, 0.7], "NOT reached: 0.7000 is the most"),
    ],
)
def test_whether_the_target_was_reached(target: float, course: list[float], message: str) -> None:
    text = markdown(target, course)
    assert message in text
    assert "| 0 | 0.5000 |\n| 1 | 0.7000 |" in text


@pytest.mark.parametrize("length", [1, 20, 21, 39, 40, 41, 1000])
def test_a_long_search_is_thinned(length: int) -> None:
    text = markdown(0.9, [number / length for number in range(length)])
    rows = text.split("| exchange | divergence |\n| --- | --- |\n")[1].strip().splitlines()
    places = [int(row.split("|")[1].replace(",", "")) for row in rows]
    assert (places[0], places[-1]) == (0, length - 1)
    assert len(places) <= 21
    assert length > 20 or len(places) == length


def markdown(target: float, course: list[float]) -> str:
    train, test = ["fried beef", "egg", "stewed egg"], ["fried beef", "spicy fried beef"]
    split = {
        **report.split_statistics(NAMES, train, test),
        "recipes": {"train": 1200, "valid": 3, "test": 4},
        "categories": report.categories(NAMES, train, test),
    }
    return report.as_markdown(
        {
            "corpus": {"file": "corpus.jsonl", "sha256": "abc"},
            "glossary": {"source": "given", "digest": "def"},
            "options": {"divergence": target, "compounds": "pairs", "seed": 0, "proportion": 1.0},
            "kept": {"dish_names": 1234},
            "characters": 1.0,
            "steps": 2.0,
            "recipes_per_dish": 3.0,
            "forms": [],
            "splits": {"tmcd": split},
            "course": course,
            "unparsed": [],
        }
    )


def test_the_table_of_splits() -> None:
    text = markdown(0.9, [0.5])
    for row in (
        "| dish names | 1,234 |",
        "|  | paper, TMCD | tmcd |",
        "| dishes | 3,109 / 694 | 3 / 2 |",
        "| recipes | 187,520 / 37,861 | 1,203 / 4 |",
        "| components | 479 / 383 | 4 / 3 |",
        # Spicy is missing; fry and beef are in one training name each: 2 of 3 components.
        "| test components that training lacks | 0 | 1 |",
        "| test components in one training dish only |  | 2 |",
        "| training dishes per test component | 19.3 | 0.7 |",
        "| compounds (whole): different ones per dish | 0.75 / 0.89 | 0.67 / 1.00 |",
        "| compounds (pairs): different ones per dish | 0.75 / 0.89 | 0.67 / 1.50 |",
        "| compounds (subsets): test compounds in training | 0.67 % | 25.00 % |",
        # Fried beef is known as it is, and spicy not at all.
        "| RecoTwo | 89.2 % | 0.0 % |",
        "| none | 0.0 % | 100.0 % |",
        "| distance of these shares from the paper's | 0.00 | 1.00 |",
    ):
        assert row in text


def test_the_distance_of_a_mix() -> None:
    assert comparison.distance(comparison.PAPER_CATEGORIES) == 0
    half = {one: 2 * n for one, n in comparison.PAPER_CATEGORIES.items()}
    assert comparison.distance(half) == 0
    assert comparison.distance({"none": 7}) == 1
    # 43/694 and 11/694 are missing and 54/694 too many are RecoThree.
    assert comparison.distance({"RecoTwo": 619, "RecoThree": 75}) == pytest.approx(54 / 694)
