"""What the paper's tables 2 to 4 count, of any split."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_ext.benchmarks.diner.build import compounds
from lm_eval_ext.benchmarks.diner.build.tmcd import Names
from lm_eval_ext.benchmarks.diner.categories import CATEGORIES, Categories
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component

NO_CATEGORY = "none"

PAIR = 2


def forms(names: Names, recipes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Table 3: how many components of each kind names have; the most frequent form first.

    Args:
        names: Names and their components.
        recipes: How many recipes each name has.
    """
    dishes: Counter[str] = Counter()
    cooked: Counter[str] = Counter()
    for name, components in names.items():
        form = _form(components)
        dishes[form] += 1
        cooked[form] += recipes[name]
    order = sorted(dishes, key=lambda form: (-dishes[form], form))
    return [{"form": form, "dishes": dishes[form], "recipes": cooked[form]} for form in order]


def _form(components: Iterable[Component]) -> str:
    counts = Counter(component.kind for component in set(components))
    order = reversed(KINDS)
    return " + ".join(f"{counts[kind]} {kind}" for kind in order if counts[kind])


def categories(names: Names, train: Iterable[str], test: Iterable[str]) -> dict[str, int]:
    """Table 2: how many test names are of each category; the sum is the number of names."""
    known = Categories(names[name] for name in train)
    found = Counter(known.of(names[name]) or NO_CATEGORY for name in test)
    return {category: found[category] for category in (*CATEGORIES, NO_CATEGORY)}


def sides(names: Names, train: Iterable[str], test: Iterable[str]) -> dict[str, Any]:
    """Table 4 and the figures of section 3.4, names counted once each.

    Args:
        names: Names and their components.
        train: Names of the training side, validation included.
        test: Names of the test side; a split at random has most of them on both sides.

    Returns:
        Counts of both sides; ``divergence`` of compounds and ``atom_divergence`` of components;
        ``shared_compounds``, the share of the test side's compounds that training has, each
        counted once, and ``shared_occurrences``, each as often as it occurs; ``missing``, the
        components that training does not have; ``in_training``, the mean over the test
        side's components of the number of training names with it.
    """
    parsed = [[names[name] for name in sorted(side)] for side in (train, test)]
    atoms = [Counter(part for name in side for part in set(name)) for side in parsed]
    counts = [compounds.count(side) for side in parsed]
    shared = [compound for compound in counts[1] if compound in counts[0]]
    return {
        "dishes": [len(side) for side in parsed],
        "components": [len(side) for side in atoms],
        "compounds": [len(side) for side in counts],
        "pairs": [sum(len(compound) == PAIR for compound in side) for side in counts],
        "divergence": compounds.divergence(*counts),
        "atom_divergence": compounds.divergence(*atoms, alpha=compounds.ATOM_ALPHA),
        "shared_compounds": _ratio(len(shared), len(counts[1])),
        "shared_occurrences": _ratio(
            sum(counts[1][compound] for compound in shared), sum(counts[1].values())
        ),
        "missing": sorted(atom.name for atom in atoms[1] if atom not in atoms[0]),
        "in_training": _ratio(sum(atoms[0][atom] for atom in atoms[1]), len(atoms[1])),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
