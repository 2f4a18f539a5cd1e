"""A mock of the servers of data files, on real sockets of 127.0.0.1.

It serves the two files of a made-up source "toy". A test sets ``answers`` to say how the
server behaves; ``requests`` records what was asked for.
"""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest

ALPHA = b"first line of alpha\n" * 2200
BETA = b"beta\n"
FILES = {"alpha": ("toy/alpha.txt", ALPHA), "beta": ("toy/deep/beta.txt", BETA)}
VARIABLES = ("DATA", "CACHE", "MIRROR", "SOURCES", "TIMEOUT")


@dataclass
class Upstream:
    url: str = ""
    answers: list["Answer"] = field(default_factory=list)
    """One per request, the last one for all that follow; empty: the right file."""
    requests: list[str] = field(default_factory=list)
    half_sent: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    """What silent answers wait for; set at the end of the test."""

    def asked_for(self, name: str) -> int:
        return sum(path.endswith(f"/{name}.txt") for path in self.requests)


@dataclass
class Exchange:
    """What an answer may use: the connection, the right body, the server's state."""

    handler: BaseHTTPRequestHandler
    body: bytes
    upstream: Upstream

    def send(self, raw: bytes) -> None:
        self.handler.wfile.write(raw)
        self.handler.wfile.flush()

    def head(self, status: str = "200 OK", length: int | None = None) -> None:
        size = "" if length is None else f"Content-Length: {length}\r\n"
        self.send(f"HTTP/1.1 {status}\r\n{size}Connection: close\r\n\r\n".encode("latin-1"))


Answer = Callable[[Exchange], None]


def right(exchange: Exchange) -> None:
    exchange.head(length=len(exchange.body))
    exchange.send(exchange.body)


def status(line: str) -> Answer:
    """Answers with an HTML page as body, as real servers do."""

    def answer(exchange: Exchange) -> None:
        exchange.head(line, length=16)
        exchange.send(b"<html>no\r\n</html")

    return answer


def raw(text: bytes) -> Answer:
    return lambda exchange: exchange.send(text)


def body(change: Callable[[bytes], bytes], *, declared: bool = True) -> Answer:
    """Answers 200 with a changed body, with its true length or without one."""

    def answer(exchange: Exchange) -> None:
        sent = change(exchange.body)
        exchange.head(length=len(sent) if declared else None)
        exchange.send(sent)

    return answer


def half(exchange: Exchange) -> None:
    """Promises the whole file and hangs up after half of it."""
    exchange.head(length=len(exchange.body))
    exchange.send(exchange.body[: len(exchange.body) // 2])


def half_then_silent(exchange: Exchange) -> None:
    half(exchange)
    exchange.upstream.half_sent.set()
    exchange.upstream.release.wait(300)


def held(exchange: Exchange) -> None:
    """Sends the right file, but only when the test says so."""
    exchange.upstream.release.wait(300)
    right(exchange)


def silent(exchange: Exchange) -> None:
    exchange.upstream.release.wait(300)


def closed(exchange: Exchange) -> None:
    """Accepts the request and hangs up."""


_unheard: list[socket.socket] = []


def closed_port() -> int:
    """Returns a port on 127.0.0.1 where nobody listens, nor will while the tests run.

    It stays bound, so that no other process gets it meanwhile, and refuses connections, as
    nothing listens there.
    """
    if not _unheard:
        _unheard.append(socket.socket())
        _unheard[0].bind(("127.0.0.1", 0))
    port: int = _unheard[0].getsockname()[1]
    return port


def write_sources(path: Path, url: str, *, extra: str = "") -> Path:
    """Declares the source "toy" with the files of FILES."""
    lines = [
        "toy:",
        "  title: A toy source",
        "  homepage: https://example.org/toy",
        "  revision: '1234567890abcdef'",
        f"  url: {url}/{{revision}}/",
        "  licence: CC0",
        "  citation: Nobody. 2000. Toys.",
        *([f"  {extra}"] if extra else []),
        "  files:",
    ]
    for name, (place, content) in FILES.items():
        digest = hashlib.sha256(content).hexdigest()
        lines += [
            f"    {name}:",
            f"      path: {place}",
            f"      url: files/{name}.txt",
            f"      size: {len(content)}",
            f"      sha256: '{digest}'",
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_copy(folder: Path) -> Path:
    """Writes a local copy of the files of "toy"."""
    for place, content in FILES.values():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content)
    return folder


def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", f"http://127.0.0.1:{closed_port()}")


def without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """pooch waits for a second before it tries again."""
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda _: None))


def stored(folder: Path) -> list[str]:
    """Returns every file below a folder but the locks, which stay for good."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return sorted(str(path.relative_to(folder)) for path in files)


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves on 127.0.0.1; yields the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()


@contextmanager
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serves "toy", declares it, and points the environment at it and at an empty cache."""
    upstream = Upstream()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            upstream.requests.append(self.path)
            name = Path(self.path).stem
            later = len(upstream.requests) - 1
            answers = upstream.answers or [right]
            answer = answers[min(later, len(answers) - 1)]
            self.close_connection = True
            # Some tests want the client to go in the middle.
            with suppress(BrokenPipeError, ConnectionResetError):
                answer(Exchange(self, FILES[name][1], upstream))

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    for variable in VARIABLES:
        monkeypatch.delenv(f"LM_EVAL_EXT_{variable}", raising=False)
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LM_EVAL_EXT_TIMEOUT", "10")
    without_pause(monkeypatch)
    with listening(Handler) as upstream.url:
        declared = write_sources(tmp_path / "sources.yaml", upstream.url)
        monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
        try:
            yield upstream
        finally:
            upstream.release.set()
