"""A run: selecting tasks, what makes a run the same as before, and what it says when it fails."""

import errno
import json
import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from lm_eval.tasks import manager
from lm_eval.tasks._index import TaskIndex
from support.model_files import GOOD, write_model_file
from support.small_lm_eval import ONLY_TASK

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.harness import loading, provenance
from lm_eval_ext.results.files import KEYS
from lm_eval_ext.runs import run
from lm_eval_ext.runs.child import add_run_facts, index_only_needed
from lm_eval_ext.runs.model_files import ModelFile
from lm_eval_ext.runs.tasks import select


def ignore(_text: str) -> None:
    """Print nothing."""


SILENT = run.Reporter(line=ignore, status=ignore)


@pytest.mark.parametrize("limit", [float("nan"), 0.0, 1.5])
def test_a_limit_that_is_no_number_of_documents_is_refused_at_once(
    tmp_path: Path, limit: float
) -> None:
    output = tmp_path / "out"
    work = run.Work([write_model_file(tmp_path, GOOD)], "lieder_mini", output, limit)
    with pytest.raises(OptionError, match=f"--limit {limit:g} must be"):
        run.run(work, SILENT)
    assert not output.exists()


def test_fresh_items_of_a_task_without_them_are_refused_at_once(tmp_path: Path) -> None:
    output = tmp_path / "out"
    model_file = write_model_file(tmp_path, GOOD)
    work = run.Work([model_file], "lieder_mini", output, metadata='{"fresh": 7}')
    with pytest.raises(OptionError, match="those of lieder_mini are fixed"):
        run.run(work, SILENT)
    assert not output.exists()


METADATA_OF_MODEL = "metadata: {cogs_seed: 3, cogs_shape: cvcv_long}\n"


@pytest.mark.parametrize(
    ("option", "seed"),
    [
        pytest.param("", 3, id="none"),
        pytest.param('{"cogs_seed": 7}', 7, id="JSON"),
        pytest.param("cogs_seed=7", 7, id="key=value"),
    ],
)
def test_metadata_of_the_command_override_those_of_a_model(
    tmp_path: Path, option: str, seed: int
) -> None:
    file = write_model_file(tmp_path, GOOD + METADATA_OF_MODEL)
    work = run.Work([file], "cogs_mini_fresh_gen", tmp_path / "out", metadata=option)
    (job,) = run.prepare(work)
    assert job.model.settings["metadata"] == {"cogs_seed": seed, "cogs_shape": "cvcv_long"}


def test_metadata_that_cannot_be_read_are_quoted(tmp_path: Path) -> None:
    file = write_model_file(tmp_path, GOOD)
    work = run.Work([file], "cogs_mini_fresh_gen", tmp_path / "out", metadata="{cogs_seed: 7")
    with pytest.raises(OptionError, match=r"--metadata \{cogs_seed: 7: neither JSON nor key=value"):
        run.prepare(work)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "model: hf-prefix\nmodel_args: {pretrained: no/such/folder}\n",
            "m.yaml: pretrained=no/such/folder: no such folder",
            id="weights",
        ),
        pytest.param(
            "model: recorded\nmodel_args: {path: no/such/file.jsonl}\n",
            "m.yaml: --model recorded: no recorded answers at no/such/file.jsonl",
            id="recorded answers",
        ),
        pytest.param(
            "model: recorded\n",
            "m.yaml: --model recorded: path=None is not a path",
            id="recorded answers without a path",
        ),
    ],
)
def test_a_model_that_is_not_there_is_refused_before_anything_is_loaded(
    tmp_path: Path, text: str, message: str
) -> None:
    work = run.Work([write_model_file(tmp_path, text)], "lieder_mini", tmp_path / "out")
    with pytest.raises(OptionError, match=re.escape(message)):
        run.prepare(work)


