"""Where files are read from, which ones are downloaded, and what a failure says and leaves."""

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.file_server import (
    ALPHA,
    BETA,
    COPY,
    MANY,
    MANY_NAMES,
    REASON,
    REVISION,
    FileServer,
    Reply,
    declared_file,
    half_file,
    half_file_then_held,
    held_file,
    http_head,
    longer_file,
    raw_reply,
    reversed_file,
    status_reply,
    stored_files,
    write_copy,
)

from lm_eval_ext import data
from lm_eval_ext.data import available, require, require_all
from lm_eval_ext.errors import LmEvalExtError

ALL_SOURCES = ("toy", "many", "lost")


def failure(source: str = "toy", *names: str) -> str:
    """Return the message with which requiring these files of a source fails."""
    with pytest.raises(LmEvalExtError) as caught:
        require_all(source, names)
    message = str(caught.value)
    assert message.isprintable(), f"not one clean line: {message!r}"
    return message


@contextmanager
def file_mode_mask(mask: int) -> Iterator[None]:
    """Set the process's umask for the block."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_a_missing_file_is_downloaded_once(server: FileServer, tmp_path: Path) -> None:
    assert not available("toy")
    with file_mode_mask(0o022):
        alpha = require("toy", "alpha")
    assert alpha.path == tmp_path / "cache/data/toy/alpha.txt"
    assert alpha.revision == REVISION
    assert alpha.sha256 == hashlib.sha256(ALPHA).hexdigest()
    assert alpha.path.read_bytes() == ALPHA
    assert alpha.path.stat().st_mode & 0o777 == 0o644, "a cache may be shared"
    assert stored_files(tmp_path / "cache") == ["data/toy/alpha.txt"]
    assert not available("toy")
    folder = require_all("toy")
    assert folder.path == tmp_path / "cache/data/toy"
    assert folder.fetched == 1
    assert [file.name for file in folder.files] == ["alpha", "beta"]
    assert available("toy")
    assert require_all("toy", ["beta", "alpha"]).files == folder.files
    assert server.requests == [f"/{REVISION}/files/{name}.txt" for name in ("alpha", "beta")]


def test_files_that_arrived_before_a_failure_stay(server: FileServer, tmp_path: Path) -> None:
    server.replies = [*[declared_file] * 20, status_reply("404 Not Found")]
    assert "HTTP 404 Not Found" in failure("many")
    arrived = stored_files(tmp_path / "cache")
    assert len(arrived) == 20
    server.replies = []
    server.requests = []
    folder = require_all("many")
    assert folder.fetched == len(MANY) - 20
    assert folder.path == tmp_path / "cache/data/many/files"
    assert {file.name: file.path.read_bytes() for file in folder.files} == MANY
    missing = [name for name in MANY if f"data/many/files/{name}" not in arrived]
    assert sorted(server.requests) == sorted(f"/{REVISION}/{name}" for name in missing)
    assert stored_files(tmp_path / "cache") == sorted(f"data/many/files/{name}" for name in MANY)


@pytest.mark.usefixtures("server")
def test_the_checksum_of_several_files_is_that_of_sha256sums_output() -> None:
    lines = []
    for path in sorted(f"many/files/{name}" for name in MANY):
        lines.append(f"{hashlib.sha256(COPY[path]).hexdigest()}  {path}\n")
    checksum = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert require_all("many").sha256 == checksum
    assert require_all("many", MANY_NAMES[:3]).sha256 != checksum


HOSTILE_STATUS = raw_reply(b"HTTP/1.1 404 Not\x1b[2J\x0b\xff\rX\r\n\r\n")
HOSTILE_SCHEME = raw_reply(b"HTTP/1.1 302 Go\r\nLocation: gopher://ev\x1bil/\x0b\r\n\r\n")
REDIRECTED_TO_ITSELF = raw_reply(b"HTTP/1.1 302 Go\r\nLocation: /toy/alpha.txt\r\n\r\n")

FAILED_DOWNLOADS = [
    pytest.param(status_reply("404 Not Found"), "HTTP 404 Not Found. ", id="no such file"),
    pytest.param(
        half_file,
        "ChunkedEncodingError: IncompleteRead(22000 bytes read, 22000 more expected)",
        id="half a file",
    ),
    pytest.param(
        raw_reply(b""),
        "ConnectionError: Remote end closed connection without response",
        id="no reply",
    ),
    pytest.param(reversed_file, "what arrives is not the declared file", id="other content"),
    pytest.param(longer_file, "what arrives is not the declared file", id="too long"),
    pytest.param(HOSTILE_STATUS, "HTTP 404 Not Found", id="control characters in the status"),
    pytest.param(HOSTILE_SCHEME, "InvalidSchema", id="redirected to another protocol"),
]
ENDLESS_DOWNLOAD = pytest.param(
    REDIRECTED_TO_ITSELF, "TooManyRedirects", id="redirected without an end"
)


@pytest.mark.parametrize(("reply", "reason"), [*FAILED_DOWNLOADS, ENDLESS_DOWNLOAD])
def test_a_failed_download_is_one_line_and_leaves_nothing(
    server: FileServer, tmp_path: Path, reply: Reply, reason: str
) -> None:
    server.replies = [reply]
    message = failure()
    assert message.startswith(f"toy/alpha: {server.url}/{REVISION}/files/alpha.txt: ")
    assert reason in message
    assert "evil" not in message
    for remedy in ("`lm-eval-ext data fetch toy`", "LM_EVAL_EXT_DATA", "LM_EVAL_EXT_MIRROR"):
        assert remedy in message
    assert stored_files(tmp_path / "cache") == []


@pytest.mark.parametrize(("reply", "reason"), FAILED_DOWNLOADS)
def test_a_second_attempt_may_succeed(server: FileServer, reply: Reply, reason: str) -> None:
    server.replies = [reply]
    assert reason in failure()
    server.replies = [reply, declared_file]
    server.requests = []
    assert require("toy", "alpha").path.read_bytes() == ALPHA
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(held_file, id="before the first byte"),
        pytest.param(half_file_then_held, id="after half a file"),
    ],
)
def test_a_silent_server_is_given_up(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr(data, "_TIMEOUT_S", 0.1)
    server.replies = [reply]
    assert "timed out" in failure()
    assert stored_files(tmp_path / "cache") == []


@pytest.mark.usefixtures("server")
def test_a_full_cache_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", "http://127.0.0.1:9")  # nobody listens there
    assert "ConnectionError: [Errno 111] Connection refused" in failure()
    assert stored_files(tmp_path / "cache") == []
    write_copy(tmp_path / "cache/data")
    assert require_all("toy").fetched == 0
    assert require_all("many").fetched == 0


def test_a_mirror_has_the_layout_of_a_local_copy(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", server.url)
    for source in ALL_SOURCES:
        assert require_all(source).fetched, source
    assert set(server.requests) == {f"/{path}" for path in COPY}


def test_a_mirrors_files_are_checked(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", server.url)
    server.replies = [raw_reply(http_head() + BETA.upper())]
    assert "what arrives is not the declared file" in failure("toy", "beta")


def test_a_mirrors_password_is_not_printed(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url_with_password = server.url.replace("//", "//me:secret@")
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", url_with_password)
    server.replies = [status_reply("401 Who?")]
    message = failure()
    assert "HTTP 401 Unauthorized" in message
    assert "secret" not in message
    server.replies = []
    assert require_all("toy").fetched == 2


@pytest.mark.usefixtures("server")
def test_a_mirror_must_be_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", "/srv/mirror")
    assert failure().startswith("LM_EVAL_EXT_MIRROR is '/srv/mirror'; write a URL")


@pytest.mark.usefixtures("server")
def test_a_local_copy_needs_neither_network_nor_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    for source in ALL_SOURCES:
        assert available(source), source
        assert require_all(source).fetched == 0, source
    assert require("toy", "beta").path == copy / "toy/deep/beta.txt"
    assert not (tmp_path / "cache").exists()
    assert stored_files(copy) == sorted(COPY)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"short", f"wrong size: 5 bytes instead of {len(ALPHA):,}", id="short"),
        pytest.param(ALPHA[::-1], "wrong checksum: got ", id="other content"),
        pytest.param(None, "missing", id="missing"),
    ],
)
def test_a_faulty_local_copy_is_never_repaired_from_the_network(
    server: FileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
    problem: str,
) -> None:
    copy = write_copy(tmp_path / "copy")
    path = copy / "toy/alpha.txt"
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    message = failure()
    assert message.startswith(f"toy/alpha: {path}: {problem}")
    assert "or unset it so that files are downloaded" in message
    (copy / "toy/deep/beta.txt").unlink()
    assert "(and 1 more files)" in failure()
    assert server.requests == []


def test_control_characters_in_a_folders_name_are_not_printed(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "new\n\x1b\u2028line"))
    assert "new line/toy/alpha.txt: missing" in failure()
    assert server.requests == []


@pytest.mark.parametrize(
    "content",
    [pytest.param(b"short", id="short"), pytest.param(ALPHA[::-1], id="other content")],
)
def test_a_broken_cache_file_is_fetched_again(
    server: FileServer, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = require("toy", "alpha").path
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert require("toy", "alpha").path.read_bytes() == ALPHA
    assert len(server.requests) == 2
    (message,) = caplog.messages
    assert message.startswith("toy/alpha: wrong ")
    assert message.endswith("; fetching it again")


@pytest.mark.usefixtures("server")
def test_available_looks_at_every_size_and_at_no_content() -> None:
    alpha, _ = (file.path for file in require_all("toy").files)
    alpha.write_bytes(ALPHA[::-1])
    assert available("toy")
    alpha.write_bytes(b"short")
    assert not available("toy")


@pytest.mark.usefixtures("server")
def test_a_folder_in_a_files_place_is_neither_available_nor_replaced() -> None:
    alpha, _ = (file.path for file in require_all("toy").files)
    alpha.unlink()
    alpha.mkdir()
    assert not available("toy")
    assert failure().startswith(f"toy: cannot write {alpha.parent}: Is a directory")


def test_an_unwritable_cache_is_named_before_any_download(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file in its place: permissions would not stop the superuser, under whom tests may run.
    cache = tmp_path / "file"
    cache.write_text("I am no folder")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(cache))
    message = failure("toy", "alpha")
    assert message.startswith(f"toy: cannot write {cache}/data/toy: ")
    assert "Set LM_EVAL_EXT_CACHE to a writable folder with 44,000 bytes free" in message
    assert server.requests == []
    assert cache.read_text() == "I am no folder"


def test_an_unknown_file_is_named_beside_the_files_that_exist(server: FileServer) -> None:
    start = "data source 'toy' has no file"
    assert failure("toy", "alfa") == f"{start} 'alfa'; did you mean alpha?"
    assert failure("toy", "gamma") == f"{start} 'gamma'; its files are: alpha, beta"
    assert len(failure("many", "nobody.txt")) < 400
    assert server.requests == []


@pytest.mark.usefixtures("server")
def test_a_source_without_a_url_says_why(tmp_path: Path) -> None:
    path = tmp_path / "cache/data/lost/old.txt"
    assert failure("lost") == f"lost/old: {path}: missing; {REASON}"
    assert not (tmp_path / "cache").exists()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    assert "wrong checksum" in failure("lost")
    assert path.read_bytes() == b"mine", "it is not removed"
