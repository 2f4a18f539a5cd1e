"""An OpenAI-compatible server on 127.0.0.1 that fails as a test plans it."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TypedDict

from support.web import listening

Prompt = str | list[int]
"""A text, or the tokens whose log-probabilities are requested."""


class Logprobs(TypedDict):
    """The log-probabilities of a prompt's tokens and of one token after it."""

    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]


class Choice(TypedDict, total=False):
    """The completion of one prompt, or its log-probabilities."""

    index: int
    text: str
    logprobs: Logprobs


def never_fail(_request_number: int) -> str:
    """Plan no failure."""
    return ""


@dataclass
class FailingServer:
    """A running server: a test's plan for it, and its notes.

    Attributes:
        plan: Called with the number of a request, from 1, returns how that fails: in one of the
            ways that :func:`serving` lists; "" for a request that is served.
        url: The address for completions.
        requests: The prompts of every request, as JSON, failed ones included.
        served: The prompts of the requests that were served.
        ended: Set when the server ends.
        lock: Held while a request is noted.
    """

    plan: Callable[[int], str] = never_fail
    url: str = ""
    requests: list[str] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_request(self, prompts: Sequence[Prompt]) -> int:
        """Note a request and return its number."""
        with self.lock:
            self.requests.append(json.dumps(prompts))
            return len(self.requests)

    def note_served(self, prompts: Sequence[Prompt]) -> None:
        """Note that a request was served."""
        with self.lock:
            self.served.append(json.dumps(prompts))

    def failure_of(self, request_number: int) -> str:
        """Return how a request fails, once the plan no longer lets it wait."""
        failure = self.plan(request_number)
        while failure == "waits" and not self.ended.is_set():
            time.sleep(0.01)
            failure = self.plan(request_number)
        return failure


def model_file(url: str, tokenizer: Path, **arguments: object) -> str:
    """Return the model file, as JSON, of a model that this server serves, a request at a time."""
    model_args = {
        "base_url": url,
        "model": "served",
        "tokenizer": str(tokenizer),
        "tokenizer_backend": "huggingface",
        "num_concurrent": 1,
        **arguments,
    }
    options = {
        "display_name": "Served",
        "model": "local-completions",
        "model_args": model_args,
        "batch_size": 1,
    }
    return json.dumps(options)


def choice_for(prompt: Prompt, index: int) -> Choice:
    """Return the choice for a prompt; nothing but the prompt decides its content."""
    if isinstance(prompt, str):
        return {"index": index, "text": json.dumps(prompt)[::-1]}
    token_logprobs: list[float | None] = [None]
    top_logprobs: list[dict[str, float] | None] = [None]
    for position, token in enumerate(prompt[1:], start=1):
        token_logprobs.append(-((position * token) % 17) / 4)
        top_logprobs.append({"a": -0.25})
    # The token that is generated after the prompt.
    token_logprobs.append(-1.0)
    top_logprobs.append({"a": -0.25})
    return {
        "index": index,
        "text": "",
        "logprobs": {"token_logprobs": token_logprobs, "top_logprobs": top_logprobs},
    }


def choices_for(prompts: Sequence[Prompt]) -> list[Choice]:
    """Return the choices for all prompts of a request."""
    return [choice_for(prompt, index) for index, prompt in enumerate(prompts)]


def faulty_body(failure: str, prompts: Sequence[Prompt]) -> str | None:
    """Return what is sent with status 200 in a failure; None if it is a failure of another kind."""
    if failure == "half":
        body = json.dumps({"choices": choices_for(prompts)})
        return body[: len(body) // 2]
    if failure == "fewer":
        return json.dumps({"choices": [choice_for(prompt, 0) for prompt in prompts[1:]]})
    if failure == "empty":
        return json.dumps({"choices": [{"index": index} for index in range(len(prompts))]})
    return None


class Handler(BaseHTTPRequestHandler):
    """Serves a request or lets it fail, as planned."""

    failing_server: FailingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompts = body["prompt"]
        if isinstance(prompts, str):
            prompts = [prompts]
        request_number = self.failing_server.note_request(prompts)
        failure = self.failing_server.failure_of(request_number)
        with suppress(OSError):  # the client is gone
            if failure:
                self.fail(failure, prompts)
            else:
                self.serve(prompts)

    def serve(self, prompts: list[Prompt]) -> None:
        """Send the choices, the last one first: clients must look at their index."""
        self.failing_server.note_served(prompts)
        self.send(200, json.dumps({"choices": choices_for(prompts)[::-1]}))

    def fail(self, failure: str, prompts: list[Prompt]) -> None:
        """Send an error or a faulty body, or hang up."""
        if failure.isdecimal():
            self.send(int(failure), json.dumps({"error": {"message": f"error\n{failure}"}}))
            return
        body = faulty_body(failure, prompts)
        if body is None:
            self.close_connection = True
        else:
            self.send(200, body)

    def send(self, status: int, body: str) -> None:
        """Send JSON with a status."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


@contextmanager
def serving() -> Iterator[FailingServer]:
    """Yield the running server.

    A request fails with a status such as "429", or otherwise: ``half`` (of the JSON), ``hangs up``,
    ``fewer`` (choices than prompts), ``empty`` (choices). While the plan says ``waits``, it is
    called again.
    """
    server = FailingServer()

    class HandlerOfServer(Handler):
        failing_server = server

    with listening(HandlerOfServer) as url:
        server.url = f"{url}/v1/completions"
        try:
            yield server
        finally:
            server.ended.set()
