"""Selecting tasks by name, and finding existing results."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.model import LM
from support import logged

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.results.files import identity
from lm_eval_ext.runs.model_files import ModelFile, Resources
from lm_eval_ext.runs.present import missing
from lm_eval_ext.runs.run import check_same_model
from lm_eval_ext.runs.tasks import Selection, select

pytestmark = pytest.mark.slow

STOCK = """\
task: stock_sums
custom_dataset: !function sums.load
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

LOAD = """\
from datasets import Dataset

def load(**kwargs):
    rows = [{"question": f"{n} + 1 =", "answer": str(n + 1)} for n in range(5)]
    return {"test": Dataset.from_list(rows)}
"""


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "stock_sums.yaml").write_text(STOCK)
    (folder / "sums.py").write_text(LOAD)
    return folder


@pytest.fixture(scope="module")
def stock(own_tasks: Path) -> Selection:
    return select("stock_sums", [str(own_tasks)])


@pytest.fixture(scope="module")
def made_once(
    own_tasks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[dict[str, Any]], Path]:
    """A folder with results of stock_sums under some options."""
    known: dict[str, Path] = {}

    def make(options: dict[str, Any]) -> Path:
        key = repr(options)
        if key not in known:
            known[key] = tmp_path_factory.mktemp("made")
            evaluated(known[key], "stock_sums", [str(own_tasks)], **options)
        return known[key]

    return make


def test_own_names_need_our_folder_only() -> None:
    chosen = select("lieder_mini, cogs_mini,lieder_mini")
    assert chosen.own_only
    assert chosen.requested["lieder_mini"] == ("lieder_mini",)
    assert chosen.requested["cogs_mini"] == ("cogs_mini_id", "cogs_mini_testlex", "cogs_mini_gen")
    assert "arc_easy" not in chosen.manager.all_tasks
    assert chosen.is_group("cogs_mini")
    assert not chosen.is_group("lieder_mini")


