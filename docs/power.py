"""Simulates whether the numbers of ``lm-eval-ext power`` are right, for docs/fresh.md.

    python docs/power.py            # half a minute

Two systems differ by a true difference. As many clusters are drawn as the command says, and the
sign-flip test of ``lm-eval-ext compare`` is made of them. Each share is of 1,000 evaluations.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import numpy as np

from lm_eval_ext.stats.paired import DRAWS
from lm_eval_ext.stats.power import clusters_needed, stated_variance

PAGE = Path(__file__).with_name("fresh.md")
RUNS = 1000
ALPHA = 0.05
CHUNK = 500
DESIGNS = list(product((0.6, 0.85), (0.05, 0.1, 0.2), ((1, 0.0), (3, 0.2), (20, 0.1))))
PILOTS = (8, 16, 48)


def row(*cells: object) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def differences(rng: Any, rates: tuple[float, float], icc: float, size: int, shape: Any) -> Any:
    """Sums of a cluster's differences; beta-binomial, systems independent."""
    sums = 0
    for sign, rate in ((1, rates[1]), (-1, rates[0])):
        both = (1 - icc) / icc if icc else 0
        found = rng.beta(rate * both, (1 - rate) * both, size=shape) if icc else rate
        sums = sums + sign * rng.binomial(size, found, size=shape)
    return sums.astype(float)


def sign_flips(sums: Any) -> Any:
    """The p-values of ``swap_test`` for many evaluations (rows), which have the same draws."""
    observed = np.abs(sums.sum(axis=1)) * (1 - 1e-9)
    rng = np.random.default_rng(0)
    as_far = np.ones(len(sums))
    for _ in range(DRAWS // CHUNK):
        signs = 1 - 2.0 * rng.integers(0, 2, size=(CHUNK, sums.shape[1]), dtype=np.int8)
        as_far += (np.abs(signs @ sums.T) >= observed).sum(axis=0)
    return as_far / (1 + DRAWS)


def found(sums: Any) -> float:
    """The share of evaluations (rows) that the test calls different."""
    return fmean(sign_flips(sums) < ALPHA)


def stated() -> Iterator[str]:
    """Whether a test of so many clusters has the power that was asked for."""
    head = "mean rate", "difference", "documents per cluster", "ICC"
    yield row(*head, "clusters for 0.8", "found", "for 0.9", "found")
    yield row(*["---"] * 8)
    for place, (rate, difference, (size, icc)) in enumerate(DESIGNS):
        rates = rate - difference / 2, rate + difference / 2
        cells = []
        for power in (0.8, 0.9):
            rng = np.random.default_rng([place, int(power * 10)])
            count = clusters_needed(difference, stated_variance(rates, icc, size), power=power)
            assert count
            share = found(differences(rng, rates, icc, size, (RUNS, count)))
            cells += [f"{count:,}", f"{share:.3f}"]
        yield row(rate, difference, size, icc, *cells)


def piloted() -> Iterator[str]:
    """What pilots of a few clusters say, where the truth is known."""
    yield row(
        "pilot's clusters", "asked by half of the pilots", "true number", "found at the median"
    )
    yield row(*["---"] * 4)
    rates, icc, size, difference = (0.75, 0.85), 0.2, 3, 0.1
    true = clusters_needed(difference, stated_variance(rates, icc, size))
    for pilot in PILOTS:
        rng = np.random.default_rng(pilot)
        variances = (differences(rng, rates, icc, size, (RUNS, pilot)) / size).var(axis=1, ddof=1)
        asked = [clusters_needed(difference, float(one)) or 0 for one in variances if one]
        low, middle, high = map(round, quantiles(asked, n=4))
        share = found(differences(rng, rates, icc, size, (RUNS, middle)))
        yield row(pilot, f"{low} to {high}", true, f"{share:.3f}")


def main() -> None:
    """Writes both tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in (("stated", stated()), ("pilots", piloted())):
        part = f"(<!-- power: {name} -->\n).*?(<!-- end -->)"
        table = "\n".join(rows)
        text, count = re.subn(part, rf"\g<1>{table}\n\g<2>", text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has no part {name}")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
