"""The two databases that judge an answer: the original and its populated copy.

The loading function of every MAGNIFICo task, and what scoring needs beside the documents.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import corpora, prompt
from lm_eval_ext.benchmarks.magnifico.documents import Setting, documents, renew
from lm_eval_ext.benchmarks.magnifico.prompt import tables_of
from lm_eval_ext.benchmarks.magnifico.records import NOVEL, Corpus
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor, QueryError, find_semantics
from lm_eval_ext.sql.distill import POPULATE_VERSION, Report, populate_all

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo


_log = get_logger(__name__)


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


def prepare_judges(corpus: Corpus, name: str, *, progress: bool | None = None) -> Judges:
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
    key = [[db_id, sha256_of(path), golds[db_id]] for db_id, path in original.items()]
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


@dataclass(frozen=True)
class Prepared:
    """A corpus, ready to ask and to judge.

    Attributes:
        corpus: With fresh words if they are wanted.
        info: Where it comes from.
        judges: The databases.
        blocks: By database id in lower case, its schema as prompts show it.
    """

    corpus: Corpus
    info: "DatasetInfo"
    judges: Judges
    blocks: Mapping[str, Sequence[str]]


@loader(prefix="magnifico_")
def dataset(
    *,
    magnifico_corpus: corpora.CorpusName = "published",
    magnifico_subset: str = "words",
    magnifico_prompt: str = "direct",
    magnifico_position: str = "end",
    magnifico_forms: str = ",".join(NOVEL),
    magnifico_semantics: str = "reference",
    magnifico_seed: int | None = None,
    magnifico_databases: str | None = None,
    magnifico_file: str | None = None,
) -> "DatasetDict":
    """Loads the documents of a setting for lm-eval, as the split ``test``.

    Examples without database, and such whose gold does not run, are not among them; they are
    counted in a warning and named in the results file.

    Args:
        magnifico_corpus: ``published``, ``mini`` or ``own``.
        magnifico_subset: ``words``, ``phrases``, ``combinations`` or ``dialogues``.
        magnifico_prompt: ``direct``, ``desc``, ``fewshot`` or ``dialogue``.
        magnifico_position: Of the description: ``start``, ``mid`` or ``end``.
        magnifico_forms: Novel forms, separated by commas.
        magnifico_semantics: When results count as equal (:mod:`lm_eval_ext.sql.compare`).
        magnifico_seed: Draws new foreign words; None: the published ones.
        magnifico_databases: A folder of databases in the place of the pinned ones.
        magnifico_file: For ``own``, the user's examples.

    Raises:
        OptionError: A value is not legal.
        DataError: Data are not at hand, or not what they should be.
    """
    from datasets import Dataset, DatasetDict

    find_semantics(magnifico_semantics)
    setting = Setting.of_options(
        magnifico_subset, magnifico_prompt, magnifico_position, magnifico_forms
    )
    ready = prepare(
        magnifico_corpus,
        dialogues=_needs_dialogues(magnifico_subset, magnifico_prompt),
        seed=magnifico_seed,
        databases=magnifico_databases,
        file=magnifico_file,
    )
    made, left_out = documents(ready.corpus, setting, ready.blocks.__getitem__, ready.judges.broken)
    if not made:
        raise DataError(f"no example of MAGNIFICo can be scored here: {_counted(left_out)}")
    if left_out:
        missing = sum(map(len, left_out.values()))
        _log.warning(
            "MAGNIFICo: %d of %d examples cannot be scored and are not asked (%s); the results "
            "file names them",
            missing, len(made) + missing, _counted(left_out),
        )  # fmt: skip
    info = provenance.with_left_out(ready.info, left_out)
    return DatasetDict({"test": Dataset.from_list(made, info=info)})


def prepare(
    name: corpora.CorpusName,
    *,
    dialogues: bool = False,
    seed: int | None = None,
    databases: str | None = None,
    file: str | None = None,
) -> Prepared:
    """Loads a corpus, builds its populated databases, and reads its schemas; once per process.

    Raises:
        LmEvalExtError: As :func:`dataset`.
    """
    # Our environment variables say where data come from.
    environment = tuple(
        sorted((key, value) for key, value in os.environ.items() if key.startswith("LM_EVAL_EXT_"))
    )
    return _prepare(environment, name, dialogues, seed, databases, file)


def prepared(options: Mapping[str, Any]) -> Prepared:
    """What :func:`dataset` worked with under these options."""
    return prepare(
        options["magnifico_corpus"],
        dialogues=_needs_dialogues(options["magnifico_subset"], options["magnifico_prompt"]),
        seed=options["magnifico_seed"],
        databases=options["magnifico_databases"],
        file=options["magnifico_file"],
    )


@lru_cache(maxsize=8)
def _prepare(
    _environment: tuple[tuple[str, str], ...],
    name: corpora.CorpusName,
    dialogues: bool,  # noqa: FBT001
    seed: int | None,
    databases: str | None,
    file: str | None,
) -> Prepared:
    found = corpora.find(name, dialogues=dialogues, databases=databases, examples=file)
    tables = {db_id: tables_of(place) for db_id, place in found.corpus.databases.items()}
    corpus = found.corpus
    # Before new words come in: they change no gold.
    built = prepare_judges(corpus, name)
    if seed is not None:
        shown = (table for group in tables.values() for table in group)
        corpus = renew(corpus, seed, (f"{t.create} {' '.join(t.header)}" for t in shown))
    blocks = {db_id: prompt.schema(group) for db_id, group in tables.items()}
    return Prepared(corpus, found.info, built, blocks)


def _needs_dialogues(subset: str, kind: str) -> bool:
    return subset == "dialogues" or kind == "dialogue"


def _counted(left_out: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{cause}: {len(ids)}" for cause, ids in left_out.items()) or "there is none"
