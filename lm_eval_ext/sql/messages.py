"""What a worker process and its parent tell each other: pickled, over two pipes."""

from typing import Any, Literal, NamedTuple

from lm_eval_ext.sql.values import Failure, Rows, Verdict


class ScoreJob(NamedTuple):
    """Compare a prediction's result with the gold's."""

    path: str
    gold: str
    predicted: str
    semantics: str


class QueryJob(NamedTuple):
    """Run one query and send its rows."""

    path: str
    sql: str


Outcome = Verdict | Rows | Failure

NoteKind = Literal["ready", "gold", "prediction", "done", "fault"]


class Note(NamedTuple):
    """What a worker says.

    ``ready``: it has started. ``gold`` / ``prediction``: from now on it runs that part of its
    job, so that the parent knows which one to blame if nothing more comes. ``done``: the
    outcome of its oldest job. ``fault``: a defect of ours; a traceback.
    """

    kind: NoteKind
    content: Any = None
