"""A made-up source "many" with 120 small files, and a server that serves them."""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

from support.upstream import listening

from lm_eval_ext.data.sources import HEADER

ODD = ("a b.txt", "deep/50%.txt", "deep/é#?.txt", "k:v/&.txt")
"""Names that a URL must quote."""
CONTENTS = {
    **{f"part{number % 7}/{number:03}.txt": b"%d\n" % number for number in range(116)},
    **{name: name.encode() for name in ODD},
}
NAMES = sorted(CONTENTS)
FOLDER = "many/files/"


@dataclass
class Server:
    url: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    """How often each file was asked for, by its name in the source."""
    gone: set[str] = field(default_factory=set)
    """Answered with 404."""
    wrong: set[str] = field(default_factory=set)
    """Answered with another content of the same size."""
    hold_after: int | None = None
    """From this request on the server says nothing until ``release`` is set."""
    release: threading.Event = field(default_factory=threading.Event)
    barrier: threading.Barrier | None = None
    """Where requests wait for each other."""
    active: int = 0
    most_active: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def body(self, name: str) -> bytes | None:
        if name in self.gone or name not in CONTENTS:
            return None
        return bytes(len(CONTENTS[name])) if name in self.wrong else CONTENTS[name]


def write_manifest(path: Path, contents: dict[str, bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    rows = (
        f"{name}\t{len(content)}\t{hashlib.sha256(content).hexdigest()}"
        for name, content in sorted(contents.items())
    )
    path.write_bytes("\n".join([HEADER, *rows, ""]).encode())
    return path


def write_sources(folder: Path, url: str, *, extra: str = "licence: CC0") -> Path:
    """Declares the source "many"; returns the file to name by LM_EVAL_EXT_SOURCES."""
    write_manifest(folder / "manifests" / "many.tsv", CONTENTS)
    path = folder / "many.yaml"
    path.write_text(
        "many:\n"
        "  title: A source with many files\n"
        "  homepage: https://example.org/many\n"
        "  revision: '1234567890123456789012345678901234567890'\n"
        f"  url: {url}/{{revision}}/upstream/\n"
        f"  {extra}\n"
        "  citation: Nobody. 2000. Many.\n"
        "  manifest: many.tsv\n"
        f"  folder: {FOLDER}\n"
    )
    return path


def write_copy(folder: Path) -> Path:
    for name, content in CONTENTS.items():
        path = folder / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@contextmanager
def serving() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = unquote(self.path).partition("/upstream/")[2]
            name = name or unquote(self.path).partition(FOLDER)[2]
            with state.lock:
                state.requests[name] += 1
                total = state.requests.total()
                state.active += 1
                state.most_active = max(state.most_active, state.active)
            try:
                with suppress(BrokenPipeError, ConnectionResetError):
                    self._answer(name, total)
            finally:
                with state.lock:
                    state.active -= 1

        def _answer(self, name: str, total: int) -> None:
            if state.barrier is not None:
                state.barrier.wait(300)
            if state.hold_after is not None and total > state.hold_after:
                state.release.wait(900)
            body = state.body(name)
            self.close_connection = True
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with listening(Handler) as state.url:
        try:
            yield state
        finally:
            state.release.set()
