"""Choosing demonstrations, beside plain Python.

Recipes are words of jieba's dictionary, drawn by their frequency there: nonsense, with the
paper's lengths (180 characters on average) and the frequencies of Chinese text, on which the
cost of retrieval depends. Both sides get them as words. Facts and explanations have WorldTree's
numbers; some facts explain many questions, most one or two.
"""

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from bench.data import UnavailableError, originals
from bench.rows import DifferError, Row, in_turn

RECIPES = (4_000, 16_000, 64_000)
"""DiNeR's training set has 187,520."""

QUERIES = 3
NOISE = 1e-3
"""Largest difference of scores; the index has single precision."""

MEAN_WORDS = 110
"""About 180 characters."""

SAMPLES = (552, 1_103, 2_206)
FACTS = 9_720
K = 3

ICL_SAMPLES = (25, 50, 100)
ICL_K = 8

PLAIN = "a double loop over sets"
"""The baseline of the choices by common features."""


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields rows for three ways of choosing, at three sizes each."""
    [*bm25(50, 1), overlap(50, 1)]  # so that imports are not measured
    found = [bm25(max(50, round(size * share)), rounds) for size in RECIPES]
    indexes, queries = zip(*map(tuple, found), strict=True)
    yield from (*indexes, *queries)
    for size in SAMPLES:
        yield overlap(max(20, round(size * share)), rounds)
    yield from cover(rounds, share)


def recipes(count: int, seed: int = 0) -> list[list[str]]:
    """Returns texts as words, the same for the same count and seed."""
    import jieba

    table = [line.split() for line in jieba.get_dict_file().read().decode().splitlines()]
    words = [line[0] for line in table]
    cumulated = list(accumulate(int(line[1]) for line in table))
    rng = random.Random(seed)
    lengths = (max(12, round(MEAN_WORDS * rng.lognormvariate(-0.125, 0.5))) for _ in range(count))
    return [rng.choices(words, cum_weights=cumulated, k=length) for length in lengths]


def bm25(size: int, rounds: int) -> Iterator[Row]:
    """An index, and the scores of all recipes for some queries, as in rank-bm25's README."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    from lm_eval_ext.benchmarks.diner import retrieval

    texts = recipes(size + QUERIES)
    asked, texts = texts[:QUERIES], texts[QUERIES:]

    def plain() -> Any:
        return BM25Okapi(texts, k1=retrieval.K1, b=retrieval.B, epsilon=0)

    times, theirs, ours = in_turn(rounds, plain, lambda: retrieval.build_from_words(texts))
    yield Row("BM25, index (DiNeR)", size, "recipes", "rank-bm25", *times)
    times, one, other = in_turn(
        rounds,
        lambda: [theirs.get_scores(words) for words in asked],
        lambda: [ours.scores_of_words(words) for words in asked],
    )
    # rank-bm25 multiplies by a factor that changes no order.
    for a, b in zip(one, other, strict=True):
        if not np.allclose(a / (retrieval.K1 + 1), b, atol=NOISE):
            raise DifferError("the scores of rank-bm25 and of the index differ")
    work, same = f"BM25, {QUERIES} queries (DiNeR)", f"scores within {NOISE:g}"
    yield Row(work, size, "recipes", "rank-bm25", *times, same)


def overlap(size: int, rounds: int) -> Row:
    """Demonstrations with the most facts in common."""
    from lm_eval_ext.fewshot import Item, Pool, overlapping

    rng = random.Random(0)
    facts = [f"f{number}" for number in range(FACTS)]
    items = [
        Item(
            f"q{number}",
            f"q{number}",
            frozenset(facts[int(FACTS * rng.random() ** 3)] for _ in range(rng.randint(1, 16))),
        )
        for number in range(size)
    ]
    by_id = {item.id: item for item in items}

    def most(one: Item) -> list[int]:
        found = (len(one.features & other.features) for other in items if other is not one)
        return sorted(found)[-K:][::-1]

    def theirs() -> dict[str, list[int]]:
        return {one.id: most(one) for one in items}

    def ours() -> dict[str, list[int]]:
        chosen = overlapping(Pool(items), items, K, 1).by_sample
        return {
            name: [len(by_id[i].features & by_id[name].features) for i in choice.ids]
            for name, choice in chosen.items()
        }

    times, one, other = in_turn(rounds, theirs, ours)
    # Ours skips samples that have nothing in common with K others.
    if {name: found for name, found in one.items() if found[-1]} != other:
        raise DifferError("the overlaps of the double loop and of the sparse product differ")
    work = f"{K} demonstrations by largest overlap of facts (WorldTree's size)"
    return Row(work, size, "samples", PLAIN, *times, "overlaps identical")


def cover(rounds: int, share: float) -> Iterator[Row]:
    """Demonstrations from COGS's training set that cover a sample's constructions."""
    from lm_eval_ext.benchmarks.cogs import in_context
    from lm_eval_ext.errors import DataError
    from lm_eval_ext.fewshot import Item, Pool, covering

    originals("cogs")
    try:
        both = in_context.dataset()
    except DataError as error:
        raise UnavailableError(str(error)) from error
    pool = [
        Item(one["id"], one["copy_key"], frozenset(one["constructions"])) for one in both["train"]
    ]
    known = frozenset(name for item in pool for name in item.features)
    step = max(1, len(both["test"]) // ICL_SAMPLES[-1])
    tested = [
        Item(one["id"], one["copy_key"], frozenset(one["constructions"]) & known)
        for one in both["test"].select(range(0, step * ICL_SAMPLES[-1], step))
    ]
    by_id = {item.id: item for item in pool}
    for size in (max(2, round(size * share)) for size in ICL_SAMPLES):
        samples = tested[:size]

        def theirs(samples: list[Item] = samples) -> dict[str, list[Any]]:
            return {one.id: greedy(one, pool) for one in samples}

        def ours(samples: list[Item] = samples) -> dict[str, list[Any]]:
            found = covering(Pool(pool), samples, ICL_K, 1).by_sample
            return {name: [by_id[i] for i in choice.ids] for name, choice in found.items()}

        times, _, found = in_turn(rounds, theirs, ours)
        if not all(is_greedy(one, found[one.id], pool) for one in samples):
            raise DifferError("one of our choices adds less than another would")
        work = (
            f"{ICL_K} demonstrations that cover the constructions, of {len(pool):,} "
            "(COGS in context)"
        )
        same = "each choice adds as much as any could"
        yield Row(work, size, "samples", PLAIN, *times, same)


def greedy(sample: Any, pool: list[Any]) -> list[Any]:
    """Picks the item that adds most, the first if several do; no copies of what is picked."""
    left, found, known = sample.features, [], {sample.copy_key}
    for _ in range(ICL_K):
        left = left or sample.features
        others = (item for item in pool if item.copy_key not in known)
        found.append(max(others, key=lambda item: len(left & item.features)))
        left = left - found[-1].features
        known.add(found[-1].copy_key)
    return found


def is_greedy(sample: Any, shown: list[Any], pool: list[Any]) -> bool:
    """Returns whether each demonstration adds as much as any of the pool would."""
    left, known = sample.features, {sample.copy_key}
    for item in shown:
        left = left or sample.features
        others = (other for other in pool if other.copy_key not in known)
        best = max(len(left & other.features) for other in others)
        # Where no item has the remaining features, all are covered again.
        wanted = left if best else sample.features
        best = best or max(len(wanted & o.features) for o in pool if o.copy_key not in known)
        if item.copy_key in known or len(wanted & item.features) < best:
            return False
        left = wanted - item.features
        known.add(item.copy_key)
    return len(shown) == ICL_K
