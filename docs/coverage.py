"""Simulates how often intervals hold the truth, and writes the tables of docs/statistics.md.

    python docs/coverage.py            # about ten minutes
    python docs/coverage.py --check    # one line only; status 1 if the page has another

Every figure is a share of 4,000 simulated evaluations. Clusters differ in their rates by a
beta distribution (beta-binomial counts) or by a normal one on the logit scale.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy import optimize, stats

from lm_eval_ext.stats import intervals
from lm_eval_ext.stats.intervals import DIFFERENCE, UNIT, Estimate, Limits
from lm_eval_ext.stats.sums import f1_of_sums, relative_of_sums

PAGE = Path(__file__).with_name("statistics.md")
RUNS = 4000
ROUNDING = 1e-12
LEAST, MOST = 0.93, 0.97
MODELS = ("beta", "logit")
Sizes = Sequence[int]

# Documents by cluster, as our tasks have them (conceptual_glue; the direct prompts and the
# dialogues of MAGNIFICo).
GLUE = (47, 28, 24, 23, 23, 22, 20, 19, 19, 16, 12, 12, 5, 4, 4, 4)
DIRECT = (541, 287, 248, 212, 172, 164, 156, 131, 116, 100, 100, 96, 93, 92, 84, 84, 84, 80, 80,
          72, 72, 68, 68, 64, 60, 60, 56, 56, 56, 48, 48, 44, 44, 40, 40, 40, 36, 36, 32, 32, 32,
          32, 20, 20, 20, 12, 12, 12, 4)  # fmt: skip
DIALOGUE = (160, 144, 120, 96, 95, 78, 69, 51, 51, 48, 45, 45, 39, 36, 36, 33, 27, 27, 27,
            *[24] * 7, 21, 21, 21, 18, 15, 12, 12, 12, 12, 9, 9, 6, 6, 6, 3, 3, 3, 3)  # fmt: skip
TOO_FEW: dict[str, Sizes] = {"3 x 100": [100] * 3, "4 x 50": [50] * 4, "5 x 20": [20] * 5}
DESIGNS: dict[str, Sizes] = {
    "6 x 6 (conceptual_mini)": [6] * 6,
    "8 x 3 (diner_mini)": [3] * 8,
    "8 x 30": [30] * 8,
    "10 x 50 (cogs_mini_gen)": [50] * 10,
    "16 x 3 (LIEDER)": [3] * 16,
    "16, 4 to 47 (conceptual_glue)": GLUE,
    "21 x 1000 (COGS)": [1000] * 21,
    "44, 3 to 160 (dialogues)": DIALOGUE,
    "49, 4 to 541 (MAGNIFICo)": DIRECT,
    "30 x 10": [10] * 30,
    "50 x 1": [1] * 50,
    "100 x 3": [3] * 100,
    "200 x 5": [5] * 200,
}
CORRELATIONS = (0.1, 0.3)
RATES = (0.5, 0.8, 0.9, 0.95, 0.98)
PAIRS = ((0.5, 0.5), (0.7, 0.5), (0.8, 0.7), (0.9, 0.85), (0.95, 0.95))
SHARED = 0.6
"""Correlation of the clusters' difficulty for two systems."""


@dataclass(frozen=True)
class Row:
    """One line of a table: a design, and its coverage in each column, for both models."""

    design: str
    correlation: float
    cells: tuple[tuple[float, ...], ...]
    width: float
    plain: float


GRID = np.linspace(-8, 8, 4001)
WEIGHTS = stats.norm.pdf(GRID) / stats.norm.pdf(GRID).sum()


@cache
def quantiles(rate: float, correlation: float, model: str) -> Any:
    """A cluster's rate by the standard normal number that it is drawn with."""
    if model == "beta":
        both = (1 - correlation) / correlation
        return stats.beta.ppf(stats.norm.cdf(GRID), rate * both, (1 - rate) * both)

    def curve(centre: float, spread: float) -> Any:
        return 1 / (1 + np.exp(-(centre + spread * GRID)))

    def centre(spread: float) -> float:
        missing = lambda at: WEIGHTS @ curve(at, spread) - rate  # noqa: E731
        return float(optimize.brentq(missing, -30, 300))

    def excess(spread: float) -> float:
        return float(WEIGHTS @ (curve(centre(spread), spread) - rate) ** 2) - correlation * (
            rate * (1 - rate)
        )

    spread = optimize.brentq(excess, 0.01, 60)
    return curve(centre(spread), spread)


def rates_of(rng: Any, sizes: Sizes, rates: Sequence[float], correlation: float, model: str) -> Any:
    """Rates by evaluation and cluster, for systems that find the same clusters difficult."""
    shape = (RUNS, len(sizes))
    common = rng.standard_normal(shape) * SHARED**0.5
    numbers = [common + rng.standard_normal(shape) * (1 - SHARED) ** 0.5 for _ in rates]
    return [
        np.interp(number, GRID, quantiles(rate, correlation, model))
        for number, rate in zip(numbers, rates, strict=True)
    ]


