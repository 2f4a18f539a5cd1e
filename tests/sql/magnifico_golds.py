"""MAGNIFICo's golds and their databases, read in place; nothing of them is in the repository."""

import os
import zlib
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico import populating

ALL = os.environ.get("LM_EVAL_EXT_TEST_ALL") == "1"
ONE_IN = 1 if ALL else 8
"""Of the slow tests on all golds, one in so many is run, unless LM_EVAL_EXT_TEST_ALL=1."""


def a_part(data: Path) -> list[tuple[Path, str]]:
    """Files and golds: one in :data:`ONE_IN` distinct ones, chosen by a hash of its text."""
    golds = populating.wanted(data / "spider_databases").values()
    every = ((path, gold) for path, own in golds for gold in own)
    return [(path, gold) for path, gold in every if not zlib.crc32(gold.encode()) % ONE_IN]
