"""A run: models' files, selecting tasks, what makes a run the same as before, and the process that
evaluates a model."""

import errno
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.tasks import manager
from lm_eval.tasks._index import TaskIndex
from support.small_lm_eval import ONLY_TASK
from yaml import safe_load

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.harness import loading, provenance
from lm_eval_ext.results.files import KEYS
from lm_eval_ext.runs import process, run
from lm_eval_ext.runs.child import add_run_facts, index_only_needed
from lm_eval_ext.runs.model_files import ModelFile, read_model_files
from lm_eval_ext.runs.tasks import select

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


def write(folder: Path, text: str, name: str = "m.yaml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_good_file(tmp_path: Path) -> None:
    (model,) = read_model_files([write(tmp_path, GOOD)])
    assert (model.name, model.display_name, model.launcher) == ("m", "A model", "")
    options = safe_load(GOOD)
    for key in ("display_name", "notes"):
        del options[key]
    assert model.settings == options
    assert {"hf", "vllm", "recorded"} <= {model.name for model in read_model_files([EXAMPLES])}


WRONG = {
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((f"model: hf\n{line}\n", message) for line, message in WRONG.items()),
        ("model: hff", "model: no such model type; use one of .*hf.*recorded.*, got 'hff'"),
        ("- model: hf", "should be an object"),
        ("# only a comment", "the file is empty"),
        ("model_args: {a: 1}", "model: the key is missing"),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(LmEvalExtError, match=message) as caught:
        read_model_files([file])
    assert str(caught.value).startswith(f"{file}: "), str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_of_folders_have_different_names(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "no .yaml"), (tmp_path / "m.yaml", "no file or folder")):
        with pytest.raises(OptionError, match=message):
            read_model_files([path])
    for name in ("b.yaml", "a.yml", "c.txt"):
        write(tmp_path, "model: hf\n", name)
    models = read_model_files([tmp_path, tmp_path / "b.yaml"])
    assert [model.name for model in models] == ["a", "b"], "in order, each file once"
    (tmp_path / "x").mkdir()
    for name, text in (("B.yaml", "model: hf\n"), ("c.yaml", "model: hf\ndisplay_name: A\n")):
        with pytest.raises(OptionError, match=f"same (display_)?name, '[{name[0].lower()}a]'"):
            read_model_files([tmp_path, write(tmp_path / "x", text, name)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"limit": limit}, f"--limit {limit:g} must be") for limit in (float("nan"), 0.0, 1.5)),
        ({"metadata": '{"fresh": 7}'}, "those of lieder_mini are fixed"),
    ],
)
def test_options_are_checked_before_anything_runs(
    tmp_path: Path, options: Any, message: str
) -> None:
    work = run.Work([write(tmp_path, GOOD)], "lieder_mini", tmp_path / "out", **options)
    with pytest.raises(OptionError, match=message):
        run.run(work, run.Reporter(lambda _: None, lambda _: None))
    assert not (tmp_path / "out").exists()


def test_metadata_for_all_models(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD + "metadata: {cogs_seed: 3, cogs_shape: cvcv_long}\n")

    def metadata(text: str) -> dict[str, object]:
        work = run.Work([file], "cogs_mini_fresh_gen", tmp_path / "out", metadata=text)
        merged: dict[str, object] = run.prepare(work)[0].model.settings["metadata"]
        return merged

    assert metadata("") == {"cogs_seed": 3, "cogs_shape": "cvcv_long"}
    for text in ('{"cogs_seed": 7}', "cogs_seed=7"):
        assert metadata(text) == {"cogs_seed": 7, "cogs_shape": "cvcv_long"}
    with pytest.raises(OptionError, match=r"--metadata \{cogs_seed: 7: neither JSON nor key=value"):
        metadata("{cogs_seed: 7")


STOCK = """\
task: stock_sums
custom_dataset: !function sums.load
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

LOAD = """\
from datasets import Dataset

def load(**kwargs):
    return {"test": Dataset.from_list([{"question": "1 + 1 =", "answer": "2"}])}
