"""A completions server that counts what it is asked; answers depend on model and prompt only."""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zlib import crc32


@dataclass
class Counting:
    """What was asked (model and prompt), and how often; the address; how much may be answered."""

    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    url: str = ""
    allowed: float = math.inf
    """Different prompts; what is asked beyond them waits until more are allowed."""

    def answered(self) -> int:
        return len(self.asked)


def model_file(url: str, tokenizer: Path, name: str = "any") -> str:
    """A model's file that asks it, one request at a time."""
    return (
        f"display_name: {name.title()}\nmodel: local-completions\nmodel_args:\n"
        f"  base_url: {url}\n  model: {name}\n  tokenizer: {tokenizer}\n"
        "  tokenizer_backend: huggingface\n  num_concurrent: 1\nbatch_size: 1\n"
    )


def choice(index: int, ids: list[int], model: str) -> dict[str, Any]:
    tokens = [*ids, 0]
    seed = crc32(model.encode())
    scored = [
        None, *(-((seed + position * token) % 17) / 4 for position, token in enumerate(tokens[1:]))
    ]  # fmt: skip
    logprobs = {
        "tokens": [str(token) for token in tokens],
        "token_logprobs": scored,
        "top_logprobs": [None, *({str(token): -0.5} for token in tokens[1:])],
    }
    text = f"{crc32(json.dumps([model, ids]).encode()):x}"
    return {"index": index, "text": text, "logprobs": logprobs}


@contextmanager
def serving() -> Iterator[Counting]:
    """Yields what counts, while the server runs on 127.0.0.1."""
    counting = Counting()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
            model = body["model"]
            while counting.answered() >= counting.allowed:
                time.sleep(0.01)
            choices = [choice(index, ids, model) for index, ids in enumerate(prompts)]
            content = json.dumps({"choices": choices}).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                return  # whoever asked is gone
            for ids in prompts:
                counting.asked[model, json.dumps(ids)] += 1

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    counting.url = f"http://127.0.0.1:{server.server_port}/v1/completions"
    try:
        yield counting
    finally:
        counting.allowed = math.inf
        server.shutdown()
        server.server_close()
        thread.join()
