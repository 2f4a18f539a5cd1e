"""The report of a build for readers: ``report.md`` from what ``report.json`` holds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COURSE_POINTS = 20
"""Of the search, in ``report.md``; ``report.json`` has all."""


def as_markdown(report: Mapping[str, Any]) -> str:
    """Returns the report as Markdown; the numbers of tables are the paper's."""
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