"""


@pytest.fixture
def user_tasks(tmp_path: Path) -> Path:
    """A folder with a task of a user, in lm-eval's own format."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "stock_sums.yaml").write_text(STOCK)
    (folder / "sums.py").write_text(LOAD)
    return folder


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "selected"),
    [
        ("lieder_mini, cogs_mini,lieder_mini", ["lieder_mini", "cogs_mini"]),
        ("lieder_mini*", ["lieder_mini"]),
        ("cogs_mini_i?,cogs_mini_gen", ["cogs_mini_id", "cogs_mini_gen"]),
        ("leider_mini", "did you mean lieder_mini"),
        ("zzz*", r"no task 'zzz\*'"),
        ("none.yaml", "no task 'none.yaml'"),
        (" ,", "names no task"),
    ],
)
def test_names_and_patterns(names: str, selected: Any) -> None:
    if isinstance(selected, list):
        assert list(select(names).names) == selected
        return
    with pytest.raises(OptionError, match=selected):
        select(names)


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "indexes_all"),
    [(["stock_sums", "a/file.yaml"], False), (["stock_sums", ONLY_TASK], True)],
)
def test_lm_evals_tasks_are_indexed_if_one_of_them_is_asked(
    user_tasks: Path, names: list[str], indexes_all: bool
) -> None:
    index = index_only_needed(TaskIndex.build, names)(
        [Path(str(manager.__file__)).parent, user_tasks]
    )
    assert {"stock_sums", "lieder_mini"} <= index.keys()
    assert (ONLY_TASK in index) is indexes_all


def test_members_come_with_their_group() -> None:
    checked = select("cogs_mini*").check({})
    assert checked["cogs_mini"].keys() == {"cogs_mini_id", "cogs_mini_testlex", "cogs_mini_gen"}
    assert not checked.keys() & checked["cogs_mini"].keys()
    assert "cogs_mini_icl_gen" in checked, "which is in no group"
    assert checked["cogs_mini"]["cogs_mini_gen"]["task"] == "cogs_mini_gen"


def keys(tasks: str, limit: float | None = None, folder: str = "", **settings: Any) -> Any:
    checked = select(tasks, folder).check(settings.get("metadata", {}))
    return run.run_keys({"model": "dummy", **settings}, checked, limit)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ({}, {}, True),
        ({"limit": 4}, {"limit": 4.0}, True),
        ({"limit": 4}, {}, False),
        ({}, {"num_fewshot": 1}, False),
        ({"gen_kwargs": {"max_gen_toks": 3}}, {"gen_kwargs": "max_gen_toks=3"}, True),
        ({}, {"batch_size": 8, "device": "cpu", "verbosity": "INFO"}, True),
        ({"model_args": "a=b"}, {"model_args": {"a": "b", "base_url": "c"}}, True),
        ({}, {"model_args": {"pretrained": "other"}}, False),
        ({"seed": 5}, {"seed": [5, 5, 5, 5]}, True),
        ({}, {"metadata": {"cogs_seed": 6}}, False),
    ],
)
def test_what_makes_a_run_the_same(before: dict[str, Any], now: dict[str, Any], same: bool) -> None:
    task = "cogs_mini_fresh_gen"
    assert (keys(task, **before) == keys(task, **now)) is same


