"""``lm-eval-ext data``: output and exit status of its commands."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import pytest
from support.file_server import ALPHA, MANY_NAMES, REASON, REVISION, FileServer, write_copy
from typer.testing import CliRunner

from lm_eval_ext.cli.data import app
from lm_eval_ext.errors import LmEvalExtError


@dataclass(frozen=True)
class Output:
    """The output of a command.

    Attributes:
        lines: The lines of standard output.
        error: The line with which the program ends; "" after a success.
    """

    lines: Sequence[str]
    error: str


def run_command(*words: str) -> Output:
    """Run a command of ``lm-eval-ext data``."""
    result = CliRunner().invoke(app, list(words))
    error = ""
    if result.exception:
        assert isinstance(result.exception, LmEvalExtError), result.output
        error = str(result.exception)
        assert error.isprintable()
    return Output(result.stdout.splitlines(), error)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The folder into which files are fetched."""
    return tmp_path / "cache/data"


@pytest.mark.usefixtures("server")
def test_list_has_a_line_for_each_source_and_says_where_files_are(cache: Path) -> None:
    lines = run_command("list").lines
    assert [line.split() for line in lines[1:-1]] == [
        ["toy", "2", "44.0kB", "no", "CC0"],
        ["many", "30", "109B", "no", "CC0"],
        ["lost", "1", "4.00B", "no", "CC0"],
    ]
    assert lines[-1].startswith(f"They are in {cache};")


class ListedFile(TypedDict):
    """A file as ``list --json`` prints it."""

    url: str
    local: str
    size: int


class ListedSource(TypedDict):
    """A source as ``list --json`` prints it, as far as the test looks."""

    files: Mapping[str, ListedFile]
    size: int
    available: bool
    unavailable: str


def test_list_as_json_has_every_file_with_its_url_and_its_place(
    server: FileServer, cache: Path
) -> None:
    sources: list[ListedSource] = json.loads("\n".join(run_command("list", "--json").lines))
    toy, many, lost = sources
    alpha = toy["files"]["alpha"]
    assert alpha["url"] == f"{server.url}/{REVISION}/files/alpha.txt"
    assert alpha["local"] == f"{cache}/toy/alpha.txt"
    assert toy["size"] == sum(file["size"] for file in toy["files"].values())
    assert toy["available"] is False
    assert lost["unavailable"] == REASON
    assert list(many["files"]) == MANY_NAMES


def test_the_list_of_the_packaged_sources_fits_a_terminal() -> None:
    *lines, _ = run_command("list").lines
    assert len(lines) > 9
    assert max(len(line) for line in lines) <= 80


def test_fetch_takes_what_is_missing_and_skips_what_has_no_url(
    server: FileServer, cache: Path
) -> None:
    everything = run_command("fetch")
    assert everything.lines == [
        f"toy: 2 of 2 files fetched (44.0kB) {cache}/toy",
        f"many: 30 of 30 files fetched (109B) {cache}/many/files",
        f"lost: skipped: {REASON}",
    ]
    assert everything.error == ""
    assert run_command("fetch", "toy").lines == [f"toy: 0 of 2 files fetched (44.0kB) {cache}/toy"]
    assert len(server.requests) == 32


@pytest.mark.usefixtures("server")
def test_fetch_of_a_source_without_a_url_ends_with_the_reason(cache: Path) -> None:
    output = run_command("fetch", "lost")
    assert output == Output([], f"lost/old: {cache}/lost/old.txt: missing; {REASON}")


@pytest.mark.parametrize("command", ["fetch", "verify"])
def test_names_are_checked_before_any_work(server: FileServer, command: str) -> None:
    output = run_command(command, "toy", "tyo")
    assert output.error == "no data source 'tyo'; did you mean toy?"
    assert server.requests == []


@pytest.mark.usefixtures("server")
def test_verify_names_each_missing_file_and_the_command_that_fetches_it(cache: Path) -> None:
    output = run_command("verify", "toy", "lost")
    assert output.lines == [
        f"toy/alpha: missing ({cache}/toy/alpha.txt)",
        f"toy/beta: missing ({cache}/toy/deep/beta.txt)",
        f"toy: 0 of 2 files ok ({cache}/toy)",
        f"lost/old: missing ({cache}/lost/old.txt)",
        f"lost: 0 of 1 files ok ({cache}/lost)",
    ]
    assert output.error == "3 files are missing or broken; run `lm-eval-ext data fetch toy`"


@pytest.mark.usefixtures("server")
def test_verify_says_why_nothing_can_be_fetched() -> None:
    assert run_command("verify", "lost").error == f"1 file is missing or broken; lost: {REASON}"


def test_verify_finds_broken_files_without_the_network(server: FileServer, cache: Path) -> None:
    run_command("fetch")
    requests = len(server.requests)
    *_, many_line, lost_line = run_command("verify").lines
    assert many_line == f"many: 30 of 30 files ok ({cache}/many/files)"
    assert lost_line == f"lost: skipped: {REASON}"
    (cache / "toy/alpha.txt").write_bytes(ALPHA[::-1])
    for name in MANY_NAMES[:12]:
        (cache / "many/files" / name).write_bytes(b"long enough")
    lines = run_command("verify", "toy", "many").lines
    assert lines[0].startswith("toy/alpha: wrong checksum: got ")
    assert lines[2].startswith(f"many/{MANY_NAMES[0]}: wrong size: 11 bytes instead of 2 ")
    assert lines[-2:] == ["many: … and 2 more", f"many: 18 of 30 files ok ({cache}/many/files)"]
    assert len(server.requests) == requests


@pytest.mark.usefixtures("server")
def test_verify_reads_a_local_copy_and_advises_to_repair_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    complete = run_command("verify")
    assert complete.error == ""
    assert complete.lines[-1] == f"lost: 1 of 1 files ok ({copy}/lost)"
    (copy / "toy/alpha.txt").unlink()
    broken = run_command("verify")
    assert broken.error.startswith("1 file is missing or broken; repair the local copy, or un")
