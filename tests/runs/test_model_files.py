"""Models' files: what they may have, and which are refused."""

from pathlib import Path

import pytest
from support.model_files import GOOD, write_model_file
from yaml import safe_load

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.runs.model_files import read_model_files

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"


def test_a_models_settings_are_its_files_keys_but_what_readers_see(tmp_path: Path) -> None:
    (model,) = read_model_files([write_model_file(tmp_path, GOOD)])
    assert model.name == "m"
    assert model.display_name == "A model"
    assert model.launcher == ""
    options = safe_load(GOOD)
    del options["display_name"], options["notes"]
    assert model.settings == options


def test_the_example_files_can_be_read() -> None:
    names = {model.name for model in read_model_files([EXAMPLES])}
    assert {"hf", "vllm", "recorded"} <= names


WRONG_LINES = {
    "model_arg: {}": "model_arg: unknown key; did you mean model_args",
    "tasks: lieder_mini": "tasks is set by the run",
    "batch_size: many": "batch_size: it must be a number from 1, auto or auto:N, got 'many'",
    "batch_size: true": "batch_size: it must be",
    "launcher: accelerate 'x": "launcher: (No closing quotation|it is empty)",
    "launcher: ' '": "launcher: (No closing quotation|it is empty)",
    "include_path: no/such/folder": "include_path: Path does not point to a directory",
    "num_fewshot: five": "num_fewshot: Input should be a valid integer",
    "model_args: gpt2": "model_args: it must be a mapping",
    "seed: x": "seed values must be integers",
    "display_name: 7": "display_name: Input should be a valid string",
    "pretraining_tokens: many": "pretraining_tokens: Input should be a valid number",
    "training_share: 20": "training_share: Input should be less than or equal to 1",
    "model: hf": "the key 'model' is repeated",
    "1: 2": "1: unknown key",
    "notes: !!python/object:os.system x": "not valid YAML",
    "notes: [": r"not valid YAML: while parsing a flow node( in line \d, column \d)?",
    "fewshot_as_multiturn: true": "apply_chat_template",
}
"""Lines of a file that also has ``model: hf``, with the message about each."""

WRONG_FILES = {
    "model: hff": "model: no such model type; use one of .*hf.*recorded.*, got 'hff'",
    "- model: hf": "should be an object",
    "# only a comment": "the file is empty",
    "model_args: {a: 1}": "model: the key is missing",
}
"""Texts of a whole file, with the message about each."""


def check_message_about_file(file: Path, message: str) -> None:
    """Assert that a model's file is refused in one line that names it."""
    with pytest.raises(LmEvalExtError, match=message) as caught:
        read_model_files([file])
    assert str(caught.value).startswith(f"{file}: "), str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("line", "message"), WRONG_LINES.items(), ids=WRONG_LINES)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = write_model_file(tmp_path, f"model: hf\n{line}\n")
    check_message_about_file(file, message)


@pytest.mark.parametrize(("text", "message"), WRONG_FILES.items(), ids=WRONG_FILES)
def test_a_file_without_a_known_model_is_refused(tmp_path: Path, text: str, message: str) -> None:
    check_message_about_file(write_model_file(tmp_path, text), message)


def test_the_files_of_a_folder_are_read_in_order_and_each_once(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt"):
        write_model_file(tmp_path, "model: hf\n", name)
    models = read_model_files([tmp_path, tmp_path / "b.yaml"])
    assert [model.name for model in models] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(".", "no .yaml", id="empty folder"),
        pytest.param("m.yaml", "no file or folder", id="nothing there"),
    ],
)
def test_a_path_without_model_files_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_model_files([tmp_path / name])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("B.yaml", "model: hf\n", "same name, '[ba]'", id="file name in capitals"),
        pytest.param(
            "c.yaml",
            "model: hf\ndisplay_name: A\n",
            "same display_name, '[ca]'",
            id="displayed name in capitals",
        ),
    ],
)
def test_two_models_of_the_same_name_are_refused(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    for stem in ("a", "b"):
        write_model_file(tmp_path, "model: hf\n", f"{stem}.yaml")
    (tmp_path / "folder").mkdir()
    namesake = write_model_file(tmp_path / "folder", text, name)
    with pytest.raises(OptionError, match=message):
        read_model_files([tmp_path, namesake])
