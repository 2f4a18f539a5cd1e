"""Loads MAGNIFICo's documents, and the databases that answers are executed on.

Every answer is executed twice: on the original database, and on a populated copy whose added rows
distinguish gold queries from similar wrong ones (distilled test suites, Zhong et al. 2020).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import corpora, mini, own, prompt
from lm_eval_ext.benchmarks.magnifico.documents import Setting, documents
from lm_eval_ext.benchmarks.magnifico.fresh import with_fresh_words
from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, NOVEL, Corpus
from lm_eval_ext.benchmarks.magnifico.scoring_databases import (
    ScoringDatabases,
    cached_copies,
    on_engine,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor, QueryError, find_semantics
from lm_eval_ext.sql.distill import Report, populate_all

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

_log = get_logger(__name__)


@loader(prefix="magnifico_")
def dataset(
    *,
    magnifico_corpus: corpora.CorpusName = "published",
    magnifico_subset: str = "words",
    magnifico_prompt: str = "direct",
    magnifico_position: str = "end",
    magnifico_forms: str = ",".join(NOVEL),
    magnifico_overlap: str = "keep",
    magnifico_semantics: str = "reference",
    magnifico_seed: int | None = None,
    magnifico_databases: str | None = None,
    magnifico_file: str | None = None,
    fresh: int | None = None,
) -> "DatasetDict":
    """Loads the documents of a setting as ``test``.

    Examples without a database, or with a gold query that fails, are left out; a warning counts
    them and the results file names them.

    Args:
        magnifico_corpus: ``published``, ``mini`` or ``own``.
        magnifico_subset: ``words``, ``phrases``, ``combinations`` or ``dialogues``.
        magnifico_prompt: ``direct``, ``desc``, ``fewshot``, ``desc_fewshot`` or ``dialogue``.
        magnifico_position: Of the description or definition: ``start``, ``mid`` or ``end``.
        magnifico_forms: Novel forms, separated by commas.
        magnifico_overlap: ``keep``, or ``drop`` for no example whose gold query stands in its
            few-shot support.
        magnifico_semantics: When results count as equal (:mod:`lm_eval_ext.sql.compare`).
        magnifico_seed: Draws new foreign words; None: the published ones.
        magnifico_databases: A folder of databases, used instead of the pinned ones; for ``own``
            any database (docs/engines.md).
        magnifico_file: The user's examples, for ``own``.
        fresh: The seed for all benchmarks, instead of ``magnifico_seed``.

    Raises:
        OptionError: A value is illegal.
        DataError: Data are unavailable or invalid.
    """
    from datasets import Dataset, DatasetDict

    find_semantics(magnifico_semantics)
    setting = Setting.of_options(locals())
    ready = prepare(
        magnifico_corpus,
        setting,
        seed=magnifico_seed,
        fresh=fresh,
        databases=magnifico_databases,
        file=magnifico_file,
    )
    made, left_out = documents(
        ready.corpus, setting, ready.blocks.__getitem__, ready.scoring.broken
    )
    if fresh is not None and not any(one["form"] == FOREIGN for one in made):
        raise OptionError(
            "fresh draws new foreign words, and a chosen MAGNIFICo task asks none; leave it out, "
            "or choose tasks with foreign words"
        )
    problems = []
    if magnifico_corpus == "own":
        problems = own.problems(ready.corpus, ready.scoring.broken, left_out, made)
    if not made:
        hint = "check the databases (lm-eval-ext data fetch magnifico)"
        if magnifico_corpus == "own":
            hint = (
                problems[0]
                if problems
                else f"the file has no rows for magnifico_subset={magnifico_subset}"
            )
        raise DataError(f"MAGNIFICo: no example can be scored ({_counted(left_out)}); {hint}")
    for problem in problems[: own.MOST_PROBLEMS]:
        _log.warning("MAGNIFICo: %s", problem)
    if left_out:
        missing = sum(map(len, left_out.values()))
        _log.warning(
            "MAGNIFICo: %d of %d examples cannot be scored and are left out (%s); the results file "
            "names them",
            missing, len(made) + missing, _counted(left_out),
        )  # fmt: skip
    info = provenance.with_left_out(ready.info, left_out)
    return DatasetDict({"test": Dataset.from_list(made, info=info)})


def _counted(left_out: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{cause}: {len(ids)}" for cause, ids in left_out.items()) or "there are none"


@dataclass(frozen=True)
class Prepared:
    """Everything that a task needs.

    Attributes:
        corpus: With new words if a seed is given.
        info: The source of the data.
        scoring: The databases that answers are executed on.
        blocks: Schemas as prompts show them, by database id in lower case.
    """

    corpus: Corpus
    info: "DatasetInfo"
    scoring: ScoringDatabases
    blocks: Mapping[str, Sequence[str]]


def prepare(
    name: corpora.CorpusName,
    setting: Setting = Setting(),  # noqa: B008 (frozen)
    *,
    seed: int | None = None,
    fresh: int | None = None,
    databases: str | None = None,
    file: str | None = None,
) -> Prepared:
    """Loads a corpus, populates its databases, and reads their schemas; once per process.

    Raises:
        LmEvalExtError: As :func:`dataset`.
    """
    # Part of the cache's key, because they name the folders of data.
    environment = tuple(
        sorted((key, value) for key, value in os.environ.items() if key.startswith("LM_EVAL_EXT_"))
    )
    wanted = (setting.wants_dialogues, setting.wants_theirs)
    return _prepare(environment, name, wanted, (seed, fresh), databases, file)


def prepared(options: Mapping[str, Any]) -> Prepared:
    """What :func:`dataset` uses under these options."""
    return prepare(
        options["magnifico_corpus"],
        Setting.of_options(options),
        seed=options["magnifico_seed"],
        fresh=options.get("fresh"),
        databases=options["magnifico_databases"],
        file=options["magnifico_file"],
    )


_known: dict[tuple[object, ...], ScoringDatabases] = {}
"""By what decides about the databases, which prompts do not."""


@lru_cache(maxsize=8)
def _prepare(  # noqa: PLR0917 (lru_cache)
    environment: tuple[tuple[str, str], ...],
    name: corpora.CorpusName,
    wanted: tuple[bool, bool],
    seeds: tuple[int | None, int | None],
    databases: str | None,
    file: str | None,
) -> Prepared:
    dialogues, descriptions = wanted
    found = corpora.find(
        name, dialogues=dialogues, descriptions=descriptions, databases=databases, examples=file
    )
    corpus = found.corpus
    # Before new words are drawn, since they change no gold query.
    key = (environment, name, databases, file)
    scoring = _known.get(key) or _known.setdefault(
        key, _scoring_databases(corpus, name, _shipped(name, file))
    )
    blocks = {db_id: prompt.schema(database) for db_id, database in corpus.databases.items()}
    if seeds != (None, None):
        shown = (block for several in blocks.values() for block in several)
        corpus = with_fresh_words(corpus, seeds[0], shown, fresh=seeds[1])
    return Prepared(corpus, found.info, scoring, blocks)


def _shipped(name: str, file: str | None) -> Path | None:
    """The rows that need not be searched for."""
    if name == "published":
        return corpora.SHIPPED
    if name == "mini":
        return mini.SHIPPED
    if file is None:
        return None
    beside = Path(file).expanduser().with_name(own.SHIPPED)
    return beside if beside.is_file() else None


def _scoring_databases(corpus: Corpus, name: str, shipped: Path | None) -> ScoringDatabases:
    """Builds the populated copies in the cache, or finds them there.

    The rows depend on all gold queries of the corpus, so all tasks of a corpus share the copies.

    Raises:
        DataError: The cache cannot be written, or a database cannot be used.
    """
    golds = {
        db_id: queries for db_id, queries in corpus.golds().items() if db_id in corpus.databases
    }
    places = {db_id: corpus.databases[db_id].place for db_id in golds}
    if any(place.engine != "sqlite" for place in places.values()):
        return on_engine(places, golds)
    original = {db_id: corpus.databases[db_id].path for db_id in golds}
    key = [[db_id, sha256_of(path), golds[db_id]] for db_id, path in original.items()]
    with cached_copies(name, key) as folder:
        reports = populate_all(
            {db_id: (path, golds[db_id]) for db_id, path in original.items()},
            folder,
            shipped=shipped,
        )
    return ScoringDatabases(
        original=MappingProxyType(places),
        populated=MappingProxyType(
            {db_id: folder / db_id / f"{db_id}.sqlite" for db_id in original}
        ),
        reports=MappingProxyType(reports),
        broken=MappingProxyType(_broken(original, reports)),
    )


def _broken(
    original: Mapping[str, Path], reports: Mapping[str, Report]
) -> dict[tuple[str, str], str]:
    """Runs the gold queries that populating could not handle; only some of them are broken."""
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
