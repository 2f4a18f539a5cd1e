"""A model's documents split over several jobs.

A shard asks a range of each task's documents and keeps the answers in a cache of its own, as
lm-eval writes it. The whole run takes the answers of all shards into its cache, and so it asks
nothing again: its results, with signatures and intervals, are those of a run that was never
split, because it is one. Where a task draws demonstrations anew for each document, a shard may
have asked another prompt; then the whole run asks what is missing.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.errors import OptionError

ANSWERS = "answers"
"""How the names of lm-eval's caches start; ``_rank0.db`` and the like follow."""


@dataclass(frozen=True)
class Shard:
    """Number ``number`` (from 1) of ``of`` shards."""

    number: int
    of: int

    @staticmethod
    def read(text: str) -> "Shard":
        """Reads "2/4".

        Raises:
            OptionError: If it is no shard.
        """
        number, slash, of = text.partition("/")
        if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return Shard(int(number), int(of))
        raise OptionError(f"--shard {text!r} must be K/N with K from 1 to N, such as 2/4")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """The name of its folder in the model's ``cache``."""
        return f"shard-{self.number}-of-{self.of}"

    def documents(self, sizes: Mapping[str, int]) -> dict[str, list[int]]:
        """Its documents of each task, by the tasks' sizes; tasks without any are left out."""
        ranges = {
            task: range(size * (self.number - 1) // self.of, size * self.number // self.of)
            for task, size in sizes.items()
        }
        return {task: list(one) for task, one in ranges.items() if one}


def merge(cache: Path) -> None:
    """Copies the answers of all shards into the caches of the whole run.

    Every process of the whole run gets all answers, since documents are shared out differently
    among its processes.

    Raises:
        OSError: If the folder cannot be written.
        sqlite3.Error: If a cache is broken.
    """
    shards = sorted(cache.glob(f"shard-*-of-*/{ANSWERS}_rank*.db"))
    for name in sorted({shard.name for shard in shards}):
        _copy_into(cache / name, shards)


def _copy_into(target: Path, sources: Iterable[Path]) -> None:
    # The table that sqlitedict makes. Nothing else writes there: the model's folder is locked.
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS unnamed (key TEXT PRIMARY KEY, value BLOB)")
        for source in sources:
            connection.execute("ATTACH ? AS shard", (str(source),))
            connection.execute("INSERT OR IGNORE INTO unnamed SELECT key, value FROM shard.unnamed")
            connection.commit()
            connection.execute("DETACH shard")