def test_what_is_left_out_of_a_task_is_said_once_with_the_models(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each model's tasks are loaded; a later command says it again."""
    for model in ("a", "b"):
        write_model_file(tmp_path, GOOD.replace("A model", model), f"{model}.yaml")
    work = run.Work([tmp_path], "conceptual_mini", tmp_path / "out")
    for command in ("first", "second"):
        caplog.clear()
        assert len(run.prepare(work)) == 2
        messages = [message for message in caplog.messages if "left out" in message]
        assert len(messages) == 1, command
        assert messages[0].startswith("conceptual_mini: samples that are left out"), command
        assert messages[0].endswith("(a, b)"), command


def test_what_is_left_out_of_a_task_is_not_said_if_there_is_nothing_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work = run.Work([write_model_file(tmp_path, GOOD)], "conceptual_mini", tmp_path / "out")
    (job,) = run.prepare(work)
    job.folder.mkdir(parents=True)
    results: dict[str, object] = {"results": {"conceptual_mini": {}}, "configs": {}}
    results[KEYS] = job.digest_by_task
    (job.folder / "results_1.json").write_text(json.dumps(results))
    caplog.clear()
    (job,) = run.prepare(work)
    assert job.missing() == []
    assert "left out" not in caplog.text


def test_what_is_left_out_of_a_task_with_results_is_not_said_if_another_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only lieder_mini is to be evaluated, of which nothing is left out."""
    names = "conceptual_mini,lieder_mini"
    work = run.Work([write_model_file(tmp_path, GOOD)], names, tmp_path / "out")
    (job,) = run.prepare(work)
    assert "conceptual_mini: samples that are left out" in caplog.text
    job.folder.mkdir(parents=True)
    results: dict[str, object] = {"results": {"conceptual_mini": {}}, "configs": {}}
    results[KEYS] = {"conceptual_mini": job.digest_by_task["conceptual_mini"]}
    (job.folder / "results_1.json").write_text(json.dumps(results))
    caplog.clear()
    (job,) = run.prepare(work)
    assert job.missing() == ["lieder_mini"]
    assert "left out" not in caplog.text


STOCK_TASK = """\
task: stock_sums
custom_dataset: !function sums.load
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

LOADING_MODULE = """\
from datasets import Dataset

def load(**kwargs):
    return {"test": Dataset.from_list([{"question": "1 + 1 =", "answer": "2"}])}
"""


@pytest.fixture
def user_tasks(tmp_path: Path) -> Path:
    """A folder with a task of a user, in lm-eval's own format."""
    folder = tmp_path / "user_tasks"
    folder.mkdir()
    (folder / "stock_sums.yaml").write_text(STOCK_TASK)
    (folder / "sums.py").write_text(LOADING_MODULE)
    return folder


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "selected"),
    [
        pytest.param(
            "lieder_mini, cogs_mini,lieder_mini",
            ["lieder_mini", "cogs_mini"],
            id="names, of which one is repeated",
        ),
        pytest.param("lieder_mini*", ["lieder_mini"], id="pattern of one task"),
        pytest.param(
            "cogs_mini_i?,cogs_mini_gen",
            ["cogs_mini_id", "cogs_mini_gen"],
            id="pattern and name",
        ),
    ],
)
def test_names_and_patterns_select_tasks(names: str, selected: list[str]) -> None:
    assert list(select(names).names) == selected


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param("leider_mini", "did you mean lieder_mini", id="misspelt"),
        pytest.param("zzz*", r"no task 'zzz\*'", id="pattern of nothing"),
        pytest.param("none.yaml", "no task 'none.yaml'", id="missing file"),
        pytest.param(" ,", "names no task", id="empty"),
    ],
)
def test_names_of_no_task_are_refused(names: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        select(names)


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "indexes_all"),
    [
        pytest.param(["stock_sums", "a/file.yaml"], False, id="tasks of the user"),
        pytest.param(["stock_sums", ONLY_TASK], True, id="a task of lm-eval's"),
    ],
)
def test_lm_evals_tasks_are_indexed_if_one_of_them_is_selected(
    user_tasks: Path, names: list[str], indexes_all: bool
) -> None:
    lm_evals_tasks = Path(str(manager.__file__)).parent
    index = index_only_needed(TaskIndex.build, names)([lm_evals_tasks, user_tasks])
    assert {"stock_sums", "lieder_mini"} <= index.keys()
    assert (ONLY_TASK in index) is indexes_all


def test_members_come_with_their_group() -> None:
    checked = select("cogs_mini*").check({})
    members: Mapping[str, Any] = checked["cogs_mini"]
    assert members.keys() == {"cogs_mini_id", "cogs_mini_testlex", "cogs_mini_gen"}
    assert not checked.keys() & members.keys()
    assert "cogs_mini_icl_gen" in checked, "which is in no group"
    assert members["cogs_mini_gen"]["task"] == "cogs_mini_gen"