def test_a_tasks_data_and_version_count_and_not_its_place(
    user_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = keys("stock_sums", folder=str(user_tasks))
    copy = Path(shutil.copytree(user_tasks, tmp_path / "tasks"))
    assert keys("stock_sums", folder=str(copy)) == before
    file = copy / "stock_sums.yaml"
    assert keys(str(file))[str(file)] == before["stock_sums"]
    file.write_text(STOCK.replace("version: 1.0", "version: 1.1"))
    assert keys("stock_sums", folder=str(copy)) != before
    (copy / "sums.py").write_text("def load(**kwargs):\n    raise KeyError('rows')\n")
    with pytest.raises(
        OptionError, match=r"stock_sums: the task cannot be loaded \(KeyError: 'rows'"
    ):
        keys("stock_sums", folder=str(copy))

    before = keys("cogs_mini_gen")
    changed = provenance.describe_embedded("cogs_mini", "0" * 64)
    load = loading.Loader.load

    def load_changed(loader: loading.Loader[Any], metadata: Any) -> loading.LoadedTask:
        return replace(load(loader, metadata), provenance=changed)

    monkeypatch.setattr(loading.Loader, "load", load_changed)
    assert keys("cogs_mini_gen") != before


def test_what_is_missing(tmp_path: Path) -> None:
    job = run.Job(ModelFile(tmp_path, "", "m", {}, "m", "", {}), {"a": "1", "b": "2"}, tmp_path, 4)
    results = {"results": {"a": {}}, "configs": {"a": {}}}
    for number, (noted, missing) in enumerate(
        (({}, ["a", "b"]), ({"a": "1", "b": "3"}, ["b"]), ({"a": "3", "b": "2"}, []))
    ):
        text = json.dumps({**results, KEYS: noted})
        (tmp_path / f"results_{number}.json").write_text(text if noted else "{")
        assert job.missing() == missing


@pytest.mark.parametrize("result", ["results_1.json", "a__b/results_1.json", "cache/a_rank0.db"])
def test_another_model_in_the_same_folder_is_refused(tmp_path: Path, result: str) -> None:
    def check(arguments: str) -> None:
        settings = {"model": "hf", "model_args": arguments}
        run.check_same_model(tmp_path, ModelFile(Path("m"), "", "m", settings, "m", "", {}))

    file = tmp_path / "model.yaml"
    file.write_text("model: hf\nmodel_args: {pretrained: a}\ndisplay_name: x\n")
    check("pretrained=b")  # it never started: an argument was misspelt
    (tmp_path / result).parent.mkdir(exist_ok=True)
    (tmp_path / result).touch()
    check("pretrained=a,num_concurrent=2")
    for text, message in (
        (file.read_text(), "rename the file, or remove"),
        ("[", "to start again"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=message):
            check("pretrained=b")


def sample(number: int, arguments: list[Any], answer: Any, name: str = "none") -> dict[str, Any]:
    return {"doc_id": number, "filter": name, "arguments": arguments, "resps": [[answer]]}


SAMPLES = {
    "asks": [
        sample(number, [("two words", {"until": ["\n"]})], "three words here", name)
        for name in ("first", "second")
        for number in range(2)
    ],
    "compares": [sample(0, [("a b", " c"), ("a b", " d e")], (-1.0, False))],
}


@pytest.mark.parametrize("bos", [0, 1])
def test_tokens_are_counted_once_per_document_and_with_one_bos_per_request(bos: int) -> None:
    """A model that cannot count keeps its results."""

    def noted(**model: Any) -> Any:
        return add_run_facts(lambda **_: {"samples": SAMPLES}, {"a": "1"})(
            lm=SimpleNamespace(**model)
        )

    def encode(text: str) -> list[int]:
        return [0] * (bos + len(text.split()))

    counted = {
        "asks": {"input": 4 + 2 * bos, "output": 6},
        "compares": {"input": 7 + 2 * bos, "output": 0},
    }
    results = {"samples": SAMPLES, KEYS: {"a": "1"}}
    assert noted(tok_encode=encode, tokenizer="any") == {**results, "tokens": counted}
    for model in (
        {},
        {"tok_encode": encode, "tokenizer": None},
        {"tok_encode": len, "tokenizer": 1},
    ):
        assert noted(**model) == results
    assert add_run_facts(lambda **_: None, {})(lm=None) is None, "another rank has no results"


OF_A_RANK = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID",
    "ACCELERATE_USE_FSDP", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
)  # fmt: skip
OF_OTHERS = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "FRANK", "RANKING", "HF_TOKEN")


