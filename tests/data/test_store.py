"""Where files are read from, in which order, and their provenance."""

import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import upstream as up
from support.upstream import ALPHA, BETA, Upstream, without_network

from lm_eval_ext import data
from lm_eval_ext.data import available, cache_dir, local_copy, require
from lm_eval_ext.errors import DataError


def test_what_is_missing_is_downloaded_once(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = require("toy", "alpha")

    assert found == data.DataFile(
        path=tmp_path / "cache/data/toy/alpha.txt",
        source="toy",
        name="alpha",
        revision="1234567890abcdef",
        sha256=hashlib.sha256(ALPHA).hexdigest(),
        size=len(ALPHA),
        licence="CC0",
        citation="Nobody. 2000. Toys.",
        homepage="https://example.org/toy",
    )
    assert found.path.read_bytes() == ALPHA
    assert up.stored(tmp_path / "cache") == ["data/toy/alpha.txt"]

    without_network(monkeypatch)
    assert require("toy", "alpha") == found
    assert upstream.requests == ["/1234567890abcdef/files/alpha.txt"]


def test_a_cache_may_be_shared(upstream: Upstream) -> None:
    before = os.umask(0o022)
    try:
        assert require("toy", "alpha").path.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_a_mirror_is_laid_out_like_a_local_copy(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", f"{upstream.url}/mirror/")
    assert require("toy", "beta").path.read_bytes() == BETA
    assert upstream.requests == ["/mirror/toy/deep/beta.txt"]


def test_a_mirror_is_not_trusted(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", upstream.url)
    upstream.answers = [up.body(lambda _: b"BETA\n")]
    with pytest.raises(DataError, match="wrong checksum"):
        require("toy", "beta")


def test_a_local_copy_needs_neither_network_nor_cache(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = up.write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    without_network(monkeypatch)

    assert require("toy", "beta").path == copy / "toy/deep/beta.txt"
    assert available("toy")
    assert not (tmp_path / "cache").exists()
    assert up.stored(copy) == ["toy/alpha.txt", "toy/deep/beta.txt"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "missing"),
        (b"short", f"wrong size: 5 bytes instead of {len(ALPHA):,}"),
        (ALPHA[::-1], "wrong checksum: got "),
    ],
    ids=["missing", "short", "other"],
)
def test_a_faulty_local_copy_is_never_repaired_from_the_network(
    upstream: Upstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
    what: str,
) -> None:
    path = up.write_copy(tmp_path / "copy") / "toy/alpha.txt"
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "copy"))
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(DataError) as caught:
        require("toy", "alpha")

    assert str(caught.value).startswith(f"toy/alpha: {path}: {what}")
    assert "or unset it so that files are downloaded" in str(caught.value)
    assert upstream.requests == []


def test_a_local_copy_that_does_not_exist(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "new\n\x1b\u2028line"))
    assert local_copy() == tmp_path / "new\n\x1b\u2028line"
    assert not available("toy")
    with pytest.raises(DataError, match=r"new line that LM_EVAL_EXT_DATA names does not exist"):
        require("toy", "alpha")


@pytest.mark.parametrize("broken", [b"short", ALPHA[::-1]], ids=["short", "other"])
def test_a_broken_cache_file_is_fetched_again(
    upstream: Upstream, caplog: pytest.LogCaptureFixture, broken: bytes
) -> None:
    path = require("toy", "alpha").path
    path.write_bytes(broken)

    with caplog.at_level(logging.WARNING):
        assert require("toy", "alpha").path.read_bytes() == ALPHA

    assert upstream.asked_for("alpha") == 2
    (line,) = caplog.messages
    assert line.startswith(f"toy/alpha: {path}: wrong ")
    assert line.endswith("; fetching it again")


def test_a_broken_cache_file_does_not_outlive_a_failed_repair(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("toy", "alpha").path.write_bytes(ALPHA[::-1])
    require("toy", "beta")
    without_network(monkeypatch)
    with pytest.raises(DataError, match="connection refused"):
        require("toy", "alpha")
    assert not available("toy")
    assert up.stored(tmp_path / "cache") == ["data/toy/deep/beta.txt"]


def test_available_looks_at_every_size_and_at_no_content(upstream: Upstream) -> None:
    assert not available("toy")
    alpha = require("toy", "alpha").path
    assert not available("toy")
    require("toy", "beta")
    assert available("toy")
    asked = len(upstream.requests)
    alpha.write_bytes(ALPHA[::-1])
    assert available("toy")
    alpha.write_bytes(b"short")
    assert not available("toy")
    alpha.unlink()
    alpha.mkdir()
    assert not available("toy")
    assert len(upstream.requests) == asked


def test_a_folder_in_the_place_of_a_file(upstream: Upstream) -> None:
    data.path_of("toy", "alpha").mkdir(parents=True)
    with pytest.raises(DataError, match=r"toy/alpha: cannot write .*alpha.txt: "):
        require("toy", "alpha")


@pytest.mark.parametrize(
    ("source", "file", "message"),
    [
        ("tyo", "alpha", "no data source 'tyo'; the sources are: toy"),
        ("toy", "gamma", "data source 'toy' has no file 'gamma'; its files are: alpha, beta"),
    ],
)
def test_unknown_names(upstream: Upstream, source: str, file: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        require(source, file)
    assert str(caught.value) == message


def test_available_of_an_unknown_source(upstream: Upstream) -> None:
    with pytest.raises(DataError, match="no data source 'tyo'"):
        available("tyo")


def test_the_folders_follow_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", "")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", "")
    assert local_copy() is None
    assert cache_dir().name == "lm-eval-ext"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", "here")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", "~/copy")
    assert cache_dir() == tmp_path / "here"
    assert local_copy() == Path("~/copy").expanduser()


@pytest.mark.parametrize(("progress", "shown"), [(True, True), (False, False), (None, False)])
def test_the_progress_bar_is_for_terminals(
    upstream: Upstream, capfd: pytest.CaptureFixture[str], progress: bool | None, shown: bool
) -> None:
    _, fetched = data.fetch("toy", "alpha", progress=progress)
    output = capfd.readouterr()
    assert fetched
    assert ("alpha.txt: 100%" in output.err) is shown
    assert shown or output.err == ""
    assert output.out == ""


def test_terms_are_shown_before_the_first_file_only(
    upstream: Upstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terms = 'terms: "For research only.\\nAsk before you share it."'
    declared = up.write_sources(tmp_path / "with_terms.yaml", upstream.url, extra=terms)
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))

    require("toy", "alpha")
    shown = capsys.readouterr().err
    assert shown == "toy: A toy source\nFor research only.\nAsk before you share it.\n"
    require("toy", "beta")
    require("toy", "alpha")
    assert capsys.readouterr().err == ""


def test_import_is_cheap(upstream: Upstream, tmp_path: Path) -> None:
    code = (
        "import sys, lm_eval_ext.data\n"
        "print(*{'pooch', 'requests', 'tqdm', 'filelock', 'platformdirs'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
    assert not (tmp_path / "cache").exists()
    assert upstream.requests == []
