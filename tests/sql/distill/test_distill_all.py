"""Many databases at once: processes, resumption, interruption."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from distill_cases import GOLDS, SHOP, content, sha256, write

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.distill import populate_all

pytestmark = pytest.mark.slow

Databases = dict[str, tuple[Path, list[str]]]


def three(folder: Path) -> Databases:
    """Databases that differ, with few golds, as it is not about the search."""
    return {
        "shop": (write(folder / "shop.sqlite", SHOP), list(GOLDS[:4])),
        "Mall": (write(folder / "mall.sqlite", SHOP + "DELETE FROM sale;"), list(GOLDS[2:5])),
        "kiosk": (
            write(folder / "kiosk.sqlite", SHOP + "DELETE FROM town;"),
            [GOLDS[0], "SELECT nothing"],
        ),
    }


@pytest.fixture
def databases(tmp_path: Path) -> Databases:
    return three(tmp_path / "o")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished copies; the databases of each test are the same, byte for byte."""
    folder = tmp_path_factory.mktemp("once")
    populate_all(three(folder / "o"), folder / "out")
    return folder / "out"


def test_any_number_of_workers_makes_the_same(databases: Databases, tmp_path: Path) -> None:
    one = populate_all(databases, tmp_path / "one", workers=1)
    turned = {key: (path, golds[::-1]) for key, (path, golds) in reversed(databases.items())}
    two = populate_all(turned, tmp_path / "two", workers=2)
    assert list(one) == list(databases)
    assert list(two) == list(turned)
    assert one == two
    for db_id in databases:
        copies = [tmp_path / n / db_id / f"{db_id}.sqlite" for n in ("one", "two")]
        assert content(copies[0]) == content(copies[1])
        reports = [copy.with_name(f"{db_id}.report.json").read_bytes() for copy in copies]
        assert json.loads(reports[0])["report"] == json.loads(reports[1])["report"]


def test_programs_in_the_working_folder_are_left_alone(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong module')\n")
    monkeypatch.chdir(tmp_path)
    kiosk = {"kiosk": databases["kiosk"]}
    assert populate_all(kiosk, tmp_path / "out", workers=1).keys() == kiosk.keys()


def test_what_is_finished_is_kept(databases: Databases, once: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(once, tmp_path / "out")
    first = populate_all(databases, folder)
    copies = sorted(folder.rglob("*.*"))
    stamps = {path: path.stat().st_mtime_ns for path in sorted(once.rglob("*.*"))}
    stamps = {folder / path.relative_to(once): stamp for path, stamp in stamps.items()}
    assert sorted(stamps) == copies
    assert populate_all(databases, folder) == first
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*.*"))} == stamps


@pytest.mark.parametrize("change", ["golds", "original", "copy", "report", "half", "version"])
def test_what_has_changed_is_made_anew(
    change: str, databases: Databases, once: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(once, tmp_path / "out")
    copy = folder / "shop" / "shop.sqlite"
    report = folder / "shop" / "shop.report.json"
    whole, other = content(copy), folder / "Mall" / "Mall.sqlite"
    stamps = {path: path.stat().st_mtime_ns for path in (report, other)}
    if change == "golds":
        databases["shop"][1].append(GOLDS[5])
    elif change == "original":
        write(databases["shop"][0], "INSERT INTO town VALUES (9, 'Zell', 1);")
    elif change == "copy":
        copy.write_bytes(copy.read_bytes()[:-4096])
    elif change == "report":
        report.write_text(report.read_text()[:-100])
    elif change == "half":
        report.unlink()
    else:
        text = json.loads(report.read_text())
        report.write_text(json.dumps(text | {"key": "another version"}))
    populate_all(databases, folder)
    assert report.stat().st_mtime_ns != stamps[report]
    assert other.stat().st_mtime_ns == stamps[other]
    if change not in ("golds", "original"):
        assert content(copy) == whole


def test_a_killed_run_leaves_nothing_half_written_and_goes_on(
    databases: Databases, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    databases["shop"][1].extend(GOLDS)
    plan = {key: (str(path), golds) for key, (path, golds) in databases.items()}
    code = (
        "import json, sys; from pathlib import Path; "
        "from lm_eval_ext.sql.distill import populate_all; "
        "plan = {k: (Path(p), g) for k, (p, g) in json.loads(sys.argv[1]).items()}; "
        "populate_all(plan, Path(sys.argv[2]), workers=2)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(plan), str(folder)], start_new_session=True
    )
    while not list(folder.rglob("*.report.json")) and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = {path: path.stat().st_mtime_ns for path in folder.rglob("*.report.json")}
    assert done
    for path in folder.rglob("*.sqlite"):
        assert not path.name.startswith(".")
        content(path)  # raises if it is half a database
    populate_all(databases, folder)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    fresh = populate_all(databases, tmp_path / "fresh")
    for db_id in fresh:
        copies = [parent / db_id / f"{db_id}.sqlite" for parent in (folder, tmp_path / "fresh")]
        assert content(copies[0]) == content(copies[1])


def test_originals_are_not_touched(databases: Databases, tmp_path: Path) -> None:
    before = {path: sha256(path) for path, _ in databases.values()}
    populate_all(databases, tmp_path / "out")
    assert {path: sha256(path) for path in sorted((tmp_path / "o").iterdir())} == before


def test_a_missing_original_is_one_line(databases: Databases, tmp_path: Path) -> None:
    databases["gone"] = (tmp_path / "gone.sqlite", ["SELECT 1"])
    with pytest.raises(DataError, match=r"gone\.sqlite") as caught:
        populate_all(databases, tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_broken_original_is_one_line(databases: Databases, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"not at all a database" * 300)
    databases["broken"] = (broken, ["SELECT 1"])
    with pytest.raises(DataError, match=r"broken\.sqlite"):
        populate_all(databases, tmp_path / "out", workers=1)


def test_a_folder_that_cannot_be_written_is_one_line(databases: Databases, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OptionError, match="cannot make the folder"):
        populate_all(databases, tmp_path / "file" / "out", workers=1)


def test_an_error_is_raised_even_where_the_next_job_waits_for_its_worker(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that failed takes up its next job before the caller has heard of the error."""
    from concurrent import futures

    from lm_eval_ext.sql.distill import batch

    def wait_late(fs: set[Any], return_when: str) -> Any:
        done = futures.wait(fs, return_when=return_when)
        time.sleep(0.5)
        return done

    monkeypatch.setattr(batch, "wait", wait_late)
    (tmp_path / "file").write_text("in the way")
    raised: list[BaseException] = []

    def call() -> None:
        try:
            populate_all(databases, tmp_path / "file" / "out", workers=1)
        except OptionError as error:
            raised.append(error)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    caller.join(timeout=60)
    assert len(raised) == 1, "populate_all hangs"


@pytest.mark.parametrize("db_id", ["../away", "a/b", "", ".."])
def test_no_id_leads_out_of_the_folder(db_id: str, databases: Databases, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="plain name"):
        populate_all({db_id: databases["shop"]}, tmp_path / "out")


def test_at_least_one_worker(databases: Databases, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="workers=0"):
        populate_all(databases, tmp_path / "out", workers=0)
