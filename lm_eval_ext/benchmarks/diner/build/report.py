"""The report of a build: the counts of the paper's tables 2 to 4, and ``report.md``."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.diner.build import divergence
from lm_eval_ext.benchmarks.diner.build.tmcd import Names
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Component
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories

NO_CATEGORY = "none"

PAIR = 2


def forms(names: Names, recipes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Table 3: names by their number of components of each kind, the most frequent form first."""
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
    """Table 2: the number of test names in each category, names in none included."""
    known = Categories(names[name] for name in train)
    found = Counter(known.of(names[name]) or NO_CATEGORY for name in test)
    return {category: found[category] for category in (*CATEGORIES, NO_CATEGORY)}


def split_statistics(names: Names, train: Iterable[str], test: Iterable[str]) -> dict[str, Any]:
    """Table 4 and the numbers of section 3.4; each name counts once on each side.

    Returns:
        Counts of [training, test]; ``divergence`` of compounds and ``atom_divergence`` of
        components; ``shared_compounds``, the share of different test compounds that occur in
        training, and ``shared_occurrences``, the same with each compound counted as often as it
        occurs in test; ``missing``, the test components that training lacks; ``in_training``, the
        mean number of training names with a test component.
    """
    parsed = [[names[name] for name in sorted(side)] for side in (train, test)]
    atoms = [Counter(part for name in side for part in set(name)) for side in parsed]
    counts = [divergence.count(side) for side in parsed]
    shared = [compound for compound in counts[1] if compound in counts[0]]
    return {
        "dishes": [len(side) for side in parsed],
        "components": [len(side) for side in atoms],
        "compounds": [len(side) for side in counts],
        "pairs": [sum(len(compound) == PAIR for compound in side) for side in counts],
        "divergence": divergence.divergence(*counts),
        "atom_divergence": divergence.divergence(*atoms, alpha=divergence.ATOM_ALPHA),
        "shared_compounds": _ratio(len(shared), len(counts[1])),
        "shared_occurrences": _ratio(
            sum(counts[1][compound] for compound in shared), sum(counts[1].values())
        ),
        "missing": sorted(atom.name for atom in atoms[1] if atom not in atoms[0]),
        "in_training": _ratio(sum(atoms[0][atom] for atom in atoms[1]), len(atoms[1])),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


COURSE_POINTS = 20
"""Number of search steps shown in ``report.md``; ``report.json`` has all."""


def as_markdown(report: Mapping[str, Any]) -> str:
    """The report as Markdown; table numbers refer to the paper."""
    options, kept = report["options"], report["kept"]
    parts = [
        "# DiNeR, built from a corpus",
        f"Corpus `{report['corpus']['file']}`, SHA-256 `{report['corpus']['sha256']}`. "
        f"Glossary: {report['glossary']['source']}, digest `{report['glossary']['digest']}`. "
        f"Seed {options['seed']}, proportion of the training part {options['proportion']}.",
        "## Recipes and names",
        _table(("step", "number"), [(key.replace("_", " "), n) for key, n in kept.items()]),
        f"{report['characters']:.1f} characters and {report['steps']:.1f} steps per recipe, "
        f"{report['recipes_per_dish']:.1f} recipes per dish.",
        "## Combination forms (table 3)",
        _table(
            ("form", "dishes", "recipes"),
            [(row["form"], row["dishes"], row["recipes"]) for row in report["forms"]],
        ),
        "## Splits (table 4)",
        _splits(report["splits"]),
        "## Generalization categories of the TMCD split (table 2)",
        _table(("category", "dishes"), list(report["categories"].items())),
        "## Divergence while the search ran",
        _verdict(options["divergence"], report["course"]),
        _table(("exchange", "divergence"), _thinned(report["course"])),
    ]
    if report["unparsed"]:
        parts += [
            "## Most frequent names that do not parse",
            _table(("name", "recipes"), report["unparsed"]),
        ]
    return "\n\n".join(parts) + "\n"


def _splits(splits: Mapping[str, Mapping[str, Any]]) -> str:
    rows: list[tuple[object, ...]] = []
    for split, found in splits.items():
        for key in ("dishes", "components", "compounds", "pairs"):
            train, test = found[key]
            rows.append((split, key, f"{train:,}", "", f"{test:,}"))
        recipes = found["recipes"]
        rows.append((split, "recipes", *(f"{n:,}" for n in recipes.values())))
        rows.append((split, "compound divergence", "", "", f"{found['divergence']:.4f}"))
        rows.append((split, "component divergence", "", "", f"{found['atom_divergence']:.4f}"))
        rows.append((split, "compounds seen", "", "", f"{100 * found['shared_compounds']:.2f} %"))
        rows.append((split, "training names per component", "", "", f"{found['in_training']:.1f}"))
        rows.append((split, "components not in training", "", "", len(found["missing"])))
    return _table(("split", "", "train (names: with valid)", "valid", "test"), rows)


def _verdict(target: float, course: Sequence[float]) -> str:
    if course[0] >= target:
        return (
            f"Asked for {target}; the division that the search starts from has "
            f"{course[0]:.4f} already and was taken as it is."
        )
    if course[-1] >= target:
        return f"Asked for {target}; reached {course[-1]:.4f} and stopped there."
    return (
        f"Asked for {target}; NOT reached: {course[-1]:.4f} is the most that the search "
        "found from any of its starts."
    )


def _thinned(course: Sequence[float]) -> list[tuple[int, str]]:
    step = max(1, -(-len(course) // COURSE_POINTS))
    places = sorted({*range(0, len(course), step), len(course) - 1})
    return [(place, f"{course[place]:.4f}") for place in places]


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
