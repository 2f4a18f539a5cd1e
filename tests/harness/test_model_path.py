"""A model's folder that does not exist is one line, before anything is loaded."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.model_path import check_model_path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one model, one adapter, one folder without either and one file; it is left."""
    for folder, name in (("good", "config.json"), ("adapter", "adapter_config.json")):
        (tmp_path / "models" / folder).mkdir(parents=True)
        (tmp_path / "models" / folder / name).write_text("{}")
    (tmp_path / "models" / "empty").mkdir()
    (tmp_path / "models" / "file.gguf").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "models"


@pytest.mark.parametrize(
    ("pretrained", "message"),
    [
        ("models/absent", r"no such folder \(models has good\)"),
        ("./absent", "no such folder; name a Hugging Face folder"),
        ("/no/such/folder", "no such folder"),
        ("a/b/c", "no such folder"),
        ("models/empty", "has no config.json"),
        ("models/file.gguf", "this is a file"),
    ],
)
def test_what_is_no_model_is_refused(models: Path, pretrained: str, message: str) -> None:
    """Paths that name no model are errors that say what is there."""
    with pytest.raises(OptionError, match=f"{re.escape(pretrained)}: .*{message}"):
        check_model_path("hf-prefix", {"pretrained": pretrained})


@pytest.mark.parametrize("argument", ["peft", "delta", "tokenizer"])
def test_other_folders_that_are_absent_are_refused(models: Path, argument: str) -> None:
    """An adapter or a tokenizer is loaded after the minutes that the model takes."""
    arguments = {"pretrained": "models/good", argument: "./absent"}
    with pytest.raises(OptionError, match=rf"{argument}=./absent: no such folder; name a Hugging"):
        check_model_path("hf", arguments)


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        ("hf", {"pretrained": "models/good"}),
        ("hf", {"pretrained": "models/adapter"}),
        ("hf", {"pretrained": "models/empty", "gguf_file": "x.gguf"}),
        ("hf", {"pretrained": "gpt2"}),
        ("hf", {"pretrained": "gpt2", "peft": "owner/adapter", "tokenizer": "models/empty"}),
        ("hf", {"pretrained": "HuggingFaceTB/SmolLM2-135M-Instruct"}),
        ("hf", {}),
        ("local-completions", {"pretrained": "/no/such/folder"}),
        ("vllm", {"pretrained": "models/absent"}),
    ],
    ids=str,
)
def test_what_may_be_a_model_passes(models: Path, model: str, arguments: dict[str, str]) -> None:
    """Folders of models and names on the hub pass; so do types that read no such folder."""
    check_model_path(model, arguments)


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
def test_run_names_the_file(models: Path, cli: Callable[..., Any], *, dry_run: bool) -> None:
    """``run`` and ``--dry-run`` end with one line that names the model's file."""
    file = models.parent / "mine.yaml"
    file.write_text("model: hf-prefix\nmodel_args: {pretrained: models/absent}\n")
    options = ["--dry-run"] if dry_run else []
    done = cli("run", "--models", str(file), "--tasks", "lieder_mini", "-o", "out", *options)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"{file}: pretrained=models/absent: no such folder" in done.stderr
    assert not (models.parent / "out").exists()


def test_lm_eval_says_so_before_it_loads(models: Path, lm_eval: Callable[..., Any]) -> None:
    """Plain ``lm_eval`` on a task of ours ends with the same line."""
    done = lm_eval("--tasks", "lieder_mini", "--model", "hf", "--model_args",
                   "pretrained=models/absent")  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("lm-eval-ext: error: pretrained=models/absent: no such folder")