def keys_of(
    tasks: str, *, limit: float | None = None, folder: str = "", **settings: Any
) -> dict[str, str]:
    """Return the keys of a dummy model's run with further settings."""
    checked = select(tasks, folder).check(settings.get("metadata", {}))
    return run.run_keys({"model": "dummy", **settings}, checked, limit)


@pytest.mark.parametrize(
    ("before", "now", "is_same"),
    [
        pytest.param({}, {}, True, id="nothing"),
        pytest.param({"limit": 4}, {"limit": 4.0}, True, id="limit as another number"),
        pytest.param({"limit": 4}, {}, False, id="limit"),
        pytest.param({}, {"num_fewshot": 1}, False, id="demonstrations"),
        pytest.param(
            {"gen_kwargs": {"max_gen_toks": 3}},
            {"gen_kwargs": "max_gen_toks=3"},
            True,
            id="generation settings written otherwise",
        ),
        pytest.param(
            {},
            {"batch_size": 8, "device": "cpu", "verbosity": "INFO"},
            True,
            id="where and how fast it runs",
        ),
        pytest.param(
            {"model_args": "a=b"},
            {"model_args": {"a": "b", "base_url": "c"}},
            True,
            id="address of the server",
        ),
        pytest.param({}, {"model_args": {"pretrained": "other"}}, False, id="model"),
        pytest.param({"seed": 5}, {"seed": [5, 5, 5, 5]}, True, id="seed written otherwise"),
        pytest.param({}, {"metadata": {"cogs_seed": 6}}, False, id="metadata"),
    ],
)
def test_a_run_is_another_one_where_a_response_may_differ(
    before: dict[str, Any], now: dict[str, Any], is_same: bool
) -> None:
    task = "cogs_mini_fresh_gen"
    assert (keys_of(task, **before) == keys_of(task, **now)) is is_same


def test_a_tasks_place_is_no_part_of_a_runs_key(user_tasks: Path, tmp_path: Path) -> None:
    before = keys_of("stock_sums", folder=str(user_tasks))
    copy = Path(shutil.copytree(user_tasks, tmp_path / "copy"))
    assert keys_of("stock_sums", folder=str(copy)) == before
    file = str(copy / "stock_sums.yaml")
    assert keys_of(file)[file] == before["stock_sums"]


def test_a_tasks_version_is_part_of_a_runs_key(user_tasks: Path) -> None:
    before = keys_of("stock_sums", folder=str(user_tasks))
    changed = STOCK_TASK.replace("version: 1.0", "version: 1.1")
    (user_tasks / "stock_sums.yaml").write_text(changed)
    assert keys_of("stock_sums", folder=str(user_tasks)) != before


def test_a_tasks_data_are_part_of_a_runs_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys_of("cogs_mini_gen")
    changed = provenance.describe_embedded("cogs_mini", "0" * 64)
    load = loading.Loader.load

    def load_changed(
        loader: loading.Loader[Any], metadata: Mapping[str, object]
    ) -> loading.LoadedTask:
        return replace(load(loader, metadata), provenance=changed)

    monkeypatch.setattr(loading.Loader, "load", load_changed)
    assert keys_of("cogs_mini_gen") != before


def test_a_task_that_cannot_be_loaded_is_named_with_the_error(user_tasks: Path) -> None:
    (user_tasks / "sums.py").write_text("def load(**kwargs):\n    raise KeyError('rows')\n")
    message = r"stock_sums: the task cannot be loaded \(KeyError: 'rows'"
    with pytest.raises(OptionError, match=message):
        keys_of("stock_sums", folder=str(user_tasks))


def test_tasks_without_results_of_the_same_run_are_missing(tmp_path: Path) -> None:
    model = ModelFile(tmp_path, "", "m", {}, "m", "", {})
    job = run.Job(model, {"a": "1", "b": "2"}, tmp_path, 4)
    content: dict[str, object] = {"results": {"a": {}}, "configs": {"a": {}}}

    def write_results(number: int, keys: Mapping[str, str]) -> None:
        text = json.dumps({**content, KEYS: keys})
        (tmp_path / f"results_{number}.json").write_text(text)

    (tmp_path / "results_0.json").write_text("{")
    assert job.missing() == ["a", "b"], "a broken file says nothing"
    write_results(1, {"a": "1", "b": "3"})
    assert job.missing() == ["b"]
    write_results(2, {"a": "3", "b": "2"})
    assert job.missing() == []


