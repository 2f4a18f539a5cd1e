"""The judge: predictions in, verdicts out, on the original databases and on their test suites.

A prediction is run on its original database first. If it is right there, and there is a suite for
the database, it goes on to those databases of the suite that may judge its gold, one after the
other, until one of them shows that it is wrong (Zhong et al. 2020).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, tee
from pathlib import Path
from typing import Protocol

from lm_eval_ext.atomic import sha256_of_json
from lm_eval_ext.sql.compare import Gold, Semantics, find_semantics
from lm_eval_ext.sql.difference import Difference
from lm_eval_ext.sql.engines.places import Databases, place_of
from lm_eval_ext.sql.executor import DEFAULT_WORKERS, DatabaseFinder, Executor
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import Failure, Place, Prediction, QueryError, Row, Rows, Verdict

ORIGINAL = "original"
"""The name of the database that a prediction was written for."""

_BATCH = 2_000
"""Predictions of a batch of :meth:`SqlJudge.judge_iter`: few enough for an interrupted caller to
lose little, enough to keep all workers busy."""

_HASH_LENGTH = 12


class SuiteDatabases(Protocol):
    """The parts of a suite that the judge needs; :class:`lm_eval_ext.sql.suite.Suite` has it."""

    @property
    def digest(self) -> str:
        """A hash of all rows, and of which database judges which gold."""

    def path(self, name: str) -> Path:
        """Return the file of a database."""

    def judges_of(self, gold: str) -> tuple[str, ...]:
        """Return the names of the databases that may judge a gold, in the order to run them."""


@dataclass(frozen=True)
class _NamedDatabases:
    """Finds databases by the names that the judge gives them: ``original/ID``, ``small-3/ID``."""

    originals: DatabaseFinder
    suites: Mapping[str, SuiteDatabases]

    def find(self, db_id: str) -> Place | None:
        """Return where a database is; None if there is no such database."""
        name, _, original_id = db_id.partition("/")
        if name == ORIGINAL:
            return self.originals.find(original_id)
        return Place("sqlite", str(self.suites[original_id].path(name)))


@dataclass(frozen=True)
class _PlaceFinder:
    """Finds databases by a mapping from ids to places or files."""

    databases: Mapping[str, Path | Place]

    def find(self, db_id: str) -> Place | None:
        """Return where a database is; None if there is no such database."""
        database = self.databases.get(db_id)
        if isinstance(database, Path):
            return place_of(database)
        return database


@dataclass
class _Case:
    """A distinct prediction on its way through the databases that judge it.

    Attributes:
        prediction: The prediction.
        databases: The names of the databases, the original first.
        verdicts: The verdicts on the first ones of these databases.
    """

    prediction: Prediction
    databases: tuple[str, ...]
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether the next database has to be tried."""
        if len(self.verdicts) >= len(self.databases):
            return False
        if not self.verdicts:
            return True
        latest = self.verdicts[-1]
        # On a database of a suite a gold may exceed a limit; such a database decides nothing.
        skipped = len(self.verdicts) > 1 and not latest.scorable
        return latest.correct or skipped


@dataclass(frozen=True)
class Explanation:
    """The results of a prediction and its gold on the database that decided.

    Attributes:
        verdict: The verdict, with the database that decided.
        gold: The gold's result on that database, or why it has none.
        predicted: The prediction's result on that database, or why it has none.
        difference: How the results differ, with the rows that are missing or too many; None unless
            the prediction is wrong.
    """

    verdict: Verdict
    gold: Rows | Failure
    predicted: Rows | Failure
    difference: Difference | None = None

    @property
    def missing(self) -> Sequence[Row]:
        """The rows of the gold's result that the prediction's lacks."""
        if self.difference is None:
            return ()
        return self.difference.missing

    @property
    def extra(self) -> Sequence[Row]:
        """The rows of the prediction's result that the gold's lacks."""
        if self.difference is None:
            return ()
        return self.difference.extra


