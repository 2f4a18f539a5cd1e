"""The plain types of this package: results, verdicts, and the messages of worker processes.

Messages are pickled and sent over two pipes. Worker processes import this module, so it must
need nothing outside the standard library.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple, get_args

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.text import one_line


class Exact(float):
    """A decimal that is no integer; it equals another decimal by its digits, and its nearest float.

    Args:
        digits: The decimal as text, such as "0.10".
    """

    def __init__(self, digits: str) -> None:
        self.decimal = Decimal(digits)

    def __eq__(self, value: object) -> bool:
        if isinstance(value, Exact):
            return self.decimal == value.decimal
        return float(self) == value

    __hash__ = float.__hash__

    def __reduce__(self) -> tuple[type["Exact"], tuple[str]]:
        return Exact, (str(self.decimal),)


Value = int | float | str | bytes | None
"""A cell as SQLite stores it; values of other engines become one of these (docs/sql.md). Text
is decoded as UTF-8 with ``surrogateescape``: each invalid byte becomes a lone surrogate. So two
texts are equal if and only if their bytes are, no text is lost or refused, and text differs from
blobs, which are ``bytes``."""

Row = tuple[Value, ...]

EngineName = Literal["sqlite", "duckdb", "postgresql"]


class Place(NamedTuple):
    """The engine of a database, and its file's path or its server's URL, without a password."""

    engine: EngineName
    address: str

    def __str__(self) -> str:
        return self.address


def quoted(name: str) -> str:
    """Return a name as an SQL identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def quoted_all(names: Iterable[str]) -> str:
    """Return names as SQL identifiers, separated by commas."""
    return ", ".join(quoted(name) for name in names)


class Rows(NamedTuple):
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[Row]


FailureKind = Literal["error", "timeout", "too_large", "unavailable"]
"""Why a query gave no result. ``unavailable``: the database cannot be used, whatever the query."""


class Failure(NamedTuple):
    """Why a query gave no result; ``message`` is one line."""

    kind: FailureKind
    message: str


OUT_OF_MEMORY = Failure("too_large", "out of memory")
"""The failure of a worker whose own memory does not suffice; the worker is replaced."""


class QueryError(LmEvalExtError):
    """A query gave no result.

    Attributes:
        failure: The reason.
    """

    def __init__(self, failure: Failure, sql: str) -> None:
        super().__init__(f"{failure.message} (in the query: {one_line(sql, limit=SHOWN)})")
        self.failure = failure


Status = Literal[
    "correct",
    "wrong",
    "prediction_error",
    "prediction_timeout",
    "prediction_too_large",
    "gold_error",
    "database_missing",
]

STATUSES: tuple[Status, ...] = get_args(Status)

NOT_SCORABLE: frozenset[Status] = frozenset({"gold_error", "database_missing"})
"""Statuses that say nothing about the prediction: excluded from every accuracy, and counted."""


class Prediction(NamedTuple):
    """A prediction to judge; a plain tuple of the three texts is accepted as well.

    Attributes:
        db_id: The id of the database that both queries are run on.
        gold: The query whose result is right.
        predicted: The query to judge, exactly as the model wrote it; "" if it wrote none.
    """

    db_id: str
    gold: str
    predicted: str


Example = Prediction
"""The name that :class:`Prediction` had before."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a prediction.

    Attributes:
        status: The outcome in one word.
        reason: Why, as one line for a reader: the engine's error, or how the results differ; "" if
            the prediction is correct.
        rule: The signature of the semantics that decided, as "strict-v2"; "" for a verdict on one
            database, whose caller named the semantics.
        database: The database that decided: "original", or a database of a suite, as "copy" or
            "small-3". Of a correct prediction, the last database that it was run on.
        original_status: The outcome on the original alone; None for a verdict on one database.
    """

    status: Status
    reason: str = ""
    rule: str = ""
    database: str = ""
    original_status: Status | None = None

    @property
    def detail(self) -> str:
        """The name that :attr:`reason` had before."""
        return self.reason

    @property
    def scorable(self) -> bool:
        """Whether the verdict is about the prediction, not about the gold or the database."""
        return self.status not in NOT_SCORABLE

    @property
    def correct(self) -> bool:
        """Whether the prediction's result equals the gold's."""
        return self.status == "correct"


@dataclass(frozen=True)
class Mutant:
    """A mutant of a gold query (:mod:`lm_eval_ext.sql.mutants`).

    Attributes:
        kind: The kind of mistake, one of :data:`lm_eval_ext.sql.mutants.RULES`.
        sql: The mistaken query, in SQLite's dialect.
    """

    kind: str
    sql: str


SHOWN = 300
"""Most characters of a query, or of SQLite's error text, in a message."""


class ScoreJob(NamedTuple):
    """The job of comparing a prediction's result with the gold's.

    Attributes:
        database: The database to run both queries on.
        gold: The gold query, as it was written.
        predicted: The predicted query, as it was written.
        semantics: The name of the rule of comparison.
    """

    database: Place
    gold: str
    predicted: str
    semantics: str


class QueryJob(NamedTuple):
    """The job of running one query and sending its rows.

    Attributes:
        database: The database to run it on.
        sql: The query.
    """

    database: Place
    sql: str


Outcome = Verdict | Rows | Failure
"""What a job ends with: a verdict or a failure of the database, or the rows or failure of a query.
"""

NoteKind = Literal["ready", "gold", "prediction", "done", "fault"]


class WorkerMessage(NamedTuple):
    """A message from a worker process.

    Attributes:
        kind: ``ready``: it has started. ``gold`` or ``prediction``: it now runs that part of its
            job, so that the parent knows which part failed if no other message follows. ``done``:
            its oldest job is done. ``fault``: there is a defect in this package.
        content: The outcome of the job (``done``), or the traceback (``fault``).
    """

    kind: NoteKind
    content: Outcome | str | None = None
