"""A model that gives answers which a Python caller has."""

from collections.abc import Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.missing import MissingLogprob, MissingText


class GivenLM(LM):
    """Answers the requests of one task.

    ``answers`` have one item per document, in the order of the task's documents: the answer to
    its request, or to several requests a list of as many; None is a missing answer.
    """

    def __init__(self, answers: Sequence[Any]) -> None:
        super().__init__()
        self._answers = answers

    tokenizer_name = "given"

    def apply_chat_template(
        self,
        chat_history: list[dict[str, str]],
        add_generation_prompt: bool = True,  # noqa: FBT001, FBT002 (lm-eval's signature)
    ) -> str:
        """Some prompt: the answers are there already."""
        return "\n\n".join(turn["content"] for turn in chat_history)

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Returns the texts."""
        found = self._found(requests)
        return [MissingText() if one is None else _checked(one, str, "a text") for one in found]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Returns the log-probabilities; whether a continuation is greedy is not known."""
        found: list[Any] = []
        for one in self._found(requests):
            if one is None:
                found.append(MissingLogprob())
            else:
                found.append((float(_checked(one, (int, float), "a number")), False))
        return found

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Refuses: no task of ours asks for it."""
        raise NotImplementedError

    def _found(self, requests: list[Instance]) -> list[Any]:
        counts: dict[int, int] = {}
        for request in requests:
            counts[request.doc_id] = max(counts.get(request.doc_id, 0), request.idx + 1)
        for place, count in counts.items():
            answer = self._answers[place]
            size = len(answer) if isinstance(answer, (list, tuple)) else 1
            if answer is not None and size != count:
                raise OptionError(
                    f"answers: {size} to a document with {count} requests, {answer!r:.80}; give "
                    f"{count}"
                )
        return [
            answer[request.idx] if isinstance(answer, (list, tuple)) else answer
            for request in requests
            for answer in [self._answers[request.doc_id]]
        ]


def _checked(answer: Any, kind: Any, what: str) -> Any:
    if not isinstance(answer, kind):
        raise OptionError(f"answers: {answer!r:.80} is not {what}, which the task asks for")
    return answer
