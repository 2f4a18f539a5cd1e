"""Where splits come from: the published file, a folder that ``diner build`` made, or mini."""

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.records import Split, split_of
from lm_eval_ext.data import require_all
from lm_eval_ext.data.inspection import sha256_of
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance

if TYPE_CHECKING:
    from datasets import DatasetInfo

PUBLISHED, MINI = "published", "mini"
CORPORA = (PUBLISHED, MINI)

TMCD, RANDOM = "tmcd", "random"
SPLITS = (TMCD, RANDOM)

SOURCE = "diner"
GLOSSARY = "glossary.json"


def read(corpus: str, split: str, folder: str | None) -> "tuple[Split, DatasetInfo]":
    """Reads a split and says where it comes from.

    Args:
        corpus: One of :data:`CORPORA`.
        split: One of :data:`SPLITS`.
        folder: What ``lm-eval-ext diner build`` made, to be read instead of the published file.

    Raises:
        OptionError: A value is not legal, or the published random split is asked for, which
            does not exist, or a folder for embedded recipes.
        DataError: A file is not at hand, or not what it should be.
    """
    if corpus not in CORPORA:
        raise OptionError(f"diner_corpus: no {corpus!r}; use {' or '.join(CORPORA)}")
    if split not in SPLITS:
        raise OptionError(f"diner_split: no {split!r}; use {' or '.join(SPLITS)}")
    if folder is not None and corpus == MINI:
        raise OptionError(
            "diner_dir is not for the mini tasks, whose recipes are embedded; drop one"
        )
    if folder is not None:
        return _own(Path(folder).expanduser(), split)
    if corpus == MINI:
        return _mini(split)
    if split == RANDOM:
        raise OptionError(
            "the authors' random split is not published; build one (lm-eval-ext diner build) and "
            """name its folder: --metadata '{"diner_dir": "FOLDER"}'"""
        )
    found = require_all(SOURCE)
    paths = {file.name: file.path for file in found.files}
    return _parsed(paths["tmcd"], paths["glossary"]), provenance.describe(found.files)


def _own(folder: Path, split: str) -> "tuple[Split, DatasetInfo]":
    paths = [folder / f"{split}_data.json", folder / GLOSSARY]
    for path in paths:
        if not path.is_file():
            raise DataError(
                f"diner_dir: there is no {path.name} in {folder}; name a folder that lm-eval-ext "
                "diner build made"
            )
    sums = {f"{path.stem} recipes": sha256_of(path) for path in paths}
    return _parsed(*paths), provenance.describe_many([], sums)


def _mini(split: str) -> "tuple[Split, DatasetInfo]":
    glossary = mini.glossary()
    content = mini.split(split)
    info = provenance.describe_embedded("diner_mini", mini.digest())
    return split_of(content, glossary, f"diner_mini, {split}"), info


def _parsed(path: Path, glossary: Path) -> Split:
    stamp = tuple((one, one.stat().st_size, one.stat().st_mtime_ns) for one in (path, glossary))
    return _kept(*stamp)


@lru_cache(maxsize=2)
def _kept(data: tuple[Path, int, int], glossary: tuple[Path, int, int]) -> Split:
    """A file's split, kept because several tasks of a run read the same 125 MB."""
    path = data[0]
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: no JSON ({error}); fetch or build it again") from error
    return split_of(content, Glossary.read(glossary[0]), str(path))
