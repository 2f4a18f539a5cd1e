"""Cleans the corpus of recipes into a table of names and instructions (paper, section 3.1).

The corpus, XiaChuFang (Liu et al. 2022), has one JSON object per line, of which ``name``,
``recipeInstructions`` and ``recipeIngredient`` are used. This is the only pass over all recipes.
"""

import codecs
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_path, sha256_of
from lm_eval_ext.benchmarks.diner.build.engine import Engine, first_line, literal, only
from lm_eval_ext.benchmarks.diner.glossary import BRACKETED, NESTING
from lm_eval_ext.benchmarks.diner.script import NOT_CHINESE
from lm_eval_ext.errors import DataError

CLEANING_VERSION = 1
"""To be raised when the table changes, so that stored tables are made again."""

SPACE = r"[\s\p{Z}\p{Cc}]+"
UNENDED = r"([^\p{P}\p{S}])$"

LISTS = ("recipeInstructions", "recipeIngredient")
KEYS = ("name", *LISTS)

MOST_MIB = 16
"""Size of a line that the database is sure to read."""


def clean_name_sql(column: str) -> str:
    """:func:`~lm_eval_ext.benchmarks.diner.glossary.clean_name` in SQL, from the same patterns."""
    for pattern in (*[BRACKETED] * NESTING, NOT_CHINESE):
        column = f"regexp_replace({column}, {literal(pattern)}, '', 'g')"
    return column


def clean(engine: Engine, corpus: Path, folder: Path) -> tuple[Path, str]:
    """Makes the table of a corpus, or finds the one that an earlier run made.

    Its columns: ``name``, cleaned; ``instruction``, the steps on one line, each ending in
    punctuation; ``steps``, their number; ``ingredients``, unchanged. It is stored in ``folder``
    under a name that depends on the corpus's content.

    Returns:
        The table, a Parquet file, and the SHA-256 of the corpus.

    Raises:
        DataError: The corpus cannot be read; the message has the number of the line.
    """
    import duckdb

    digest = _digest(corpus)
    path = folder / f"cleaned-{digest[:16]}-{CLEANING_VERSION}.parquet"
    if not path.is_file():
        for old in folder.glob("*cleaned-*"):  # also what a killed run left
            old.unlink()
        try:
            with atomic_path(path) as part:
                engine.run(
                    f"COPY ({_select(corpus)}) TO {literal(part)} "
                    "(FORMAT parquet, COMPRESSION zstd)",
                    title="Reading the corpus",
                )
        except (duckdb.Error, UnicodeDecodeError) as error:
            # The second is the database's when its message quotes half a character.
            raise DataError(_explain(corpus, error)) from error
    return path, digest


def _select(corpus: Path) -> str:
    spaced = f"trim(regexp_replace(s, '{SPACE}', ' ', 'g'))"
    steps = f"list_transform(recipeInstructions, lambda s: {spaced})"
    ended = f"list_transform(steps, lambda s: regexp_replace(s, '{UNENDED}', '\\1。'))"
    return f"""
        SELECT {clean_name_sql("coalesce(name, '')")} AS name,
               coalesce(array_to_string({ended}, ''), '') AS instruction,
               coalesce(len(steps), 0) AS steps,
               ingredients
        FROM (
            SELECT name, recipeIngredient AS ingredients,
                   list_filter({steps}, lambda s: s <> '') AS steps
            FROM read_json(
                {only(corpus)}, format = 'newline_delimited', hive_partitioning = false,
                maximum_object_size = {MOST_MIB << 20},
                columns = {{name: 'VARCHAR', recipeIngredient: 'VARCHAR[]',
                            recipeInstructions: 'VARCHAR[]'}}
            )
        )"""


def _digest(corpus: Path) -> str:
    try:
        return sha256_of(corpus)
    except OSError as error:
        raise DataError(
            f"cannot read the corpus {corpus}: {error.strerror}; it must be a file with one JSON "
            "object per line, with the keys name, recipeIngredient and recipeInstructions"
        ) from None


def _explain(corpus: Path, error: BaseException) -> str:
    """The error message, with the number of the first line that is wrong."""
    try:
        with gzip.open(corpus) if corpus.suffix == ".gz" else corpus.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and (wrong := next(_complaints(line), None)):
                    return (
                        f"{corpus}, line {number}: {wrong}; each line must be a JSON object in "
                        f'UTF-8, of up to {MOST_MIB} MiB, with "name" (text), "recipeIngredient" '
                        'and "recipeInstructions" (lists of text) once each'
                    )
    except (OSError, EOFError) as unread:
        return f"cannot read the corpus {corpus}: {unread}"
    return f"cannot read the corpus {corpus}: {first_line(error)}"


def _complaints(line: bytes) -> Iterator[str]:
    """What is wrong with a line; only the first complaint is sound."""
    if line.startswith(codecs.BOM_UTF8):
        yield "it begins with a byte order mark"
    if len(line) > MOST_MIB << 20:
        yield f"it has {len(line) / 2**20:.1f} MiB"
    outermost: list[tuple[str, Any]] = []

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        outermost[:] = pairs
        return dict(pairs)

    found: Any = None
    try:
        found = json.loads(line.decode("utf-8"), object_pairs_hook=read)
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        yield "it is not JSON in UTF-8"
    if not isinstance(found, dict):
        yield "it is not a JSON object"
    keys = Counter(key for key, _ in outermost)
    yield from (f'"{key}" occurs twice' for key in KEYS if keys[key] > 1)
    if not isinstance(found.get("name"), str | None):
        yield '"name" is not a text'
    for key in LISTS:
        value = found.get(key)
        if isinstance(value, str):
            yield f'"{key}" is one text, not a list of texts'
        texts = isinstance(value, list) and all(isinstance(item, str | None) for item in value)
        if not texts and value is not None:
            yield f'"{key}" is not a list of texts'
