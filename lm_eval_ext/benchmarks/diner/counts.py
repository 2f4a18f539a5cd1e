"""Counts of components, from which F1 comes.

Micro F1 comes from counts summed over all recipes (paper, section 5.1). Counts are exact fractions.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Counts:
    """Numbers of components, of one recipe or summed over several.

    Attributes:
        tp: True positives: gold components that the prediction has.
        predicted: Components of the prediction; a fraction where the number is estimated.
        gold: Components of the gold name.
    """

    tp: int
    predicted: Fraction
    gold: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.tp + other.tp, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def exact_f1(self) -> Fraction:
        """2 TP / (predicted + gold), the harmonic mean of precision and recall; 0 for 0/0."""
        total = self.predicted + self.gold
        return Fraction(2 * self.tp) / total if total else Fraction(0)

    @property
    def f1(self) -> float:
        """F1 as a float, from 0 to 1."""
        return float(self.exact_f1)

    def row(self) -> dict[str, float]:
        """As values of a row of scores."""
        return {"hits": self.tp, "predicted": float(self.predicted), "gold": self.gold}
