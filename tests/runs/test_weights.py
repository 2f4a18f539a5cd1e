"""Whose figures are these? Other weights at the same path are another run, with another cache."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.results_files import answered_rows, write_run

from lm_eval_ext.results.grid import text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.show import tables
from lm_eval_ext.runs.run import _gather, run_keys
from lm_eval_ext.runs.weights import newer_format, weights_digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with weights of a few bytes."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text('{"transformers_version": "4.40.0"}')
    (path / "model.safetensors").write_bytes(b"weights")
    return path


def settings(folder: Path | str, model: str = "hf") -> dict[str, Any]:
    """lm-eval's options for the model."""
    return {"model": model, "model_args": {"pretrained": str(folder)}}


def test_other_weights_at_the_same_path_are_another_run(folder: Path) -> None:
    """A training that saved anew got "nothing to do"; now each of its tasks is missing."""
    before = weights_digest(settings(folder))
    assert before and weights_digest(settings(folder)) == before
    (folder / "log.txt.part").mkdir()
    assert weights_digest(settings(folder)) == before, "a folder is no weights"
    tasks = {"lieder_mini": {"task": "lieder_mini"}}
    first = run_keys(settings(folder), tasks, None, before)
    file = folder / "model.safetensors"
    state = file.stat()
    file.write_bytes(b"WEIGHTS")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    after = weights_digest(settings(folder))
    assert after != before
    assert run_keys(settings(folder), tasks, None, after) != first


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(settings("gpt-4", "local-chat-completions"), id="a server"),
        pytest.param(settings("OWNER/NAME-that-is-not-cached"), id="not in the hub's cache"),
        pytest.param({"model": "dummy"}, id="no model"),
    ],
)
def test_a_model_that_cannot_be_seen_has_no_digest(options: dict[str, Any]) -> None:
    """Results of servers are still found, also those of earlier versions."""
    assert weights_digest(options) == ""
    assert run_keys(options, {"t": 1}, None) == run_keys(options, {"t": 1}, None, "")


def test_a_model_of_the_hub_has_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new commit on the same branch is other weights."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    reference = tmp_path / "models--owner--name" / "refs" / "main"
    reference.parent.mkdir(parents=True)
    digests = []
    for commit in ("a" * 40, "b" * 40):
        reference.write_text(commit)
        digests.append(weights_digest(settings("owner/name")))
    assert all(digests) and len(set(digests)) == 2


def test_answers_of_other_weights_are_not_gathered(tmp_path: Path) -> None:
    """The cache of the old model answered 1.000 for the new one's .689."""
    for name in ("a", "b@11", "c@22"):
        with closing(sqlite3.connect(tmp_path / f"{name}_rank0.db")) as cache:
            cache.execute("CREATE TABLE unnamed (key TEXT PRIMARY KEY, value BLOB)")
            cache.execute("INSERT INTO unnamed VALUES (?, ?)", (name, b""))
            cache.commit()
    for stem, weights, expected in (("t", "", ["a"]), ("t@22", "22", ["c@22"])):
        _gather(tmp_path, stem, weights)
        with closing(sqlite3.connect(tmp_path / f"{stem}_rank0.db")) as cache:
            assert [key for (key,) in cache.execute("SELECT key FROM unnamed")] == expected


@pytest.mark.parametrize(
    ("saved_by", "is_said"),
    [
        pytest.param("99.0.0", True, id="newer"),
        pytest.param("4.0.0", False, id="older"),
        pytest.param(None, False, id="not known"),
        pytest.param("main", False, id="no number"),
    ],
)
def test_a_folder_of_a_newer_transformers_is_said(
    folder: Path, saved_by: str | None, is_said: bool
) -> None:
    """Version 4 reads no ``rope_parameters`` of version 5: 4 nats off, in silence."""
    (folder / "config.json").write_text(json.dumps({"transformers_version": saved_by}))
    problem = newer_format(settings(folder))
    assert bool(problem) == is_said
    if is_said:
        assert "was saved by transformers 99.0.0, and " in problem
        assert problem.endswith("install transformers 99")


def write(folder: Path, name: str, task: str, day: int, **changes: str) -> None:
    """Results of a model with further keys."""
    file = write_run(folder, name, task, answered_rows(40, 30), date=f"2026-01-0{day}")
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, **changes}))


def test_results_of_other_weights_in_one_row_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One row showed the figures of two models."""
    for day, (task, weights) in enumerate(
        [("cogs_mini_gen", "11"), ("cogs_mini_id", "22"), ("slog_mini", "22")], start=1
    ):
        write(tmp_path / "a", "a", task, day, weights=weights)
        write(tmp_path / "b", "b", task, day, weights="33")
    read_models([tmp_path])
    assert [record.message for record in caplog.records] == [
        "a: older weights than the newest gave cogs_mini_gen; run them again"
    ]


def test_results_of_two_major_versions_are_said(tmp_path: Path) -> None:
    """The same folder gives other log-probabilities in another major version."""
    for name, library in (("a", "4.57.1"), ("b", "5.23.0"), ("c", "5.1.0")):
        write(tmp_path / name, name, "cogs_mini_gen", 1, transformers_version=library)
    models = read_models([tmp_path])
    shown = text(tables(models, ScoreQuery(), ["cogs_mini_gen"]), 200)
    assert "results of transformers 4 (a) and 5 (b, c): the same weights may score" in shown
    assert "transformers" not in text(tables(models[1:], ScoreQuery(), ["cogs_mini_gen"]), 200)
