"""A model's folder that does not exist is one line, before anything is loaded."""

import re
from pathlib import Path

import pytest
from support.commands import Command

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.model_path import check_model_path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, an adapter, an empty folder and a file; the working folder has it."""
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
        pytest.param("models/absent", r"no such folder \(models has good\)", id="beside models"),
        pytest.param("./absent", "no such folder; name a Hugging Face folder", id="relative path"),
        pytest.param("/no/such/folder", "no such folder", id="absolute path"),
        pytest.param("a/b/c", "no such folder", id="too many slashes for the hub"),
        pytest.param("models/empty", "has no config.json", id="a folder without a model"),
        pytest.param("models/file.gguf", "this is a file", id="a file"),
    ],
)
@pytest.mark.usefixtures("models")
def test_a_path_without_a_model_is_refused(pretrained: str, message: str) -> None:
    """The error says what is there."""
    with pytest.raises(OptionError, match=f"{re.escape(pretrained)}: .*{message}"):
        check_model_path("hf-prefix", {"pretrained": pretrained})


@pytest.mark.parametrize("argument", ["peft", "delta", "tokenizer"])
@pytest.mark.usefixtures("models")
def test_other_folders_that_are_absent_are_refused(argument: str) -> None:
    """An adapter or a tokenizer is loaded after the minutes that the model takes."""
    arguments = {"pretrained": "models/good", argument: "./absent"}
    with pytest.raises(OptionError, match=rf"{argument}=./absent: no such folder; name a Hugging"):
        check_model_path("hf", arguments)


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        pytest.param("hf", {"pretrained": "models/good"}, id="a folder"),
        pytest.param("hf", {"pretrained": "models/adapter"}, id="an adapter"),
        pytest.param(
            "hf", {"pretrained": "models/empty", "gguf_file": "x.gguf"}, id="a folder for GGUF"
        ),
        pytest.param("hf", {"pretrained": "gpt2"}, id="a name on the hub"),
        pytest.param(
            "hf",
            {"pretrained": "gpt2", "peft": "owner/adapter", "tokenizer": "models/empty"},
            id="a name with an adapter's and a tokenizer's folder",
        ),
        pytest.param(
            "hf", {"pretrained": "HuggingFaceTB/SmolLM2-135M-Instruct"}, id="a name with an owner"
        ),
        pytest.param("hf", {}, id="no model"),
        pytest.param("local-completions", {"pretrained": "/no/such/folder"}, id="a server"),
        pytest.param("vllm", {"pretrained": "models/absent"}, id="vLLM"),
    ],
)
@pytest.mark.usefixtures("models")
def test_a_path_that_may_be_a_model_passes(model: str, arguments: dict[str, str]) -> None:
    """Folders of models and names on the hub pass; so do types that read no such folder."""
    check_model_path(model, arguments)


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "run"])
def test_run_names_the_file_of_an_absent_model(
    models: Path, cli: Command, *, dry_run: bool
) -> None:
    """``run`` and ``--dry-run`` end with one line that names the model's file."""
    file = models.parent / "mine.yaml"
    file.write_text("model: hf-prefix\nmodel_args: {pretrained: models/absent}\n")
    options = ["--dry-run"] if dry_run else []
    completed = cli("run", "--models", str(file), "--tasks", "lieder_mini", "-o", "out", *options)
    assert completed.returncode == 1
    assert completed.stderr.count("\n") == 1
    assert f"{file}: pretrained=models/absent: no such folder" in completed.stderr
    assert not (models.parent / "out").exists()


@pytest.mark.usefixtures("models")
def test_lm_eval_says_so_before_it_loads(lm_eval: Command) -> None:
    """Plain ``lm_eval`` on a task of ours ends with the same line."""
    completed = lm_eval("--tasks", "lieder_mini", "--model", "hf", "--model_args",
                   "pretrained=models/absent")  # fmt: skip
    assert completed.returncode == 1
    *_, last_line = completed.stderr.strip().splitlines()
    assert last_line.startswith("lm-eval-ext: error: pretrained=models/absent: no such folder")
