"""Models' files: valid ones, and error messages for invalid ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs.job import Reporter
from lm_eval_ext.runs.model_files import read_model_files
from lm_eval_ext.runs.run import Work, prepare, run

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


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("model: hf\nmodel_arg: {}\n", 2, "unknown key 'model_arg'; use one of .*model_args"),
        ("# one\n\nmodel: hff\n", 3, "no model type 'hff'; use one of .*hf.*recorded"),
        ("model: hf\ntasks: lieder_mini\n", 2, "tasks is set by the run"),
        ("model: hf\nlimit: 3\n", 2, "limit is set by the run"),
        ("model: hf\nbatch_size: many\n", 2, "batch_size must be a number from 1, auto"),
        ("model: hf\nbatch_size: auto:0\n", 2, "batch_size must be"),
        ("model: hf\nbatch_size: true\n", 2, "batch_size must be"),
        ("model: hf\nbatch_size: 0\n", 2, "batch_size must be"),
        ("model: hf\nlauncher: accelerate 'x\n", 2, "launcher: (No closing quotation|it is empty)"),
        ("model: hf\nlauncher: ' '\n", 2, "launcher: (No closing quotation|it is empty)"),
        ("model: hf\ninclude_path: no/such/folder\n", 2, "include_path must be an existing folder"),
        ("model: hf\nnum_fewshot: five\n", 2, "num_fewshot: Input should be a valid integer"),
        ("model: hf\nnum_fewshot: 1.5\n", 2, "num_fewshot: Input should be a valid integer"),
        ("model: hf\nmodel_args: [pretrained]\n", 2, "model_args must be a mapping"),
        ("model: hf\nmodel_args:\n  - a\n", 2, "model_args must be a mapping"),
        ("model: hf\nmodel_args: gpt2\n", 2, "model_args must be a mapping"),
        (
            "model: hf\ntrust_remote_code: maybe\n",
            2,
            "trust_remote_code: Input should be a valid boolean",
        ),
        ("model: hf\nseed: x\n", 1, "seed values must be integers"),
        ("model: hf\ndisplay_name: 7\n", 2, "display_name: Input should be a valid string"),
        ("model: hf\nlauncher: [accelerate]\n", 2, "launcher: Input should be a valid string"),
        (
            "model: hf\npretraining_tokens: many\n",
            2,
            "pretraining_tokens: it must be a number from 0, such as 350M",
        ),
        ("model: hf\npretraining_tokens: -1\n", 2, "pretraining_tokens: it must be"),
        (
            "model: hf\ntraining_share: 20\n",
            2,
            "training_share: Input should be less than or equal to 1",
        ),
        ("model: hf\ntraining_share: true\n", 2, "training_share: it must be"),
        ("model: hf\nresources: 2\n", 2, "resources: Input should be a valid dictionary"),
        (
            "model: hf\nresources: {gpu: 2}\n",
            2,
            "resources.gpu: unknown key; use one of gpus, cpus",
        ),
        (
            "model: hf\nresources: {gpus: -1}\n",
            2,
            "resources.gpus: Input should be greater than or equal to 0",
        ),
        (
            "model: hf\nresources: {gpus: two}\n",
            2,
            "resources.gpus: Input should be a valid integer",
        ),
        ("model: hf\nmodel: hf\n", 2, "model is given a second time"),
        ("model_args: {a: 1}\n", 1, "no model; use one of .*hf"),
        ("model: hf\n1: 2\n", 2, "unknown key '1'"),
        ("- model: hf\n", 1, "must be a mapping"),
        ("", 1, "must be a mapping"),
        ("model: hf\nx: [1\n", 3, "not YAML"),
        ("model: hf\nnotes: !!python/object:os.system x\n", 2, "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    write: Callable[..., Path], text: str, line: int, said: str
) -> None:
    file = write(text)
    with pytest.raises(OptionError, match=said) as caught:
        read_model_files([file])
    assert str(caught.value).startswith(f"{file}:{line}: "), str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_that_do_not_go_together(write: Callable[..., Path]) -> None:
    with pytest.raises(OptionError, match="apply_chat_template"):
        read_model_files([write("model: hf\nfewshot_as_multiturn: true\n")])


def test_arguments_as_text_are_lm_evals(write: Callable[..., Path]) -> None:
    (model,) = read_model_files([write("model: hf\nmodel_args: pretrained=a,dtype=float32\n")])
    assert model.settings["model_args"] == "pretrained=a,dtype=float32"


def test_a_folder_gives_its_files_in_order(write: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt"):
        write("model: hf\n", name)
    assert [model.name for model in read_model_files([tmp_path])] == ["a", "b"]
    assert len(read_model_files([tmp_path, tmp_path / "b.yaml"])) == 2, "each file once"


def test_names_must_differ(write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    files = [write("model: hf\n"), write("model: hf\n", "x/M.yaml")]
    with pytest.raises(OptionError, match="both called 'm'"):
        read_model_files(files)
    files = [write(GOOD, "one.yaml"), write(GOOD, "two.yaml")]
    with pytest.raises(OptionError, match="both called 'a model'; change one display_name"):
        read_model_files(files)


@pytest.mark.parametrize(("path", "said"), [("none.yaml", "no file or folder"), (".", "no .yaml")])
def test_nothing_there(tmp_path: Path, path: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        read_model_files([tmp_path / path])


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_bytes(b"\xff\xfe\x00model")
    with pytest.raises(OptionError, match="cannot be read"):
        read_model_files([tmp_path])


def test_the_examples_are_valid() -> None:
    names = {model.name for model in read_model_files([EXAMPLES])}
    assert names == {
        "accelerate", "hf", "local-chat-completions", "local-completions", "recorded", "vllm",
    }  # fmt: skip


@pytest.mark.parametrize("limit", [float("inf"), float("nan"), 0.0, -1.0, 1.5])
def test_a_limit_that_is_no_number_of_documents(
    write: Callable[..., Path], tmp_path: Path, limit: float
) -> None:
    reporter = Reporter(line=lambda _: None, status=lambda _: None)
    with pytest.raises(OptionError, match=f"--limit {limit:g} must be"):
        run(Work([write(GOOD)], "lieder_mini", tmp_path / "out", limit), reporter)
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


def test_metadata_of_a_run_reach_the_tasks(write: Callable[..., Path], tmp_path: Path) -> None:
    reporter = Reporter(line=lambda _: None, status=lambda _: None)
    with pytest.raises(OptionError, match="fresh draws new items, and lieder_mini has a fixed set"):
        work = Work([write(GOOD)], "lieder_mini", tmp_path / "out", metadata='{"fresh": 7}')
        run(work, reporter)
    assert not (tmp_path / "out").exists()
