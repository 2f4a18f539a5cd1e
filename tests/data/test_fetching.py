"""What is read from where, what is downloaded, and what a failure says and leaves."""

import hashlib
import logging
import os
from pathlib import Path

import pytest
import server as fake
from server import ALPHA, MANY, NAMES, REASON, Server, stored

from lm_eval_ext import data
from lm_eval_ext.data import available, require, require_all
from lm_eval_ext.errors import LmEvalExtError

TOY = ["data/toy/alpha.txt", "data/toy/deep/beta.txt"]


def failure(source: str = "toy", *names: str) -> str:
    with pytest.raises(LmEvalExtError) as caught:
        require_all(source, names)
    message = str(caught.value)
    assert message.isprintable(), f"not one clean line: {message!r}"
    return message


def test_what_is_missing_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    assert not available("toy")
    before = os.umask(0o022)
    try:
        found = require("toy", "alpha")
    finally:
        os.umask(before)
    assert found.path == tmp_path / "cache/data/toy/alpha.txt"
    assert (found.revision, found.sha256) == (fake.REVISION, hashlib.sha256(ALPHA).hexdigest())
    assert found.path.read_bytes() == ALPHA
    assert found.path.stat().st_mode & 0o777 == 0o644, "a cache may be shared"
    assert stored(tmp_path / "cache") == TOY[:1]
    assert not available("toy")
    folder = require_all("toy")
    assert (folder.path, folder.fetched) == (tmp_path / "cache/data/toy", 1)
    assert [file.name for file in folder.files] == ["alpha", "beta"]
    assert available("toy")
    assert require_all("toy", ["beta", "alpha"]).files == folder.files
    assert server.requests == [f"/{fake.REVISION}/files/{name}.txt" for name in ("alpha", "beta")]


def test_of_many_files_each_is_fetched_once_and_what_has_arrived_stays(
    server: Server, tmp_path: Path
) -> None:
    server.answers = [*[fake.right] * 20, fake.status("404 Not Found")]
    assert "HTTP 404 Not Found" in failure("many")
    there = stored(tmp_path / "cache")
    assert len(there) == 20
    server.answers, server.requests = [], []
    folder = require_all("many")
    assert folder.fetched == len(MANY) - 20
    assert folder.path == tmp_path / "cache/data/many/files"
    assert {file.name: file.path.read_bytes() for file in folder.files} == MANY
    missing = {name for name in MANY if f"data/many/files/{name}" not in there}
    assert sorted(server.requests) == sorted(f"/{fake.REVISION}/{name}" for name in missing)
    assert stored(tmp_path / "cache") == sorted(f"data/many/files/{name}" for name in MANY)
    # As `sha256sum` prints it.
    paths = sorted(f"many/files/{name}" for name in MANY)
    lines = (f"{hashlib.sha256(fake.COPY[path]).hexdigest()}  {path}\n" for path in paths)
    assert folder.sha256 == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert require_all("many", NAMES[:3]).sha256 != folder.sha256


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (fake.status("404 Not Found"), "HTTP 404 Not Found. "),
        (fake.half, "ChunkedEncodingError: IncompleteRead(22000 bytes read, 22000 more expected)"),
        (fake.raw(b""), "ConnectionError: Remote end closed connection without response"),
        (fake.changed(lambda b: b[::-1]), "what arrives is not the declared file"),
        (fake.changed(lambda b: b + b"x"), "what arrives is not the declared file"),
        (fake.raw(b"HTTP/1.1 404 Not\x1b[2J\x0b\xff\rX\r\n\r\n"), "HTTP 404 Not Found"),
        (fake.raw(b"HTTP/1.1 302 Go\r\nLocation: gopher://ev\x1bil/\x0b\r\n\r\n"), "InvalidSchema"),
        (fake.raw(b"HTTP/1.1 302 Go\r\nLocation: /toy/alpha.txt\r\n\r\n"), "TooManyRedirects"),
    ],
)
def test_a_failed_download_is_one_line_and_leaves_nothing(
    server: Server, tmp_path: Path, answer: fake.Answer, what: str
) -> None:
    server.answers = [answer]
    message = failure()
    assert message.startswith(f"toy/alpha: {server.url}/{fake.REVISION}/files/alpha.txt: ")
    assert what in message
    assert "evil" not in message
    for remedy in ("`lm-eval-ext data fetch toy`", "LM_EVAL_EXT_DATA", "LM_EVAL_EXT_MIRROR"):
        assert remedy in message
    assert stored(tmp_path / "cache") == []
    server.answers, server.requests = [answer, fake.right], []
    if "TooMany" not in what:  # that takes thirty requests
        assert require("toy", "alpha").path.read_bytes() == ALPHA, "the second attempt succeeds"
        assert len(server.requests) == 2


