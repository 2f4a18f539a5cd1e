"""Loads MAGNIFICo's documents, and as their resource the databases that answers are executed on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lm_eval_ext.benchmarks.magnifico import corpora, own, prompt
from lm_eval_ext.benchmarks.magnifico.databases import ScoringDatabases, scoring_databases
from lm_eval_ext.benchmarks.magnifico.documents import DocumentSet, Setting, documents
from lm_eval_ext.benchmarks.magnifico.fresh import with_fresh_words
from lm_eval_ext.benchmarks.magnifico.records import FOREIGN, Corpus, CorpusName, SuiteRows
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.exclusions import report_exclusion
from lm_eval_ext.harness.loading import TaskData, data_environment, loader
from lm_eval_ext.log import get_logger
from lm_eval_ext.sql import find_semantics

_log = get_logger(__name__)


@loader(prefix="magnifico_", options=Setting)
def dataset(setting: Setting) -> TaskData:
    """Load the documents of a setting, and the databases that judge answers.

    Examples without a database, or with a gold query that fails, are excluded; a warning counts
    them and the results file names them.

    Raises:
        OptionError: A value is illegal.
        DataError: Data are unavailable or invalid.
    """
    find_semantics(setting.semantics)
    prepared_corpus = prepared(setting)
    chosen = documents(
        prepared_corpus.corpus,
        setting,
        prepared_corpus.blocks,
        prepared_corpus.scoring.gold_errors,
    )
    _check_fresh_words(chosen, setting)
    _report(chosen, prepared_corpus, setting)
    return TaskData(
        documents=chosen.documents,
        resources=prepared_corpus.scoring,
        excluded=chosen.excluded,
        provenance=prepared_corpus.sourced.provenance,
    )


def _check_fresh_words(chosen: DocumentSet, setting: Setting) -> None:
    asks_foreign = any(document["form"] == FOREIGN for document in chosen.documents)
    if setting.fresh is not None and not asks_foreign:
        raise OptionError(
            "fresh draws new foreign words, and a chosen MAGNIFICo task asks none; leave it out, "
            "or choose tasks with foreign words"
        )


def _report(chosen: DocumentSet, prepared_corpus: "PreparedCorpus", setting: Setting) -> None:
    """Warn of excluded examples and of a user's rows with problems.

    Raises:
        DataError: No example can be scored.
    """
    problems = []
    remedy = "check the databases (lm-eval-ext data fetch spider_databases)"
    if setting.corpus == "own":
        gold_errors = prepared_corpus.scoring.gold_errors
        problems = own.problems(prepared_corpus.corpus, gold_errors, chosen.documents)
        remedy = f"the file has no rows for magnifico_subset={setting.subset}"
        if chosen.excluded and problems:
            remedy = problems[0]
    counts = ", ".join(f"{cause}: {len(ids)}" for cause, ids in chosen.excluded.items())
    if not chosen.documents:
        raise DataError(
            f"MAGNIFICo: no example can be scored ({counts or 'there are none'}); {remedy}"
        )
    for problem in problems[: own.MOST_PROBLEMS]:
        _log.warning("MAGNIFICo: %s", problem)
    if chosen.excluded:
        excluded_count = sum(len(ids) for ids in chosen.excluded.values())
        total = len(chosen.documents) + excluded_count
        report_exclusion(
            f"MAGNIFICo: {excluded_count} of {total} examples cannot be scored and are left out "
            f"({counts}); the results file names them"
        )


@dataclass(frozen=True)
class CorpusSource:
    """A choice of examples, and of the databases that judge answers.

    Attributes:
        name: The corpus.
        databases: A user's databases, instead of those of the corpus.
        file: A user's file of examples.
        rows: The version of the populated rows.
        environment: Our environment variables, which name the folders of data.
    """

    name: CorpusName
    databases: str | None
    file: str | None
    rows: SuiteRows
    environment: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CorpusRequest:
    """A choice of a corpus with everything that prompts show.

    Attributes:
        source: The examples and the databases.
        with_dialogues: Whether dialogues are needed.
        with_descriptions: Whether the authors' descriptions are needed, if the corpus has them.
        seed: The seed of new foreign words; None: the published ones.
        fresh: The seed for all benchmarks, instead of ``seed``.
    """

    source: CorpusSource
    with_dialogues: bool
    with_descriptions: bool
    seed: int | None
    fresh: int | None


@dataclass(frozen=True)
class PreparedCorpus:
    """Everything that a task needs.

    Attributes:
        sourced: The corpus, with new words if a seed is given, and where it comes from.
        scoring: The databases that answers are executed on.
        blocks: Schemas as prompts show them, one block per table, by database id in lower case.
    """

    sourced: corpora.SourcedCorpus
    scoring: ScoringDatabases
    blocks: Mapping[str, Sequence[str]]

    @property
    def corpus(self) -> Corpus:
        """The examples with their databases."""
        return self.sourced.corpus


def prepared(setting: Setting) -> PreparedCorpus:
    """Load a corpus, build its test suites, and read the schemas; once per process.

    Raises:
        LmEvalExtError: As :func:`dataset`.
    """
    source = CorpusSource(
        name=setting.corpus,
        databases=setting.databases,
        file=setting.file,
        rows=setting.populated,
        environment=data_environment(),
    )
    request = CorpusRequest(
        source=source,
        with_dialogues=setting.needs_dialogues,
        with_descriptions=setting.needs_descriptions,
        seed=setting.seed,
        fresh=setting.fresh,
    )
    return _complete(request)


@lru_cache(maxsize=4)
def _with_databases(source: CorpusSource) -> PreparedCorpus:
    """Load examples and databases, which all tasks of a corpus share."""
    sourced = corpora.load_corpus(source.name, databases=source.databases, examples=source.file)
    corpus = sourced.corpus
    scoring = scoring_databases(corpus, source.name, source.rows)
    blocks = {db_id: prompt.schema(database) for db_id, database in corpus.databases.items()}
    return PreparedCorpus(sourced, scoring, blocks)


@lru_cache(maxsize=8)
def _complete(request: CorpusRequest) -> PreparedCorpus:
    """Add what only some tasks show: dialogues, descriptions, and new words."""
    base = _with_databases(request.source)
    sourced = base.sourced
    if request.source.name == "published":
        if request.with_dialogues:
            sourced = corpora.add_dialogues(sourced)
        if request.with_descriptions:
            sourced = corpora.add_descriptions(sourced)
    if request.seed is not None or request.fresh is not None:
        # New words change no gold query, so the databases stay the same.
        shown_blocks: list[str] = []
        for blocks in base.blocks.values():
            shown_blocks.extend(blocks)
        corpus = with_fresh_words(sourced.corpus, request.seed, shown_blocks, fresh=request.fresh)
        sourced = replace(sourced, corpus=corpus)
    return replace(base, sourced=sourced)