def check_model(folder: Path, model_args: str) -> None:
    """Check whether a folder may get the results of a model with these arguments."""
    settings = {"model": "hf", "model_args": model_args}
    run.check_same_model(folder, ModelFile(Path("m"), "", "m", settings, "m", "", {}))


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A folder of a model's results, without any."""
    text = "model: hf\nmodel_args: {pretrained: a}\ndisplay_name: x\n"
    (tmp_path / "model.yaml").write_text(text)
    return tmp_path


def test_a_folder_without_results_may_be_another_models(model_folder: Path) -> None:
    """It never started: an argument was misspelt."""
    check_model(model_folder, "pretrained=b")


RESULTS = pytest.mark.parametrize(
    "result", ["results_1.json", "a__b/results_1.json", "cache/a_rank0.db"]
)


@RESULTS
def test_another_model_in_the_same_folder_is_refused(model_folder: Path, result: str) -> None:
    (model_folder / result).parent.mkdir(exist_ok=True)
    (model_folder / result).touch()
    check_model(model_folder, "pretrained=a,num_concurrent=2")
    with pytest.raises(DataError, match="rename the file, or remove"):
        check_model(model_folder, "pretrained=b")


@RESULTS
def test_a_folder_whose_model_cannot_be_read_is_refused(model_folder: Path, result: str) -> None:
    (model_folder / result).parent.mkdir(exist_ok=True)
    (model_folder / result).touch()
    (model_folder / "model.yaml").write_text("[")
    with pytest.raises(DataError, match="to start again"):
        check_model(model_folder, "pretrained=b")


def sample(
    number: int, arguments: list[tuple[object, ...]], response: object, name: str = "none"
) -> dict[str, object]:
    """Return a sample as lm-eval logs it; ``name`` is that of its filter."""
    return {"doc_id": number, "filter": name, "arguments": arguments, "resps": [[response]]}


SAMPLES = {
    "generates": [
        sample(number, [("two words", {"until": ["\n"]})], "three words here", name)
        for name in ("first", "second")
        for number in range(2)
    ],
    "compares": [sample(0, [("a b", " c"), ("a b", " d e")], (-1.0, False))],
}
"""The samples of two tasks, one of which has two filters."""

RESULTS_WITH_KEYS = {"samples": SAMPLES, KEYS: {"a": "1"}}


def results_with_facts(**model: object) -> object:
    """Return the results of an evaluation of a model, with the facts of the run."""

    def evaluate(**_options: object) -> dict[str, object]:
        return {"samples": SAMPLES}

    return add_run_facts(evaluate, {"a": "1"})(lm=SimpleNamespace(**model))


def count_words(text: str) -> list[int]:
    """Return a token for each word."""
    return [0] * len(text.split())


@pytest.mark.parametrize("bos", [0, 1], ids=["without BOS", "with BOS"])
def test_tokens_are_counted_once_per_document_and_with_one_bos_per_request(bos: int) -> None:
    def encode(text: str) -> list[int]:
        return [0] * bos + count_words(text)

    tokens = {
        "generates": {"input": 4 + 2 * bos, "output": 6},
        "compares": {"input": 7 + 2 * bos, "output": 0},
    }
    results = results_with_facts(tok_encode=encode, tokenizer="any")
    assert results == {**RESULTS_WITH_KEYS, "tokens": tokens}


@pytest.mark.parametrize(
    "model",
    [
        pytest.param({}, id="no tokenizer"),
        pytest.param({"tok_encode": count_words, "tokenizer": None}, id="a dummy model"),
        pytest.param({"tok_encode": len, "tokenizer": 1}, id="a tokenizer that fails"),
    ],
)
def test_a_model_that_cannot_count_tokens_keeps_its_results(model: dict[str, object]) -> None:
    assert results_with_facts(**model) == RESULTS_WITH_KEYS


