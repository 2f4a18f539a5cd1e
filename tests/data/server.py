"""Three made-up sources, and a server of their files on 127.0.0.1.

``toy`` has two files, ``many`` a manifest of thirty, and ``lost`` has no URL. A test sets
``answers`` to say how the server behaves; ``requests`` has what was asked for.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pooch
import pytest
import yaml
from support.web import listening

ALPHA = b"first line of alpha\n" * 2200
ODD = ("a b.txt", "deep/50%.txt", "deep/é#?.txt", "k:v/&.txt")
"""Names that a URL must quote."""
MANY = {f"part{n % 3}/{n:02}.txt": b"%d\n" % n for n in range(26)} | {n: n.encode() for n in ODD}
NAMES = list(MANY)
COPY = {
    "toy/alpha.txt": ALPHA,
    "toy/deep/beta.txt": b"beta\n",
    "lost/old.txt": b"old\n",
    **{f"many/files/{name}": content for name, content in MANY.items()},
}
"""A local copy, or a mirror."""
REVISION = "1234567890abcdef"
REASON = "nobody has it any more; ask somebody"


@dataclass
class Server:
    url: str = ""
    answers: list["Answer"] = field(default_factory=list)
    """One per request, the last one for all that follow; empty: the right file."""
    requests: list[str] = field(default_factory=list)
    waiting: int = 0
    release: threading.Event = field(default_factory=threading.Event)
    """What held answers wait for; set at the end of the test."""

    def hold(self) -> None:
        self.waiting += 1
        self.release.wait(300)


def head(length: int | None = None, status: str = "200 OK") -> bytes:
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"HTTP/1.1 {status}\r\n{size}Connection: close\r\n\r\n".encode("latin-1")


Answer = Callable[[bytes, Server], Iterator[bytes]]
"""From the right body, what is sent."""


def right(body: bytes, _: Server) -> Iterator[bytes]:
    yield head(len(body)) + body


def raw(text: bytes) -> Answer:
    return lambda _, __: iter([text])


def status(line: str) -> Answer:
    """With an HTML page as body, as real servers do."""
    return raw(head(16, line) + b"<html>no\r\n</html")


def changed(change: Callable[[bytes], bytes]) -> Answer:
    return lambda body, _: iter([head() + change(body)])


def half(body: bytes, _: Server) -> Iterator[bytes]:
    """Promises the whole file and hangs up after half of it."""
    yield head(len(body)) + body[: len(body) // 2]


def half_then_held(body: bytes, server: Server) -> Iterator[bytes]:
    yield from half(body, server)
    server.hold()


def held(body: bytes, server: Server) -> Iterator[bytes]:
    """The right file, but only when the test says so."""
    server.hold()
    yield from right(body, server)


def write_sources(folder: Path, url: str) -> Path:
    """Declares the sources; returns the file to name by LM_EVAL_EXT_SOURCES."""

    def spec(path: str) -> dict[str, Any]:
        return {"size": len(COPY[path]), "sha256": hashlib.sha256(COPY[path]).hexdigest()}

    toy = {
        "alpha": {"path": "alpha.txt", "url": "files/alpha.txt", **spec("toy/alpha.txt")},
        "beta": {"path": "deep/beta.txt", "url": "files/beta.txt", **spec("toy/deep/beta.txt")},
    }
    old = {"path": "old.txt", **spec("lost/old.txt")}
    common = {"title": "A source", "homepage": "https://example.org", "cite": "nobody"}
    common |= {"revision": REVISION, "licence": "CC0"}
    upstream = {**common, "url": f"{url}/{{revision}}/"}
    declared = {
        "toy": {**upstream, "folder": "toy/", "files": toy},
        "many": {**upstream, "folder": "many/files/"},
        "lost": {**common, "unavailable": REASON, "folder": "lost/", "files": {"old": old}},
    }
    (folder / "manifests").mkdir()
    many = {name: spec(f"many/files/{name}") for name in MANY}
    (folder / "manifests/many.json").write_text(json.dumps(many))
    path = folder / "sources.yaml"
    path.write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
    return path


def write_copy(folder: Path) -> Path:
    for name, content in COPY.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def stored(folder: Path) -> list[str]:
    """Returns every file below a folder but the locks, which stay for good."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return sorted(str(path.relative_to(folder)) for path in files)


@pytest.fixture(name="server")
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serves and declares the sources, and points the environment at them and an empty cache."""
    server = Server()
    places = {"files/alpha.txt": ALPHA, "files/beta.txt": b"beta\n", **MANY, **COPY}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(unquote(self.path))
            answers = server.answers or [right]
            answer = answers[min(len(server.requests), len(answers)) - 1]
            content = places[unquote(self.path).removeprefix(f"/{REVISION}").strip("/")]
            self.close_connection = True
            # Some tests want the client to go in the middle.
            with suppress(BrokenPipeError, ConnectionResetError):
                for part in answer(content, server):
                    self.wfile.write(part)
                    self.wfile.flush()

    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "cache"))
    # pooch waits for a second before it tries again.
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda _: None))
    with listening(Handler) as server.url:
        monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(write_sources(tmp_path, server.url)))
        yield server
        server.release.set()
