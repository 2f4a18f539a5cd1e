"""Loads MAGNIFICo's documents, and the databases that answers are executed on.

Every answer is executed on the original database, and while it is right on those of a test suite
that distinguish gold queries from similar wrong ones (Zhong et al. 2020).
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.atomic import sha256_of, sha256_of_json, sha256_of_text
from lm_eval_ext.benchmarks.magnifico import corpora, mini, own, prompt
from lm_eval_ext.benchmarks.magnifico.documents import Setting, documents
from lm_eval_ext.benchmarks.magnifico.fresh import with_fresh_words
from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, Corpus, CorpusName, Rows
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.harness.provenance import Loaded
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import Executor, Place, QueryError, Semantics, find_semantics
from lm_eval_ext.sql.suite import COPY, SUITE_VERSION, Suite, name_of, populate_all, read_shipped

if TYPE_CHECKING:
    from datasets import DatasetInfo

_log = get_logger(__name__)


@loader(prefix="magnifico_", options=Setting)
def dataset(setting: Setting) -> Loaded:
    """Loads the documents of a setting as ``test``.

    Examples without a database, or with a gold query that fails, are left out; a warning counts
    them and the results file names them.

    Raises:
        OptionError: A value is illegal.
        DataError: Data are unavailable or invalid.
    """
    find_semantics(setting.semantics)

    ready = prepared(setting)
    made, left_out = documents(
        ready.corpus, setting, ready.blocks.__getitem__, ready.scoring.broken
    )
    if setting.fresh is not None and not any(one["form"] == FOREIGN for one in made):
        raise OptionError(
            "fresh draws new foreign words, and a chosen MAGNIFICo task asks none; leave it out, "
            "or choose tasks with foreign words"
        )
    hint, problems = "check the databases (lm-eval-ext data fetch magnifico)", []
    if setting.corpus == "own":
        problems = own.problems(ready.corpus, ready.scoring.broken, made)
        hint = f"the file has no rows for magnifico_subset={setting.subset}"
    counted = ", ".join(f"{cause}: {len(ids)}" for cause, ids in left_out.items())
    if not made:
        hint = (*problems, hint)[0] if left_out else hint
        raise DataError(
            f"MAGNIFICo: no example can be scored ({counted or 'there are none'}); {hint}"
        )
    for problem in problems[: own.MOST_PROBLEMS]:
        _log.warning("MAGNIFICo: %s", problem)
    if left_out:
        missing = sum(map(len, left_out.values()))
        _log.warning(
            "MAGNIFICo: %d of %d examples cannot be scored and are left out (%s); the results file "
            "names them",
            missing, len(made) + missing, counted,
        )  # fmt: skip
    return Loaded(made, ready.info, left_out)


@dataclass(frozen=True)
class ScoringDatabases:
    """The databases that answers are executed on.

    Attributes:
        original: By database id in lower case.
        suites: By the same ids; none on other engines than SQLite.
        broken: The errors of gold queries that fail, by database id and query.
        engine: What signatures say of another engine than SQLite.
        rows: Which populated rows.
    """

    original: Mapping[str, Place]
    suites: Mapping[str, Suite] = field(default_factory=dict)
    broken: Mapping[tuple[str, str], str] = field(default_factory=dict)
    engine: str | None = None
    rows: Rows = "v3"

    def named(self) -> dict[str, Path | Place]:
        """All databases by the names that :meth:`asked` gives."""
        made = {
            f"{name}/{db_id}": suite.path(name)
            for db_id, suite in self.suites.items()
            for name in suite.databases
        }
        return {**{f"original/{db_id}": place for db_id, place in self.original.items()}, **made}

    def asked(self, db_id: str, gold: str) -> list[str]:
        """The names of the databases that judge answers to a gold query, the original first."""
        suite = self.suites.get(db_id)
        made = () if suite is None else suite.judging(gold)
        return [f"{name}/{db_id}" for name in ("original", *made)]

    def rule(self, named: Semantics) -> str:
        """The semantics on the suites' databases, if the user names these for the originals."""
        return named.suite_rule if self.rows == "v3" else named.name

    @property
    def signature(self) -> str:
        """Which rows, and a hash of all suites."""
        parts = [[db_id, suite.content] for db_id, suite in sorted(self.suites.items())]
        total = sha256_of_json(parts)
        return f"{self.rows},{total[:12]}"


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


