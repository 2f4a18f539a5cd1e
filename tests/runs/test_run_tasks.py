"""Selecting tasks by name, and what makes a run the same as before."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.tasks import manager
from lm_eval.tasks._index import TaskIndex
from support.small_lm_eval import LEFT

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.runs import run
from lm_eval_ext.runs.child import KEYS, noting, own_first
from lm_eval_ext.runs.model_files import ModelFile
from lm_eval_ext.runs.tasks import select

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


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
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
    ("names", "whole"), [(["stock_sums", "a/file.yaml"], False), (["stock_sums", LEFT], True)]
)
def test_lm_evals_tasks_are_indexed_where_one_is_asked(
    own_tasks: Path, names: list[str], whole: bool
) -> None:
    found = own_first(TaskIndex.build, names)([Path(str(manager.__file__)).parent, own_tasks])
    assert {"stock_sums", "lieder_mini"} <= found.keys()
    assert (LEFT in found) is whole


def test_members_come_with_their_group() -> None:
    checked = select("cogs_mini*").check({})
    assert checked["cogs_mini"].keys() == {"cogs_mini_id", "cogs_mini_testlex", "cogs_mini_gen"}
    assert not checked.keys() & checked["cogs_mini"].keys()
    assert "cogs_mini_icl_gen" in checked, "which is in no group"
    assert checked["cogs_mini"]["cogs_mini_gen"]["task"] == "cogs_mini_gen"


def keys(tasks: str, limit: float | None = None, folder: str = "", **settings: Any) -> Any:
    given = {"model": "dummy", **settings}
    return run.keys(given, select(tasks, folder).check(settings.get("metadata", {})), limit)


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
        ({}, {"apply_chat_template": True}, False),
        ({}, {"seed": 5}, False),
        ({"seed": 5}, {"seed": [5, 5, 5, 5]}, True),
        ({}, {"metadata": {"cogs_seed": 6}}, False),
    ],
)
def test_what_makes_a_run_the_same(before: dict[str, Any], now: dict[str, Any], same: bool) -> None:
    task = "cogs_mini_fresh_gen" if "metadata" in {**before, **now} else "lieder_mini"
    assert (keys(task, **before) == keys(task, **now)) is same


def test_a_tasks_data_and_version_count_and_not_its_place(
    own_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = keys("stock_sums", folder=str(own_tasks))
    other = Path(shutil.copytree(own_tasks, tmp_path / "tasks"))
    assert keys("stock_sums", folder=str(other)) == before
    file = other / "stock_sums.yaml"
    assert keys(str(file))[str(file)] == before["stock_sums"]
    file.write_text(STOCK.replace("version: 1.0", "version: 1.1"))
    assert keys("stock_sums", folder=str(other)) != before
    (other / "sums.py").write_text("def load(**kwargs):\n    raise KeyError('rows')\n")
    with pytest.raises(
        OptionError, match=r"stock_sums: the task cannot be loaded \(KeyError: 'rows'"
    ):
        keys("stock_sums", folder=str(other))

    before = keys("cogs_mini_gen")
    monkeypatch.setattr(provenance, "of_dataset", lambda _: {
        "source": "cogs_mini", "revision": "embedded", "sha256": "0" * 64
    })  # fmt: skip
    assert keys("cogs_mini_gen") != before


def test_what_is_missing(tmp_path: Path) -> None:
    job = run.Job(ModelFile(tmp_path, "", "m", {}, "m", "", {}), {"a": "1", "b": "2"}, tmp_path, 4)
    results = {"results": {"a": {}}, "configs": {"a": {}}}
    for number, (text, missing) in enumerate(
        (
            ("{", ["a", "b"]),
            (json.dumps({**results, KEYS: {"a": "1", "b": "3"}}), ["b"]),
            (json.dumps({**results, KEYS: {"a": "3", "b": "2"}}), []),
        )
    ):
        (tmp_path / f"results_{number}.json").write_text(text)
        assert job.missing() == missing


@pytest.mark.parametrize("held", ["results_1.json", "a__b/results_1.json", "cache/a_rank0.db"])
def test_another_model_in_the_same_folder_is_refused(tmp_path: Path, held: str) -> None:
    def check(arguments: str) -> None:
        settings = {"model": "hf", "model_args": arguments}
        run.check_same_model(tmp_path, ModelFile(Path("m"), "", "m", settings, "m", "", {}))

    file = tmp_path / "model.yaml"
    file.write_text("model: hf\nmodel_args: {pretrained: a}\ndisplay_name: x\n")
    check("pretrained=b")  # it never started: an argument was misspelt
    (tmp_path / held).parent.mkdir(exist_ok=True)
    (tmp_path / held).touch()
    check("pretrained=a,num_concurrent=2")
    for text, said in ((file.read_text(), "rename the file, or remove"), ("[", "to start again")):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
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
    "nothing": [],
}


def words(bos: int) -> Any:
    return SimpleNamespace(tok_encode=lambda text: [0] * (bos + len(text.split())), tokenizer="any")


@pytest.mark.parametrize(
    ("lm", "bos"),
    [
        (words(0), 0),
        (words(1), 1),
        (SimpleNamespace(), None),
        (SimpleNamespace(tok_encode=str.split, tokenizer=None), None),
        (SimpleNamespace(tok_encode=lambda text: 1 / 0, tokenizer="any"), None),
    ],
)
def test_tokens_are_counted_once_per_document_and_with_one_bos_per_request(
    lm: Any, bos: int | None
) -> None:
    """A model that cannot count keeps its results."""
    found = noting(lambda **_: {"samples": SAMPLES}, {"a": "1"})(lm=lm)
    assert (found.pop("samples"), found.pop(KEYS)) == (SAMPLES, {"a": "1"})
    counted = bos is not None and {
        "asks": {"input": 4 + 2 * bos, "output": 6},
        "compares": {"input": 7 + 2 * bos, "output": 0},
        "nothing": {"input": 0, "output": 0},
    }
    assert found == ({"tokens": counted} if counted else {})
    assert noting(lambda **_: None, {})(lm=lm) is None, "another rank has no results"
