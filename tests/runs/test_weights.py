"""Other weights at the same path are another run, with another cache."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.results_files import answered_rows, write_run

from lm_eval_ext.results.grid import text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.show import tables
from lm_eval_ext.runs.caches import merge_caches
from lm_eval_ext.runs.run import run_keys
from lm_eval_ext.runs.weights import newer_format, weights_digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with weights of a few bytes."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text('{"transformers_version": "4.40.0"}')
    (path / "model.safetensors").write_bytes(b"weights")
    return path


TASKS = {"lieder_mini": {"task": "lieder_mini"}}
"""Tasks as a selection checks them."""


def settings(folder: Path | str, model: str = "hf") -> dict[str, object]:
    """Return lm-eval's options for the model."""
    return {"model": model, "model_args": {"pretrained": str(folder)}}


def test_other_weights_at_the_same_path_are_another_run(folder: Path) -> None:
    """A training that saved anew got "nothing to do"; now each of its tasks is missing."""
    options = settings(folder)
    digest = weights_digest(options)
    keys = run_keys(options, TASKS, None, digest)
    file = folder / "model.safetensors"
    state = file.stat()
    file.write_bytes(b"WEIGHTS")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    digest_after = weights_digest(options)
    assert digest_after != digest
    assert run_keys(options, TASKS, None, digest_after) != keys


def test_the_same_weights_have_the_same_digest_whatever_folders_lie_beside_them(
    folder: Path,
) -> None:
    digest = weights_digest(settings(folder))
    assert digest
    assert weights_digest(settings(folder)) == digest
    (folder / "log.txt.part").mkdir()
    assert weights_digest(settings(folder)) == digest


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(settings("gpt-4", "local-chat-completions"), id="a server"),
        pytest.param(settings("OWNER/NAME-that-is-not-cached"), id="not in the hub's cache"),
        pytest.param({"model": "dummy"}, id="no model"),
    ],
)
def test_a_model_that_cannot_be_seen_has_no_digest(options: dict[str, object]) -> None:
    """Results of servers are still found, also those of earlier versions."""
    assert weights_digest(options) == ""
    assert run_keys(options, TASKS, None) == run_keys(options, TASKS, None, "")


def test_a_model_of_the_hub_has_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new commit on the same branch is other weights."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    reference = tmp_path / "models--owner--name" / "refs" / "main"
    reference.parent.mkdir(parents=True)
    reference.write_text("a" * 40)
    digest = weights_digest(settings("owner/name"))
    reference.write_text("b" * 40)
    digest_of_new_commit = weights_digest(settings("owner/name"))
    assert digest
    assert digest_of_new_commit
    assert digest_of_new_commit != digest


def write_cache(folder: Path, name: str) -> None:
    """Write a cache of answers whose only key is its name."""
    with closing(sqlite3.connect(folder / f"{name}_rank0.db")) as cache:
        cache.execute("CREATE TABLE unnamed (key TEXT PRIMARY KEY, value BLOB)")
        cache.execute("INSERT INTO unnamed VALUES (?, ?)", (name, b""))
        cache.commit()


def keys_in_cache(folder: Path, name: str) -> list[str]:
    """Return the keys of a cache of answers."""
    with closing(sqlite3.connect(folder / f"{name}_rank0.db")) as cache:
        return [key for (key,) in cache.execute("SELECT key FROM unnamed")]


@pytest.mark.parametrize(
    ("stem", "weights", "keys"),
    [
        pytest.param("t", "", ["a"], id="weights that are not known"),
        pytest.param("t@22", "22", ["c@22"], id="known weights"),
    ],
)
def test_answers_of_other_weights_are_not_gathered(
    tmp_path: Path, stem: str, weights: str, keys: list[str]
) -> None:
    """The cache of the old model answered 1.000 for the new one's .689."""
    for name in ("a", "b@11", "c@22"):
        write_cache(tmp_path, name)
    merge_caches(tmp_path, stem, weights)
    assert keys_in_cache(tmp_path, stem) == keys


def problem_of_format(folder: Path, version: str | None) -> str:
    """Return what is wrong with a folder that this version of transformers saved."""
    (folder / "config.json").write_text(json.dumps({"transformers_version": version}))
    return newer_format(settings(folder))


def test_a_folder_of_a_newer_transformers_is_refused(folder: Path) -> None:
    """Version 4 reads no ``rope_parameters`` of version 5: 4 nats off, in silence."""
    problem = problem_of_format(folder, "99.0.0")
    assert "was saved by transformers 99.0.0, and " in problem
    assert problem.endswith("install transformers 99")


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("4.0.0", id="older"),
        pytest.param(None, id="not known"),
        pytest.param("main", id="no number"),
    ],
)
def test_a_folder_of_no_newer_transformers_is_accepted(folder: Path, version: str | None) -> None:
    assert problem_of_format(folder, version) == ""


def write_results(folder: Path, name: str, task: str, day: int, **changes: str) -> None:
    """Write results of a model with further keys."""
    file = write_run(folder, name, task, answered_rows(40, 30), date=f"2026-01-0{day}")
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, **changes}))


def test_results_of_other_weights_in_one_row_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One row showed the figures of two models."""
    for day, (task, weights) in enumerate(
        [("cogs_mini_gen", "11"), ("cogs_mini_id", "22"), ("slog_mini", "22")], start=1
    ):
        write_results(tmp_path / "a", "a", task, day, weights=weights)
        write_results(tmp_path / "b", "b", task, day, weights="33")
    read_models([tmp_path])
    # A server of an earlier test may be gone only now, and asyncio logs that.
    messages = [record.getMessage() for record in caplog.records if "asyncio" not in record.name]
    assert messages == ["a: older weights than the newest gave cogs_mini_gen; run them again"]


def test_results_of_two_major_versions_are_reported(tmp_path: Path) -> None:
    """The same folder gives other log-probabilities in another major version."""
    for name, library in (("a", "4.57.1"), ("b", "5.23.0"), ("c", "5.1.0")):
        write_results(tmp_path / name, name, "cogs_mini_gen", 1, transformers_version=library)
    models = read_models([tmp_path])
    of_both_versions = text(tables(models, ScoreQuery(), ["cogs_mini_gen"]), 200)
    warning = "results of transformers 4 (a) and 5 (b, c): the same weights may score"
    assert warning in of_both_versions
    of_one_version = text(tables(models[1:], ScoreQuery(), ["cogs_mini_gen"]), 200)
    assert "transformers" not in of_one_version