def prepared(setting: Setting) -> Prepared:
    """Loads a corpus, makes its test suites, and reads the schemas; once per process.

    Raises:
        LmEvalExtError: As :func:`dataset`.
    """
    # Part of the cache's key, because they name the folders of data.
    environment = frozenset(one for one in os.environ.items() if one[0].startswith("LM_EVAL_EXT_"))
    return _prepared(
        (environment, setting.populated),
        setting.corpus,
        setting.databases,
        setting.file,
        (setting.wants_dialogues, setting.wants_theirs),
        (setting.seed, setting.fresh),
    )


_known: dict[object, ScoringDatabases] = {}
"""By what decides about the databases, which prompts do not."""


@lru_cache(maxsize=8)
def _prepared(  # noqa: PLR0917 (lru_cache)
    about: tuple[object, Rows],
    name: CorpusName,
    databases: str | None,
    file: str | None,
    wanted: tuple[bool, bool],
    seeds: tuple[int | None, int | None],
) -> Prepared:
    corpus, info = corpora.find(
        name, dialogues=wanted[0], descriptions=wanted[1], databases=databases, examples=file
    )
    # Before new words are drawn, since they change no gold query.
    key = (about, name, databases, file)
    scoring = _known.get(key) or _known.setdefault(key, _scoring_databases(corpus, name, about[1]))
    blocks = {db_id: prompt.schema(database) for db_id, database in corpus.databases.items()}
    if seeds != (None, None):
        shown = (block for several in blocks.values() for block in several)
        corpus = with_fresh_words(corpus, seeds[0], shown, fresh=seeds[1])
    return Prepared(corpus, info, scoring, blocks)


def _scoring_databases(corpus: Corpus, name: CorpusName, populated: Rows) -> ScoringDatabases:
    """Makes the test suites in the cache, or finds them there.

    They depend on all gold queries of the corpus, so all tasks of a corpus share them.

    Raises:
        DataError: The cache cannot be written, or a database cannot be used.
        OptionError: There are no rows of version 2.
    """
    import filelock

    home = {"published": corpora.SHIPPED, "mini": mini.SHIPPED}.get(name)
    shipped = read_shipped(home, "" if populated == "v3" else "-v2")
    golds = {
        db_id: queries for db_id, queries in corpus.golds().items() if db_id in corpus.databases
    }
    places = {db_id: corpus.databases[db_id].place for db_id in golds}
    if any(place.engine != "sqlite" for place in places.values()):
        with Executor(workers=1) as executor:
            engine = executor.engine_at(next(iter(places.values())))
        return ScoringDatabases(places, broken=_broken(places, golds, {}), engine=engine)
    original = {db_id: corpus.databases[db_id].path for db_id in golds}
    files = [[db_id, sha256_of(path), golds[db_id]] for db_id, path in original.items()]
    key = [SUITE_VERSION, populated, shipped.seeds, files]
    total = sha256_of_text(json.dumps(key))
    folder = cache_dir() / "populated" / f"{name}-v{SUITE_VERSION}-{total[:12]}"
    jobs = {db_id: (path, golds[db_id]) for db_id, path in original.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the copies.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            suites = populate_all(jobs, folder, shipped)
    except OSError as error:
        raise DataError(
            f"cannot write the populated databases to {folder}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error
    if populated != "v3" and any({*suite.databases} != {COPY} for suite in suites.values()):
        raise OptionError(
            "magnifico_populated=v2 is for the published examples and magnifico_mini with their "
            "own databases, with which rows of version 2 ship; leave it out"
        )
    return ScoringDatabases(places, suites, _broken(places, golds, suites), rows=populated)


def _broken(
    places: Mapping[str, Place],
    golds: Mapping[str, Sequence[str]],
    suites: Mapping[str, Suite],
) -> dict[tuple[str, str], str]:
    """Runs the gold queries that no suite took; only some of them are broken."""
    broken = {}
    with Executor(workers=1) as executor:
        for db_id, queries in golds.items():
            for query in queries:
                if db_id in suites and name_of(query) in suites[db_id].judges:
                    continue
                try:
                    executor.query(places[db_id], query)
                except QueryError as error:
                    broken[db_id, query] = str(error)
    return broken
