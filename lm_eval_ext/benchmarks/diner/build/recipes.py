"""Selects the dataset's recipes and divides them (paper, sections 3.1 and 3.4).

As in the paper, titles are counted before recipes are dropped, so a dish may keep fewer recipes
than :data:`MIN_OCCURRENCES`.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner.build.engine import Engine, table_of
from lm_eval_ext.benchmarks.diner.records import PARTS, TEST, TRAIN, VALID
from lm_eval_ext.benchmarks.diner.script import simplified, traditional

MIN_OCCURRENCES = 20
"""Number of recipes with a cleaned title that makes it a dish name."""

MIN_CHARACTERS = 20
"""Of an instruction."""


@dataclass(frozen=True)
class Kept:
    """Numbers of recipes and names after each step of the selection.

    Attributes:
        read: Recipes in the corpus.
        titled: Recipes whose title has a Chinese character outside brackets.
        titles: Different cleaned titles.
        dish_names: Titles of at least :data:`MIN_OCCURRENCES` recipes.
        with_dish_name: Recipes with such a title.
        parsed_names: Dish names that parse.
        with_parsed_name: Recipes with such a name.
        short: Recipes of these that are dropped for a short instruction.
        repeats: Recipes dropped because another has the same name and instruction.
        dishes: Names in the dataset.
        recipes: Recipes in the dataset.
    """

    read: int
    titled: int
    titles: int
    dish_names: int
    with_dish_name: int
    parsed_names: int
    with_parsed_name: int
    short: int
    repeats: int
    dishes: int
    recipes: int


def simplify(engine: Engine, table: Path) -> None:
    """Makes the view ``cleaned`` of the table: the same, with names in simplified characters.

    Only names with a traditional character leave the database for it: 1.5 million would take
    seconds.
    """
    rows = engine.run(
        f"SELECT DISTINCT name FROM {table_of(table)} WHERE regexp_matches(name, ?)",
        [f"[{traditional()}]"],
        title="Reading titles",
    ).fetchall()
    names = sorted(name for (name,) in rows)
    engine.run(
        "CREATE OR REPLACE TABLE scripts AS "
        "SELECT unnest(?::VARCHAR[]) AS name, unnest(?::VARCHAR[]) AS simple",
        [names, [simplified(name) for name in names]],
    )
    engine.run(
        f"""CREATE OR REPLACE VIEW cleaned AS
            SELECT coalesce(simple, name) AS name, instruction, steps, ingredients
            FROM {table_of(table)} LEFT JOIN scripts USING (name)"""
    )


def title_counts(engine: Engine) -> tuple[dict[str, int], tuple[int, int, int]]:
    """Counts the titles in the view ``cleaned``.

    Returns:
        How many recipes each dish name has; and the numbers of recipes, of recipes with a title,
        and of different titles.
    """
    titles = "SELECT name, count(*) AS n FROM cleaned GROUP BY name"
    rows = engine.run(
        f"SELECT name, n FROM ({titles}) WHERE name <> '' AND n >= {MIN_OCCURRENCES} ORDER BY name",
        title="Counting titles",
    ).fetchall()
    totals = engine.run(
        "SELECT coalesce(sum(n), 0), coalesce(sum(n) FILTER (name <> ''), 0), "
        f"count(*) FILTER (name <> '') FROM ({titles})"
    ).fetchone()
    return dict(rows), (int(totals[0]), int(totals[1]), int(totals[2]))


def ingredients(engine: Engine, names: Collection[str]) -> list[str]:
    """Ingredients that occur more than once in recipes with these names, without digits."""
    engine.table("wanted", "name", sorted(names))
    rows = engine.run(
        """SELECT entry FROM (
                SELECT regexp_replace(unnest(ingredients), '[0-9\\s]+', '', 'g') AS entry
                FROM cleaned SEMI JOIN wanted USING (name))
            GROUP BY entry HAVING count(*) > 1 ORDER BY entry""",
        title="Collecting ingredients",
    ).fetchall()
    return [entry for (entry,) in rows if entry]


def collect(engine: Engine, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """Makes the table ``samples``: long enough recipes with these names, without repeats.

    Returns:
        For each name in the table, its number of recipes without and with repeats.
    """
    engine.table("wanted", "name", sorted(names))
    engine.run(
        f"""CREATE OR REPLACE TABLE samples AS
            SELECT name, instruction, min(steps) AS steps, count(*) AS copies
            FROM cleaned SEMI JOIN wanted USING (name)
            WHERE length(instruction) >= {MIN_CHARACTERS} GROUP BY name, instruction""",
        title="Collecting recipes",
    )
    rows = engine.run("SELECT name, count(*), sum(copies) FROM samples GROUP BY name ORDER BY name")
    return {name: (int(kept), int(copies)) for name, kept, copies in rows.fetchall()}


def means(engine: Engine) -> tuple[float, float]:
    """Mean numbers of characters and steps per recipe in the table ``samples``."""
    row = engine.run("SELECT avg(length(instruction)), avg(steps) FROM samples").fetchone()
    return float(row[0]), float(row[1])


VALID_SHARE = 0.2
"""Share of the training recipes (paper, section 5.2)."""

TMCD, RANDOM = "tmcd", "random"
SPLITS = (TMCD, RANDOM)

BATCH = 10_000

_KEY = "md5(concat_ws(chr(31), '{seed}', '{purpose}', name, instruction))"
"""A random order that is the same on every machine and in any order of the corpus."""


def divide(
    engine: Engine, test_names: Collection[str], *, seed: int, proportion: float
) -> dict[str, dict[str, int]]:
    """Makes the table ``parts`` with each recipe's part in both splits and its position.

    The random split divides recipes, not dishes (paper, section 3.4), and has as many test recipes
    as the TMCD split. A fifth of the others is for validation. A smaller proportion of the
    training recipes is a subset of every larger one.

    Returns:
        By split and part, the number of recipes.
    """
    engine.table("tested", "name", sorted(test_names))
    keys = {
        purpose: _KEY.format(seed=seed, purpose=purpose) for purpose in ("random", "valid", "order")
    }
    total, tested = engine.run(
        "SELECT count(*), count(tested.name) FROM samples LEFT JOIN tested USING (name)"
    ).fetchone()
    columns = [f"{_part(split, total - tested, proportion)} AS {split}" for split in SPLITS]
    # Ranks are computed without the instructions, which would have to be sorted as well.
    engine.run(
        f"""CREATE OR REPLACE TABLE parts AS
            WITH keyed AS (
                SELECT samples.rowid AS id, tested.name IS NOT NULL AS tmcd_test,
                       {keys["random"]} AS random_key, {keys["valid"]} AS valid_key,
                       {keys["order"]} AS place
                FROM samples LEFT JOIN tested USING (name)),
            drawn AS (
                SELECT id, tmcd_test, valid_key, place,
                       row_number() OVER (ORDER BY random_key) <= {tested} AS random_test
                FROM keyed),
            placed AS (
                SELECT id, place,
                       {", ".join(columns)}
                FROM drawn)
            SELECT name, instruction, place, {", ".join(SPLITS)}
            FROM samples JOIN placed ON samples.rowid = placed.id""",
        title="Dividing recipes",
    )
    return {split: _sizes(engine, split) for split in SPLITS}


def _part(split: str, rest: int, proportion: float) -> str:
    """SQL for the part of a recipe; ``rest`` is the number of recipes that are not in test."""
    valid = round(VALID_SHARE * rest)
    train = max(1, round(proportion * (rest - valid)))
    rank = f"row_number() OVER (PARTITION BY {split}_test ORDER BY valid_key)"
    # Training is taken from the end, so validation is the same for every proportion.
    return (
        f"CASE WHEN {split}_test THEN '{TEST}' WHEN {rank} <= {valid} THEN '{VALID}' "
        f"WHEN {rank} > {rest - train} THEN '{TRAIN}' END"
    )


def _sizes(engine: Engine, split: str) -> dict[str, int]:
    rows = engine.run(f"SELECT {split}, count(*) FROM parts GROUP BY 1").fetchall()
    found = dict(rows)
    return {part: int(found.get(part, 0)) for part in PARTS}


def write(engine: Engine, split: str, path: Path) -> None:
    """Writes a split in the published format, without loading it as a whole."""
    with atomic_text(path) as handle:
        handle.write("{")
        for number, part in enumerate(PARTS):
            handle.write(f'{", " if number else ""}"{part}": {{')
            for column, key in (("instruction", "instructions"), ("name", "names")):
                handle.write(f'{"" if column == "instruction" else ", "}"{key}": [')
                for place, value in enumerate(_values(engine, column, split, part)):
                    handle.write(f"{', ' if place else ''}{json.dumps(value, ensure_ascii=False)}")
                handle.write("]")
            handle.write("}")
        handle.write("}\n")


def _values(engine: Engine, column: str, split: str, part: str) -> Iterator[Any]:
    cursor = engine.run(f"SELECT {column} FROM parts WHERE {split} = ? ORDER BY place", [part])
    while rows := cursor.fetchmany(BATCH):
        for (value,) in rows:
            yield value


def names(engine: Engine, split: str) -> tuple[list[str], list[str]]:
    """The training names, validation included, and the test names of a split."""

    def found(condition: str) -> list[str]:
        rows = engine.run(f"SELECT DISTINCT name FROM parts WHERE {split} {condition} ORDER BY 1")
        return [name for (name,) in rows.fetchall()]

    return found(f"IN ('{TRAIN}', '{VALID}')"), found(f"= '{TEST}'")
