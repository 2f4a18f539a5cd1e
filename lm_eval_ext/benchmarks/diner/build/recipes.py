"""Which recipes the dataset keeps (paper, section 3.1).

In the paper's order: titles are counted first, and only then are recipes dropped. A dish may so
end with fewer recipes than :data:`MIN_OCCURRENCES`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.benchmarks.diner.build.engine import Engine, table_of

MIN_OCCURRENCES = 20
"""Of a cleaned title, before anything is dropped, to be a dish name."""

MIN_CHARACTERS = 20
"""Of an instruction."""


@dataclass(frozen=True)
class Kept:
    """How many recipes each step leaves.

    Attributes:
        read: Recipes in the corpus.
        titled: Those whose title has a Chinese character outside brackets.
        titles: Different cleaned titles.
        dish_names: Titles with :data:`MIN_OCCURRENCES` occurrences.
        with_dish_name: Recipes with such a title.
        parsed_names: Dish names that parse.
        with_parsed_name: Recipes with such a name.
        short: Those of them that were dropped as too short.
        repeats: Those that were dropped because name and instruction stood there before.
        dishes: Names that have a recipe left.
        recipes: Of the dataset.
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


def title_counts(engine: Engine, table: Path) -> tuple[dict[str, int], tuple[int, int, int]]:
    """Counts titles.

    Returns:
        The dish names with their occurrences; the numbers of recipes, of recipes with a title,
        and of titles.
    """
    titles = f"SELECT name, count(*) AS n FROM {table_of(table)} GROUP BY name"
    rows = engine.run(
        f"SELECT name, n FROM ({titles}) WHERE name <> '' AND n >= {MIN_OCCURRENCES} ORDER BY name",
        title="Counting titles",
    ).fetchall()
    totals = engine.run(
        "SELECT coalesce(sum(n), 0), coalesce(sum(n) FILTER (name <> ''), 0), "
        f"count(*) FILTER (name <> '') FROM ({titles})"
    ).fetchone()
    return dict(rows), (int(totals[0]), int(totals[1]), int(totals[2]))


def ingredients(engine: Engine, table: Path, names: Collection[str]) -> list[str]:
    """The different entries of the ingredient lists of recipes with these names, digits left out.

    Those that stand there only once are left out, too.
    """
    engine.table("wanted", "name", sorted(names))
    rows = engine.run(
        f"""SELECT entry FROM (
                SELECT regexp_replace(unnest(ingredients), '[0-9\\s]+', '', 'g') AS entry
                FROM {table_of(table)} SEMI JOIN wanted USING (name))
            GROUP BY entry HAVING count(*) > 1 ORDER BY entry""",
        title="Collecting ingredients",
    ).fetchall()
    return [entry for (entry,) in rows if entry]


def collect(engine: Engine, table: Path, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """Makes the table ``samples``: recipes with these names that are long enough, each once.

    Returns:
        For each name that has a recipe left: how many, and how many there were with repeats.
    """
    engine.table("wanted", "name", sorted(names))
    engine.run(
        f"""CREATE OR REPLACE TABLE samples AS
            SELECT name, instruction, min(steps) AS steps, count(*) AS copies
            FROM {table_of(table)} SEMI JOIN wanted USING (name)
            WHERE length(instruction) >= {MIN_CHARACTERS} GROUP BY name, instruction""",
        title="Collecting recipes",
    )
    rows = engine.run("SELECT name, count(*), sum(copies) FROM samples GROUP BY name ORDER BY name")
    return {name: (int(kept), int(copies)) for name, kept, copies in rows.fetchall()}


def means(engine: Engine) -> tuple[float, float]:
    """Characters and steps of a recipe on average, over the table ``samples``."""
    row = engine.run("SELECT avg(length(instruction)), avg(steps) FROM samples").fetchone()
    return float(row[0]), float(row[1])
