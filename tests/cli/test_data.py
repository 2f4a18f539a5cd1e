"""``lm-eval-ext data``: output and exit status of its commands."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import upstream as up
from support.upstream import ALPHA, Upstream
from typer.testing import CliRunner

from lm_eval_ext.cli.data import app, human_size
from lm_eval_ext.errors import LmEvalExtError


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with up.serving(tmp_path, monkeypatch) as server:
        yield server


@dataclass
class Done:
    lines: list[str]
    error: str
    """The line that the program would print on stderr before it ends with status 1."""


def run(*arguments: str) -> Done:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is None:
        return Done(result.stdout.splitlines(), "")
    assert isinstance(result.exception, LmEvalExtError), result.output
    assert str(result.exception).isprintable()
    return Done(result.stdout.splitlines(), str(result.exception))


def test_list_is_a_table(upstream: Upstream) -> None:
    done = run("list")
    (row,) = [line for line in done.lines if "toy" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["toy", "1234567890", "alpha, beta", "44.0 kB", "CC0", "no"]
    run("fetch")
    assert any(line.strip("│ ").endswith("yes") for line in run("list").lines)


def test_list_as_json(upstream: Upstream) -> None:
    (entry,) = json.loads("\n".join(run("list", "--json").lines))
    assert entry["source"] == "toy"
    assert entry["available"] is False
    assert entry["size"] == sum(file["size"] for file in entry["files"].values())
    assert entry["files"]["alpha"]["path"] == "toy/alpha.txt"
    assert entry["files"]["alpha"]["url"] == f"{upstream.url}/1234567890abcdef/files/alpha.txt"


@pytest.mark.parametrize("names", [(), ("toy",), ("toy", "toy")])
def test_fetch_says_what_it_did(upstream: Upstream, tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "cache/data/toy"
    run_once = run("fetch", *names)
    assert run_once.lines == [
        f"toy/alpha: fetched (44.0 kB) {folder}/alpha.txt",
        f"toy/beta: fetched (5 bytes) {folder}/deep/beta.txt",
    ]
    again = run("fetch", *names)
    assert [line.split(" (")[0] for line in again.lines] == [
        "toy/alpha: already here",
        "toy/beta: already here",
    ]
    assert len(upstream.requests) == 2


def test_fetch_shows_progress_if_told_to(
    upstream: Upstream, capsys: pytest.CaptureFixture[str]
) -> None:
    result = CliRunner().invoke(app, ["fetch", "--progress"])
    assert "alpha.txt: 100%" in result.stderr
    assert "100%" not in result.stdout


def test_a_failed_fetch_is_one_line(upstream: Upstream) -> None:
    upstream.answers = [up.status("404 Not Found")]
    done = run("fetch")
    assert done.lines == []
    assert "HTTP 404 (Not Found)" in done.error


def test_verify_tells_every_state(upstream: Upstream, tmp_path: Path) -> None:
    folder = tmp_path / "cache/data/toy"
    done = run("verify")
    assert done.lines[0] == f"toy/alpha: missing ({folder}/alpha.txt)"
    assert done.error == ("2 files are missing or broken; run `lm-eval-ext data fetch toy`")

    run("fetch")
    done = run("verify", "toy")
    assert [line.split(" (")[0] for line in done.lines] == ["toy/alpha: ok", "toy/beta: ok"]
    assert done.error == ""

    (folder / "alpha.txt").write_bytes(ALPHA[::-1])
    (folder / "deep/beta.txt").write_bytes(b"long enough")
    done = run("verify")
    assert done.lines[0].startswith("toy/alpha: wrong checksum: got ")
    assert done.lines[1].startswith("toy/beta: wrong size: 11 bytes instead of 5 ")
    assert len(upstream.requests) == 2, "verify has touched the network"

    run("fetch")
    assert run("verify").error == ""


def test_verify_of_a_local_copy(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = up.write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    assert run("verify").error == ""
    (copy / "toy/alpha.txt").unlink()
    error = run("verify").error
    assert error.startswith("1 file is missing or broken; repair the local copy")
    assert "unset LM_EVAL_EXT_DATA" in error


def test_the_list_says_where_files_are(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache/data"
    assert f"They are in {cache};" in " ".join(run("list").lines)
    (entry,) = json.loads("\n".join(run("list", "--json").lines))
    local = [file["local"] for file in entry["files"].values()]
    assert local == [f"{cache}/toy/alpha.txt", f"{cache}/toy/deep/beta.txt"]
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "copy"))
    assert f"They are in {tmp_path / 'copy'};" in " ".join(run("list").lines)
    assert not cache.exists()


@pytest.mark.parametrize("command", ["fetch", "verify"])
def test_unknown_names_are_refused_before_any_work(upstream: Upstream, command: str) -> None:
    done = run(command, "toy", "tyo")
    assert done.lines == []
    assert done.error == "no data source 'tyo'; the sources are: toy"
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (302248, "302 kB"),
        (999_400, "999 kB"),
        (999_999, "1.0 MB"),
        (123_456_789, "123 MB"),
        (5_000_000_000_000, "5000 GB"),
    ],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert human_size(size) == text