@pytest.mark.parametrize("answer", [fake.held, fake.half_then_held])
def test_a_silent_server_is_given_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: fake.Answer
) -> None:
    monkeypatch.setattr(data, "_TIMEOUT_S", 0.1)
    server.answers = [answer]
    assert "timed out" in failure()
    assert stored(tmp_path / "cache") == []


def test_without_a_network(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", "http://127.0.0.1:9")  # nobody listens there
    assert "ConnectionError: [Errno 111] Connection refused" in failure()
    assert stored(tmp_path / "cache") == []
    fake.write_copy(tmp_path / "cache/data")
    assert require_all("toy").fetched == require_all("many").fetched == 0


def test_a_mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the layout of a local copy, is not trusted, and its password is not printed."""
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", server.url.replace("//", "//me:secret@"))
    server.answers = [fake.status("401 Who?")]
    message = failure()
    assert "HTTP 401 Unauthorized" in message and "secret" not in message
    server.answers = [fake.changed(lambda _: b"BETA\n")]
    assert "what arrives is not the declared file" in failure("toy", "beta")
    server.answers = []
    for source in ("toy", "many", "lost"):
        assert require_all(source).fetched
    assert set(server.requests) == {f"/{path}" for path in fake.COPY}
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", "/srv/mirror")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "new"))
    assert failure().startswith("LM_EVAL_EXT_MIRROR is '/srv/mirror'; write a URL")


def test_a_local_copy_needs_neither_network_nor_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = fake.write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    for source in ("toy", "many", "lost"):
        assert available(source)
        assert require_all(source).fetched == 0
    assert require("toy", "beta").path == copy / "toy/deep/beta.txt"
    assert not (tmp_path / "cache").exists()
    assert stored(copy) == sorted(fake.COPY)


def test_a_faulty_local_copy_is_never_repaired_from_the_network(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = fake.write_copy(tmp_path / "copy")
    path = copy / "toy/alpha.txt"
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    for content, what in (
        (b"short", f"wrong size: 5 bytes instead of {len(ALPHA):,}"),
        (ALPHA[::-1], "wrong checksum: got "),
        (None, "missing"),
    ):
        path.unlink() if content is None else path.write_bytes(content)
        message = failure()
        assert message.startswith(f"toy/alpha: {path}: {what}")
        assert "or unset it so that files are downloaded" in message
    (copy / "toy/deep/beta.txt").unlink()
    assert "(and 1 more files)" in failure()
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "new\n\x1b\u2028line"))
    assert "new line/toy/alpha.txt: missing" in failure()
    assert server.requests == []


@pytest.mark.parametrize("broken", [b"short", ALPHA[::-1]], ids=["short", "other"])
def test_a_broken_cache_file_is_fetched_again(
    server: Server, caplog: pytest.LogCaptureFixture, broken: bytes
) -> None:
    path = require("toy", "alpha").path
    path.write_bytes(broken)
    with caplog.at_level(logging.WARNING):
        assert require("toy", "alpha").path.read_bytes() == ALPHA
    assert len(server.requests) == 2
    (line,) = caplog.messages
    assert line.startswith("toy/alpha: wrong ") and line.endswith("; fetching it again")


def test_available_looks_at_every_size_and_at_no_content(server: Server) -> None:
    alpha, _ = (file.path for file in require_all("toy").files)
    alpha.write_bytes(ALPHA[::-1])
    assert available("toy")
    alpha.write_bytes(b"short")
    assert not available("toy")
    alpha.unlink()
    alpha.mkdir()
    assert not available("toy")
    assert failure().startswith(f"toy: cannot write {alpha.parent}: Is a directory")


def test_where_no_file_can_be_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file in its place: permissions would not stop the superuser, under whom tests may run.
    (tmp_path / "file").write_text("I am no folder")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))
    message = failure("toy", "alpha")
    assert message.startswith(f"toy: cannot write {tmp_path}/file/data/toy: ")
    assert "Set LM_EVAL_EXT_CACHE to a writable folder with 44,000 bytes free" in message
    assert server.requests == []
    assert (tmp_path / "file").read_text() == "I am no folder"


def test_unknown_files(server: Server) -> None:
    start = "data source 'toy' has no file"
    assert failure("toy", "alfa") == f"{start} 'alfa'; did you mean alpha?"
    assert failure("toy", "gamma") == f"{start} 'gamma'; its files are: alpha, beta"
    assert len(failure("many", "nobody.txt")) < 400
    assert server.requests == []


def test_a_source_without_a_url_says_why(server: Server, tmp_path: Path) -> None:
    place = tmp_path / "cache/data/lost/old.txt"
    assert failure("lost") == f"lost/old: {place}: missing; {REASON}"
    assert not (tmp_path / "cache").exists()
    place.parent.mkdir(parents=True)
    place.write_bytes(b"mine")
    assert "wrong checksum" in failure("lost")
    assert place.read_bytes() == b"mine", "it is not removed"
