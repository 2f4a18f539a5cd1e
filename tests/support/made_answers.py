"""A model whose answers are partly right, the same in every run: for figures that are not all 0."""

import hashlib

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

GOLD = ("query", "form", "answer")
"""Columns of the documents with the right answer, by benchmark."""


def share(*parts: object) -> float:
    """Return a number from 0 to 1 that follows from the parts."""
    digest = hashlib.sha256("\n".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def gold(request: Instance) -> str:
    """Return the right answer to a request."""
    column = next(column for column in GOLD if column in request.doc)
    answer = request.doc[column]
    if isinstance(answer, list):
        answer = answer[request.idx]
    return str(answer)


class MadeAnswers(LM):
    """A model that gives about ``right`` of the right answers.

    The others are right answers to other requests, or are cut.
    """

    def __init__(self, seed: int = 0, right: float = 0.6) -> None:
        super().__init__()
        self.seed = seed
        self.right = right

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        golds = [gold(request) for request in requests]
        answers = []
        for request, right_answer in zip(requests, golds, strict=True):
            drawn = share(self.seed, request.arguments[0], request.idx)
            if drawn < self.right:
                answers.append(right_answer)
            elif drawn < (1 + self.right) / 2:
                answers.append(golds[int(drawn * 1e6) % len(golds)])
            else:
                answers.append(right_answer[: len(right_answer) // 2])
        return answers

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        answers = []
        for request in requests:
            context, continuation = request.arguments[:2]
            logprob = -5 - 20 * share(self.seed, context, continuation)
            answers.append((logprob, False))
        return answers

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        raise NotImplementedError
