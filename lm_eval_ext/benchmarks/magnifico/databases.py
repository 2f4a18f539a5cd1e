"""The databases that answers are executed on: the originals, and their test suites.

Every answer is executed on the original database, and while it is right on those of a test suite
that distinguish gold queries from similar wrong ones (Zhong et al. 2020).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from lm_eval_ext.atomic import sha256_of, sha256_of_json, sha256_of_text
from lm_eval_ext.benchmarks.magnifico import corpora, mini
from lm_eval_ext.benchmarks.magnifico.records import Corpus, CorpusName, SuiteRows
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Executor, Place, QueryError, SqlJudge, find_semantics
from lm_eval_ext.sql.suite import (
    COPY,
    SUITE_VERSION,
    Shipped,
    Suite,
    gold_id,
    populate_all,
    read_shipped,
)

Golds: TypeAlias = Mapping[str, Sequence[str]]
"""The gold queries about each database, by its id in lower case."""

GoldErrors: TypeAlias = Mapping[tuple[str, str], str]
"""Why gold queries fail, by database id in lower case and query."""

_DIGEST_CHARACTERS = 12

_SHIPPED_FOLDERS: Mapping[CorpusName, Path] = {"published": corpora.SHIPPED, "mini": mini.SHIPPED}
"""The folders with seeds and rows of test suites, for corpora whose suites ship."""

_SHIPPED_SUFFIXES: Mapping[SuiteRows, str] = {"v3": "", "v2": "-v2"}


@dataclass(frozen=True)
class ScoringDatabases:
    """The databases that answers are executed on.

    Attributes:
        originals: The original databases, by id in lower case.
        suites: The test suites by the same ids; none on other engines than SQLite.
        gold_errors: The errors of gold queries that fail.
        engine: What signatures say of another engine than SQLite.
        rows: The version of the populated rows.
    """

    originals: Mapping[str, Place]
    suites: Mapping[str, Suite] = field(default_factory=dict)
    gold_errors: GoldErrors = field(default_factory=dict)
    engine: str | None = None
    rows: SuiteRows = "v3"

    def judge(self, semantics: str) -> SqlJudge:
        """Return the judge of answers to this corpus.

        Args:
            semantics: The name of the rule by which results are compared on the originals.
        """
        return SqlJudge(
            self.originals,
            suites=self.suites,
            semantics=semantics,
            suite_semantics=self.suite_semantics(semantics),
        )

    def suite_semantics(self, semantics: str) -> str:
        """Return the rule on the suites' databases for a rule on the originals."""
        if self.rows == "v2":
            return semantics
        return find_semantics(semantics).suite_rule

    @property
    def signature(self) -> str:
        """The version of the rows, and a hash of all suites."""
        digests = [[db_id, suite.digest] for db_id, suite in sorted(self.suites.items())]
        return f"{self.rows},{sha256_of_json(digests)[:_DIGEST_CHARACTERS]}"


def scoring_databases(corpus: Corpus, name: CorpusName, rows: SuiteRows) -> ScoringDatabases:
    """Build the test suites of a corpus in the cache, or find them there.

    They depend on all gold queries of the corpus, so all tasks of a corpus share them.

    Raises:
        DataError: The cache cannot be written, or a database cannot be used.
        OptionError: There are no rows of version 2.
    """
    golds = {}
    for db_id, queries in corpus.golds().items():
        if db_id in corpus.databases:
            golds[db_id] = queries
    originals = {db_id: corpus.databases[db_id].location for db_id in golds}
    if any(original.engine != "sqlite" for original in originals.values()):
        with Executor(workers=1) as executor:
            engine = executor.engine_at(next(iter(originals.values())))
        return ScoringDatabases(
            originals, gold_errors=_gold_errors(originals, golds, {}), engine=engine
        )
    shipped = read_shipped(_SHIPPED_FOLDERS.get(name), _SHIPPED_SUFFIXES[rows])
    jobs = {db_id: (corpus.databases[db_id].path, golds[db_id]) for db_id in golds}
    suites = _build_suites(jobs, _suites_folder(jobs, name, rows, shipped), shipped)
    if rows == "v2" and any({*suite.names} != {COPY} for suite in suites.values()):
        raise OptionError(
            "magnifico_populated=v2 is for the published examples and magnifico_mini with their "
            "own databases, with which rows of version 2 ship; leave it out"
        )
    return ScoringDatabases(originals, suites, _gold_errors(originals, golds, suites), rows=rows)


SuiteJobs: TypeAlias = Mapping[str, tuple[Path, Sequence[str]]]
"""The file and the gold queries of each database, by its id in lower case."""


def _suites_folder(jobs: SuiteJobs, name: CorpusName, rows: SuiteRows, shipped: Shipped) -> Path:
    """Return the folder in the cache, named by all that decides about the suites."""
    files = [[db_id, sha256_of(path), golds] for db_id, (path, golds) in jobs.items()]
    key = json.dumps([SUITE_VERSION, rows, shipped.seeds, files])
    digest = sha256_of_text(key)
    folder_name = f"{name}-v{SUITE_VERSION}-{digest[:_DIGEST_CHARACTERS]}"
    return cache_dir() / "populated" / folder_name


def _build_suites(jobs: SuiteJobs, folder: Path, shipped: Shipped) -> Mapping[str, Suite]:
    import filelock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the copies.
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
            return populate_all(jobs, folder, shipped)
    except OSError as error:
        raise DataError(
            f"cannot write the populated databases to {folder}: {error.strerror}. Set "
            "LM_EVAL_EXT_CACHE to a writable folder."
        ) from error


def _gold_errors(
    originals: Mapping[str, Place], golds: Golds, suites: Mapping[str, Suite]
) -> GoldErrors:
    """Run the gold queries that are in no suite, and return the errors of those that fail."""
    errors = {}
    with Executor(workers=1) as executor:
        for db_id, queries in golds.items():
            judged = suites[db_id].judges if db_id in suites else {}
            for query in queries:
                if gold_id(query) in judged:
                    continue
                try:
                    executor.query(originals[db_id], query)
                except QueryError as error:
                    errors[db_id, query] = str(error)
    return errors