def estimates(counts: dict[float, Any], sizes: Sizes) -> list[Estimate]:
    """What ``mean_estimate`` gives, from the number of documents with each score by cluster."""
    each = np.array(sizes)
    total, clusters = int(each.sum()), len(sizes)
    mean = sum(score * count.sum(axis=1) for score, count in counts.items()) / total
    sums = sum(score * count for score, count in counts.items()) - mean[:, None] * each
    error = np.sqrt(clusters / (clusters - 1) * (sums**2).sum(axis=1)) / total
    moments = [
        sum((score - mean) ** power * count.sum(axis=1) for score, count in counts.items()) / total
        for power in (2, 4)
    ]
    variance = np.where(moments[0] > ROUNDING, moments[0], 0.0)
    tail = np.divide(moments[1], variance, out=np.zeros(RUNS), where=variance > 0)
    effective, uneven = intervals.effective_clusters(sizes), intervals.raised(sizes)
    columns = (one.tolist() for one in (mean, error, variance, tail))
    return [
        Estimate(value, stderr, total, clusters, effective, spread, far, uneven)
        for value, stderr, spread, far in zip(*columns, strict=True)
    ]


def of_rate(rng: Any, sizes: Sizes, rate: float, correlation: float, model: str) -> Any:
    """Evaluations of one system, and its true rate."""
    (found,) = rates_of(rng, sizes, [rate], correlation, model)
    right = rng.binomial(sizes, found)
    return estimates({1.0: right, 0.0: np.array(sizes) - right}, sizes), UNIT, rate


def of_pair(rng: Any, sizes: Sizes, rates: Any, correlation: float, model: str) -> Any:
    """Evaluations of two systems on the same documents, and their true difference."""
    one, two = rates_of(rng, sizes, rates, correlation, model)
    first = rng.binomial(sizes, one * (1 - two))
    rest = np.clip((1 - one) * two / np.maximum(1 - one * (1 - two), 1e-12), 0, 1)
    second = rng.binomial(np.array(sizes) - first, rest)
    counts = {1.0: first, -1.0: second, 0.0: np.array(sizes) - first - second}
    return estimates(counts, sizes), DIFFERENCE, rates[0] - rates[1]


def jackknifed(sums: Any, statistic: Any, sizes: Sizes) -> list[Estimate | None]:
    """Estimates of a statistic of sums, which have the axes evaluation and cluster in front."""
    names = [f"{number:04}" for number in range(len(sizes))]
    of_size = dict(zip(names, sizes, strict=True))
    return [
        intervals.jackknife(dict(zip(names, one, strict=True)), statistic, of_size) for one in sums
    ]


def of_relative(rng: Any, sizes: Sizes, rates: Any, correlation: float, model: str) -> Any:
    """Relative performance: the same questions with and without a novel word."""
    base, novel = rates_of(rng, sizes, rates, correlation, model)
    sums = np.stack(
        [
            rng.binomial(sizes, base),
            np.broadcast_to(sizes, base.shape),
            rng.binomial(sizes, novel),
            np.broadcast_to(sizes, base.shape),
        ],
        axis=-1,
    ).astype(np.float64)
    found = jackknifed(sums[:, :, None, :], relative_of_sums, sizes)
    return found, (0.0, 100.0), 100 * rates[1] / rates[0]


GOLD, WRONG = 3, 2


def of_f1(rng: Any, sizes: Sizes, rate: float, correlation: float, model: str) -> Any:
    """Micro F1: three components of a name, found at a rate, and up to two wrong ones."""
    (found,) = rates_of(rng, sizes, [rate], correlation, model)
    each = np.array(sizes)
    hits = rng.binomial(GOLD * each, found)
    predicted = hits + rng.binomial(WRONG * each, 1 - found)
    gold = np.broadcast_to(GOLD * each, hits.shape)
    sums = np.stack([hits, predicted, gold], axis=-1).astype(np.float64)
    truth = 2 * GOLD * rate / (GOLD * rate + WRONG * (1 - rate) + GOLD)
    return jackknifed(sums, f1_of_sums, sizes), UNIT, truth


def covered(found: Sequence[Estimate | None], limits: Limits, truth: float) -> tuple[Any, Any]:
    """Which intervals hold the truth, and how wide they are."""
    made = [intervals.interval(one, limits) for one in found]
    bounds = np.array([(one.low, one.high) for one in made if one])
    holds = (bounds[:, 0] <= truth + ROUNDING) & (truth - ROUNDING <= bounds[:, 1])
    return holds.mean(), np.median(bounds[:, 1] - bounds[:, 0])


Draw = Callable[[Any, Sizes, Any, float, str], Any]