def test_patterns_and_other_tasks_need_the_whole_index(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes seconds, so it is seen here, too, that our names are nobody else's."""
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    chosen = select("lieder*,arc_easy")
    assert {"lieder", "mmlu"} <= set(chosen.manager.all_groups)
    assert "overrides existing" not in caplog.text
    assert not chosen.own_only
    assert set(chosen.requested) == {"lieder", "lieder_fresh", "lieder_mini", "arc_easy"}, (
        "members come with the group"
    )
    assert chosen.requested["lieder"] == ("lieder_base", "lieder_diff", "lieder_two")


@pytest.mark.usefixtures("small_index")
def test_a_pattern_of_ours_leaves_the_processes_our_folder_only() -> None:
    assert select("cogs_mini_i*").own_only


def test_data_are_checked_with_a_models_own_metadata() -> None:
    selection = select("cogs_mini_fresh_gen")
    selection.check({"cogs_seed": 3})
    with pytest.raises(OptionError, match="cogs_sed"):
        selection.check({"cogs_sed": 3})


def test_a_users_folder_and_file(own_tasks: Path) -> None:
    chosen = select("stock_sums", [str(own_tasks)])
    assert chosen.own_only
    assert set(chosen.facts({})) == {"stock_sums"}
    file = str(own_tasks / "stock_sums.yaml")
    assert select(file).requested == {file: ("stock_sums",)}


@pytest.mark.usefixtures("small_index")
@pytest.mark.parametrize(
    ("names", "said"),
    [("leider_mini", "did you mean lieder_mini"), ("zzz*", "no task 'zzz\\*'"), (" ,", "no task")],
)
def test_unknown_names(names: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        select(names)


class Silent(LM):
    """Answers nothing, at once."""

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [(0.0, False) for _ in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        return [0.0 for _ in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        return ["" for _ in requests]


def evaluated(folder: Path, task: str, tasks: list[str], **options: Any) -> None:
    """Writes results as plain lm_eval does, through a model of no use."""
    config = {"model": "dummy", "model_args": {}}
    logged.evaluate(folder, Silent(), [task], include=tasks, config=config, **options)
    assert list(folder.rglob("samples_*"))


@pytest.mark.parametrize(
    ("made", "asked", "limit", "there"),
    [
        ({}, {}, None, True),
        ({"limit": 3}, {}, 3, True),
        ({"limit": 3}, {}, None, False),
        ({"limit": 3}, {}, 0.5, True),  # half of five is three, rounded up
        ({}, {}, 5, True),
        ({}, {}, 4, False),
        ({}, {"num_fewshot": 1}, None, False),
        ({}, {"system_instruction": "Be brief."}, None, False),
        ({"system_instruction": "Be brief."}, {"system_instruction": "Be brief."}, None, True),
        ({}, {"gen_kwargs": {"max_gen_toks": 3}}, None, False),
        ({"gen_kwargs": {"max_gen_toks": 3}}, {"gen_kwargs": "max_gen_toks=3"}, None, True),
        ({}, {"batch_size": 8, "device": "cpu"}, None, True),
        ({}, {"model_args": {"num_concurrent": 3}}, None, True),
        ({}, {"model_args": {"pretrained": "other"}}, None, False),
        ({}, {"apply_chat_template": True}, None, False),
        ({}, {"seed": 5}, None, False),
    ],
)
def test_results_count_if_what_was_asked_is_the_same(
    *,
    stock: Selection,
    made_once: Callable[[dict[str, Any]], Path],
    made: dict[str, Any],
    asked: dict[str, Any],
    limit: float | None,
    there: bool,
) -> None:
    """By what lm-eval's results file says."""
    found = lacking(made_once(made), stock, limit, **asked)
    assert found == ([] if there else ["stock_sums"])


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def lacking(
    folder: Path, selection: Selection, limit: float | None = None, **settings: Any
) -> list[str]:
    return missing(folder, {"model": "dummy", **settings}, selection, limit)


def test_another_version_of_a_task_is_asked_again(
    own_tasks: Path, made_once: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    folder, tasks = made_once({}), copied(own_tasks, tmp_path / "tasks")
    assert lacking(folder, select("stock_sums", [str(tasks)])) == [], "the same task elsewhere"
    file = tasks / "stock_sums.yaml"
    file.write_text(file.read_text().replace("version: 1.0", "version: 1.1"))
    assert lacking(folder, select("stock_sums", [str(tasks)])) == ["stock_sums"]


def test_our_tasks_options_and_data_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    settings = {"metadata": {"cogs_seed": 5}}
    evaluated(folder, "cogs_mini_fresh_gen", [], limit=2, **settings)
    selection = select("cogs_mini_fresh_gen")
    assert lacking(folder, selection, 2, **settings) == []
    assert lacking(folder, selection, 3, **settings) == ["cogs_mini_fresh_gen"]
    other = {"metadata": {"cogs_seed": 6}}
    assert lacking(folder, selection, 2, **other) == ["cogs_mini_fresh_gen"]
    monkeypatch.setattr(provenance, "of_dataset", lambda _: {
        "source": "cogs_mini", "revision": "embedded", "sha256": "0" * 64
    })  # fmt: skip
    assert lacking(folder, selection, 2, **settings) == ["cogs_mini_fresh_gen"], "other data"


def test_a_group_and_its_members_have_the_same_facts() -> None:
    group, member = select("cogs_mini"), select("cogs_mini_gen")
    of_group = group.facts({})
    assert set(of_group) == {"cogs_mini_id", "cogs_mini_testlex", "cogs_mini_gen"}
    of_member = member.facts({})
    assert of_member["cogs_mini_gen"] == of_group["cogs_mini_gen"]
    assert of_member["cogs_mini_gen"]["signature"]["task"] == "cogs_mini_gen"


def test_results_without_samples_do_not_count(own_tasks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    evaluated(folder, "stock_sums", [str(own_tasks)])
    for file in folder.rglob("samples_*"):
        file.unlink()
    selection = select("stock_sums", [str(own_tasks)])
    assert lacking(folder, selection) == ["stock_sums"]
    assert lacking(tmp_path / "nothing", selection) == ["stock_sums"]


@pytest.mark.parametrize("held", ["results_1.json", "a__b/results_1.json", "cache/a_rank0.db"])
def test_another_model_in_the_same_folder_is_refused(tmp_path: Path, held: str) -> None:
    def check(arguments: dict[str, Any]) -> None:
        settings = {"model": "hf", "model_args": arguments}
        file = ModelFile(Path("m"), "", "m", settings, "m", "", Resources())
        check_same_model(tmp_path, file)

    (tmp_path / "model.yaml").write_text("model: hf\nmodel_args: pretrained=a\ndisplay_name: x\n")
    check({"pretrained": "b"})  # it never started: an argument was misspelt
    (tmp_path / held).parent.mkdir(exist_ok=True)
    (tmp_path / held).touch()
    check({"pretrained": "a", "num_concurrent": 2})
    with pytest.raises(DataError, match="rename the file, or remove"):
        check({"pretrained": "b"})
    (tmp_path / "model.yaml").write_text("[")
    with pytest.raises(DataError, match="to start again"):
        check({"pretrained": "a"})


def test_where_a_model_runs_is_not_which_it_is() -> None:
    assert identity({"model": "m", "model_args": "base_url=a,model=b"}) == identity(
        {"model": "m", "model_args": {"model": "b", "base_url": "c"}}
    )
    assert identity({"model": "m"}) != identity({"model": "n"})
