"""``lm-eval-ext diner build`` as a user starts it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest
import small_corpus as small

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options that name corpus and glossary."""
    folder = tmp_path_factory.mktemp("diner")
    corpus = small.write(folder / "corpus.jsonl", small.recipes())
    glossary = small.glossary(folder / "words.json")
    return ("diner", "build", "--corpus", str(corpus), "--glossary", str(glossary))


def test_a_build(cli: Cli, given: tuple[str, ...], tmp_path: Path) -> None:
    done = cli(*given, "--output", str(tmp_path / "out"), "--divergence", "0.8", "--seed", "3",
        "--compounds", "pairs")  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["options"] == {
        "divergence": 0.8, "compounds": "pairs", "proportion": 1.0, "seed": 3,
    }  # fmt: skip
    assert f"{report['kept']['recipes']:,} recipes of {small.DISHES} dishes" in done.stdout
    assert "Asked for 0.8; the division that the search starts from has" in done.stdout
    # No bars: it is no terminal.
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--corpus", "nowhere.jsonl"), "cannot read the corpus nowhere.jsonl: No such file"),
        (("--divergence", "7"), "--divergence 7.0: use a number above 0 and up to 1"),
        (("--compounds", "x"), "--compounds x: use whole, pairs, subsets"),
        (("--proportion", "0"), "--proportion 0.0: use a number above 0 and up to 1"),
        (("--memory", "-1"), "--memory -1.0: use a number of GiB above 0"),
        (("--derive-glossary",), "name one of --glossary FILE and --derive-glossary"),
        (("--glossary", "nowhere.json"), "nowhere.json: not a glossary"),
    ],
)
def test_one_line_for_what_is_wrong(
    cli: Cli, given: tuple[str, ...], tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = cli(*given, "--output", str(tmp_path / "out"), *options)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert not list((tmp_path / "out").glob("*.json"))


def test_neither_glossary_nor_wish_to_derive_one(
    cli: Cli, given: tuple[str, ...], tmp_path: Path
) -> None:
    done = cli(*given[:4], "--output", str(tmp_path / "out"))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lm-eval-ext: error: name one of --glossary FILE and --derive-glossary"
    ]


def test_a_line_that_is_no_json(cli: Cli, given: tuple[str, ...], tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"name": "汤"}\n{"name"\n', encoding="utf-8")
    done = cli(*given, "--corpus", str(corpus), "--output", str(tmp_path / "out"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "corpus.jsonl, line 2: it is not JSON" in done.stderr


def test_a_place_that_cannot_be_written(cli: Cli, given: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = cli(*given, "--output", str(tmp_path / "file" / "out"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "cannot write there" in done.stderr


def test_two_builds_in_one_place(cli: Cli, given: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "out" / ".work").mkdir(parents=True)
    with filelock.FileLock(tmp_path / "out" / ".work" / "lock"):
        done = cli(*given, "--output", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "another build is writing there" in done.stderr.splitlines()[-1]


FILES = {"glossary.json", "random_data.json", "report.json", "report.md", "tmcd_data.json"}


def unexpected(out: Path) -> list[str]:
    """What a build has left in its work folder beside the lock and the cleaned corpus."""
    work = [path.name for path in (out / ".work").iterdir()]
    return [name for name in work if name != "lock" and not name.endswith(".parquet")]


@pytest.mark.parametrize("seconds", [0.0, 0.15, 0.4])
def test_an_interruption_leaves_nothing_half_written(
    cli: Cli, given: tuple[str, ...], tmp_path: Path, seconds: float
) -> None:
    """Ctrl-C soon after the start and later; what was built before stays whole until the end."""
    corpus, out = tmp_path / "corpus.jsonl", tmp_path / "out"
    small.write(corpus, small.recipes() * 25)
    command = [str(Path(sys.executable).parent / "lm-eval-ext"), *given]
    child = subprocess.Popen(
        [*command, "--corpus", str(corpus), "--output", str(out)],
        env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 600
    while not list(out.glob(".work/new-*")) and child.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.005)
    time.sleep(seconds)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=600)
    files = {path.name for path in out.iterdir() if path.name != ".work"}
    if "report.json" in files:
        # The build had finished before the signal came; the process may still report it.
        assert files == FILES
    else:
        assert child.returncode
        assert "Traceback" not in stderr
        assert files == set()
        assert unexpected(out) == []
    assert cli(*given, "--corpus", str(corpus), "--output", str(out)).returncode == 0
    assert {path.name for path in out.iterdir() if path.name != ".work"} == FILES
    assert unexpected(out) == []