class SqlJudge:
    """Judges predictions on the original database and on the databases of its test suite.

    ::

        with SqlJudge("databases", semantics="strict") as judge:
            for verdict in judge.judge_all(predictions):
                print(verdict.status, verdict.reason)

    Queries are run in worker processes (:class:`~lm_eval_ext.sql.executor.Executor`), under limits
    and guards. Equal predictions are run once.

    Args:
        databases: The originals: a folder of databases, files or places by id, or an object that
            finds them by id.
        suites: Test suites by the id of their original, in lower case. Databases without a suite
            are judged by the original alone.
        semantics: The name of the rule by which results are compared on the originals
            (:data:`~lm_eval_ext.sql.compare.SEMANTICS`).
        suite_semantics: The name of the rule on the suites' databases; None: the semantics'
            ``suite_rule``.
        workers: Worker processes, 1 to 64.
        limits: What each query may use; None: the defaults of :class:`Limits`.

    Raises:
        OptionError: A semantics is unknown, or ``workers`` is out of range.
        DataError: The folder of databases cannot be read.
    """

    def __init__(
        self,
        databases: DatabaseFinder | Mapping[str, Path | Place] | Path | str,
        *,
        suites: Mapping[str, SuiteDatabases] | None = None,
        semantics: str = "reference",
        suite_semantics: str | None = None,
        workers: int = DEFAULT_WORKERS,
        limits: Limits | None = None,
    ) -> None:
        self.semantics = find_semantics(semantics)
        self.suite_semantics = find_semantics(suite_semantics or self.semantics.suite_rule)
        self._suites: Mapping[str, SuiteDatabases] = suites or {}
        if isinstance(databases, Path | str):
            databases = Databases(databases)
        elif isinstance(databases, Mapping):
            databases = _PlaceFinder(databases)
        self.databases = _NamedDatabases(databases, self._suites)
        self.executor = Executor(self.databases, workers=workers, limits=limits)

    @property
    def signature(self) -> str:
        """What verdicts depend on besides queries, originals and limits, such as ``strict-v2``.

        If there are suites, it also has the rule on their databases and a hash of all their rows.
        """
        if not self._suites:
            return self.semantics.signature
        digests = [[db_id, suite.digest] for db_id, suite in sorted(self._suites.items())]
        digest = sha256_of_json(digests)[:_HASH_LENGTH]
        return f"{self.semantics.signature}|suites:{self.suite_semantics.signature},{digest}"

    def judge_all(
        self,
        predictions: Iterable[Prediction | tuple[str, str, str]],
        *,
        progress: str | None = "judging SQL",
    ) -> list[Verdict]:
        """Return a verdict for each prediction, in their order.

        All predictions are run on the originals first, then those that are right on the next
        database of their suite, and so on. A call that failed can be repeated: what it judged is
        remembered.

        Args:
            predictions: The predictions.
            progress: What the progress bar says; None: no progress bar.

        Raises:
            DataError: A database's file is in use or its name ambiguous; or the database cannot be
                used any more, such as one on a server that went away.
        """
        batch = [Prediction(*prediction) for prediction in predictions]
        cases: dict[Prediction, _Case] = {}
        for prediction in sorted(set(batch)):  # a worker stays with a database
            cases[prediction] = _Case(prediction, (ORIGINAL, *self._suite_judges(prediction)))
        waiting = list(cases.values())
        step = 0
        while waiting:
            self._run_step(waiting, step, progress)
            waiting = [case for case in waiting if case.goes_on]
            step += 1
        verdicts = {prediction: self._verdict(case) for prediction, case in cases.items()}
        return [verdicts[prediction] for prediction in batch]

    def judge_iter(
        self, predictions: Iterable[Prediction | tuple[str, str, str]]
    ) -> Iterator[Verdict]:
        """Yield a verdict for each prediction, in their order, as they become known.

        With suites, verdicts become known in batches of 2,000 predictions.

        Raises:
            DataError: As :meth:`judge_all`.
        """
        remaining = iter(predictions)
        if not self._suites:
            # The executor reads ahead, so its verdicts come later than the predictions.
            to_judge, to_yield = tee(Prediction(*item) for item in remaining)
            named = (self._on_database(prediction, ORIGINAL) for prediction in to_judge)
            verdicts = self.executor.score(named, semantics=self.semantics.name)
            for prediction, verdict in zip(to_yield, verdicts, strict=True):
                yield self._verdict(_Case(prediction, (ORIGINAL,), [verdict]))
            return
        batch = list(islice(remaining, _BATCH))
        while batch:
            yield from self.judge_all(batch, progress=None)
            batch = list(islice(remaining, _BATCH))

    def explain(self, prediction: Prediction | tuple[str, str, str]) -> Explanation:
        """Return the results of a prediction and its gold on the database that decided.

        Raises:
            DataError: As :meth:`judge_all`.
        """
        prediction = Prediction(*prediction)
        (verdict,) = self.judge_all([prediction], progress=None)
        if verdict.status == "database_missing":
            absent = Failure("unavailable", verdict.reason)
            return Explanation(verdict, absent, absent)
        semantics = self.semantics
        if verdict.database != ORIGINAL:
            semantics = self.suite_semantics
        db_id = self._on_database(prediction, verdict.database).db_id
        gold_sql = semantics.rewrite(prediction.gold)
        gold = self._result(db_id, gold_sql)
        predicted = self._result(db_id, semantics.rewrite(prediction.predicted))
        difference = None
        if verdict.status == "wrong" and isinstance(gold, Rows) and isinstance(predicted, Rows):
            gold_query = Gold(gold_sql, gold, lambda sql: self._result(db_id, sql))
            difference = semantics.prepare(gold_query).difference(predicted)
        return Explanation(verdict, gold, predicted, difference)

    def place_of(self, prediction: Prediction, database: str) -> Place | None:
        """Return where a database is that a verdict on a prediction names, as "small-3"."""
        return self.databases.find(self._on_database(prediction, database).db_id)

    def _result(self, db_id: str, sql: str) -> Rows | Failure:
        try:
            return self.executor.query(db_id, sql)
        except QueryError as error:
            return error.failure

    def close(self) -> None:
        """End the workers; the next query would start new ones."""
        self.executor.close()

    def __enter__(self) -> "SqlJudge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_step(self, cases: Sequence[_Case], step: int, progress: str | None) -> None:
        """Run each case on the next one of its databases, and note the verdict."""
        from tqdm import tqdm

        semantics = self._semantics_on(step)
        named = (self._on_database(case.prediction, case.databases[step]) for case in cases)
        description = progress
        if progress and step:
            description = f"{progress}, database {step + 1}"
        bar = tqdm(
            self.executor.score(named, semantics=semantics.name),
            total=len(cases),
            unit="query",
            # None: only in a terminal.
            disable=True if progress is None else None,
            leave=step == 0,
            desc=description,
        )
        for case, verdict in zip(cases, bar, strict=True):
            case.verdicts.append(verdict)

    def _suite_judges(self, prediction: Prediction) -> tuple[str, ...]:
        """Return the names of the databases of its suite that may judge a prediction."""
        suite = self._suites.get(prediction.db_id.casefold())
        if suite is None:
            return ()
        return suite.judges_of(prediction.gold)

    def _semantics_on(self, step: int) -> Semantics:
        """Return the rule on the database of a step; the first one is the original."""
        if step == 0:
            return self.semantics
        return self.suite_semantics

    def _on_database(self, prediction: Prediction, name: str) -> Prediction:
        """Return a prediction for the database of that name; suites have ids in lower case."""
        db_id = prediction.db_id
        if name != ORIGINAL:
            db_id = db_id.casefold()
        return prediction._replace(db_id=f"{name}/{db_id}")

    def _verdict(self, case: _Case) -> Verdict:
        """Return the verdict of all databases: the last one that says something."""
        original = case.verdicts[0]
        deciding = 0
        for step, verdict in enumerate(case.verdicts):
            if verdict.scorable:
                deciding = step
        reason = case.verdicts[deciding].reason
        if original.status == "database_missing":
            reason = f"no database {case.prediction.db_id!r}"
        semantics = self._semantics_on(deciding)
        return Verdict(
            case.verdicts[deciding].status,
            reason,
            rule=semantics.signature,
            database=case.databases[deciding],
            original_status=original.status,
        )
