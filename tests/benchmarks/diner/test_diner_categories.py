"""Categories of generalization: the paper's examples, and an exhaustive check."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories


@pytest.mark.parametrize(
    ("train", "name", "category"),
    [
        # The paper's table 2.
        (["beef", "bun"], "beef bun", "CombTwo"),
        (["noodles gravy", "steamed perch"], "steamed noodles gravy", "AddOne"),
        (["braised pork", "marinated brisket"], "braised brisket", "RecoTwo"),
        (
            ["spicy ricenoodle", "pork mushroom", "braised chicken"],
            "ricenoodle mushroom chicken",
            "RecoThree",
        ),
        # One single name and a part of another one recombine.
        (["beef", "steamed bun"], "beef bun", "RecoTwo"),
        (["beef", "bun", "steamed pork"], "beef bun steamed", "RecoThree"),
        # An added component may come from a single name, too.
        (["noodles gravy", "beef"], "beef noodles gravy", "AddOne"),
        # A whole name and two components of another one.
        (["noodles gravy", "steamed beef pork"], "steamed beef noodles gravy", "RecoTwo"),
        # Nothing new: the set, or more than it, is a training name.
        (["beef bun", "beef", "bun"], "bun beef", None),
        (["steamed beef bun", "beef", "bun"], "beef bun", None),
        (["beef"], "beef", None),
        # Unknown components, too many names.
        (["beef", "pork"], "beef bun", None),
        (["a x", "b x", "c x", "d x"], "a b c d", None),
        ([], "beef", None),
        (["beef"], "", None),
    ],
)
def test_categories(train: list[str], name: str, category: str | None) -> None:
    assert Categories(map(str.split, train)).of(name.split()) == category


def exhaustive(train: list[frozenset[str]], name: frozenset[str]) -> str | None:
    """The page's definitions, word by word, over all pairs and triples of names."""
    if not name or any(name <= known for known in train):
        return None
    singles = {next(iter(known)) for known in train if len(known) == 1}
    if len(name) == 2 and name <= singles:
        return "CombTwo"
    for base in train:
        for other in train:
            added = name - base
            if len(base) >= 2 and base < name and len(added) == 1 and added <= other:
                return "AddOne"
    for one, two in combinations(train, 2):
        if name <= one | two:
            return "RecoTwo"
    for one, two, three in combinations(train, 3):
        if name <= one | two | three:
            return "RecoThree"
    return None


SETS = st.frozensets(st.sampled_from("abcdefgh"), min_size=1, max_size=5)


@settings(max_examples=500)
@given(st.lists(SETS, max_size=8), SETS)
def test_an_exhaustive_check_agrees(train: list[frozenset[str]], name: frozenset[str]) -> None:
    expected = exhaustive(train, name)
    assert Categories(train).of(name) == expected
    assert Categories([*reversed(train), *train]).of(sorted(name)) == expected
    assert expected is None or expected in CATEGORIES
