"""Models' files: valid ones, and error messages for invalid ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.runs.model_files import read_model_files
from lm_eval_ext.runs.run import Reporter, Work, prepare, run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"

GOOD = """\
display_name: A model
notes: for a test
model: hf
model_args:
  pretrained: somewhere
apply_chat_template: true
gen_kwargs: {temperature: 0}
batch_size: auto:4
seed: [1, 2, 3, 4]
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(text: str, name: str = "m.yaml") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write_file


def test_a_good_file(write: Callable[..., Path]) -> None:
    (model,) = read_model_files([write(GOOD)])
    assert (model.name, model.display_name, model.launcher) == ("m", "A model", "")
    assert set(model.settings) == {
        "model", "model_args", "apply_chat_template", "gen_kwargs", "batch_size", "seed",
    }  # fmt: skip
    assert model.settings["model_args"] == {"pretrained": "somewhere"}
    assert {"hf", "vllm", "recorded"} <= {model.name for model in read_model_files([EXAMPLES])}


WRONG = {
    "model_arg: {}": "model_arg: unknown key; did you mean model_args",
    "model: hff": "model: no such model type; use one of .*hf.*recorded.*, got 'hff'",
    "tasks: lieder_mini": "tasks is set by the run",
    "limit: 3": "limit is set by the run",
    "batch_size: many": "batch_size: it must be a number from 1, auto or auto:N, got 'many'",
    "batch_size: auto:0": "batch_size: it must be",
    "batch_size: true": "batch_size: it must be",
    "launcher: accelerate 'x": "launcher: (No closing quotation|it is empty)",
    "launcher: ' '": "launcher: (No closing quotation|it is empty)",
    "include_path: no/such/folder": "include_path: Path does not point to a directory",
    "num_fewshot: five": "num_fewshot: Input should be a valid integer",
    "model_args: gpt2": "model_args: it must be a mapping",
    "trust_remote_code: maybe": "trust_remote_code: Input should be a valid boolean",
    "seed: x": "seed values must be integers",
    "display_name: 7": "display_name: Input should be a valid string",
    "pretraining_tokens: many": "pretraining_tokens: Input should be a valid number",
    "training_share: 20": "training_share: Input should be less than or equal to 1",
    "resources: 2": "resources: Input should be a valid dictionary",
    "model: hf\nmodel: hf": "the key 'model' is repeated",
    "1: 2": "1: unknown key",
    "x: [1": "not valid YAML",
    "notes: !!python/object:os.system x": "not valid YAML",
    "fewshot_as_multiturn: true": "apply_chat_template",
}
"""Lines of a file with what is said about them; most files have also ``model: hf``."""


@pytest.mark.parametrize("line", [*WRONG, "- model: hf", "", "model_args: {a: 1}"])
def test_what_is_wrong_is_named(write: Callable[..., Path], line: str) -> None:
    said = WRONG.get(line, "should be an object|model: the key is missing")
    file = write(f"{line}\n" if "model: " in line or line not in WRONG else f"model: hf\n{line}\n")
    with pytest.raises(LmEvalExtError, match=said) as caught:
        read_model_files([file])
    assert str(caught.value).startswith(f"{file}: "), str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_of_folders_have_different_names(write: Callable[..., Path], tmp_path: Path) -> None:
    for path, said in ((tmp_path, "no .yaml"), (tmp_path / "m.yaml", "no file or folder")):
        with pytest.raises(OptionError, match=said):
            read_model_files([path])
    for name in ("b.yaml", "a.yml", "c.txt"):
        write("model: hf\n", name)
    models = read_model_files([tmp_path, tmp_path / "b.yaml"])
    assert [model.name for model in models] == ["a", "b"], "in order, each file once"
    (tmp_path / "x").mkdir()
    for name, text in (("B.yaml", "model: hf\n"), ("c.yaml", "model: hf\ndisplay_name: A\n")):
        with pytest.raises(OptionError, match=f"same (display_)?name, '[{name[0].lower()}a]'"):
            read_model_files([tmp_path, write(text, f"x/{name}")])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"limit": limit}, f"--limit {limit:g} must be") for limit in (float("nan"), 0.0, 1.5)),
        ({"metadata": '{"fresh": 7}'}, "unknown metadata key fresh"),
    ],
)
def test_options_are_checked_before_anything_runs(
    write: Callable[..., Path], tmp_path: Path, options: Any, said: str
) -> None:
    work = Work([write(GOOD)], "lieder_mini", tmp_path / "out", **options)
    with pytest.raises(OptionError, match=said):
        run(work, Reporter(lambda _: None, lambda _: None))
    assert not (tmp_path / "out").exists()


def test_metadata_for_all_models(write: Callable[..., Path], tmp_path: Path) -> None:
    file = write(GOOD + "metadata: {cogs_seed: 3, cogs_shape: cvcv_long}\n")

    def metadata(text: str) -> dict[str, object]:
        work = Work([file], "cogs_mini_fresh_gen", tmp_path / "out", metadata=text)
        found: dict[str, object] = prepare(work)[0].model.settings["metadata"]
        return found

    assert metadata("") == {"cogs_seed": 3, "cogs_shape": "cvcv_long"}
    for text in ('{"cogs_seed": 7}', "cogs_seed=7"):
        assert metadata(text) == {"cogs_seed": 7, "cogs_shape": "cvcv_long"}
    with pytest.raises(OptionError, match=r"--metadata \{cogs_seed: 7: neither JSON nor key=value"):
        metadata("{cogs_seed: 7")
