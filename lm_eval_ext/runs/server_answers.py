"""What servers send back: whether it is an answer, and if not, what to do about it."""

import asyncio
import email.utils
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from lm_eval_ext.text import one_line

_AGAIN = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may be answered."""

_INTERNAL_ERROR = 500

_REMEDIES = {
    401: "put a key into the environment variable OPENAI_API_KEY",
    403: "put a key that may use this model into the environment variable OPENAI_API_KEY",
    404: "correct base_url, or model (its name at the server)",
    408: "raise the argument timeout, or lower num_concurrent",
    429: "wait, or lower num_concurrent",
}
_ITS_FAULT = "see the server's log"
_NOT_FOR_IT = "it does not take such requests; docs/suites.md says which servers do, and how"
_OTHER_TOKENS = (
    "its tokens must be those of the argument tokenizer, special ones included: see add_bos_token "
    "and tokenized_requests in docs/suites.md"
)


class AnswerError(Exception):
    """What came back is no answer, or not a whole one.

    Attributes:
        text: What came, as the rest of a sentence that begins with the server's address.
        remedy: What to do about it.
        again: Whether the same request may be answered later.
        doubtful: Whether the request itself may be the cause nevertheless.
        after_s: How long the server asks to be left alone, in seconds.
    """

    def __init__(
        self,
        text: str,
        remedy: str = _ITS_FAULT,
        *,
        again: bool = True,
        doubtful: bool = False,
        after_s: float = 0.0,
    ) -> None:
        super().__init__(text)
        self.text, self.remedy = text, remedy
        self.again, self.doubtful, self.after_s = again, doubtful, after_s


def refusal(status: int, reason: str | None, headers: Mapping[str, str], body: str) -> AnswerError:
    """What a status of 400 or more says."""
    said = _message(body)
    told = f' ("{said}")' if said else ""
    return AnswerError(
        f"answered {status} {one_line(reason or '', limit=60)}".rstrip() + told,
        _REMEDIES.get(status, _ITS_FAULT if status >= _INTERNAL_ERROR else _NOT_FOR_IT),
        again=status >= _INTERNAL_ERROR or status in _AGAIN,
        doubtful=status == _INTERNAL_ERROR,
        after_s=_seconds(headers.get("Retry-After", "")),
    )


def problem(error: Exception, timeout: float) -> Exception:
    """What an error says of the server, or the error itself if it is about something else."""
    import aiohttp
    import requests

    found = error
    if isinstance(error, (TimeoutError, asyncio.TimeoutError, requests.Timeout)):
        found = AnswerError(f"did not answer within {timeout:g} s", _REMEDIES[408], doubtful=True)
    elif isinstance(error, json.JSONDecodeError):
        found = AnswerError("sent what is not JSON, or only a part of it")
    elif isinstance(error, (requests.RequestException, aiohttp.ClientError)):
        if isinstance(error, ValueError):
            return AnswerError("is no address", "correct base_url", again=False)
        # aiohttp's errors have the number inside, those of requests only in their text.
        numbers = re.findall(r"\[Errno (\d+)\]", str(error))
        number = getattr(getattr(error, "os_error", None), "errno", None) or "".join(numbers[-1:])
        said = os.strerror(int(number)) if number else type(error).__name__
        found = AnswerError(
            f"did not answer ({said})", "see that it runs, and that base_url is its address"
        )
    elif isinstance(error, (LookupError, TypeError, ValueError)):
        found = AnswerError(f"sent what cannot be read ({type(error).__name__}: {error})")
    return found


def check(model: Any, said: Any, prompts: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Checks that lm-eval will read as many answers as there were prompts, and whole ones.

    Two things are put right where servers do them otherwise. A text ends before a stop string, as
    those of ``hf`` do. Log-probabilities have one token more than the prompt, also where the model
    generated none, since lm-eval leaves out the last one.

    Args:
        model: lm-eval's model that asked.
        said: What the server said; changed in place.
        prompts: What it was asked.
        options: ``generate``, and for a text ``gen_kwargs``.

    Raises:
        AnswerError: If something is missing, or of other tokens than the prompt's.
    """
    from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
    from lm_eval.models.utils import postprocess_generated_text

    reads = type(model).parse_generations if options["generate"] else type(model).parse_logprobs
    known: dict[Any, tuple[str, Any]] = {
        LocalChatCompletion.parse_generations: ("message", dict),
        LocalCompletionsAPI.parse_generations: ("text", str),
        LocalCompletionsAPI.parse_logprobs: ("index", int),
    }
    if reads not in known:
        return  # another interface, whose answers lm-eval reads otherwise
    needed, kind = known[reads]
    choices = said.get("choices") if isinstance(said, dict) else None
    found: dict[Any, dict[str, Any]] = {
        one.get("index"): one
        for one in (choices if isinstance(choices, list) else [])
        if isinstance(one, dict) and isinstance(one.get(needed), kind)
    }
    if not found.keys() >= set(range(len(prompts))):
        message = _message(json.dumps(said)) if isinstance(said, dict) else ""
        told = f' ("{message}")' if message else ""
        raise AnswerError(f"sent {len(found)} of {len(prompts)} answers{told}")
    if not options["generate"]:
        nothing = (said.get("usage") or {}).get("completion_tokens") == 0
        for index, one in found.items():
            _check_log_probabilities(one.get("logprobs"), prompts[index], nothing=nothing)
        return
    until = (options.get("gen_kwargs") or {}).get("until")
    for one in found.values():
        text, key = (one["message"], "content") if needed == "message" else (one, "text")
        if isinstance(text.get(key), str):
            thought = getattr(model, "think_end_token", None)
            text[key] = postprocess_generated_text(text[key], until, thought)


def _check_log_probabilities(found: Any, prompt: Sequence[int], *, nothing: bool) -> None:
    """They must be those of the prompt's tokens and of one more, as lm-eval counts on it.

    ``nothing``: whether the model generated no token, since it found the text complete.
    """
    values = found.get("token_logprobs") if isinstance(found, dict) else None
    tops = found.get("top_logprobs") if isinstance(found, dict) else None
    if not isinstance(values, list) or not isinstance(tops, list) or len(values) <= 1:
        raise AnswerError(
            "sends no log-probabilities of prompts, which the task compares", _NOT_FOR_IT,
            again=False,
        )  # fmt: skip
    if nothing and len(values) == len(tops) == len(prompt):
        values.append(0.0)
        tops.append({"": 0.0})
    if len(values) != len(prompt) + 1 or len(tops) != len(values):
        raise AnswerError(
            f"sent log-probabilities of {len(values)} tokens for a prompt of {len(prompt)} and one "
            "more",
            _OTHER_TOKENS,
            again=False,
        )
    if not all(isinstance(one, (int, float)) and math.isfinite(one) for one in values[1:-1]):
        raise AnswerError("sent log-probabilities that are no numbers")


def _message(body: str) -> str:
    """What a server says about an error, out of JSON of the usual forms or as it stands."""
    found: Any = body
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
    while isinstance(found, dict):
        found = next((found[key] for key in ("error", "message", "detail") if key in found), "")
    return one_line(found if isinstance(found, str) else json.dumps(found), limit=160)


def _seconds(retry_after: str) -> float:
    """The header's value, a number of seconds or a date; 0 if it is neither."""
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, TypeError):
        at = email.utils.parsedate_to_datetime(retry_after)
        return max(0.0, (at - datetime.now(at.tzinfo and timezone.utc)).total_seconds())
    return 0.0
