"""The two databases that judge an answer: the original and its populated copy."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.own import digest_of
from lm_eval_ext.benchmarks.magnifico.records import Corpus
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Executor, QueryError
from lm_eval_ext.sql.populate import POPULATE_VERSION, Report, populate_all


@dataclass(frozen=True)
class Judges:
    """The files that answers are executed on.

    Attributes:
        original: By database id in lower case.
        populated: Likewise.
        reports: What populating found out, likewise.
        broken: By database id and gold query, why the gold does not run.
    """

    original: Mapping[str, Path]
    populated: Mapping[str, Path]
    reports: Mapping[str, Report]
    broken: Mapping[tuple[str, str], str]


def prepare(corpus: Corpus, name: str, *, progress: bool | None = None) -> Judges:
    """Builds the populated copies in the cache, or finds them there.

    All golds of the corpus decide about the rows, so every task that asks of it is judged by
    the same copies.

    Args:
        corpus: With its databases.
        name: Of the corpus; a part of the folder's name.
        progress: Whether to show a bar; None: if stderr is a terminal.

    Raises:
        DataError: The cache cannot be written.
    """
    import filelock

    golds = {
        db_id: queries for db_id, queries in corpus.golds().items() if db_id in corpus.databases
    }
    original = {db_id: corpus.databases[db_id].path for db_id in golds}
    key = [[db_id, digest_of(path), golds[db_id]] for db_id, path in original.items()]
    total = hashlib.sha256(json.dumps([POPULATE_VERSION, key]).encode()).hexdigest()
    folder = cache_dir() / "populated" / f"{name}-v{POPULATE_VERSION}-{total[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Ranks of one run, and runs side by side, want the same copies.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            reports = populate_all(
                {db_id: (path, golds[db_id]) for db_id, path in original.items()},
                folder,
                progress=progress,
            )
    except OSError as error:
        raise DataError(
            f"cannot write the populated databases to {folder}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error
    return Judges(
        original=MappingProxyType(original),
        populated=MappingProxyType(
            {db_id: folder / db_id / f"{db_id}.sqlite" for db_id in original}
        ),
        reports=MappingProxyType(reports),
        broken=MappingProxyType(_broken(original, reports)),
    )


def _broken(
    original: Mapping[str, Path], reports: Mapping[str, Report]
) -> dict[tuple[str, str], str]:
    """Runs the golds that could not be examined: some of them are too unusual, some broken."""
    suspects = [
        (db_id, gold.gold)
        for db_id, report in reports.items()
        for gold in report.golds
        if gold.error is not None
    ]
    broken = {}
    with Executor(workers=1) as executor:
        for db_id, query in suspects:
            try:
                executor.query(original[db_id], query)
            except QueryError as error:
                broken[db_id, query] = str(error)
    return broken
