"""An OpenAI-compatible server on 127.0.0.1 that fails as it is told."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from support.web import listening


@dataclass
class Failing:
    """What it does and was asked.

    Attributes:
        plan: Called with the number of a request, from 1: "" answers it; another text fails in a
            way of :func:`serving`.
        asked: The prompts of every request, as JSON, failed ones included.
        answered: Those that got an answer.
    """

    plan: Callable[[int], str] = lambda _: ""
    url: str = ""
    asked: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    lock: Any = field(default_factory=threading.Lock)


def model_file(url: str, tokenizer: Path, **arguments: object) -> str:
    """A model's file that asks it, one request at a time."""
    common = {"base_url": url, "model": "served", "tokenizer": str(tokenizer)}
    common |= {"tokenizer_backend": "huggingface", "num_concurrent": 1, **arguments}
    return json.dumps(
        {
            "display_name": "Served", "model": "local-completions", "model_args": common,
            "batch_size": 1,
        }
    )  # fmt: skip


def answer(prompt: Any, index: int) -> dict[str, Any]:
    """What it answers depends on the prompt only."""
    if isinstance(prompt, list) and isinstance(prompt[0], int):
        later = enumerate(prompt[1:], 1)
        values = [None, *(-((place * token) % 17) / 4 for place, token in later), -1.0]
        tops = [None, *({"a": -0.25} for _ in prompt)]
        return {
            "index": index, "text": "", "logprobs": {"token_logprobs": values, "top_logprobs": tops}
        }  # fmt: skip
    return {"index": index, "text": json.dumps(prompt)[::-1]}


@contextmanager
def serving() -> Iterator[Failing]:
    """Yields the running server.

    It fails with a status such as "429", or in a way of its own: ``half`` (of the JSON), ``hangs
    up``, ``fewer`` (answers than prompts), ``empty`` (answers). Under ``waits`` the plan is asked
    again.
    """
    failing = Failing()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompts = [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]
            with failing.lock:
                failing.asked.append(json.dumps(prompts))
                number = len(failing.asked)
            while (how := failing.plan(number)) == "waits" and not failing.ended.is_set():
                time.sleep(0.01)
            with suppress(OSError):  # whoever asked is gone
                self.fail(how, prompts) if how else self.reply(prompts)

        def reply(self, prompts: list[Any]) -> None:
            choices = [answer(prompt, index) for index, prompt in enumerate(prompts)]
            with failing.lock:
                failing.answered.append(json.dumps(prompts))
            self.send(200, json.dumps({"choices": choices[::-1]}))

        def fail(self, how: str, prompts: list[Any]) -> None:
            whole = json.dumps({"choices": [answer(one, at) for at, one in enumerate(prompts)]})
            texts = {
                "half": whole[: len(whole) // 2],
                "fewer": json.dumps({"choices": [answer(one, 0) for one in prompts[1:]]}),
                "empty": json.dumps({"choices": [{"index": at} for at, _ in enumerate(prompts)]}),
            }
            if how.isdecimal():
                self.send(int(how), json.dumps({"error": {"message": f"told\n{how}"}}))
            elif how in texts:
                self.send(200, texts[how])
            else:
                self.close_connection = True

        def send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    with listening(Handler) as url:
        failing.url = f"{url}/v1/completions"
        try:
            yield failing
        finally:
            failing.ended.set()
