"""Three made-up sources, and a server of their files on 127.0.0.1.

``toy`` has two files, ``many`` a manifest of thirty, and ``lost`` has no URL. A test sets
``replies`` to say how the server behaves; ``requests`` has the paths that were requested.
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
from urllib.parse import unquote

import pooch
import pytest
import yaml

from support.web import listening

ALPHA = b"first line of alpha\n" * 2200
BETA = b"beta\n"
NAMES_TO_QUOTE = ("a b.txt", "deep/50%.txt", "deep/é#?.txt", "k:v/&.txt")
"""Names that a URL must quote."""
NUMBERED_FILES = {f"part{n % 3}/{n:02}.txt": f"{n}\n".encode() for n in range(26)}
MANY = NUMBERED_FILES | {name: name.encode() for name in NAMES_TO_QUOTE}
"""The files of the source ``many``."""
MANY_NAMES = list(MANY)
COPY = {
    "toy/alpha.txt": ALPHA,
    "toy/deep/beta.txt": BETA,
    "lost/old.txt": b"old\n",
    **{f"many/files/{name}": content for name, content in MANY.items()},
}
"""The files of a local copy, or of a mirror."""
REVISION = "1234567890abcdef"
REASON = "nobody has it any more; ask somebody"


@dataclass
class FileServer:
    """The server's orders from a test, and its notes.

    Attributes:
        url: Its address, without a slash at the end.
        replies: One per request, the last one for all that follow; empty: the declared files.
        requests: The paths that were requested.
        waiting: How many replies have been held.
        release: What held replies wait for; set at the end of the test.
    """

    url: str = ""
    replies: list["Reply"] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    waiting: int = 0
    release: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Wait until the test releases what is held."""
        self.waiting += 1
        self.release.wait(300)


Reply = Callable[[bytes, FileServer], Iterator[bytes]]
"""A function of the declared file; it yields the bytes that are sent."""


def http_head(length: int | None = None, status: str = "200 OK") -> bytes:
    """Return the lines before a body of this length; None: without a length."""
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"HTTP/1.1 {status}\r\n{size}Connection: close\r\n\r\n".encode("latin-1")


def declared_file(content: bytes, _: FileServer) -> Iterator[bytes]:
    """Send what was requested."""
    yield http_head(len(content)) + content


def reversed_file(content: bytes, _: FileServer) -> Iterator[bytes]:
    """Send as many bytes as declared, but others."""
    yield http_head() + content[::-1]


def longer_file(content: bytes, _: FileServer) -> Iterator[bytes]:
    """Send a byte too many."""
    yield http_head() + content + b"x"


def half_file(content: bytes, _: FileServer) -> Iterator[bytes]:
    """Promise the whole file and hang up after half of it."""
    yield http_head(len(content)) + content[: len(content) // 2]


def half_file_then_held(content: bytes, server: FileServer) -> Iterator[bytes]:
    """Send half of the file, and hang up when the test says so."""
    yield from half_file(content, server)
    server.hold()


def held_file(content: bytes, server: FileServer) -> Iterator[bytes]:
    """Send the file, but only when the test says so."""
    server.hold()
    yield from declared_file(content, server)


def raw_reply(sent: bytes) -> Reply:
    """Return a reply that sends these bytes, whatever was requested."""

    def reply(_content: bytes, _server: FileServer) -> Iterator[bytes]:
        yield sent

    return reply


def status_reply(line: str) -> Reply:
    """Return a reply with a status and, as real servers send it, an HTML page."""
    return raw_reply(http_head(16, line) + b"<html>no\r\n</html")


def write_sources(folder: Path, url: str) -> Path:
    """Declare the sources; return the file to name by LM_EVAL_EXT_SOURCES."""

    def size_and_hash(path: str) -> dict[str, object]:
        content = COPY[path]
        return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    alpha = {"path": "alpha.txt", "url": "files/alpha.txt", **size_and_hash("toy/alpha.txt")}
    beta = {"path": "deep/beta.txt", "url": "files/beta.txt", **size_and_hash("toy/deep/beta.txt")}
    old = {"path": "old.txt", **size_and_hash("lost/old.txt")}
    common = {
        "title": "A source",
        "homepage": "https://example.org",
        "cite": "nobody",
        "revision": REVISION,
        "licence": "CC0",
    }
    upstream = {**common, "url": f"{url}/{{revision}}/"}
    declared = {
        "toy": {**upstream, "folder": "toy/", "files": {"alpha": alpha, "beta": beta}},
        "many": {**upstream, "folder": "many/files/"},
        "lost": {**common, "unavailable": REASON, "folder": "lost/", "files": {"old": old}},
    }
    (folder / "manifests").mkdir()
    manifest = {name: size_and_hash(f"many/files/{name}") for name in MANY}
    (folder / "manifests/many.json").write_text(json.dumps(manifest))
    path = folder / "sources.yaml"
    path.write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
    return path


def write_copy(folder: Path) -> Path:
    """Write all files as a local copy has them; return the folder."""
    for name, content in COPY.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def stored_files(folder: Path) -> list[str]:
    """Return the files below a folder, but not the locks, which stay for good."""
    paths = []
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            paths.append(str(path.relative_to(folder)))
    return sorted(paths)


def _do_not_sleep(_seconds: float) -> None:
    """Go on at once."""


@pytest.fixture(name="server")
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """Serve and declare the sources; point the environment at them and at an empty cache."""
    server = FileServer()
    upstream = {"files/alpha.txt": ALPHA, "files/beta.txt": BETA, **MANY}
    served = upstream | COPY

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            server.requests.append(path)
            replies = server.replies or [declared_file]
            reply = replies[min(len(server.requests), len(replies)) - 1]
            content = served[path.removeprefix(f"/{REVISION}").strip("/")]
            self.close_connection = True
            # Some tests want the client to go in the middle.
            with suppress(BrokenPipeError, ConnectionResetError):
                for sent in reply(content, server):
                    self.wfile.write(sent)
                    self.wfile.flush()

    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "cache"))
    # pooch waits for a second before it tries again.
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=_do_not_sleep))
    with listening(Handler) as server.url:
        monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(write_sources(tmp_path, server.url)))
        yield server
        server.release.set()
