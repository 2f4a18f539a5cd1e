"""Running text of a corpus of recipes, for continued pretraining (paper, section 4)."""

from collections.abc import Collection
from pathlib import Path

from filelock import FileLock

from lm_eval_ext.benchmarks.diner.build.corpus import clean
from lm_eval_ext.benchmarks.diner.build.engine import Engine
from lm_eval_ext.benchmarks.diner.build.recipes import MIN_CHARACTERS, simplify
from lm_eval_ext.data import cache_dir


def documents(corpus: Path, dishes: Collection[str]) -> list[str]:
    """Recipes, each with its title on a line of its own, whose title contains no dish's name.

    The paper keeps those with "titles unrelated to any dish names in our dataset".

    Args:
        corpus: XiaChuFang's file, or another one in its format.
        dishes: Names of all dishes, those that are tested among them.

    Raises:
        DataError: The corpus cannot be read.
    """
    work = cache_dir() / "diner-corpus"
    work.mkdir(parents=True, exist_ok=True)
    with FileLock(work / "lock"):  # a table that is begun is removed by whoever comes next
        rows = _rows(Engine(work / "spill"), corpus, work)
    return [f"{name}\n{text}" for name, text in rows if not _names_one(name, dishes)]


def _rows(engine: Engine, corpus: Path, work: Path) -> list[tuple[str, str]]:
    try:
        table, _ = clean(engine, corpus, work)
        simplify(engine, table)
        rows: list[tuple[str, str]] = engine.run(
            "SELECT DISTINCT name, instruction FROM cleaned WHERE name <> '' "
            f"AND length(instruction) >= {MIN_CHARACTERS} ORDER BY name, instruction"
        ).fetchall()
    finally:
        engine.close()
    return rows


def _names_one(title: str, dishes: Collection[str]) -> bool:
    places = range(len(title))
    return any(title[start : end + 1] in dishes for start in places for end in places[start:])
