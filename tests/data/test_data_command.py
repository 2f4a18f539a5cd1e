"""``lm-eval-ext data``: output and exit status of its commands."""

import json
from pathlib import Path

import pytest
import server as fake
from server import ALPHA, NAMES, Server
from typer.testing import CliRunner

from lm_eval_ext.cli.data import app
from lm_eval_ext.errors import LmEvalExtError


def run(*arguments: str) -> tuple[list[str], str]:
    """The lines of the output, and that of the error, with which the program would end."""
    result = CliRunner().invoke(app, list(arguments))
    error = result.exception or ""
    assert isinstance(error, (LmEvalExtError, str)), result.output
    assert str(error).isprintable() or not error
    return result.stdout.splitlines(), str(error)


def test_list(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, _ = run("list")
    assert [line.split() for line in lines[1:-1]] == [
        ["toy", "2", "44.0kB", "no", "CC0"],
        ["many", "30", "109B", "no", "CC0"],
        ["lost", "1", "4.00B", "no", "CC0"],
    ]
    assert lines[-1].startswith(f"They are in {tmp_path}/cache/data;")
    toy, many, lost = json.loads("\n".join(run("list", "--json")[0]))
    assert toy["files"]["alpha"]["url"] == f"{server.url}/{fake.REVISION}/files/alpha.txt"
    assert toy["files"]["alpha"]["local"] == f"{tmp_path}/cache/data/toy/alpha.txt"
    assert toy["size"] == sum(file["size"] for file in toy["files"].values())
    assert (toy["available"], lost["unavailable"]) == (False, fake.REASON)
    assert list(many["files"]) == NAMES
    monkeypatch.delenv("LM_EVAL_EXT_SOURCES")
    lines, _ = run("list")
    assert len(lines) > 10 and max(map(len, lines[:-1])) <= 80


def test_fetch(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "cache/data"
    lines, error = run("fetch")
    assert (lines, error) == (
        [
            f"toy: 2 of 2 files fetched (44.0kB) {folder}/toy",
            f"many: 30 of 30 files fetched (109B) {folder}/many/files",
            f"lost: skipped: {fake.REASON}",
        ],
        "",
    )
    assert run("fetch", "toy")[0] == [f"toy: 0 of 2 files fetched (44.0kB) {folder}/toy"]
    assert run("fetch", "lost") == ([], f"lost/old: {folder}/lost/old.txt: missing; {fake.REASON}")
    for command in ("fetch", "verify"):
        _, error = run(command, "toy", "tyo")
        assert error == "no data source 'tyo'; did you mean toy?"
    assert len(server.requests) == 32, "names are checked before any work"


def test_verify(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache/data"
    lines, error = run("verify", "toy", "lost")
    assert lines == [
        f"toy/alpha: missing ({folder}/toy/alpha.txt)",
        f"toy/beta: missing ({folder}/toy/deep/beta.txt)",
        f"toy: 0 of 2 files ok ({folder}/toy)",
        f"lost/old: missing ({folder}/lost/old.txt)",
        f"lost: 0 of 1 files ok ({folder}/lost)",
    ]
    assert error == "3 files are missing or broken; run `lm-eval-ext data fetch toy`"
    assert run("verify", "lost")[1] == f"1 file is missing or broken; lost: {fake.REASON}"

    run("fetch")
    asked = len(server.requests)
    *_, many, lost = run("verify")[0]
    assert many == f"many: 30 of 30 files ok ({folder}/many/files)"
    assert lost == f"lost: skipped: {fake.REASON}"
    (folder / "toy/alpha.txt").write_bytes(ALPHA[::-1])
    for name in NAMES[:12]:
        (folder / "many/files" / name).write_bytes(b"long enough")
    lines, _ = run("verify", "toy", "many")
    assert lines[0].startswith("toy/alpha: wrong checksum: got ")
    assert lines[2].startswith(f"many/{NAMES[0]}: wrong size: 11 bytes instead of 2 ")
    assert lines[-2:] == ["many: … and 2 more", f"many: 18 of 30 files ok ({folder}/many/files)"]
    assert len(server.requests) == asked, "verify has touched the network"

    copy = fake.write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    lines, error = run("verify")
    assert (error, lines[-1]) == ("", f"lost: 1 of 1 files ok ({copy}/lost)")
    (copy / "toy/alpha.txt").unlink()
    assert run("verify")[1].startswith("1 file is missing or broken; repair the local copy, or un")
