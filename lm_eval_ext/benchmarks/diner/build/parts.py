"""Which part of which split each recipe is in, and the files that say so."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner.build.engine import Engine
from lm_eval_ext.benchmarks.diner.records import PARTS, TEST, TRAIN, VALID

VALID_SHARE = 0.2
"""Of the training recipes (paper, section 5.2)."""

TMCD, RANDOM = "tmcd", "random"
SPLITS = (TMCD, RANDOM)

BATCH = 10_000

_KEY = "md5(concat_ws(chr(31), '{seed}', '{purpose}', name, instruction))"
"""An order at random that is the same everywhere, whatever the order of the corpus."""


def divide(
    engine: Engine, test_names: Collection[str], *, seed: int, proportion: float
) -> dict[str, dict[str, int]]:
    """Makes the table ``parts``: for each recipe its part in both splits, and its place there.

    The random split has as many test recipes as the other one; the paper divides recipes, not
    dishes, for it (section 3.4). Of the rest a fifth is for validation. A smaller proportion
    of the training part is a part of every larger one.

    Returns:
        For each split, the number of recipes of each part.
    """
    engine.table("tested", "name", sorted(test_names))
    keys = {
        purpose: _KEY.format(seed=seed, purpose=purpose) for purpose in ("random", "valid", "order")
    }
    total, tested = engine.run(
        "SELECT count(*), count(tested.name) FROM samples LEFT JOIN tested USING (name)"
    ).fetchone()
    columns = [f"{_part(split, total - tested, proportion)} AS {split}" for split in SPLITS]
    # Ranks are found without the instructions: those would have to be sorted along.
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
    """The part of a recipe, in SQL; ``rest`` is the number of recipes that are not tested."""
    valid = round(VALID_SHARE * rest)
    train = max(1, round(proportion * (rest - valid)))
    rank = f"row_number() OVER (PARTITION BY {split}_test ORDER BY valid_key)"
    # Training from the end: the part for validation is the same for every proportion.
    return (
        f"CASE WHEN {split}_test THEN '{TEST}' WHEN {rank} <= {valid} THEN '{VALID}' "
        f"WHEN {rank} > {rest - train} THEN '{TRAIN}' END"
    )


def _sizes(engine: Engine, split: str) -> dict[str, int]:
    rows = engine.run(f"SELECT {split}, count(*) FROM parts GROUP BY 1").fetchall()
    found = dict(rows)
    return {part: int(found.get(part, 0)) for part in PARTS}


def write(engine: Engine, split: str, path: Path) -> None:
    """Writes a split in the published format, one recipe after the other."""
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
    """The names on the two sides of a split; those for validation count as training."""

    def found(condition: str) -> list[str]:
        rows = engine.run(f"SELECT DISTINCT name FROM parts WHERE {split} {condition} ORDER BY 1")
        return [name for (name,) in rows.fetchall()]

    return found(f"IN ('{TRAIN}', '{VALID}')"), found(f"= '{TEST}'")
