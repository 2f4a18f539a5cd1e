"""A model whose answers a Python caller already has."""

from collections.abc import Sequence
from typing import TypeAlias

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.missing import MissingLogprob, MissingText

Answer: TypeAlias = str | float | None
"""A text or a log-probability; None is a missing answer."""

DocumentAnswers: TypeAlias = Answer | Sequence[Answer]
"""The answer to a document's request, or to several requests a list of as many."""


class PrecomputedLM(LM):
    """Answers the requests of one task.

    Args:
        answers: An item for each document, in the order of the task's documents.
    """

    def __init__(self, answers: Sequence[DocumentAnswers]) -> None:
        super().__init__()
        self._answers = answers

    tokenizer_name = "given"

    def apply_chat_template(
        self,
        chat_history: list[dict[str, str]],
        add_generation_prompt: bool = True,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> str:
        """Return the texts of the turns; no model reads them, since the answers are there."""
        return "\n\n".join(turn["content"] for turn in chat_history)

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return the texts.

        Raises:
            OptionError: An answer is no text, or there are too few or too many.
        """
        texts: list[str] = []
        for answer in self._request_answers(requests):
            if answer is None:
                texts.append(MissingText())
            elif isinstance(answer, str):
                texts.append(answer)
            else:
                raise _wrong_type(answer, "a text")
        return texts

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Return the log-probabilities; whether a continuation is greedy is not known.

        Raises:
            OptionError: An answer is no number, or there are too few or too many.
        """
        pairs: list[tuple[float, bool]] = []
        for answer in self._request_answers(requests):
            if answer is None:
                pairs.append(MissingLogprob())  # type: ignore[arg-type]
            elif isinstance(answer, (int, float)):
                pairs.append((float(answer), False))
            else:
                raise _wrong_type(answer, "a number")
        return pairs

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Refuse: no task of ours asks for it."""
        raise NotImplementedError

    def _request_answers(self, requests: list[Instance]) -> list[Answer]:
        """Return the answer to each request.

        Raises:
            OptionError: A document has more or fewer answers than requests.
        """
        request_counts: dict[int, int] = {}
        for request in requests:
            count = request_counts.get(request.doc_id, 0)
            request_counts[request.doc_id] = max(count, request.idx + 1)
        for doc_id, count in request_counts.items():
            answers = self._answers[doc_id]
            answer_count = len(answers) if isinstance(answers, (list, tuple)) else 1
            if answers is not None and answer_count != count:
                raise OptionError(
                    f"answers: {answer_count} to a document with {count} requests, "
                    f"{answers!r:.80}; give {count}"
                )
        request_answers: list[Answer] = []
        for request in requests:
            answers = self._answers[request.doc_id]
            if isinstance(answers, (list, tuple)):
                request_answers.append(answers[request.idx])
            else:
                request_answers.append(answers)
        return request_answers


def _wrong_type(answer: Answer, expected: str) -> OptionError:
    return OptionError(f"answers: {answer!r:.80} is not {expected}, which the task asks for")
