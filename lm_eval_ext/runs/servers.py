"""How an evaluation that ``run`` starts asks a server: with more attempts, and a look at answers.

lm-eval 0.4.13 asks three times unless the argument ``max_retries`` says more. It takes
log-probabilities for those of the prompt even if the server left the prompt out or counts its
tokens otherwise. Here answers that lack something end the evaluation, and texts end before a stop
string. Requests, and how answers are read, are lm-eval's.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

MODULE = "lm_eval.models.api_models"
"""The module of lm-eval's that asks servers."""

ATTEMPTS = 10
"""Of a request, unless ``max_retries`` says another number; lm-eval's pauses add to a minute."""


class AnswerError(Exception):
    """The server answers something else than it was asked for; asking again does not help."""


def be_patient(api_models: Any) -> None:
    """Changes how lm-eval repeats requests and reads answers, in this process."""
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    begin = api_models.TemplateAPI.__init__

    def __init__(self: Any, *args: Any, max_retries: int = ATTEMPTS, **kwargs: Any) -> None:  # noqa: N807
        begin(self, *args, max_retries=max_retries, **kwargs)
        _cut_at_stop_strings(self)
        if type(self).parse_logprobs is LocalCompletionsAPI.parse_logprobs:
            self.parse_logprobs = _checked(self.parse_logprobs)

    api_models.TemplateAPI.__init__ = __init__


def _cut_at_stop_strings(model: Any) -> None:
    """Has texts end before a stop string, as those of ``hf`` do; some servers send it along.

    A request without stop strings gets no list of them: transformers' server fails on one.
    """
    from lm_eval.models.utils import postprocess_generated_text

    payload, parse = model._create_payload, model.parse_generations
    until: Any = None  # lm-eval asks all requests with the same options before the next ones

    def create(*args: Any, gen_kwargs: Any = None, **kwargs: Any) -> dict[str, Any]:
        nonlocal until
        until = (gen_kwargs or {}).get("until")
        made = payload(*args, gen_kwargs=gen_kwargs, **kwargs)
        return {key: value for key, value in made.items() if key != "stop" or value != []}

    def cut(*args: Any, **kwargs: Any) -> list[str | None]:
        thought = getattr(model, "think_end_token", None)
        return [
            text if text is None else postprocess_generated_text(text, until, thought)
            for text in parse(*args, **kwargs)
        ]

    model._create_payload, model.parse_generations = create, cut


def _checked(parse: Callable[..., Any]) -> Any:
    def checked(outputs: Any, tokens: Sequence[Sequence[int]], **kwargs: Any) -> Any:
        choices = [one for said in _listed(outputs) for one in said["choices"]]
        if len(choices) != len(tokens):
            raise AnswerError(f"the server sent {len(choices)} of {len(tokens)} answers")
        for one in choices:
            check_log_probabilities(one, tokens[one["index"]], _listed(outputs)[0].get("usage"))
        return parse(outputs=outputs, tokens=tokens, **kwargs)

    return checked


def _listed(outputs: Any) -> list[Any]:
    return outputs if isinstance(outputs, list) else [outputs]


def check_log_probabilities(choice: Any, prompt: Sequence[int], usage: Any) -> None:
    """They must be those of the prompt's tokens and of one more, as lm-eval counts on it.

    A server that generated no token, since it found the text complete, gets one added.

    Raises:
        AnswerError: They are not.
    """
    found = choice.get("logprobs") or {}
    values, tops = found.get("token_logprobs") or [], found.get("top_logprobs") or []
    if len(values) <= 1 or not tops:
        raise AnswerError("the server sends no log-probabilities of prompts: see docs/runs.md")
    if (usage or {}).get("completion_tokens") == 0 and len(values) == len(tops) == len(prompt):
        values.append(0.0)
        tops.append({"": 0.0})
    if len(values) != len(prompt) + 1 or len(tops) != len(values):
        raise AnswerError(
            f"the server sent log-probabilities of {len(values)} tokens for a prompt of "
            f"{len(prompt)} and one more; its tokens must be those of the argument tokenizer, "
            "special ones included: see add_bos_token and tokenized_requests in docs/runs.md"
        )
    if not all(isinstance(one, (int, float)) and math.isfinite(one) for one in values[1:-1]):
        raise AnswerError("the server sent log-probabilities that are no numbers")