def test_a_rank_without_results_gets_no_facts() -> None:
    def evaluate(**_options: object) -> None:
        return None

    assert add_run_facts(evaluate, {})(lm=None) is None


@pytest.mark.parametrize(
    ("before", "added", "message"),
    [
        pytest.param(0, 0, "0 answers are stored; this evaluation starts from the", id="none"),
        pytest.param(1200, 34, "1,234 answers are stored, 34 of them since this start", id="some"),
    ],
)
def test_an_interrupted_evaluation_says_how_many_answers_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, added: int, message: str
) -> None:
    cache = tmp_path / "out" / "m" / "cache" / "lieder_mini_rank0.db"
    cache.parent.mkdir(parents=True)

    def store(first: int, answers: int) -> None:
        with closing(sqlite3.connect(cache)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS unnamed (key TEXT, value BLOB)")
            rows = [(str(key), b"") for key in range(first, first + answers)]
            connection.executemany("INSERT INTO unnamed VALUES (?, ?)", rows)
            connection.commit()

    def evaluate(*_: object) -> int:
        store(before, added)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "evaluate", evaluate)
    if before:
        store(0, before)
    work = run.Work([write_model_file(tmp_path, "model: dummy\n")], "lieder_mini", tmp_path / "out")
    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run.run(work, run.Reporter(lines.append, ignore))
    assert lines[-1].startswith(f"[1/1] m: {message}")


@pytest.mark.parametrize(
    ("models", "line"),
    [
        pytest.param(1, "next: lm-eval-ext show 'the results'", id="one model"),
        pytest.param(
            2,
            "next: lm-eval-ext show 'the results'; lm-eval-ext compare 'the results'",
            id="several models",
        ),
    ],
)
def test_a_run_ends_with_the_commands_that_show_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: int, line: str
) -> None:
    def do_nothing(*_: object) -> run.Outcome:
        return run.Outcome()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run.Job, "run", do_nothing)
    files = []
    for number in range(models):
        file = tmp_path / f"m{number}.yaml"
        file.write_text("model: dummy\n")
        files.append(file)
    lines: list[str] = []
    work = run.Work(files, "lieder_mini", Path("the results"))
    run.run(work, run.Reporter(lines.append, ignore))
    assert lines == [line]


def test_models_that_were_evaluated_beside_one_that_failed_have_a_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorded model without responses to the task does not make the others look lost."""

    def fail_first(job: run.Job, *_: object) -> run.Outcome:
        return run.Outcome("no answer is recorded" if job.model.name == "m0" else "")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run.Job, "run", fail_first)
    files = []
    for number in range(3):
        files.append(write_model_file(tmp_path, "model: dummy\n", f"m{number}.yaml"))
    lines: list[str] = []
    work = run.Work(files, "lieder_mini", Path("out"))
    with pytest.raises(LmEvalExtError, match="1 of 3 models failed: m0"):
        run.run(work, run.Reporter(lines.append, ignore))
    assert lines == [
        "2 models evaluated; next: lm-eval-ext show out; lm-eval-ext compare out",
        "m0: no answer is recorded",
    ]


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

    total = shutil.disk_usage(tmp_path).total
    usage = SimpleNamespace(total=total, free=4096 if is_full else total)
    monkeypatch.setattr(run, "evaluate", evaluate)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    model_file = write_model_file(tmp_path, "model: dummy\n")
    work = run.Work([model_file], "lieder_mini", tmp_path / "out", 2)
    lines: list[str] = []
    with pytest.raises(LmEvalExtError, match="1 of 1 models failed: m"):
        run.run(work, run.Reporter(lines.append, ignore))
    assert lines[-1].startswith(f"m: {message}")


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOLCK, "No locks available"), NotImplementedError()]
)
def test_a_file_system_without_locks_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(FileLock, "acquire", refuse)
    (tmp_path / "m.yaml").write_text("model: dummy\n")
    work = run.Work([tmp_path / "m.yaml"], "lieder_mini", tmp_path / "out")
    lines: list[str] = []
    with pytest.raises(LmEvalExtError, match="1 of 1 models failed: m"):
        run.run(work, run.Reporter(lines.append, lambda _: None))
    (line,) = lines
    assert line.startswith(f"m: {tmp_path / 'out' / 'm'}: this file system has no locks (flock)")
