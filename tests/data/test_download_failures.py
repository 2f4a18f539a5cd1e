"""Failed downloads: the error messages, and the files left on disk."""

import hashlib
import socket
from pathlib import Path
from typing import NoReturn

import pytest
from support import upstream as up
from support.upstream import ALPHA, Upstream

from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError

pytestmark = pytest.mark.slow

SIZE = f"{len(ALPHA):,}"
HALF = f"{len(ALPHA) // 2:,}"
WRONG = ALPHA[::-1]
GOT, EXPECTED = (hashlib.sha256(content).hexdigest() for content in (WRONG, ALPHA))


def failure(expected: type[LmEvalExtError] = DataError) -> str:
    with pytest.raises(expected) as caught:
        require("toy", "alpha")
    message = str(caught.value)
    assert message.isprintable(), f"not one clean line: {message!r}"
    return message


@pytest.mark.parametrize(
    ("answer", "what", "requests"),
    [
        pytest.param(up.status("404 Not Found"), "HTTP 404 (Not Found)", 1, id="404"),
        pytest.param(up.status("403 Nope"), "HTTP 403 (Forbidden)", 1, id="403"),
        pytest.param(up.status("500 Sorry"), "HTTP 500 (Internal Server Error)", 2, id="500 twice"),
        pytest.param(up.status("599 Own"), "HTTP 599. ", 2, id="a status that has no phrase"),
        pytest.param(up.half, f"{HALF} of {SIZE} bytes arrived", 2, id="half, length declared"),
        pytest.param(
            up.body(lambda b: b[: len(b) // 2], declared=False),
            f"{HALF} of {SIZE} bytes arrived",
            2,
            id="half, length not declared",
        ),
        pytest.param(
            up.body(lambda b: b[: len(b) // 2]),
            f"{HALF} of {SIZE} bytes arrived",
            2,
            id="half, and its length declared",
        ),
        pytest.param(up.closed, f"0 of {SIZE} bytes arrived", 2, id="hangs up at once"),
        pytest.param(
            up.body(lambda _: WRONG),
            f"does not match the known hash: expected {EXPECTED} but got {GOT}. Check",
            2,
            id="wrong content of the right size",
        ),
        pytest.param(
            up.body(lambda b: b + b"x"), f"wrong size: more than the {SIZE} bytes", 1, id="longer"
        ),
        pytest.param(
            up.raw(b"HTTP/1.1 404 Not\x1b[2J\x0b Found\x0c\xff\xfe\rX\r\n\r\n"),
            "HTTP 404 (Not Found)",
            1,
            id="control characters in the reason",
        ),
        pytest.param(
            up.raw(b"\x00\x1b[31m no http \r\n evil\n\n"),
            f"0 of {SIZE} bytes arrived",
            2,
            id="no HTTP at all",
        ),
        pytest.param(
            up.raw(b"HTTP/1.1 302 Go\r\nLocation: gopher://ev\x1bil/\x0b\r\n\r\n"),
            "not a valid URL, or redirected to one that is not",
            1,
            id="redirect to no web server",
        ),
        pytest.param(
            up.raw(b"HTTP/1.1 302 Go\r\nLocation: /alpha\r\nConnection: close\r\n\r\n"),
            "not a valid URL, or redirected to one that is not",
            31,
            id="redirects in a circle",
        ),
        pytest.param(
            up.raw(b"HTTP/1.1 200 OK\r\nContent-Length: ma\x1bny\r\n\r\n"),
            "the transfer failed (",
            1,
            id="a length that is no number",
        ),
    ],
)
def test_a_failed_download_is_one_line_and_leaves_nothing(
    upstream: Upstream, tmp_path: Path, answer: up.Answer, what: str, requests: int
) -> None:
    upstream.answers = [answer]

    message = failure()

    assert message.startswith(f"toy/alpha: {upstream.url}/1234567890abcdef/files/alpha.txt: ")
    assert what in message
    assert "evil" not in message
    assert "`lm-eval-ext data fetch toy`" in message
    assert "LM_EVAL_EXT_DATA" in message
    assert "LM_EVAL_EXT_MIRROR" in message
    assert up.stored(tmp_path / "cache") == []
    assert len(upstream.requests) == requests


@pytest.mark.parametrize("answer", [up.silent, up.half_then_silent])
def test_a_silent_server_is_given_up_after_the_timeout(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: up.Answer
) -> None:
    upstream.answers = [answer]
    monkeypatch.setenv("LM_EVAL_EXT_TIMEOUT", "1.5")  # the half must arrive on a busy machine

    message = failure()

    assert "no answer within 1.5 s" in message
    assert ("after 16,384 of 44,000 bytes" in message) is (answer is up.half_then_silent)
    assert up.stored(tmp_path / "cache") == []
    assert len(upstream.requests) == 1


def test_nobody_listens(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up.without_network(monkeypatch)
    assert "connection refused" in failure()
    assert up.stored(tmp_path / "cache") == []


def test_the_host_is_not_known(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_host(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    assert "unknown host name" in failure()


def test_no_secure_connection(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", upstream.url.replace("http:", "https:"))
    assert "no secure connection" in failure()


def test_the_proxy_is_gone(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{up.closed_port()}")
    assert "cannot connect through the proxy" in failure()


def test_secrets_of_a_mirror_stay_out_of_messages(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.answers = [up.status("401 Who?")]
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", upstream.url.replace("//", "//me:secret@"))
    message = failure()
    assert "HTTP 401" in message
    assert "secret" not in message


@pytest.mark.parametrize("first", [up.status("500 Sorry"), up.half, up.closed])
def test_a_second_attempt_may_succeed(upstream: Upstream, first: up.Answer) -> None:
    upstream.answers = [first, up.right]
    assert require("toy", "alpha").path.read_bytes() == ALPHA
    assert len(upstream.requests) == 2


def test_a_cache_folder_that_cannot_be_made(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file in its place: permissions would not stop the superuser, under whom tests may run.
    (tmp_path / "file").write_text("I am no folder")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))

    message = failure()

    assert message.startswith(f"toy/alpha: cannot write {tmp_path}/file/data/toy/alpha.txt: ")
    assert "Set LM_EVAL_EXT_CACHE to a writable folder with 44,000 bytes free" in message
    assert upstream.requests == []
    assert (tmp_path / "file").read_text() == "I am no folder"


@pytest.mark.parametrize("value", ["soon", "0", "-3", "nan", "inf"])
def test_an_illegal_timeout(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_TIMEOUT", value)
    assert f"LM_EVAL_EXT_TIMEOUT is '{value}'; write seconds" in failure(OptionError)


def test_an_illegal_mirror(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", "/srv/mirror")
    assert "LM_EVAL_EXT_MIRROR is '/srv/mirror'; write a URL" in failure(OptionError)
