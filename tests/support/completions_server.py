"""An OpenAI-compatible completions server on 127.0.0.1 with a tiny model behind it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Yields the URL of a server that scores prompts (``echo`` with ``logprobs``)."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    lock = threading.Lock()

    def choice(index: int, ids: list[int]) -> dict[str, Any]:
        with lock, torch.no_grad():
            logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), dim=-1)
        sampled = int(logs[-1].argmax())
        tokens = [*ids, sampled]
        scored: list[float | None] = [None]
        tops: list[dict[str, float] | None] = [None]
        for position, token in enumerate(tokens[1:]):
            scored.append(float(logs[position, token]))
            best = int(logs[position].argmax())
            tops.append({str(best): float(logs[position, best])})
        return {
            "index": index,
            "text": "",
            "logprobs": {
                "tokens": [str(token) for token in tokens],
                "token_logprobs": scored,
                "top_logprobs": tops,
            },
        }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert body["echo"] is True
            assert body["max_tokens"] == 1
            prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
            answer = {"choices": [choice(index, ids) for index, ids in enumerate(prompts)]}
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Keeps the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/completions"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
