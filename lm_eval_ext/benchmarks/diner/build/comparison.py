"""A split's figures beside the paper's, as published scores hold for a split like the paper's."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lm_eval_ext.benchmarks.diner.build.divergence import COMPOUNDS
from lm_eval_ext.benchmarks.diner.records import ADD_ONE, COMB_TWO, RECO_THREE, RECO_TWO

NO_CATEGORY = "none"

PAPER_CATEGORIES = {COMB_TWO: 43, ADD_ONE: 11, RECO_TWO: 619, RECO_THREE: 21, NO_CATEGORY: 0}
"""Test names in each category (paper, table 2)."""


def shares(categories: Mapping[str, int]) -> dict[str, float]:
    """Each category's share of the test names, from 0 to 1."""
    total = sum(categories.values())
    return {one: categories.get(one, 0) / total if total else 0.0 for one in PAPER_CATEGORIES}


def distance(categories: Mapping[str, int]) -> float:
    """Half the sum of differences from the paper's shares: 0 for its mix, 1 for a disjoint one."""
    here, paper = shares(categories), shares(PAPER_CATEGORIES)
    return sum(abs(here[one] - paper[one]) for one in paper) / 2


def table(splits: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table of splits, each with its statistics, ``recipes`` and ``categories``.

    Two numbers are those of training (``valid`` included) and test.
    """
    rows = [(name, paper, *map(figure, splits.values())) for name, paper, figure in _rows()]
    return markdown_table(("", "paper, TMCD", *splits), rows)


def _rows() -> Iterator[tuple[str, str, Callable[[Mapping[str, Any]], str]]]:
    """Each figure's name, what the paper has ("" if nothing) and how to get it from a split."""
    yield "dishes", "3,109 / 694", lambda split: _two(split["dishes"])
    yield "recipes", "187,520 / 37,861", lambda split: _two(_recipes(split["recipes"]))
    yield "components", "479 / 383", lambda split: _two(split["components"])
    yield "test components that training lacks", "0", lambda split: f"{len(split['missing']):,}"
    yield "test components in one training dish only", "", lambda split: f"{split['once']:,}"
    yield "training dishes per test component", "19.3", lambda split: f"{split['in_training']:.1f}"
    yield "component divergence", "", lambda split: f"{split['atom_divergence']:.4f}"
    for which in COMPOUNDS:
        yield from _compound_rows(which)
    for one, share in shares(PAPER_CATEGORIES).items():
        yield one, _percent(share), partial(_share, one)
    yield (
        "distance of these shares from the paper's",
        "0.00",
        lambda split: f"{distance(split['categories']):.2f}",
    )


def _compound_rows(which: str) -> Iterator[tuple[str, str, Callable[[Mapping[str, Any]], str]]]:
    yield (
        f"compounds ({which}): different ones per dish",
        _ratios((2_317, 616), (3_109, 694)),
        lambda split: _ratios(split["compounds"][which]["different"], split["dishes"]),
    )
    yield (
        f"compounds ({which}): divergence",
        "0.98",
        lambda split: f"{split['compounds'][which]['divergence']:.4f}",
    )
    yield (
        f"compounds ({which}): test compounds in training",
        "0.67 %",
        lambda split: f"{100 * split['compounds'][which]['shared']:.2f} %",
    )


def _share(category: str, split: Mapping[str, Any]) -> str:
    return _percent(shares(split["categories"])[category])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _two(numbers: Iterable[int]) -> str:
    return " / ".join(f"{number:,}" for number in numbers)


def _recipes(parts: Mapping[str, int]) -> tuple[int, int]:
    return parts["train"] + parts["valid"], parts["test"]


def _ratios(numbers: Iterable[int], dishes: Iterable[int]) -> str:
    pairs = zip(numbers, dishes, strict=True)
    return " / ".join(f"{number / of:.2f}" if of else "0" for number, of in pairs)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; whole numbers get thousands separators."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
