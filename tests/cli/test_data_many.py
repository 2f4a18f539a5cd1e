"""``lm-eval-ext data`` and sources with a manifest, or without a URL."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import upstream as up
from support.upstream import FILES, Upstream
from typer.testing import CliRunner

from lm_eval_ext.cli.data import app
from lm_eval_ext.errors import LmEvalExtError

COUNT = 25
NAMES = [f"{number:02}/alpha.txt" for number in range(COUNT)]


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Declares "toy" without a URL, and "many": 25 copies of one of its files."""
    with up.serving(tmp_path, monkeypatch) as server:
        content = FILES["alpha"][1]
        digest = hashlib.sha256(content).hexdigest()
        rows = "".join(f"{name}\t{len(content)}\t{digest}\n" for name in NAMES)
        (tmp_path / "manifests").mkdir()
        (tmp_path / "manifests/many.tsv").write_text(f"path\tsize\tsha256\n{rows}")
        declared = tmp_path / "sources.yaml"
        toy = [line for line in declared.read_text().splitlines() if "url: files/" not in line]
        text = "\n".join(toy) + "\n"
        url = f"  url: {server.url}/{{revision}}/\n"
        lost = text.replace(url, "  url: null\n  unavailable: nobody has it\n")
        head = text.partition("  files:")[0].replace("toy:\n", "many:\n", 1)
        declared.write_text(f"{lost}{head}  manifest: many.tsv\n  folder: many/\n")
        yield server


def run(*arguments: str) -> tuple[list[str], str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is None:
        return result.stdout.splitlines(), ""
    assert isinstance(result.exception, LmEvalExtError), result.output
    assert str(result.exception).isprintable()
    return result.stdout.splitlines(), str(result.exception)


def test_list_has_a_line_per_source(upstream: Upstream) -> None:
    lines, _ = run("list")
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]
    assert [row[0] for row in rows] == ["toy", "many"]
    assert rows[1] == ["many", "1234567890", "25 files", "1.1 MB", "CC0", "no"]


def test_list_as_json_has_every_file(upstream: Upstream) -> None:
    toy, many = json.loads("\n".join(run("list", "--json")[0]))
    assert list(many["files"]) == NAMES
    file = many["files"][NAMES[3]]
    assert file["path"] == f"many/{NAMES[3]}"
    assert file["url"] == f"{upstream.url}/1234567890abcdef/{NAMES[3]}"
    assert toy["files"]["alpha"]["url"] is None
    assert toy["unavailable"] == "nobody has it"


def test_fetch_skips_what_is_unavailable(upstream: Upstream, tmp_path: Path) -> None:
    folder = tmp_path / "cache/data/many"
    assert run("fetch") == (
        ["toy: skipped: nobody has it", f"many: 25 of 25 files fetched (1.1 MB) {folder}"],
        "",
    )
    assert run("fetch", "many") == ([f"many: 25 files already here (1.1 MB) {folder}"], "")
    assert len(upstream.requests) == COUNT


def test_fetch_by_name_says_why_it_fails(upstream: Upstream) -> None:
    lines, error = run("fetch", "toy")
    assert lines == []
    assert error.endswith("alpha.txt: missing; nobody has it")


def test_verify_lists_only_the_bad(upstream: Upstream, tmp_path: Path) -> None:
    folder = tmp_path / "cache/data/many"
    lines, error = run("verify")
    assert lines == ["toy: skipped: nobody has it", f"many: missing, all 25 files ({folder})"]
    assert error == "25 files are missing or broken; run `lm-eval-ext data fetch many`"

    run("fetch")
    assert run("verify", "many") == ([f"many: 25 files ok ({folder})"], "")

    (folder / NAMES[4]).unlink()
    (folder / NAMES[9]).write_bytes(b"no")
    lines, error = run("verify", "many")
    assert lines == [
        f"many/{NAMES[4]}: missing ({folder}/{NAMES[4]})",
        f"many/{NAMES[9]}: wrong size: 2 bytes instead of 44,000 ({folder}/{NAMES[9]})",
        f"many: 23 of 25 files ok ({folder})",
    ]
    assert error.startswith("2 files are missing or broken; run ")

    for name in NAMES[:20]:
        (folder / name).write_bytes(b"no")
    lines, _ = run("verify", "many")
    assert lines[10:] == ["many: … and 10 more", f"many: 5 of 25 files ok ({folder})"]
    assert len(upstream.requests) == COUNT, "verify has touched the network"


def test_verify_of_what_cannot_be_had(upstream: Upstream, tmp_path: Path) -> None:
    lines, error = run("verify", "toy")
    assert len(lines) == 2
    assert error == "2 files are missing or broken; toy: nobody has it"
    # Once a part of it is there, it is looked at without being named, too.
    up.write_copy(tmp_path / "cache/data")
    assert run("verify")[0][:2] == [
        f"toy/alpha: ok ({tmp_path}/cache/data/toy/alpha.txt)",
        f"toy/beta: ok ({tmp_path}/cache/data/toy/deep/beta.txt)",
    ]
