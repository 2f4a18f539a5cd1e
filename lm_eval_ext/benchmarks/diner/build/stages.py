"""From the cleaned corpus to files and figures."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner.build import parts, recipes, statistics, tmcd
from lm_eval_ext.benchmarks.diner.build.derive import derive
from lm_eval_ext.benchmarks.diner.build.engine import Engine
from lm_eval_ext.benchmarks.diner.build.options import Options
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary
from lm_eval_ext.errors import DataError

SHOWN = 50
"""Names that do not parse, in the report."""

Report = dict[str, Any]


def make(
    engine: Engine, table: Path, given: Glossary | None, new: Path, options: Options
) -> Report:
    """Makes the files of both splits and the glossary's.

    Args:
        engine: What reads the table.
        table: What :func:`~lm_eval_ext.benchmarks.diner.build.corpus.clean` made.
        given: The glossary; None derives one.
        new: A folder for the files.
        options: The choices.

    Returns:
        The figures.

    Raises:
        DataError: There are no dish names, none parses, or none can be tested.
    """
    counted, (read, titled, titles) = recipes.title_counts(engine, table)
    if not counted:
        raise DataError(
            f"no title occurs {recipes.MIN_OCCURRENCES} times in the {read:,} recipes "
            f"({titled:,} have a title in Chinese): there are no dish names; use a larger corpus"
        )
    glossary = given or derive(counted, recipes.ingredients(engine, table, counted))
    parsed = {name: found for name in sorted(counted) if (found := glossary.parse(name))}
    collected = _collect(engine, table, parsed, len(counted))
    names = {name: parsed[name] for name in collected}
    kept = {name: n for name, (n, _) in collected.items()}
    with_name = sum(counted[name] for name in parsed)
    copies = sum(n for _, n in collected.values())
    characters, steps = recipes.means(engine)
    used = ("duckdb", "jieba") if given is None else ("duckdb",)
    with atomic_text(new / "glossary.json") as handle:
        json.dump(glossary.as_dict(), handle, ensure_ascii=False, indent=1)
    return {
        "options": {
            "divergence": options.divergence,
            "proportion": options.proportion,
            "seed": options.seed,
        },
        "software": {name: metadata.version(name) for name in used},
        "glossary": _described(glossary, "derived" if given is None else "given"),
        "kept": asdict(
            recipes.Kept(
                read=read,
                titled=titled,
                titles=titles,
                dish_names=len(counted),
                with_dish_name=sum(counted.values()),
                parsed_names=len(parsed),
                with_parsed_name=with_name,
                short=with_name - copies,
                repeats=copies - sum(kept.values()),
                dishes=len(names),
                recipes=sum(kept.values()),
            )
        ),
        "characters": characters,
        "steps": steps,
        "recipes_per_dish": sum(kept.values()) / len(names),
        "forms": statistics.forms(names, kept),
        **_split(engine, names, new, options),
        "unparsed": _unparsed(counted, parsed),
    }


def _collect(
    engine: Engine, table: Path, parsed: tmcd.Names, dish_names: int
) -> dict[str, tuple[int, int]]:
    if not parsed:
        raise DataError(f"none of the {dish_names:,} dish names parses; use another glossary")
    collected = recipes.collect(engine, table, parsed)
    if not collected:
        raise DataError(
            f"no recipe of the {len(parsed):,} dish names has {recipes.MIN_CHARACTERS} "
            "characters of instruction; is recipeInstructions filled?"
        )
    return collected


def _split(engine: Engine, names: tmcd.Names, new: Path, options: Options) -> Report:
    found = _search(names, options)
    sizes = parts.divide(engine, found.test, seed=options.seed, proportion=options.proportion)
    # Of what is written: a small proportion may leave no recipe of a dish.
    sides = {split: parts.names(engine, split) for split in parts.SPLITS}
    for split in parts.SPLITS:
        parts.write(engine, split, new / f"{split}_data.json")
    return {
        "splits": {
            split: {**statistics.sides(names, *sides[split]), "recipes": sizes[split]}
            for split in parts.SPLITS
        },
        "categories": statistics.categories(names, *sides[parts.TMCD]),
        "course": list(found.course),
    }


def _search(names: tmcd.Names, options: Options) -> tmcd.Split:
    from tqdm import tqdm

    # disable=None: a bar on terminals only.
    with tqdm(desc="Exchanging names", unit=" exchanges", disable=None) as bar:

        def show(reached: float) -> None:
            bar.set_postfix_str(f"divergence {reached:.4f}", refresh=False)
            bar.update()

        return tmcd.split(names, target=options.divergence, seed=options.seed, progress=show)


def _described(glossary: Glossary, source: str) -> Report:
    words = glossary.as_dict()
    return {
        "source": source,
        "digest": glossary.digest,
        "words": {kind: len(words[kind]) for kind in KINDS},
        "classes": {kind: len(set(words[kind].values())) for kind in KINDS},
    }


def _unparsed(counted: Mapping[str, int], parsed: tmcd.Names) -> list[tuple[str, int]]:
    left = [(name, n) for name, n in counted.items() if name not in parsed]
    return sorted(left, key=lambda pair: (-pair[1], pair[0]))[:SHOWN]
