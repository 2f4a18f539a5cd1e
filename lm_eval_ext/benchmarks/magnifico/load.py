"""Loads MAGNIFICo's documents, and the databases that answers are executed on.

Every answer is executed on the original database, and while it is right on those of a test suite
that distinguish gold queries from similar wrong ones (Zhong et al. 2020).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import corpora, mini, own, prompt
from lm_eval_ext.benchmarks.magnifico.documents import Setting, documents
from lm_eval_ext.benchmarks.magnifico.fresh import with_fresh_words
from lm_eval_ext.benchmarks.magnifico.populating import ROWS, ROWS_V2
from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, NOVEL, Corpus
from lm_eval_ext.benchmarks.magnifico.scoring_databases import (
    V3,
    Rows,
    ScoringDatabases,
    cached_copies,
    on_engine,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor, QueryError, find_semantics
from lm_eval_ext.sql.suite import Suite, name_of, populate_all, read_shipped

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
    magnifico_populated: Rows = V3,
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
        magnifico_populated: What ``populated/...`` metrics rest on: ``v3``, the test suite, or
            ``v2``, only the populated copy that was published with version 2.
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
        populated=magnifico_populated,
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
    populated: Rows = V3,
    file: str | None = None,
) -> Prepared:
    """Loads a corpus, makes its test suites, and reads the schemas; once per process.

    Raises:
        LmEvalExtError: As :func:`dataset`.
    """
    if populated not in get_args(Rows):
        raise OptionError(f"magnifico_populated is {populated!r}; use {', '.join(get_args(Rows))}")
    # Part of the cache's key, because they name the folders of data.
    environment = tuple(
        sorted((key, value) for key, value in os.environ.items() if key.startswith("LM_EVAL_EXT_"))
    )
    wanted = (setting.wants_dialogues, setting.wants_theirs)
    return _prepare(environment, name, wanted, (seed, fresh), databases, populated, file)


def prepared(options: Mapping[str, Any]) -> Prepared:
    """What :func:`dataset` uses under these options."""
    return prepare(
        options["magnifico_corpus"],
        Setting.of_options(options),
        seed=options["magnifico_seed"],
        fresh=options.get("fresh"),
        databases=options["magnifico_databases"],
        populated=options["magnifico_populated"],
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
    populated: Rows,
    file: str | None,
) -> Prepared:
    dialogues, descriptions = wanted
    found = corpora.find(
        name, dialogues=dialogues, descriptions=descriptions, databases=databases, examples=file
    )
    corpus = found.corpus
    # Before new words are drawn, since they change no gold query.
    key = (environment, name, databases, populated, file)
    scoring = _known.get(key) or _known.setdefault(key, _scoring_databases(corpus, name, populated))
    blocks = {db_id: prompt.schema(database) for db_id, database in corpus.databases.items()}
    if seeds != (None, None):
        shown = (block for several in blocks.values() for block in several)
        corpus = with_fresh_words(corpus, seeds[0], shown, fresh=seeds[1])
    return Prepared(corpus, found.info, scoring, blocks)


def _scoring_databases(
    corpus: Corpus, name: corpora.CorpusName, populated: Rows
) -> ScoringDatabases:
    """Makes the test suites in the cache, or finds them there.

    They depend on all gold queries of the corpus, so all tasks of a corpus share them.

    Raises:
        DataError: The cache cannot be written, or a database cannot be used.
        OptionError: There are no rows of version 2.
    """
    shipped = {"published": corpora.SHIPPED, "mini": mini.SHIPPED}.get(name)
    if populated != V3 and shipped is None:
        raise OptionError(
            "magnifico_populated=v2 is for the published examples and magnifico_mini, with which "
            "rows of version 2 ship; leave it out"
        )
    golds = {
        db_id: queries for db_id, queries in corpus.golds().items() if db_id in corpus.databases
    }
    places = {db_id: corpus.databases[db_id].place for db_id in golds}
    if any(place.engine != "sqlite" for place in places.values()):
        return on_engine(places, golds)
    original = {db_id: corpus.databases[db_id].path for db_id in golds}
    files = [[db_id, sha256_of(path), golds[db_id]] for db_id, path in original.items()]
    key = [populated, shipped and sha256_of(shipped), files]
    rows = shipped and shipped.with_name(ROWS if populated == V3 else ROWS_V2)
    with cached_copies(name, key) as folder:
        suites = populate_all(
            {db_id: (path, golds[db_id]) for db_id, path in original.items()},
            folder,
            read_shipped(rows, shipped),
            only_copies=populated != V3,
        )
    return ScoringDatabases(
        original=MappingProxyType(places),
        suites=MappingProxyType(suites),
        broken=MappingProxyType(_broken(original, golds, suites)),
        rows=populated,
    )


def _broken(
    original: Mapping[str, Path], golds: Mapping[str, Sequence[str]], suites: Mapping[str, Suite]
) -> dict[tuple[str, str], str]:
    """Runs the gold queries that suites did not take; only some of them are broken."""
    broken = {}
    with Executor(workers=1) as executor:
        for db_id, queries in golds.items():
            for query in queries:
                if name_of(query) in suites[db_id].judges:
                    continue
                try:
                    executor.query(original[db_id], query)
                except QueryError as error:
                    broken[db_id, query] = str(error)
    return broken