def row(kind: str, draw: Draw, columns: Sequence[Any], design: str, correlation: float) -> Row:
    """Simulates a line of a table; its numbers depend on nothing but its own names."""
    sizes = {**TOO_FEW, **DESIGNS}[design]
    cells = []
    plain, width = 0.0, 0.0
    for place, column in enumerate(columns):
        both = []
        for model in MODELS:
            rng = np.random.default_rng(crc32(f"{kind} {design} {correlation} {column}".encode()))
            found, limits, truth = draw(rng, sizes, column, correlation, model)
            share, median = covered(found, limits, truth)
            both.append(float(share))
            if place == 1 and model == MODELS[0]:
                width = float(median)
                errors = [abs(one.value - truth) - 1.96 * one.stderr for one in found if one]
                plain = float(np.mean(np.array(errors) <= ROUNDING))
        cells.append(tuple(both))
    return Row(design, correlation, tuple(cells), width, plain)


NO_CLUSTERS = ("50 x 1",)
RATIO_DESIGNS = ("8 x 30", "16, 4 to 47 (conceptual_glue)", "44, 3 to 160 (dialogues)",
                 "49, 4 to 541 (MAGNIFICo)", "100 x 3")  # fmt: skip
F1_DESIGNS = ("8 x 3 (diner_mini)", "16 x 3 (LIEDER)", "30 x 10", "100 x 3", "200 x 5")
KINDS: dict[str, tuple[Draw, Sequence[Any], Sequence[str]]] = {
    "rates": (of_rate, RATES, list(DESIGNS)),
    "differences": (of_pair, PAIRS, list(DESIGNS)),
    "relative performance": (of_relative, ((0.8, 0.4), (0.8, 0.6), (0.6, 0.5)), RATIO_DESIGNS),
    "micro F1": (of_f1, (0.5, 0.8, 0.95), F1_DESIGNS),
    "too few": (of_rate, RATES, list(TOO_FEW)),
    "too few, differences": (of_pair, PAIRS, list(TOO_FEW)),
}


def rows_of(kind: str) -> Iterator[Row]:
    """The lines of one table."""
    draw, columns, designs = KINDS[kind]
    for design in designs:
        for correlation in CORRELATIONS:
            if design in NO_CLUSTERS and correlation != CORRELATIONS[0]:
                continue  # a cluster of one document has no correlation
            yield row(kind, draw, columns, design, correlation)


def marked(share: float) -> str:
    """A share, with a mark where it lies outside of what is wanted."""
    return f"{share:.3f}"[1:] + ("-" if share < LEAST else "+" if share > MOST else "")


def line(one: Row) -> str:
    """A line of a Markdown table."""
    correlation = "-" if one.design in NO_CLUSTERS else f"{one.correlation:g}"
    cells = [" ".join(marked(min(share, 0.999)) for share in both) for both in one.cells]
    last = [f"{one.width:.2g}", f"{one.plain:.3f}"[1:]]
    return f"| {' | '.join([one.design, correlation, *cells, *last])} |\n"


def table(kind: str) -> str:
    """A table in Markdown."""
    columns = [
        f"{column:g}" if isinstance(column, float) else " / ".join(f"{one:g}" for one in column)
        for column in KINDS[kind][1]
    ]
    head = ["clusters x documents", "correlation", *columns, "width", "± 1.96 SE"]
    rule = ["---"] * len(head)
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, rule)]
    return "".join([*lines, *map(line, rows_of(kind))])


PART = re.compile(r"^(<!-- coverage: ([^\n]+?) -->\n).*?^(<!-- end -->)$", re.DOTALL | re.MULTILINE)
CHECKED = {"rates": "16 x 3 (LIEDER)"}


def check(page: str) -> list[str]:
    """Simulates a line of a table again; returns those that the page has otherwise."""
    found = [
        line(row(kind, *KINDS[kind][:2], design, CORRELATIONS[0]))
        for kind, design in CHECKED.items()
    ]
    return [one for one in found if one not in page]


def main() -> None:
    """Writes the tables, or checks them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true")
    if arguments.parse_args().check:
        if old := check(PAGE.read_text(encoding="utf-8")):
            sys.exit(f"{PAGE.name} is out of date; run python docs/coverage.py. Now:\n{old[0]}")
        return

    tables = {kind: made(kind) for kind in KINDS}
    page = PAGE.read_text(encoding="utf-8")
    filled = PART.sub(lambda part: part[1] + tables[part[2]] + part[3], page)
    PAGE.write_text(filled, encoding="utf-8")


def made(kind: str) -> str:
    """A table; with too few clusters, of the intervals that there would be."""
    if not kind.startswith("too few"):
        return table(kind)
    least, intervals.LEAST_CLUSTERS = intervals.LEAST_CLUSTERS, 2
    try:
        return table(kind)
    finally:
        intervals.LEAST_CLUSTERS = least


if __name__ == "__main__":
    main()
