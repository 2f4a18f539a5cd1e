"""All files of a source at once: connections, progress bar, and files left after a failure."""

import hashlib
import logging
import shutil
import subprocess
import threading
from pathlib import Path

import many_files
import pytest
from many_files import CONTENTS, FOLDER, NAMES, ODD, Server
from support.upstream import stored, without_network

from lm_eval_ext.data import available, fetch_many, folder_of, inspect, require, require_all
from lm_eval_ext.errors import DataError, LmEvalExtError

pytestmark = pytest.mark.slow


def failure(under: str = "") -> str:
    with pytest.raises(LmEvalExtError) as caught:
        require_all("many", under)
    message = str(caught.value)
    assert message.isprintable(), f"not one clean line: {message!r}"
    return message


def test_all_files_are_fetched_once(
    many: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not available("many")
    folder = require_all("many")

    assert folder.path == tmp_path / "cache/data" / FOLDER
    assert (folder.source, folder.revision[:4], folder.fetched) == ("many", "1234", len(NAMES))
    assert [file.name for file in folder.files] == NAMES
    for file in folder.files:
        assert file.path == folder.path / file.name
        assert file.path.read_bytes() == CONTENTS[file.name]
    assert available("many")
    assert many.requests == dict.fromkeys(NAMES, 1)
    left = sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob(".*"))
    assert left == [".all.lock"], "one lock for all, and no half of a file"

    without_network(monkeypatch)
    again = require_all("many")
    assert again.fetched == 0
    assert (again.files, again.sha256) == (folder.files, folder.sha256)
    assert require("many", ODD[0]) == folder.files[NAMES.index(ODD[0])]


def test_the_checksum_is_that_of_the_lines_of_sha256sum(many: Server, tmp_path: Path) -> None:
    folder = require_all("many", "part3")
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum on this machine")
    paths = sorted(FOLDER + file.name for file in folder.files)
    lines = subprocess.run(
        ["sha256sum", *paths], cwd=tmp_path / "cache/data", capture_output=True, check=True
    ).stdout
    assert folder.sha256 == hashlib.sha256(lines).hexdigest()
    assert folder.sha256 != require_all("many", "part4").sha256


def test_six_files_are_fetched_at_once_and_no_more(many: Server) -> None:
    many.barrier = threading.Barrier(fetch_many._CONNECTIONS)
    names = NAMES[: 3 * fetch_many._CONNECTIONS]  # a whole number of rounds at the barrier
    assert require_all("many", names).fetched == len(names)
    assert many.most_active == fetch_many._CONNECTIONS


