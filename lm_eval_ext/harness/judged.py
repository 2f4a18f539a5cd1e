"""Answers that a judge has looked at, such as SQL that was executed.

A judge decides about all answers of a task at once, after the filters and before lm-eval asks for
the metrics of one document after the other. Its verdict travels with the answer, so that scoring a
document is a pure function of the document and its answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from lm_eval_ext.answers.reader import UNREAD, ReadAnswer
from lm_eval_ext.harness.lm_eval_types import Answer
from lm_eval_ext.sql import Verdict


class JudgedText(ReadAnswer):
    """An answer with its verdict, and with how it was read; lm-eval logs it as its text."""

    verdict: Verdict

    def __new__(cls, text: str, verdict: Verdict) -> "JudgedText":
        """Return the text with its verdict."""
        judged = str.__new__(cls, text)
        judged.summary = text.summary if isinstance(text, ReadAnswer) else UNREAD
        judged.verdict = verdict
        return judged

    def __reduce__(self) -> tuple[type["JudgedText"], tuple[ReadAnswer, Verdict]]:
        return JudgedText, (ReadAnswer(str(self), self.summary), self.verdict)


def verdict_record(answers: Sequence[Answer]) -> Mapping[str, str | None] | None:
    """Return the fields of a document's verdict for the log of samples.

    If several answers were judged, the first counts. Without any, there is no verdict (None).
    """
    for answer in answers:
        if isinstance(answer, JudgedText):
            return asdict(answer.verdict)
    return None