def test_an_evaluation_does_not_take_itself_for_a_rank_of_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accelerate would wait for the other ranks for ever."""
    for name in (*OF_A_RANK, *OF_OTHERS):
        monkeypatch.setenv(name, "7")
    log = tmp_path / "log.txt"
    listing = "import os; print(*os.environ)"
    launcher = f'{sys.executable} -c "{listing}"'
    assert process.evaluate([], log, launcher, lambda _: None) == 0
    inherited = set(log.read_text().split())
    assert inherited & {*OF_A_RANK, *OF_OTHERS} == set(OF_OTHERS)
    assert os.environ["RANK"] == "7"


UNSAVED = "WARNING Could not save sample results"
"""What lm-eval says before it ends well."""


@pytest.mark.parametrize(
    ("status", "log", "is_full", "message"),
    [
        pytest.param(1, "|lieder_mini|  1.0|half a ta", False, "it ended with status 1", id="ends"),
        pytest.param(1, "|lieder_mini|  1.0|half a ta", True, "no space is left on", id="full"),
        pytest.param(0, UNSAVED, True, "no space is left on", id="full, without samples"),
        pytest.param(0, UNSAVED, False, "it ended with status 0", id="without samples"),
    ],
)
def test_a_full_disk_is_the_reason_whatever_the_log_says_last(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    status: int,
    log: str,
    is_full: bool,
    message: str,
) -> None:
    def evaluate(_words: object, log_file: Path, *_: object) -> int:
        log_file.write_text(log)
        return status

    usage = shutil.disk_usage(tmp_path)
    usage = usage._replace(free=4096 if is_full else usage.total)
    monkeypatch.setattr(run, "evaluate", evaluate)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    (tmp_path / "m.yaml").write_text("model: dummy\n")
    work = run.Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out", 2)
    lines: list[str] = []
    with pytest.raises(LmEvalExtError, match="1 of 1 models failed: m"):
        run.run(work, run.Reporter(lines.append, lambda _: None))
    assert lines[-1].startswith(f"m: {message}")


@pytest.mark.parametrize(
    ("log", "command", "message"),
    [
        ("Running generate_until requests:   4%|          | 2/48", "kill -9 $$",
         "killed by signal 9, perhaps out of memory"),
        ("ValueError: an old warning\n", "kill -9 $$", "killed by signal 9"),
        ("a launcher's process was killed", "exit 137", "killed by signal 9"),
        ("ValueError: no such file\nRunning: 4%", "exit 3", "ValueError: no such file"),
        ("Running: 4%|", "exit 3", "it ended with status 3"),
        ("Running: 4%|", "kill -11 $$", "killed by signal 11"),
        ("requests.exceptions.HTTPError: 401 Client Error for url: http://a\n", "exit 1",
         "OPENAI_API_KEY"),
        ("ValueError: 401 is no label\n", "exit 1", "ValueError: 401 is no label"),
    ],
)  # fmt: skip
def test_the_reason_is_an_error_or_how_the_process_ended(
    tmp_path: Path, log: str, command: str, message: str
) -> None:
    file, script = tmp_path / "log", tmp_path / "evaluation.sh"
    (tmp_path / "text").write_text(log)
    script.write_text(f"cat {tmp_path / 'text'}; {command}\n")
    status = process.evaluate([], file, f"sh {script}", lambda _: None)
    reason = process.reason(file, status)
    assert message in reason
    assert "%" not in reason
    assert ("API_KEY" in reason) is ("API_KEY" in message)


def test_a_killed_evaluation_is_named_where_signals_have_no_such_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python on Windows has no SIGKILL."""
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.delattr("signal.SIGKILL")
    log = tmp_path / "log"
    log.write_text("ValueError: no such file\n")
    assert process.reason(log, 137) == "killed by signal 9, perhaps out of memory"
    assert process.reason(log, 1) == "ValueError: no such file"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOLCK, "No locks available"), NotImplementedError()]
)
def test_a_file_system_without_locks_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run.FileLock, "acquire", refuse)
    (tmp_path / "m.yaml").write_text("model: dummy\n")
    work = run.Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out")
    lines: list[str] = []
    with pytest.raises(LmEvalExtError, match="1 of 1 models failed: m"):
        run.run(work, run.Reporter(lines.append, lambda _: None))
    (line,) = lines
    assert line.startswith(f"m: {tmp_path / 'out' / 'm'}: this file system has no locks (flock)")
