"""Retrieval of DiNeR's demonstrations at full size, beside the plain-Python BM25 library.

    python benchmarks_perf/diner_retrieval.py [--recipes 187520] [--queries 694] [--sample 5]

Recipes are words of jieba's dictionary, drawn by their frequency there: nonsense, with the
paper's lengths (180 characters on average) and the frequencies of Chinese text, which are what
retrieval costs. Ours: words and index (once), the same from the cache, and all queries with the
selection of the best. The plain library gets our words, and a sample of the same queries, since
all of them would take it long; the results are compared.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

# ruff: noqa: T201, RUF001 (a script that prints; Chinese punctuation)

TOP = 10
MEAN_WORDS = 110
"""About 180 characters."""


def recipes(count: int, seed: int = 0) -> list[str]:
    """Texts, the same for the same count and seed."""
    import jieba

    rows = [line.split() for line in jieba.get_dict_file().read().decode().splitlines()]
    words = [row[0] for row in rows]
    cumulated = list(accumulate(int(row[1]) for row in rows))
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        length = max(12, round(MEAN_WORDS * rng.lognormvariate(-0.125, 0.5)))
        drawn = rng.choices(words, cum_weights=cumulated, k=length)
        steps = ("".join(drawn[place : place + 12]) for place in range(0, length, 12))
        found.append("，".join(steps) + "。")
    return found


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints what a block took: wall and processor time, and the peak of memory so far."""
    wall, processor = time.perf_counter(), time.process_time()
    yield
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:48} {wall:8.1f} s wall {processor:8.1f} s cpu, peak {peak:5.2f} GiB", flush=True)


def main() -> None:
    """Prints the times and whether the results are the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipes", type=int, default=187_520)
    parser.add_argument("--queries", type=int, default=694)
    parser.add_argument("--sample", type=int, default=5, help="Queries for the plain library.")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LM_EVAL_EXT_CACHE"] = cache
        measure(args.recipes, args.queries, args.sample)


def measure(count: int, queries: int, sample: int) -> None:
    """Measures both, ours first: its peak of memory is then its own."""
    import numpy as np

    from lm_eval_ext.benchmarks.diner import retrieval, segment
    from lm_eval_ext.benchmarks.diner.demonstrations import INSTRUCTION, choose
    from lm_eval_ext.benchmarks.diner.glossary import Glossary
    from lm_eval_ext.benchmarks.diner.records import Recipe, Split

    with timed(f"making {count + queries:,} recipes"):
        texts = recipes(count + queries)
    mean = sum(map(len, texts)) / len(texts)
    print(f"{mean:.0f} characters and {len(segment.words(texts[0]))} words (of the first)")
    asked, texts = texts[:queries], texts[queries:]
    with timed("words, index, and keeping it (once)"):
        retrieval.index_of(texts)
    with timed("the same from the cache"):
        index = retrieval.index_of(texts)
    size = sum(
        path.stat().st_size for path in Path(os.environ["LM_EVAL_EXT_CACHE"]).rglob("bm25*/*")
    )
    print(f"{size / 2**20:.0f} MiB in the cache")
    with timed(f"scores for {queries} queries"):
        ours = [index.scores(text) for text in asked[:sample]]
        for text in asked[sample:]:
            index.scores(text)
    glossary = Glossary.of({"food": {"鱼": "鱼"}, "action": {}, "flavour": {}})
    split = Split(
        tuple(Recipe(f"train-{n:06}", t, "鱼") for n, t in enumerate(texts)), (), glossary
    )
    with timed(f"two demonstrations for {queries} recipes, in all"):
        choose(
            split, [Recipe(f"test-{n}", t, "鱼") for n, t in enumerate(asked)], INSTRUCTION, 2, 0
        )

    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        sys.exit("for the comparison: pip install rank-bm25")
    with timed("the plain library: words and index"):
        plain = BM25Okapi(
            [segment.words(text) for text in texts], k1=retrieval.K1, b=retrieval.B, epsilon=0
        )
    words = [segment.words(text) for text in asked[:sample]]
    with timed(f"the plain library: scores for {sample} queries"):
        theirs = [plain.get_scores(query) / (retrieval.K1 + 1) for query in words]
    worst = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
    same = sum(
        list(np.argsort(-a)[:TOP]) == list(np.argsort(-b)[:TOP])
        for a, b in zip(ours, theirs, strict=True)
    )
    print(f"largest difference of a score {worst:.2g}; same first {TOP}: {same} of {sample}")


if __name__ == "__main__":
    main()
