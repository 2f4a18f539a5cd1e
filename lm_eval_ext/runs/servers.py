"""How an evaluation that ``run`` starts asks a server: with more attempts, and checked responses.

lm-eval 0.4.13 asks three times unless the argument ``max_retries`` says more. It takes
log-probabilities for those of the prompt even if the server left the prompt out or counts its
tokens otherwise. Here responses that lack something end the evaluation, and texts end before a
stop string. Requests, and how responses are read, are lm-eval's.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypedDict

from lm_eval_ext.harness.lm_eval_types import Keys

if TYPE_CHECKING:
    from lm_eval.models.api_models import TemplateAPI

MODULE = "lm_eval.models.api_models"
"""The module of lm-eval's that asks servers."""

ATTEMPTS = 10
"""Attempts of a request, unless ``max_retries`` has a number; lm-eval's pauses add to a minute."""


class LogProbabilities(TypedDict, total=False):
    """What a server says of the tokens of a prompt, and of one that it generated."""

    token_logprobs: list[float | None] | None
    top_logprobs: list[dict[str, float] | None] | None


class Usage(TypedDict, total=False):
    """The numbers of tokens that a server counted."""

    completion_tokens: int


class Choice(TypedDict):
    """A server's response to one prompt of a request."""

    index: int
    logprobs: LogProbabilities | None


class Completion(TypedDict):
    """A server's response to a request, which may have several prompts."""

    choices: list[Choice]
    usage: Usage | None


class AnswerError(Exception):
    """The server sends something else than it was asked for; asking again does not help."""


def is_server_failure(error: Exception) -> bool:
    """Return whether an evaluation failed because of a server, which the other tasks need, too.

    Errors of the file system, such as a full disk, count as well.
    """
    # With concurrent requests, lm-eval uses aiohttp, and imports it only then.
    aiohttp = sys.modules.get("aiohttp")
    if aiohttp is not None and isinstance(error, aiohttp.ClientError):
        return True
    # The errors of the library requests are OSErrors.
    return isinstance(error, (OSError, asyncio.TimeoutError, AnswerError))


def patch_requests(api_models: ModuleType) -> None:
    """Change how lm-eval repeats requests and reads responses, in this process."""
    initialize = api_models.TemplateAPI.__init__

    def __init__(  # noqa: N807
        self: "TemplateAPI", *args: object, max_retries: int = ATTEMPTS, **options: object
    ) -> None:
        # Not above: that module imports this one, and may be in the middle of it.
        from lm_eval.models.openai_completions import LocalCompletionsAPI

        initialize(self, *args, max_retries=max_retries, **options)
        _cut_at_stop_strings(self)
        if type(self).parse_logprobs is LocalCompletionsAPI.parse_logprobs:
            self.parse_logprobs = _checked(self.parse_logprobs)

    api_models.TemplateAPI.__init__ = __init__


def _cut_at_stop_strings(model: "TemplateAPI") -> None:
    """Make texts end before a stop string, as those of ``hf`` do; some servers send it along.

    A request without stop strings gets no list of them: transformers' server fails on one.
    """
    from lm_eval.models.utils import postprocess_generated_text

    create_payload = model._create_payload
    parse_generations = model.parse_generations
    # lm-eval asks all requests with the same options before the next ones.
    stop_strings: list[str] | str | None = None

    def create_and_note(
        *args: object, gen_kwargs: Keys | None = None, **options: object
    ) -> dict[str, object]:
        nonlocal stop_strings
        stop_strings = (gen_kwargs or {}).get("until")
        payload: dict[str, object] = create_payload(*args, gen_kwargs=gen_kwargs, **options)
        if payload.get("stop") == []:
            del payload["stop"]
        return payload

    def parse_and_cut(*args: object, **options: object) -> list[str | None]:
        end_of_thought = getattr(model, "think_end_token", None)
        texts: list[str | None] = []
        for text in parse_generations(*args, **options):
            if text is not None:
                text = postprocess_generated_text(text, stop_strings, end_of_thought)  # noqa: PLW2901
            texts.append(text)
        return texts

    model._create_payload = create_and_note
    model.parse_generations = parse_and_cut


def _checked(
    parse_logprobs: Callable[..., list[tuple[float, bool]]],
) -> Callable[..., list[tuple[float, bool]]]:
    """Return lm-eval's ``parse_logprobs``, which first checks what the server sent."""

    def check_and_parse(
        outputs: Completion | list[Completion], tokens: Sequence[Sequence[int]], **options: object
    ) -> list[tuple[float, bool]]:
        completions = outputs if isinstance(outputs, list) else [outputs]
        choices = []
        for completion in completions:
            choices.extend(completion["choices"])
        if len(choices) != len(tokens):
            raise AnswerError(f"the server sent {len(choices)} of {len(tokens)} answers")
        usage = completions[0].get("usage")
        for choice in choices:
            check_log_probabilities(choice, tokens[choice["index"]], usage)
        return parse_logprobs(outputs=outputs, tokens=tokens, **options)

    return check_and_parse


def check_log_probabilities(choice: Choice, prompt: Sequence[int], usage: Usage | None) -> None:
    """Check that log-probabilities are those of the prompt's tokens and of one generated token.

    lm-eval counts on that token. If the server generated none, since it found the text complete,
    one is added.

    Args:
        choice: What the server sent for the prompt.
        prompt: The tokens of the prompt.
        usage: The numbers of tokens that the server counted.

    Raises:
        AnswerError: They are not.
    """
    log_probabilities = choice.get("logprobs") or {}
    values = log_probabilities.get("token_logprobs") or []
    top_values = log_probabilities.get("top_logprobs") or []
    if len(values) <= 1 or not top_values:
        raise AnswerError("the server sends no log-probabilities of prompts: see docs/runs.md")
    generated_nothing = usage is not None and usage.get("completion_tokens") == 0
    if generated_nothing and len(values) == len(top_values) == len(prompt):
        values.append(0.0)
        top_values.append({"": 0.0})
    if len(values) != len(prompt) + 1 or len(top_values) != len(values):
        raise AnswerError(
            f"the server sent log-probabilities of {len(values)} tokens for a prompt of "
            f"{len(prompt)} and one more; its tokens must be those of the argument tokenizer, "
            "special ones included: see add_bos_token and tokenized_requests in docs/runs.md"
        )
    # The first token has no context, and the last one is generated.
    for value in values[1:-1]:
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise AnswerError("the server sent log-probabilities that are no numbers")