def test_a_mirror_is_laid_out_like_a_local_copy(
    many: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", f"{many.url}/mirror/")
    assert require_all("many").fetched == len(NAMES)


@pytest.mark.parametrize("under", ["part1", "part1/"])
def test_only_a_folder(many: Server, under: str) -> None:
    wanted = [name for name in NAMES if name.startswith("part1/")]
    assert [file.name for file in require_all("many", under).files] == wanted
    assert sorted(many.requests) == wanted


def test_only_some_names_in_the_order_of_the_declaration(many: Server) -> None:
    folder = require_all("many", {NAMES[5], NAMES[2], NAMES[9]})
    assert [file.name for file in folder.files] == [NAMES[2], NAMES[5], NAMES[9]]


@pytest.mark.parametrize(
    ("under", "message"),
    [
        ("part", "data source 'many' has no files below 'part'"),
        ("../many", "data source 'many' has no files below '../many'"),
        (["nobody.txt"], "data source 'many' has no file 'nobody.txt'; its files are: a b.txt, "),
    ],
)
def test_unknown_parts(many: Server, under: str | list[str], message: str) -> None:
    with pytest.raises(DataError) as caught:
        require_all("many", under)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 400
    assert many.requests.total() == 0


def test_one_gone_and_one_wrong_do_not_stop_the_rest(many: Server, tmp_path: Path) -> None:
    many.gone, many.wrong = {NAMES[10]}, {NAMES[100]}

    message = failure()

    assert message.startswith("many: 2 files are unavailable; one of them: many/")
    assert "`lm-eval-ext data fetch many`" in message
    there = [f"data/{FOLDER}{name}" for name in NAMES if name not in many.gone | many.wrong]
    assert stored(tmp_path / "cache") == sorted(there)

    many.requests.clear()
    many.gone = set()
    assert f"many/{NAMES[100]}: " in (message := failure())
    assert "wrong checksum" in message
    many.wrong = set()
    assert require_all("many").fetched == 1
    assert many.requests == {NAMES[10]: 1, NAMES[100]: 3}


def test_it_gives_up_where_nothing_works(many: Server, tmp_path: Path) -> None:
    many.gone = set(NAMES)
    message = failure()
    assert message.startswith("many: at least 3 files are unavailable; one of them: many/")
    assert "HTTP 404" in message
    assert many.requests.total() < 3 * fetch_many._CONNECTIONS
    assert stored(tmp_path / "cache") == []


def test_broken_files_are_fetched_again(many: Server, caplog: pytest.LogCaptureFixture) -> None:
    folder = require_all("many")
    folder.files[7].path.write_bytes(b"longer than it was")
    folder.files[8].path.write_bytes(bytes(folder.files[8].size))
    many.requests.clear()
    assert [it.state for it in inspect("many").values() if not it.ok] == [
        "wrong size",
        "wrong checksum",
    ]
    with caplog.at_level(logging.WARNING):
        assert require_all("many").fetched == 2
    assert many.requests == {NAMES[7]: 1, NAMES[8]: 1}
    assert [line.endswith("; fetching it again") for line in caplog.messages] == [True, True]


def test_a_faulty_local_copy_is_never_repaired_from_the_network(
    many: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = many_files.write_copy(tmp_path / "copy")
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(copy))
    assert require_all("many").fetched == 0
    (copy / FOLDER / NAMES[3]).unlink()
    (copy / FOLDER / NAMES[4]).write_bytes(b"no")

    message = failure()

    assert message.startswith(
        f"many: 2 of {len(NAMES)} files are missing or broken; {NAMES[3]}: "
        f"{copy / FOLDER / NAMES[3]}: missing (LM_EVAL_EXT_DATA is {copy})"
    )
    assert many.requests.total() == 0
    assert not (tmp_path / "cache").exists()
    assert not list(copy.rglob(".*"))


def test_a_cache_folder_that_cannot_be_made(
    many: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("I am no folder")
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "file"))
    size = sum(map(len, CONTENTS.values()))
    assert failure().startswith(f"many: cannot write {tmp_path}/file/data/many/files: ")
    assert f"with {size:,} bytes free" in failure()
    assert many.requests.total() == 0


def test_a_file_in_the_place_of_a_folder(many: Server, tmp_path: Path) -> None:
    folder = folder_of("many")
    folder.mkdir(parents=True)
    (folder / "part1").write_text("I am no folder")
    assert failure().startswith(f"many: cannot write {folder}: ")


def test_an_illegal_timeout_is_told_from_a_thread(
    many: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_TIMEOUT", "soon")
    assert failure().startswith("LM_EVAL_EXT_TIMEOUT is 'soon'")


@pytest.mark.parametrize("progress", [True, False, None])
def test_one_bar_for_many_files(
    many: Server, capfd: pytest.CaptureFixture[str], progress: bool | None
) -> None:
    require_all("many", progress=progress)
    output = capfd.readouterr()
    assert output.out == ""
    assert (f"many: 100%|██████████| {len(NAMES)}/{len(NAMES)}" in output.err) is bool(progress)
    assert progress or output.err == ""
    assert ".txt" not in output.err


def test_big_files_have_bars_of_their_own(
    many: Server, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    biggest = max(CONTENTS, key=lambda name: len(CONTENTS[name]))
    monkeypatch.setattr(fetch_many, "_BIG_BYTES", len(CONTENTS[biggest]))
    require_all("many", progress=True)
    shown = capfd.readouterr().err
    assert f"{Path(biggest).name}: 100%" in shown
    assert f"| {len(NAMES) - 1}/{len(NAMES) - 1} " in shown


def test_terms_are_shown_once(
    many: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "terms"
    folder.mkdir()
    extra = "licence: CC0\n  terms: Ask before you share it."
    declared = many_files.write_sources(folder, many.url, extra=extra)
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
    require_all("many", "part1")
    assert capfd.readouterr().err == "many: A source with many files\nAsk before you share it.\n"
    require_all("many")
    assert capfd.readouterr().err == ""


def test_a_source_without_a_manifest(upstream: object, tmp_path: Path) -> None:
    folder = require_all("toy")
    assert folder.path == folder_of("toy") == tmp_path / "cache/data/toy"
    assert [file.name for file in folder.files] == ["alpha", "beta"]
    assert folder.files == (require("toy", "alpha"), require("toy", "beta"))
