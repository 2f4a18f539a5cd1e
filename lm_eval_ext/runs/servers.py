"""How an evaluation that ``run`` starts asks a server: patiently, and with a look at the answers.

lm-eval 0.4.13 asks a server three times, a second apart, whatever went wrong, and ends with a
traceback. It takes log-probabilities for those of the prompt even if the server left the prompt
out or counts its tokens otherwise, and a chat server's reply without an answer for an empty one.
Here a request is repeated after growing pauses, as long as the server may recover; what it sends
is checked (:mod:`.server_answers`); and what ends the evaluation is one line. Answers until then
lie in lm-eval's cache. Requests, and how answers are read, are lm-eval's.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.log import get_logger
from lm_eval_ext.runs.server_answers import AnswerError, check, problem, refusal

_log = get_logger(__name__)

MODULE = "lm_eval.models.api_models"
"""The module of lm-eval's that asks servers."""

ATTEMPTS, OF_DOUBTFUL = 10, 4
"""Of a request, where ``max_retries`` says nothing else: four minutes of pauses. At most so many
where the request itself may be the cause, after a time-out or status 500."""

FIRST_PAUSE_S, LONGEST = 1.0, 60
"""The first pause (``retry_wait``), and the longest one as a multiple of it; each is twice the one
before."""

MOST_ASKED_S = 600.0
"""After which a server may ask to be asked again; where it asks for more, its quota is used up."""


class ServerError(LmEvalExtError):
    """A server does not give the answers that it is asked for."""


def be_patient(api_models: Any) -> None:
    """Replaces how lm-eval repeats requests, in this process."""
    begin = api_models.TemplateAPI.__init__

    def __init__(  # noqa: N807 (it takes the place of one)
        self: Any, *args: Any, retry_wait: float = FIRST_PAUSE_S, **kwargs: Any
    ) -> None:
        kwargs.setdefault("max_retries", ATTEMPTS)
        self.retry_wait = float(retry_wait)
        begin(self, *args, **kwargs)
        self._create_payload = _without_empty_stop(self._create_payload)

    def retry(**_: Any) -> Callable[[Any], Any]:
        return lambda call: (_one_of_several if asyncio.iscoroutinefunction(call) else _plain)(call)

    api_models.TemplateAPI.__init__ = __init__
    api_models.retry = retry


def _without_empty_stop(payload: Any) -> Any:
    """A request without stop strings has no list of them: transformers' server fails on one."""

    def without(*args: Any, **kwargs: Any) -> Any:
        made = payload(*args, **kwargs)
        return {key: value for key, value in made.items() if key != "stop" or value != []}

    return without


def _plain(call: Any) -> Any:
    """Repeats ``model_call``, which gives what the server said."""
    import requests

    model = call.__self__

    def ask(**request: Any) -> Any:
        try:
            said = call(**request)
            check(model, said, request["messages"], request)
        except requests.HTTPError as error:
            found = error.response
            raise refusal(found.status_code, found.reason, found.headers, found.text) from None
        except Exception as error:  # noqa: BLE001 (raised again)
            raise problem(error, model.timeout) from None
        return said

    return _retrying(model)(ask)


def _one_of_several(call: Any) -> Any:
    """Repeats ``amodel_call``, which reads the answers: from a session that checks them.

    All requests of a task have one. When one of them gives up, the others do nothing more.
    """
    model, over = call.__self__, asyncio.Event()

    async def ask(*, session: Any, sem: Any, **request: Any) -> Any:
        @asynccontextmanager
        async def post(*args: Any, **kwargs: Any) -> AsyncIterator[_Response]:
            async with session.post(*args, **kwargs) as found:
                if not found.ok:
                    text = await found.text()
                    raise refusal(found.status, found.reason, found.headers, text)
                said = await found.json(content_type=None)
            check(model, said, request["messages"], request)
            yield _Response(said)

        try:
            return await call(session=_Session(post), sem=sem, **request)
        except Exception as error:  # noqa: BLE001 (raised again)
            raise problem(error, model.timeout) from None

    repeated = _retrying(model)(ask)

    async def in_turn(*, sem: asyncio.Semaphore, **request: Any) -> Any:
        async with sem:  # also while it pauses: a busy server would get all others meanwhile
            try:
                if not over.is_set():
                    return await repeated(sem=asyncio.Semaphore(), **request)
            except Exception:
                if not over.is_set():
                    over.set()
                    raise
            return await asyncio.Event().wait()  # until asyncio ends it: the first one has failed

    return in_turn


@dataclass(frozen=True)
class _Session:
    """What ``amodel_call`` uses of one."""

    post: Any


@dataclass(frozen=True)
class _Response:
    """What ``amodel_call`` uses of one, with what the server said."""

    said: Any
    ok = True

    def raise_for_status(self) -> None:
        """It was looked at before."""

    async def json(self) -> Any:
        return self.said


def _retrying(model: Any) -> Any:
    """A decorator that repeats what raises an AnswerError; for functions of both kinds."""
    import tenacity

    grow = tenacity.wait_exponential(model.retry_wait, max=LONGEST * model.retry_wait)
    wait = grow + tenacity.wait_random(0, model.retry_wait / 4)
    parts = urlsplit(str(model.base_url))  # it may hold a password, or a key behind "?"
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def most(state: Any) -> int:
        doubtful = state.outcome.exception().doubtful
        return min(model.max_retries, OF_DOUBTFUL) if doubtful else int(model.max_retries)

    def stop(state: Any) -> bool:
        found = state.outcome.exception()
        over = state.attempt_number >= most(state) or found.after_s > MOST_ASKED_S
        return over or not found.again

    def pause(state: Any) -> float:
        return max(float(state.outcome.exception().after_s), wait(state))

    def tell(state: Any) -> None:
        found, number = state.outcome.exception(), state.attempt_number
        _log.warning(
            "%s %s; attempt %d of %d, the next one in %.2g s",
            address, found.text, number, most(state), state.upcoming_sleep,
        )  # fmt: skip

    def give_up(state: Any) -> None:
        found, number = state.outcome.exception(), state.attempt_number
        often = f" {number} times in {state.seconds_since_start:.0f} s" if number > 1 else ""
        asked = f", and to ask again after {found.after_s:.0f} s" * (found.after_s > MOST_ASKED_S)
        raise ServerError(
            f"{address} {found.text}{often}{asked}; {found.remedy}; answers so far are kept, and "
            "the same command continues with them"
        )

    return tenacity.retry(
        retry=tenacity.retry_if_exception_type(AnswerError), stop=stop, wait=pause,
        before_sleep=tell, retry_error_callback=give_up,
    )  # fmt: skip
